// Package timespec reads a point in time as people write it for at(1).
//
// The grammar is that of POSIX's at utility: a time, then a date, then an
// increment, of which the last two may be left out; or "now" and an increment.
//
//	time       8, 0815, 8:15, 8:15am, noon, midnight; then UTC or an offset, +01:00
//	date       jan 24; jan 24, 2030; friday; today; tomorrow
//	increment  + 2 days, next week; of minutes, hours, days, weeks, months, years
//
// Beside it, the date may come first, be written 2030-01-24, and have its day of
// the week with it; a time may have seconds. So RFC 3339 is read, too, and so is
// what [Say] writes.
//
// What has two meanings, or none, is refused with a message that says what would
// be clear: a clock's time that daylight saving skips or repeats, a date in
// digits and slashes, "next friday". Minutes and hours are lengths of time; days
// and more are of the calendar, and keep the time on the clock.
package timespec

import (
	"errors"
	"fmt"
	"time"
)

// Say writes the time in its zone, so that [Parse] reads the same from it.
func Say(t time.Time) string { return t.Format("Monday 2006-01-02 15:04:05 -07:00") }

// Parse is the time that the text means to somebody who writes it now, in the
// zone of now. It is not before now, in whole seconds.
func Parse(text string, now time.Time) (time.Time, error) {
	now = now.Truncate(time.Second)
	tokens, err := lex(text)
	if err != nil {
		return time.Time{}, err
	}
	p := &parser{tokens: tokens}
	if err := p.timespec(); err != nil {
		return time.Time{}, err
	}
	t, err := p.spec.resolve(now)
	if err != nil {
		return time.Time{}, err
	}
	t = t.In(now.Location())
	if t.Before(now) {
		return time.Time{}, fmt.Errorf("%s is in the past: now it is %s", Say(t), Say(now))
	}
	if t.UTC().Year() > 9998 {
		return time.Time{}, errors.New("that is after the year 9998")
	}
	return t, nil
}

// spec is what was written.
type spec struct {
	isNow bool
	time  *clock
	zone  *time.Location // of the time, if one is written

	weekday   *time.Weekday
	day       *day
	daysAhead *int // of today

	increment
}

// clock is a time on the clock.
type clock struct{ hour, minute, second int }

func (c clock) String() string { return fmt.Sprintf("%02d:%02d:%02d", c.hour, c.minute, c.second) }

func (c clock) after(t time.Time) bool {
	return c.seconds() > clock{t.Hour(), t.Minute(), t.Second()}.seconds()
}

func (c clock) seconds() int { return (c.hour*60+c.minute)*60 + c.second }

// day is a day of the calendar; its year is 0 if none is written.
type day struct {
	year  int
	month time.Month
	day   int
}

func dayOf(t time.Time) day { return day{t.Year(), t.Month(), t.Day()} }

func (d day) String() string { return fmt.Sprintf("%04d-%02d-%02d", d.year, int(d.month), d.day) }

// midnight is the day's beginning in UTC, where each day has one; only what is
// the same day in all zones is read from it.
func (d day) midnight() time.Time { return time.Date(d.year, d.month, d.day, 0, 0, 0, 0, time.UTC) }

func (d day) plus(years, months, days int) day {
	return dayOf(d.midnight().AddDate(years, months, days))
}

// increment is what is added: a length of time, or days of the calendar.
type increment struct {
	length              time.Duration
	years, months, days int
}

func (s spec) resolve(now time.Time) (time.Time, error) {
	if s.isNow && s.years == 0 && s.months == 0 && s.days == 0 {
		return now.Add(s.length), nil
	}
	zone := now.Location()
	if s.zone != nil {
		zone = s.zone
	}
	there := now.In(zone)
	at := clock{there.Hour(), there.Minute(), there.Second()}
	if !s.isNow {
		if s.time == nil {
			return time.Time{}, errors.New(`the time of day is missing: write, for example, "tomorrow 08:00"`)
		}
		at = *s.time
	}
	on, err := s.on(there, at)
	if err != nil {
		return time.Time{}, err
	}
	if on, err = s.add(on); err != nil {
		return time.Time{}, err
	}
	t, err := instant(on, at, zone)
	return t.Add(s.length), err
}

// on is the day that is meant, before anything is added.
func (s spec) on(now time.Time, at clock) (day, error) {
	today := dayOf(now)
	switch {
	case s.isNow:
		return today, nil
	case s.day != nil:
		return s.thatDay(today)
	case s.daysAhead != nil:
		return s.checkWeekday(today.plus(0, 0, *s.daysAhead))
	case s.weekday != nil:
		ahead := (int(*s.weekday-now.Weekday()) + 7) % 7
		if ahead > 0 {
			return today.plus(0, 0, ahead), nil
		}
		next := today.plus(0, 0, 7)
		if at.after(now) {
			return day{}, fmt.Errorf("today is %s: write %q, or %q for a week from today",
				*s.weekday, "today "+at.String(), next.String()+" "+at.String())
		}
		return next, nil
	case at.after(now):
		return today, nil
	default:
		return today.plus(0, 0, 1), nil
	}
}

// thatDay is the day that is written; without a year, one of the months to come.
func (s spec) thatDay(today day) (day, error) {
	d := *s.day
	if d.year == 0 {
		d.year = today.year
		switch {
		case d.month < today.month:
			d.year++
		case d.month == today.month && d.day < today.day:
			return day{}, fmt.Errorf("%s is in the past: write a year, for example \"%s %d, %d\"", d, d.month, d.day, d.year+1)
		}
	}
	if dayOf(d.midnight()) != d {
		return day{}, fmt.Errorf("%s does not exist", d)
	}
	return s.checkWeekday(d)
}

func (s spec) checkWeekday(d day) (day, error) {
	if is := d.midnight().Weekday(); s.weekday != nil && is != *s.weekday {
		return day{}, fmt.Errorf("%s is a %s, not a %s", d, is, *s.weekday)
	}
	return d, nil
}

// add adds what is of the calendar. A month later than the last of January is no
// day at all.
func (i increment) add(d day) (day, error) {
	first := day{d.year, d.month, 1}.plus(i.years, i.months, 0)
	moved := day{first.year, first.month, d.day}
	if dayOf(moved.midnight()) != moved {
		return day{}, fmt.Errorf("%s does not exist: write the date that you mean", moved)
	}
	return moved.plus(0, 0, i.days), nil
}

// instant is when the clocks of a zone show that, which must be once.
func instant(d day, c clock, zone *time.Location) (time.Time, error) {
	at := func(zone *time.Location) time.Time {
		return time.Date(d.year, d.month, d.day, c.hour, c.minute, c.second, 0, zone)
	}
	shows := func(t time.Time) bool {
		return dayOf(t) == d && clock{t.Hour(), t.Minute(), t.Second()} == c
	}
	t := at(zone)
	start, end := t.ZoneBounds()
	if !shows(t) {
		change := start
		if !end.IsZero() && end.Sub(t).Abs() < t.Sub(start).Abs() {
			change = end
		}
		before := change.Add(-time.Second)
		_, offset := before.Zone()
		return time.Time{}, fmt.Errorf("%s does not exist on %s in %s: the clocks go from %s to %s", c, d, name(t),
			change.In(time.FixedZone("", offset)).Format("15:04"), change.Format("15:04"))
	}
	for _, beside := range []time.Time{start.Add(-time.Second), end} {
		if beside.IsZero() || start.IsZero() && beside.Before(t) {
			continue
		}
		_, offset := beside.Zone()
		if other := at(time.FixedZone("", offset)).In(zone); !other.Equal(t) && shows(other) {
			if other.Before(t) {
				t, other = other, t
			}
			return time.Time{}, fmt.Errorf("%s comes twice on %s in %s: write %q or %q", c, d, name(t),
				t.Format(time.RFC3339), other.Format(time.RFC3339))
		}
	}
	return t, nil
}

// name is what to call the zone of a time.
func name(t time.Time) string {
	if zone := t.Location().String(); zone != "" && zone != "Local" {
		return zone
	}
	return t.Format("MST")
}

// In is the time so far from now: as Go writes it, 1h30m, or as an increment is
// written, 2 days.
func In(text string, now time.Time) (time.Time, error) {
	if length, err := time.ParseDuration(text); err == nil {
		return Parse(Say(now.Add(length)), now)
	}
	t, err := Parse("now + "+text, now)
	if err != nil {
		return t, fmt.Errorf(`%q is no length of time, such as 2h, 1h30m, or "2 days": %w`, text, err)
	}
	return t, nil
}
