package at

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"regexp"
	"time"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/walltime"
)

var hasOffset = regexp.MustCompile(`(Z|[+-][0-9:]{5})$`)

// localLayout is RFC 3339 without the offset. Go accepts a fraction of a
// second after the seconds whether or not the layout has one.
const localLayout = "2006-01-02T15:04:05"

// instant is the moment that the schedule of an At means, in UTC.
func instant(spec *atv1alpha1.AtSpec) (time.Time, error) {
	if hasOffset.MatchString(spec.Schedule) {
		t, err := time.Parse(time.RFC3339Nano, spec.Schedule)
		if err != nil {
			return time.Time{}, fmt.Errorf("schedule %q is not an RFC 3339 date-time such as 2030-01-31T08:00:00Z", spec.Schedule)
		}
		return t.UTC(), nil
	}
	if spec.TimeZone == nil {
		return time.Time{}, fmt.Errorf("schedule %q has neither an offset nor a timeZone", spec.Schedule)
	}
	wall, err := time.Parse(localLayout, spec.Schedule)
	if err != nil {
		return time.Time{}, fmt.Errorf("schedule %q is not a date and time such as 2030-01-31T08:00:00", spec.Schedule)
	}
	zone, err := time.LoadLocation(*spec.TimeZone)
	if err != nil {
		return time.Time{}, fmt.Errorf("timeZone %q is not known to this operator: %w", *spec.TimeZone, err)
	}
	t := walltime.In(wall, zone).UTC()
	if t.Year() > 9999 {
		return time.Time{}, fmt.Errorf("schedule %q in %s is after the year 9999 in UTC, the last one that a date-time can have", spec.Schedule, *spec.TimeZone)
	}
	return t, nil
}

// scheduledTime is when an At is due, in UTC: the moment that its schedule means, and with
// windowSeconds a share of the window later.
func scheduledTime(at *atv1alpha1.At) (time.Time, error) {
	t, err := instant(&at.Spec)
	if err != nil {
		return time.Time{}, err
	}
	return t.Add(share(at)), nil
}

// share is how far into its window an At is due: less than the window, in milliseconds. It
// follows from the UID, so nothing has to be stored, and every operator finds the same. A
// change of this function moves Ats that wait.
func share(at *atv1alpha1.At) time.Duration {
	window := uint64(max(0, at.Spec.WindowSeconds)) * 1000
	if window == 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(at.UID))
	return time.Duration(binary.BigEndian.Uint64(sum[:8])%window) * time.Millisecond
}
