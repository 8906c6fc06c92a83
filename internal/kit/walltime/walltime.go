// Package walltime is about times as the clocks of a place show them: some come twice, and some
// not at all.
package walltime

import "time"

// In is the instant at which the clocks of a zone show what wall shows in UTC. A time that comes twice
// means its first occurrence. A time that is skipped is taken with the offset in force before the gap
// (RFC 5545, section 3.3.5), so it is after the gap and never early; time.Date may put it before.
func In(wall time.Time, zone *time.Location) time.Time {
	// No zone changes twice within a day, so the offset a day before is the
	// one in force before a change near wall, if there is one.
	_, before := wall.Add(-24 * time.Hour).In(zone).Zone()
	_, after := wall.Add(24 * time.Hour).In(zone).Zone()
	early := wall.Add(-time.Duration(max(before, after)) * time.Second)
	late := wall.Add(-time.Duration(min(before, after)) * time.Second)
	for _, candidate := range []time.Time{early, late} {
		if Shown(candidate, zone).Equal(wall) {
			return candidate.In(zone)
		}
	}
	return wall.Add(-time.Duration(before) * time.Second).In(zone)
}

// Shown is what the clocks of a zone show at an instant, as a time in UTC.
func Shown(at time.Time, zone *time.Location) time.Time {
	_, offset := at.In(zone).Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}
