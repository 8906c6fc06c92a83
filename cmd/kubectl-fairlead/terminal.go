package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

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
func (c *cli) size() (columns, lines int) {
	if out, isFile := c.Out.(*os.File); isFile {
		if columns, lines, err := term.GetSize(int(out.Fd())); err == nil && columns > 0 && lines > 0 {
			return columns, lines
		}
	}
	return 1 << 20, 1 << 20
}

// draw shows a text in place of all that the terminal shows, without a moment in which nothing is there. The last of
// its lines for which there is no room are left out, and counted.
func (c *cli) draw(text string) {
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

// changing is a line that changes, on a terminal.
type changing struct {
	*cli
	shown string
}

// show puts a text into the line.
func (l *changing) show(text string) {
	if l.shown != text {
		columns, _ := l.size()
		_, _ = fmt.Fprint(l.Out, "\r"+clearLine+fit(text, columns-len("^C "))) // so that it is one line also with that
		l.shown = text
	}
}

// clear takes the line away.
func (l *changing) clear() {
	if l.shown != "" {
		_, _ = fmt.Fprint(l.Out, "\r"+clearLine)
		l.shown = ""
	}
}
