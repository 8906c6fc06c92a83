package pods

import (
	"regexp"
	"slices"
	"strings"
)

// mostWords bounds, in bytes, what is taken over of a program's last words.
const mostWords = 1024

// The levels of log lines, as nginx, Apache and many others write them: [emerg],
// or [core:emerg]. Of the ones that explain an end the gravest come first.
var (
	grave = []*regexp.Regexp{
		regexp.MustCompile(`(?i)\[([a-z0-9_]+:)?(emerg|fatal|panic)\]`),
		regexp.MustCompile(`(?i)\[([a-z0-9_]+:)?(alert|crit|critical)\]`),
		regexp.MustCompile(`(?i)\[([a-z0-9_]+:)?(error|err)\]`),
	}
	harmless = regexp.MustCompile(`(?i)\[([a-z0-9_]+:)?(warn|warning|notice|info|debug)\]`)
)

// LastWords is what matters of a termination message, as one line: from the
// first of the gravest lines on, without the harmless ones. Of a long text the
// end is kept, because programs say last why they end.
func LastWords(message string) string {
	var lines []string
	for line := range strings.Lines(message) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	for _, level := range grave {
		if i := slices.IndexFunc(lines, level.MatchString); i >= 0 {
			lines = lines[i:]
			break
		}
	}
	if said := slices.DeleteFunc(slices.Clone(lines), harmless.MatchString); len(said) > 0 {
		lines = said
	}
	words := strings.Join(lines, " ")
	if len(words) > mostWords {
		words = "… " + strings.TrimSpace(strings.ToValidUTF8(words[len(words)-mostWords:], ""))
	}
	return words
}
