package status

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestShortened(t *testing.T) {
	if got := Shortened("a\n b\t\tc "); got != "a b c" {
		t.Errorf("Shortened() = %q", got)
	}
	if got := Shortened(strings.Repeat("ä", longest)); len(got) > longest+len(" …") || !utf8.ValidString(got) || !strings.HasSuffix(got, " …") {
		t.Errorf("a long message became %d bytes: %q", len(got), got)
	}
}
