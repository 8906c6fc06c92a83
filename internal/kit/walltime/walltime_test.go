package walltime

import (
	"testing"
	"time"
	_ "time/tzdata"
)

func TestIn(t *testing.T) {
	const layout = "2006-01-02T15:04"
	for name, tc := range map[string]struct{ zone, wall, want string }{
		"in winter":                   {"Europe/Berlin", "2026-01-02T12:00", "2026-01-02T11:00"},
		"in summer":                   {"Europe/Berlin", "2026-07-02T12:00", "2026-07-02T10:00"},
		"skipped: after the gap":      {"Europe/Berlin", "2027-03-28T02:30", "2027-03-28T01:30"},
		"twice: the first":            {"Europe/Berlin", "2027-10-31T02:30", "2027-10-31T00:30"},
		"skipped, west of Greenwich":  {"America/New_York", "2027-03-14T02:30", "2027-03-14T07:30"},
		"by half an hour, skipped":    {"Australia/Lord_Howe", "2027-10-03T02:15", "2027-10-02T15:45"},
		"a day that is left out":      {"Pacific/Apia", "2011-12-30T12:00", "2011-12-30T22:00"},
		"a zone that does not change": {"UTC", "2027-03-28T02:30", "2027-03-28T02:30"},
	} {
		zone, err := time.LoadLocation(tc.zone)
		if err != nil {
			t.Fatal(err)
		}
		wall, err := time.Parse(layout, tc.wall)
		if err != nil {
			t.Fatal(err)
		}
		if got := In(wall, zone).UTC().Format(layout); got != tc.want {
			t.Errorf("%s: %s in %s is %s UTC, want %s", name, tc.wall, tc.zone, got, tc.want)
		}
	}
}
