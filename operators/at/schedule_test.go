package at

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

func TestInstant(t *testing.T) {
	cases := map[string]struct{ schedule, zone, want string }{
		"UTC":                       {"2030-01-31T08:00:00Z", "", "2030-01-31T08:00:00Z"},
		"an offset":                 {"2030-01-31T08:00:00+05:30", "", "2030-01-31T02:30:00Z"},
		"a fraction":                {"2030-01-31T08:00:00.123456789-01:00", "", "2030-01-31T09:00:00.123456789Z"},
		"a zone in winter":          {"2030-01-31T08:00:00", "Europe/Berlin", "2030-01-31T07:00:00Z"},
		"a zone in summer":          {"2030-07-31T08:00:00", "Europe/Berlin", "2030-07-31T06:00:00Z"},
		"a zone, a fraction":        {"2030-07-31T08:00:00.5", "Europe/Berlin", "2030-07-31T06:00:00.5Z"},
		"the last year":             {"9999-12-31T23:59:59Z", "", "9999-12-31T23:59:59Z"},
		"skipped, west":             {"2030-03-10T02:30:00", "America/New_York", "2030-03-10T07:30:00Z"},
		"skipped, first second":     {"2030-03-10T02:00:00", "America/New_York", "2030-03-10T07:00:00Z"},
		"second before the gap":     {"2030-03-10T01:59:59", "America/New_York", "2030-03-10T06:59:59Z"},
		"second after the gap":      {"2030-03-10T03:00:00", "America/New_York", "2030-03-10T07:00:00Z"},
		"skipped, east":             {"2030-03-31T02:30:00", "Europe/Berlin", "2030-03-31T01:30:00Z"},
		"skipped, south":            {"2030-10-06T02:30:00", "Australia/Sydney", "2030-10-05T16:30:00Z"},
		"half an hour skipped":      {"2030-10-06T02:15:00", "Australia/Lord_Howe", "2030-10-05T15:45:00Z"},
		"twice, west: the first":    {"2030-11-03T01:30:00", "America/New_York", "2030-11-03T05:30:00Z"},
		"twice, east: the first":    {"2030-10-27T02:30:00", "Europe/Berlin", "2030-10-27T00:30:00Z"},
		"after it came twice":       {"2030-10-27T03:00:00", "Europe/Berlin", "2030-10-27T02:00:00Z"},
		"a whole day that was lost": {"2011-12-30T12:00:00", "Pacific/Apia", "2011-12-30T22:00:00Z"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := atv1alpha1.AtSpec{Schedule: tc.schedule}
			if tc.zone != "" {
				spec.TimeZone = &tc.zone
			}
			got, err := instant(&spec)
			if err != nil {
				t.Fatal(err)
			}
			if got.Format(time.RFC3339Nano) != tc.want {
				t.Errorf("instant() = %s, want %s", got.Format(time.RFC3339Nano), tc.want)
			}
		})
	}
}

// A clock on the wall never shows less than the schedule when it runs.
func TestInstantIsNeverEarly(t *testing.T) {
	for _, name := range []string{"America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "America/Santiago"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for wall := time.Date(2011, 1, 1, 0, 0, 0, 0, time.UTC); wall.Year() < 2013; wall = wall.Add(15 * time.Minute) {
			spec := atv1alpha1.AtSpec{Schedule: wall.Format(localLayout), TimeZone: &name}
			at, err := instant(&spec)
			if err != nil {
				t.Fatal(err)
			}
			if shown := at.In(zone).Format(localLayout); shown < spec.Schedule {
				t.Fatalf("%s: %s runs when the clock shows %s", name, spec.Schedule, shown)
			}
		}
	}
}

func TestInstantRefusesWhatItCannotRead(t *testing.T) {
	for _, spec := range []atv1alpha1.AtSpec{
		{},
		{Schedule: "tomorrow"},
		{Schedule: "2030-02-30T00:00:00Z"},
		{Schedule: "2030-02-20T00:00:00"},
		{Schedule: "2030-02-30T00:00:00", TimeZone: new("Europe/Berlin")},
		{Schedule: "2030-02-20T00:00:00", TimeZone: new("Mars/Olympus")},
	} {
		if at, err := instant(&spec); err == nil {
			t.Errorf("instant(%+v) = %v, want an error", spec, at)
		}
	}
}

// TestScheduledTimeInWindow: a share of the window that stays what it is, is never early,
// and spreads what is due together.
func TestScheduledTimeInWindow(t *testing.T) {
	const window, parts = 600, 10
	var counts [parts]int
	for i := range 1000 {
		at := anAt(spec(func(s *atv1alpha1.AtSpec) { s.WindowSeconds = window }))
		at.UID = types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i))
		got, err := scheduledTime(at)
		if err != nil {
			t.Fatal(err)
		}
		late := got.Sub(noon)
		if late < 0 || late >= window*time.Second || late%time.Millisecond != 0 {
			t.Fatalf("%s is due %s after the beginning of its window", at.UID, late)
		}
		counts[late/(window/parts*time.Second)]++
	}
	for part, n := range counts {
		if n < 60 || n > 140 {
			t.Errorf("%d of 1000 are due in part %d of the window: %v", n, part, counts)
		}
	}

	// What waits must not be moved by another version of the operator.
	at := anAt(spec(func(s *atv1alpha1.AtSpec) { s.WindowSeconds = window }))
	at.UID = "6b1e9a0c-3a55-4d52-9a39-6a1c7b6a3f10"
	if got, err := scheduledTime(at); err != nil || !got.Equal(noon.Add(596784*time.Millisecond)) {
		t.Errorf("scheduledTime() = %s, %v", got.Format(time.RFC3339Nano), err)
	}
	at.Spec.WindowSeconds = 0
	if got, err := scheduledTime(at); err != nil || !got.Equal(noon) {
		t.Errorf("without a window: %s, %v", got, err)
	}
}
