package cli

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// The colours of a terminal, by their codes.
const (
	Red    = 31
	Green  = 32
	Yellow = 33
	Plain  = 39
)

// Colour is text in a colour of a terminal. Codes are equally long, so that columns stay in line.
func (c *CLI) Colour(code int, text string) string {
	if !c.IsTerminal || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[39m", code, text)
}

const (
	home       = "\x1b[H"
	clearLine  = "\x1b[K" // from the cursor on
	clearBelow = "\x1b[J"
)

// colourCode switches colours, and has no width.
var colourCode = regexp.MustCompile(`^\x1b\[[0-9;]*m`)

// fit is what has room in so many columns, with all colours.
func fit(line string, columns int) string {
	var fits strings.Builder
	for line != "" {
		n := len(colourCode.FindString(line))
		if n == 0 {
			_, n = utf8.DecodeRuneInString(line)
			columns--
		}
		if columns >= 0 || line[0] == '\x1b' {
			fits.WriteString(line[:n])
		}
		line = line[n:]
	}
	return fits.String()
}

// size is that of the terminal. Whatever else takes the output has room for all.
func (c *CLI) size() (columns, lines int) {
	if out, isFile := c.Out.(*os.File); isFile {
		if columns, lines, err := term.GetSize(int(out.Fd())); err == nil && columns > 0 && lines > 0 {
			return columns, lines
		}
	}
	return 1 << 20, 1 << 20
}

// Draw shows a text in place of all that the terminal shows, without a moment in which nothing is there. The last of
// its lines for which there is no room are left out, and counted.
func (c *CLI) Draw(text string) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	columns, height := c.size()
	if len(lines) >= height {
		shown := max(height-2, 0)
		lines = append(lines[:shown:shown], fmt.Sprintf("… and %d lines more", len(lines)-shown))
	}
	for i, line := range lines {
		lines[i] = clearLine + fit(line, columns)
	}
	_, _ = fmt.Fprint(c.Out, home+strings.Join(lines, "\n")+"\n"+clearBelow)
}

// Line is a line that changes, on a terminal.
type Line struct {
	*CLI
	shown string
}

// Show puts a text into the line.
func (l *Line) Show(text string) {
	if l.shown != text {
		columns, _ := l.size()
		_, _ = fmt.Fprint(l.Out, "\r"+clearLine+fit(text, columns-len("^C "))) // so that it is one line also with that
		l.shown = text
	}
}

// Clear takes the line away.
func (l *Line) Clear() {
	if l.shown != "" {
		_, _ = fmt.Fprint(l.Out, "\r"+clearLine)
		l.shown = ""
	}
}
