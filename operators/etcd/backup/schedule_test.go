package backup

import (
	"strings"
	"testing"
	"time"
)

// TestNextTime: the format of CronJobs, by the clocks of a time zone.
func TestNextTime(t *testing.T) {
	for name, tc := range map[string]struct{ schedule, zone, from, want string }{
		"UTC is what is meant":        {"30 2 * * *", "", "2026-01-02T12:00:00Z", "2026-01-03T02:30:00Z"},
		"winter in Berlin":            {"30 2 * * *", "Europe/Berlin", "2026-01-02T12:00:00Z", "2026-01-03T01:30:00Z"},
		"summer in Berlin":            {"30 2 * * *", "Europe/Berlin", "2026-07-02T12:00:00Z", "2026-07-03T00:30:00Z"},
		"the hour that is left out":   {"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:30:00Z"},
		"in the hour after it":        {"30 2 * * *", "Europe/Berlin", "2026-03-29T01:10:00Z", "2026-03-29T01:30:00Z"},
		"after that":                  {"30 2 * * *", "Europe/Berlin", "2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"},
		"the next one, too":           {"30 2,3 * * *", "Europe/Berlin", "2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"},
		"the hour that comes twice":   {"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"},
		"not twice":                   {"30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		"nor in between":              {"30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", "2026-10-26T01:30:00Z"},
		"every hour, left out":        {"30 * * * *", "Europe/Berlin", "2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"},
		"every hour, twice":           {"30 * * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"},
		"midnight is left out":        {"0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z", "2026-04-23T22:00:00Z"},
		"a quarter":                   {"*/15 * * * *", "Asia/Kathmandu", "2026-01-02T12:00:00Z", "2026-01-02T12:15:00Z"},
		"one that is now is the last": {"0 12 * * *", "", "2026-01-02T12:00:00Z", "2026-01-03T12:00:00Z"},
		"by name":                     {"@weekly", "", "2026-01-02T12:00:00Z", "2026-01-04T00:00:00Z"},
		"leap years":                  {"0 0 29 2 *", "", "2026-01-02T12:00:00Z", "2028-02-29T00:00:00Z"},
		"never":                       {"0 0 31 2 *", "", "2026-01-02T12:00:00Z", `spec.backupPolicy.schedule: "0 0 31 2 *" is never`},
		"seconds":                     {"0 0 0 * * *", "", "2026-01-02T12:00:00Z", "is not in the format of a CronJob's schedule"},
		"an hour too many":            {"0 24 * * *", "", "2026-01-02T12:00:00Z", "is not in the format of a CronJob's schedule"},
		"a zone that is not":          {"0 0 * * *", "Europe/Atlantis", "2026-01-02T12:00:00Z", `spec.backupPolicy.timeZone: "Europe/Atlantis" is not known`},
		"the zone of a node":          {"0 0 * * *", "Local", "2026-01-02T12:00:00Z", `spec.backupPolicy.timeZone: "Local" is not known`},
	} {
		t.Run(name, func(t *testing.T) {
			from, err := time.Parse(time.RFC3339, tc.from)
			if err != nil {
				t.Fatal(err)
			}
			next, err := nextTime(tc.schedule, tc.zone, from)
			got := next.Format(time.RFC3339)
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, tc.want) {
				t.Errorf("after %s: %s, want %s", tc.from, got, tc.want)
			}
		})
	}
}
