package timespec

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// TestParse reads what is written in Berlin on Thursday, 26 November 2026, at 15:50:20.
func TestParse(t *testing.T) {
	now := time.Date(2026, 11, 26, 15, 50, 20, 900, zone(t, "Europe/Berlin"))
	for text, want := range map[string]string{
		// The examples of POSIX.
		"0730 tomorrow":             "2026-11-27T07:30:00+01:00",
		"now + 1 hour":              "2026-11-26T16:50:20+01:00",
		"0815am Jan24":              "2027-01-24T08:15:00+01:00",
		"8 :15amjan24":              "2027-01-24T08:15:00+01:00",
		"now + 1day":                "2026-11-27T15:50:20+01:00",
		"5 pm FRIday":               "2026-11-27T17:00:00+01:00",
		"17\nutc+\n30minutes":       "2026-11-26T18:30:00+01:00",
		"now":                       "2026-11-26T15:50:20+01:00",
		"now next week":             "2026-12-03T15:50:20+01:00",
		"now + 5 minutes":           "2026-11-26T15:55:20+01:00",
		"16":                        "2026-11-26T16:00:00+01:00",
		"15:50:21":                  "2026-11-26T15:50:21+01:00",
		"15:50:20":                  "2026-11-27T15:50:20+01:00", // not after now: tomorrow
		"8":                         "2026-11-27T08:00:00+01:00",
		"noon":                      "2026-11-27T12:00:00+01:00",
		"midnight":                  "2026-11-27T00:00:00+01:00",
		"midnight tomorrow":         "2026-11-27T00:00:00+01:00",
		"12am":                      "2026-11-27T00:00:00+01:00",
		"12 pm tomorrow":            "2026-11-27T12:00:00+01:00",
		"11:59pm":                   "2026-11-26T23:59:00+01:00",
		"8:00 + 2 days":             "2026-11-29T08:00:00+01:00", // from tomorrow on
		"20:00 next year":           "2027-11-26T20:00:00+01:00",
		"20:00 today + 3 hours":     "2026-11-26T23:00:00+01:00",
		"08:00 nov 30":              "2026-11-30T08:00:00+01:00",
		"08:00 november 20, 2027":   "2027-11-20T08:00:00+01:00",
		"08:00 jan 31 + 2 months":   "2027-03-31T08:00:00+02:00",
		"08:00 thursday":            "2026-12-03T08:00:00+01:00", // it is past eight
		"08:00 thu + 1 week":        "2026-12-10T08:00:00+01:00",
		"2000utc":                   "2026-11-26T21:00:00+01:00",
		"23:30 utc":                 "2026-11-27T00:30:00+01:00",
		"15:00 -05:00":              "2026-11-26T21:00:00+01:00",
		"08:00 +09:00 + 30 minutes": "2026-11-27T00:30:00+01:00",
		// Beside POSIX.
		"tomorrow 08:00":            "2026-11-27T08:00:00+01:00",
		"friday 08:00":              "2026-11-27T08:00:00+01:00",
		"fri, nov 27, 2026 8am":     "2026-11-27T08:00:00+01:00",
		"Jan 24, 2030 08:15":        "2030-01-24T08:15:00+01:00",
		"2026-12-01 8":              "2026-12-01T08:00:00+01:00",
		"8 2026-12-01":              "2026-12-01T08:00:00+01:00",
		"2026-07-01 08:00 + 1 year": "2027-07-01T08:00:00+02:00",
		"2026-12-01T08:00:30":       "2026-12-01T08:00:30+01:00",
		"2026-12-01T08:00:00Z":      "2026-12-01T09:00:00+01:00",
		"2026-12-01T08:00:00-02:30": "2026-12-01T11:30:00+01:00",
	} {
		got, err := Parse(text, now)
		if err != nil {
			t.Errorf("Parse(%q): %v", text, err)
		} else if got := got.Format(time.RFC3339Nano); got != want {
			t.Errorf("Parse(%q) = %s, want %s", text, got, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	now := time.Date(2026, 11, 26, 15, 50, 20, 0, zone(t, "Europe/Berlin"))
	for text, want := range map[string]string{
		"":                            `write, for example, "tomorrow 08:00"`,
		"25:00":                       "25 is no hour: it is from 0 to 23",
		"8:60":                        "60 is no minute",
		"830":                         "830 is no time of the day: write 08:15",
		"20261201":                    "write 08:15, or a date as 2030-01-24",
		"13pm":                        "13 pm is no hour: it is from 1 to 12",
		"tomorrow":                    "the time of day is missing",
		"08:00 09:00":                 "two times of day",
		"08:00 today tomorrow":        "two dates",
		"08:00 mon tue":               "two days of the week",
		"08:00 today":                 "Thursday 2026-11-26 08:00:00 +01:00 is in the past: now it is Thursday 2026-11-26 15:50:20 +01:00",
		"2026-11-26T08:00:00Z":        "is in the past",
		"08:00 nov 20":                `write a year, for example "November 20, 2027"`,
		"16:00 thursday":              `today is Thursday: write "today 16:00:00", or "2026-12-03 16:00:00" for a week from today`,
		"08:00 next friday":           `write "friday" for the first to come`,
		"08:00 friday 2026-11-28":     "2026-11-28 is a Saturday, not a Friday",
		"08:00 feb 30":                "2027-02-30 does not exist",
		"08:00 feb 29":                "2027-02-29 does not exist",
		"08:00 jan 31 next month":     "2027-02-31 does not exist: write the date that you mean",
		"2028-02-29 08:00 + 1 year":   "2029-02-29 does not exist",
		"08:00 jan 24 2030":           `write "January 24, 2030", or "20:30"`,
		"12/01/2026 08:00":            "differently from country to country: write 2030-01-24",
		"1.12.2026 08:00":             "differently from country to country",
		"08:00 cet":                   `"cet" is no word for a time`,
		"02:30 2027-03-28":            "02:30:00 does not exist on 2027-03-28 in Europe/Berlin: the clocks go from 02:00 to 03:00",
		"02:30 2027-10-31":            `comes twice on 2027-10-31 in Europe/Berlin: write "2027-10-31T02:30:00+02:00" or "2027-10-31T02:30:00+01:00"`,
		"now 08:00":                   `after "now" comes an increment`,
		"08:00 now":                   `"now" comes first`,
		"now + 0 minutes":             "0 is no number of what to add",
		"now + 1 fortnight":           "expected minutes, hours",
		"now + 5":                     "not the end",
		"now - 5 minutes":             `after "now" comes an increment`,
		"08:00 - 1 hour":              "nothing can be taken away from a time",
		"now + 1 hour + 30 minutes":   "after what is added comes nothing more",
		"now + 1000000 hours":         "1000000 is no number of what to add",
		"now + 999999 years":          "after the year 9998",
		"Friday 2026-11-27 08:00 +01": "expected minutes, hours", // half an offset
		"08:00; rm":                   `did not expect "; rm"`,
		"２０:00":                       "did not expect",
	} {
		got, err := Parse(text, now)
		if err == nil {
			t.Errorf("Parse(%q) = %s, want an error", text, got)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q): %q, want %q in it", text, err, want)
		}
	}
}

// TestParseAtChangesOfClocks has zones whose clocks change by another amount, at another hour, or to the south.
func TestParseAtChangesOfClocks(t *testing.T) {
	for _, tc := range []struct{ zone, now, text, want string }{
		{"Europe/Berlin", "2027-03-27T02:30:00+01:00", "now + 24 hours", "2027-03-28T03:30:00+02:00"},
		{"Europe/Berlin", "2027-03-27T02:30:00+01:00", "now + 1 day", "does not exist"},
		{"Europe/Berlin", "2027-03-27T08:00:00+01:00", "now + 1 day", "2027-03-28T08:00:00+02:00"},
		{"Europe/Berlin", "2027-10-31T00:30:00+02:00", "now + 2 hours", "2027-10-31T02:30:00+02:00"},
		{"Europe/Berlin", "2027-10-31T00:30:00+02:00", "now + 3 hours", "2027-10-31T02:30:00+01:00"},
		{"Europe/Berlin", "2027-10-31T02:10:00+01:00", "now + 5 minutes", "2027-10-31T02:15:00+01:00"},
		{"Europe/Berlin", "2027-10-31T00:30:00+02:00", "2:30", "comes twice"},
		{"Europe/Berlin", "2027-10-31T00:30:00+02:00", "03:00", "2027-10-31T03:00:00+01:00"},
		{"America/New_York", "2027-01-01T00:00:00-05:00", "02:00 mar 14", "the clocks go from 02:00 to 03:00"},
		{"America/New_York", "2027-01-01T00:00:00-05:00", "01:59:59 mar 14", "2027-03-14T01:59:59-05:00"},
		{"America/New_York", "2027-01-01T00:00:00-05:00", "07:00 utc mar 14", "2027-03-14T03:00:00-04:00"},
		{"Australia/Lord_Howe", "2027-01-01T00:00:00+11:00", "02:15 oct 3", "the clocks go from 02:00 to 02:30"},
		{"Australia/Lord_Howe", "2027-01-01T00:00:00+11:00", "01:45 apr 4", "comes twice"},
		{"Asia/Kathmandu", "2027-01-01T00:00:00+05:45", "noon", "2027-01-01T12:00:00+05:45"},
	} {
		now, err := time.Parse(time.RFC3339, tc.now)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(tc.text, now.In(zone(t, tc.zone)))
		said := got.Format(time.RFC3339)
		if err != nil {
			said = err.Error()
		}
		if !strings.Contains(said, tc.want) {
			t.Errorf("Parse(%q) in %s at %s: %s, want %s", tc.text, tc.zone, tc.now, said, tc.want)
		}
	}
}

// TestWhatIsSaidIsRead: any instant, in any zone, is read from what is said of it, and from RFC 3339.
func TestWhatIsSaidIsRead(t *testing.T) {
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia", "Africa/Casablanca"}
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	for range 20000 {
		there := zone(t, zones[r.IntN(len(zones))])
		now := time.Unix(r.Int64N(1<<32), 0).In(there)
		want := now.Add(time.Duration(r.Int64N(int64(20 * 365 * 24 * time.Hour)))).Truncate(time.Second)
		for _, text := range []string{Say(want), want.Format(time.RFC3339), Say(want.UTC()), want.UTC().Format(time.RFC3339)} {
			got, err := Parse(text, now)
			if err != nil || !got.Equal(want) || got.Location() != there {
				t.Fatalf("Parse(%q) at %s = %s, %v; want %s (seed %d)", text, now, got, err, want, seed)
			}
		}
	}
}

// FuzzParse: whatever is written is refused, or is not in the past and is said so that it is read again.
func FuzzParse(f *testing.F) {
	now := time.Date(2026, 11, 26, 15, 50, 20, 0, zone(f, "Europe/Berlin"))
	for _, text := range []string{"8 :15amjan24", "now next week", "fri 2026-11-27T08:00:00+01:00 + 3 months", "midnight jan 24, 2030", "25:00", "- :", "\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Parse(text, now)
		if err != nil {
			return
		}
		if got.Before(now) {
			t.Errorf("Parse(%q) = %s, before %s", text, got, now)
		}
		if again, err := Parse(Say(got), now); err != nil || !again.Equal(got) {
			t.Errorf("Parse(%q) = %s, but Parse(%q) = %s, %v", text, got, Say(got), again, err)
		}
	})
}
