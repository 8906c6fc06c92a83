package cli

import (
	"bytes"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestFit(t *testing.T) {
	for _, test := range []struct {
		line    string
		columns int
		want    string
	}{
		{"hello", 5, "hello"},
		{"hello", 4, "hell"},
		{"größe", 4, "größ"},
		{"a \x1b[31mFAILED\x1b[39m command", 8, "a \x1b[31mFAILED\x1b[39m"},
		{"a \x1b[31mFAILED\x1b[39m command", 4, "a \x1b[31mFA\x1b[39m"},
		{"hello", -1, ""},
	} {
		if got := fit(test.line, test.columns); got != test.want {
			t.Errorf("fit(%q, %d): %q, want %q", test.line, test.columns, got, test.want)
		}
	}
}

// TestDraw has no terminal whose size is known; TestKubectlOnATerminal has.
func TestDraw(t *testing.T) {
	var out bytes.Buffer
	c := New(genericiooptions.IOStreams{Out: &out})
	c.Draw("a\nb\n")
	if want := "\x1b[H\x1b[Ka\n\x1b[Kb\n\x1b[J"; out.String() != want {
		t.Errorf("draw(): %q, want %q", out.String(), want)
	}
}
