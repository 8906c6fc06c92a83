package timespec

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// token is a run of digits, a run of letters in small letters, or one character.
type token struct {
	text     string
	isNumber bool
	isWord   bool
}

func lex(text string) ([]token, error) {
	var tokens []token
	rest := strings.ToLower(text)
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
		first := rune(rest[0])
		switch {
		case first >= '0' && first <= '9':
			digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
			tokens = append(tokens, token{text: digits, isNumber: true})
			rest = rest[len(digits):]
		case first >= 'a' && first <= 'z':
			word := rest[:len(rest)-len(strings.TrimLeftFunc(rest, unicode.IsLetter))]
			// POSIX reads 8:15amjan24, and 17utc+30minutes.
			for _, prefix := range []string{"am", "pm", "utc"} {
				if strings.HasPrefix(word, prefix) {
					word = prefix
				}
			}
			tokens = append(tokens, token{text: word, isWord: true})
			rest = rest[len(word):]
		case strings.ContainsRune("+-:,", first):
			tokens = append(tokens, token{text: rest[:1]})
			rest = rest[1:]
		case first == '/' || first == '.':
			return nil, fmt.Errorf("%q: dates with %q are read differently from country to country: write 2030-01-24, or jan 24, 2030",
				text, first)
		default:
			return nil, fmt.Errorf("%q: did not expect %q", text, rest)
		}
	}
	return tokens, nil
}

type parser struct {
	tokens []token
	spec   spec
}

// peek is the token that comes after the next n.
func (p *parser) peek(n int) token {
	if n < len(p.tokens) {
		return p.tokens[n]
	}
	return token{}
}

func (p *parser) next() token {
	t := p.peek(0)
	p.tokens = p.tokens[min(1, len(p.tokens)):]
	return t
}

// accept takes the next token if it is one of these.
func (p *parser) accept(texts ...string) (string, bool) {
	for _, text := range texts {
		if len(p.tokens) > 0 && p.tokens[0].text == text {
			return p.next().text, true
		}
	}
	return "", false
}

// number takes a number with so many digits, from low to high.
func (p *parser) number(what string, digits, low, high int) (int, error) {
	t := p.next()
	if !t.isNumber {
		return 0, fmt.Errorf("expected %s, not %s", what, quote(t))
	}
	n, err := strconv.Atoi(t.text)
	if err != nil || len(t.text) > digits || n < low || n > high {
		return 0, fmt.Errorf("%s is no %s: it is from %d to %d", t.text, what, low, high)
	}
	return n, nil
}

func quote(t token) string {
	if t.text == "" {
		return "the end"
	}
	return strconv.Quote(t.text)
}

func (p *parser) timespec() error {
	if len(p.tokens) == 0 {
		return errors.New(`the time is missing: write, for example, "tomorrow 08:00" or "now + 5 minutes"`)
	}
	if _, isNow := p.accept("now"); isNow {
		p.spec.isNow = true
	}
	for len(p.tokens) > 0 {
		t := p.peek(0)
		var err error
		switch {
		case t.text == "+" || t.text == "next":
			err = p.increment()
		case p.spec.isNow:
			return fmt.Errorf(`after "now" comes an increment, as in "now + 5 minutes", and not %q`, t.text)
		case t.isNumber && p.peek(1).text == "-":
			err = p.isoDay()
		case t.isNumber:
			err = p.clock()
		case t.isWord:
			err = p.word()
		default:
			err = fmt.Errorf("did not expect %q", t.text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// word takes what begins with a word.
func (p *parser) word() error {
	t := p.next().text
	if weekday, isOne := find(t, 7, func(i int) string { return time.Weekday(i).String() }); isOne {
		if p.spec.weekday != nil {
			return errors.New("there are two days of the week")
		}
		p.spec.weekday = new(time.Weekday(weekday))
		p.accept(",")
		return nil
	}
	if month, isOne := find(t, 12, func(i int) string { return time.Month(i + 1).String() }); isOne {
		return p.monthDay(time.Month(month + 1))
	}
	switch t {
	case "today":
		return p.setDaysAhead(0)
	case "tomorrow":
		return p.setDaysAhead(1)
	case "noon":
		return p.setClock(clock{hour: 12})
	case "midnight":
		return p.setClock(clock{})
	case "now":
		return errors.New(`"now" comes first, as in "now + 5 minutes"`)
	}
	return fmt.Errorf("%q is no word for a time: there are now, noon, midnight, today, tomorrow, next, UTC, days, and months; "+
		"a time zone has an option of its own", t)
}

// find is the name that the word is, in full or in three letters.
func find(word string, n int, name func(int) string) (int, bool) {
	for i := range n {
		if full := strings.ToLower(name(i)); word == full || word == full[:3] {
			return i, true
		}
	}
	return 0, false
}

func (p *parser) setDaysAhead(n int) error {
	if p.spec.daysAhead != nil || p.spec.day != nil {
		return errors.New("there are two dates")
	}
	p.spec.daysAhead = &n
	return nil
}

func (p *parser) setDay(d day) error {
	if p.spec.daysAhead != nil || p.spec.day != nil {
		return errors.New("there are two dates")
	}
	p.spec.day = &d
	return nil
}

// monthDay takes what follows the name of a month: 24, or 24, 2030.
func (p *parser) monthDay(month time.Month) error {
	n, err := p.number("day of the month", 2, 1, 31)
	if err != nil {
		return err
	}
	d := day{month: month, day: n}
	if _, hasYear := p.accept(","); hasYear {
		if d.year, err = p.number("year", 4, 1970, 9998); err != nil {
			return err
		}
	} else if t := p.peek(0); t.isNumber && len(t.text) == 4 {
		return fmt.Errorf(`%s after a day may be a year or a time: write "%s %d, %s", or "%s:%s"`,
			t.text, month, n, t.text, t.text[:2], t.text[2:])
	}
	return p.setDay(d)
}

// isoDay takes 2030-01-24, and a T behind it.
func (p *parser) isoDay() error {
	year, err := p.number("year", 4, 1970, 9998)
	if err != nil {
		return fmt.Errorf("%w: write a date as 2030-01-24", err)
	}
	p.next()
	month, err := p.number("month", 2, 1, 12)
	if err != nil {
		return err
	}
	if _, goesOn := p.accept("-"); !goesOn {
		return errors.New("the day is missing: write a date as 2030-01-24")
	}
	n, err := p.number("day of the month", 2, 1, 31)
	if err != nil {
		return err
	}
	p.accept("t")
	return p.setDay(day{year, time.Month(month), n})
}

// clock takes 8, 0815, 8:15 or 8:15:30.
func (p *parser) clock() error {
	var c clock
	var err error
	if t := p.peek(0); len(t.text) == 4 && p.peek(1).text != ":" {
		p.tokens[0].text = t.text[:2]
		p.tokens = append([]token{p.tokens[0], {text: ":"}, {text: t.text[2:], isNumber: true}}, p.tokens[1:]...)
	} else if len(t.text) > 2 {
		return fmt.Errorf("%s is no time of the day: write 08:15, or a date as 2030-01-24", t.text)
	}
	if c.hour, err = p.number("hour", 2, 0, 23); err != nil {
		return err
	}
	if _, hasMinutes := p.accept(":"); hasMinutes {
		if c.minute, err = p.number("minute", 2, 0, 59); err != nil {
			return err
		}
	}
	if _, hasSeconds := p.accept(":"); hasSeconds {
		if c.second, err = p.number("second", 2, 0, 59); err != nil {
			return err
		}
	}
	return p.setClock(c)
}

// setClock takes what qualifies a time: am or pm, and a zone.
func (p *parser) setClock(c clock) error {
	if p.spec.time != nil {
		return errors.New("there are two times of day")
	}
	if half, isHalf := p.accept("am", "pm"); isHalf {
		if c.hour < 1 || c.hour > 12 {
			return fmt.Errorf("%d %s is no hour: it is from 1 to 12", c.hour, half)
		}
		c.hour %= 12
		if half == "pm" {
			c.hour += 12
		}
	}
	p.spec.time = &c
	if _, isUTC := p.accept("utc", "z"); isUTC {
		p.spec.zone = time.UTC
		return nil
	}
	sign := p.peek(0).text
	if sign == "-" || sign == "+" && p.peek(2).text == ":" {
		return p.offset()
	}
	return nil
}

// offset takes +01:00.
func (p *parser) offset() error {
	sign := p.next().text
	hours, err := p.number("hour of an offset", 2, 0, 23)
	if err != nil {
		return err
	}
	if _, hasMinutes := p.accept(":"); !hasMinutes {
		return errors.New("an offset from UTC is written -05:00; nothing can be taken away from a time")
	}
	minutes, err := p.number("minute of an offset", 2, 0, 59)
	if err != nil {
		return err
	}
	seconds := (hours*60 + minutes) * 60
	if sign == "-" {
		seconds = -seconds
	}
	p.spec.zone = time.FixedZone(fmt.Sprintf("UTC%s%02d:%02d", sign, hours, minutes), seconds)
	return nil
}

// increment takes + 2 days, or next week, which is the same as + 1 week.
func (p *parser) increment() error {
	n := 1
	if p.next().text == "+" {
		var err error
		if n, err = p.number("number of what to add", 6, 1, 999999); err != nil {
			return err
		}
	}
	period := p.next()
	i := &p.spec.increment
	if *i != (increment{}) {
		return errors.New("more than one thing is added: write it as one, as in + 90 minutes")
	}
	switch strings.TrimSuffix(period.text, "s") {
	case "minute", "min":
		i.length = time.Duration(n) * time.Minute
	case "hour":
		i.length = time.Duration(n) * time.Hour
	case "day":
		i.days = n
	case "week":
		i.days = 7 * n
	case "month":
		i.months = n
	case "year":
		i.years = n
	default:
		if _, isDay := find(period.text, 7, func(i int) string { return time.Weekday(i).String() }); isDay {
			return fmt.Errorf(`"next %s" may be in this week or the next: write %q for the first to come, or a date`, period.text, period.text)
		}
		return fmt.Errorf("expected minutes, hours, days, weeks, months or years, not %s", quote(period))
	}
	if len(p.tokens) > 0 {
		return fmt.Errorf("after what is added comes nothing more, and not %q", p.peek(0).text)
	}
	return nil
}
