package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // time zones, whatever the machine has

	"github.com/spf13/cobra"

	"example.com/fairlead/internal/timespec"
)

// AddTimeZone adds the flag --tz.
func (c *CLI) AddTimeZone(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&c.timeZone, "tz", "",
		"The IANA time zone in which times are read and shown, such as Europe/Berlin (default this machine's)")
}

// Here is what the clock shows in the zone that times are read and shown in.
func (c *CLI) Here() (time.Time, error) {
	if c.timeZone == "" {
		return c.Now(), nil
	}
	zone, err := time.LoadLocation(c.timeZone)
	if err != nil {
		return time.Time{}, fmt.Errorf("--tz=%s: write a zone of the IANA time zone database, such as Europe/Berlin: %w", c.timeZone, err)
	}
	return c.Now().In(zone), nil
}

// KnowsZone returns an error if Go takes the zone that TZ names for UTC, as it does without a word with whatever it does
// not know: among them the zones that POSIX spells out, such as CET-1CEST,M3.5.0,M10.5.0/3.
func (c *CLI) KnowsZone() error {
	zone := strings.TrimPrefix(os.Getenv("TZ"), ":")
	if c.timeZone != "" || zone == "" {
		return nil
	}
	var err error
	if filepath.IsAbs(zone) {
		var data []byte
		if data, err = os.ReadFile(zone); err == nil {
			_, err = time.LoadLocationFromTZData(zone, data)
		}
	} else {
		_, err = time.LoadLocation(zone)
	}
	if err != nil {
		return fmt.Errorf("the environment has TZ=%s, which is no zone of the IANA time zone database: name one there, or with --tz, such as Europe/Berlin: %w",
			os.Getenv("TZ"), err)
	}
	return nil
}

// Say is a time in the zone of now, in UTC, and how far it is.
func Say(t, now time.Time) string {
	zone := now.Location().String()
	if zone == "Local" {
		zone = t.In(now.Location()).Format("MST")
	}
	return fmt.Sprintf("%s (%s), that is %s, %s", timespec.Say(t.In(now.Location())), zone, t.UTC().Format(time.RFC3339), Far(t, now))
}

// Far is how far a time is from now, to the second.
func Far(t, now time.Time) string {
	d := t.Sub(now.Truncate(time.Second)).Truncate(time.Second)
	switch {
	case d > 0:
		return "in " + Span(d)
	case d == 0:
		return "now"
	default:
		return Span(-d) + " ago"
	}
}

// Span is a length of time, in days where it is longer than one.
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	if d < day {
		return d.String()
	}
	return fmt.Sprintf("%dd%s", d/day, d%day)
}

// Age is how long ago a time is, to the second.
func Age(t, now time.Time) string { return Span(max(now.Sub(t), 0).Truncate(time.Second)) }

// Size is a number of bytes as people read it.
func Size(n float64) string {
	unit := 0
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for n >= 1024 && unit < len(units)-1 {
		n, unit = n/1024, unit+1
	}
	return strconv.FormatFloat(n, 'f', map[bool]int{true: 0, false: 1}[unit == 0 || n >= 100], 64) + " " + units[unit]
}

// Page is lines of a word and what there is to say of it, in the order in which they
// are shown.
type Page [][2]string

// Add adds a line, unless there is nothing to say.
func (p *Page) Add(word, format string, args ...any) {
	if text := fmt.Sprintf(format, args...); strings.TrimSpace(text) != "" {
		*p = append(*p, [2]string{word, text})
	}
}
