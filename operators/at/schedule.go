package at

import (
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
