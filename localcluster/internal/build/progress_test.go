package build

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// say writes lines as the go command does, a few bytes at a time.
func say(t *testing.T, p *progress, lines ...string) {
	t.Helper()
	text := strings.Join(lines, "\n") + "\n"
	for len(text) > 0 {
		n := min(7, len(text))
		if _, err := p.Write([]byte(text[:n])); err != nil {
			t.Fatal(err)
		}
		text = text[n:]
	}
}

func TestProgress(t *testing.T) {
	dir, start := t.TempDir(), time.Now()
	list := ""
	for name, size := range map[string]int{"a": 0, "b": 3 * perPackage, "c": 3 * perPackage, "fresh": 100} {
		file := name + ".go"
		if err := os.WriteFile(filepath.Join(dir, file), make([]byte, size), 0o644); err != nil {
			t.Fatal(err)
		}
		list += fmt.Sprintf(`{"ImportPath": "example.test/%s", "Dir": %q, "GoFiles": [%q], "Stale": %t}`, name, dir, file, name != "fresh")
	}
	begun := make(chan bool, 2)
	p := &progress{program: "all", begun: func() { begun <- true }}
	want := func(after time.Duration, line string) {
		t.Helper()
		if got := p.at(start.Add(after)); got != line {
			t.Errorf("after %s it says %q, want %q", after, got, line)
		}
	}

	want(0, "looking at its packages")
	say(t, p, "go: downloading example.test/m v1.0.0", "go: downloading example.test/n v1.0.0")
	want(0, "fetched 2 modules")
	say(t, p, "internal/first")
	<-begun
	want(0, "compiled 1 packages")
	if err := p.expect([]byte(list), start); err != nil {
		t.Fatal(err)
	}
	want(time.Minute, "compiled 1 of 4 packages")
	say(t, p, "example.test/a")
	want(time.Second, "compiled 2 of 4 packages")
	want(10*time.Second, "compiled 2 of 4 packages, about 1m20s to go") // an eighth of what is left, by its size
	say(t, p, "example.test/b")
	want(50*time.Second, "compiled 3 of 4 packages, about 40s to go")
	// It is looked up again: what was compiled still tells the speed.
	again := fmt.Sprintf(`{"ImportPath": "example.test/c", "Dir": %q, "GoFiles": ["c.go"], "Stale": true}`, dir)
	if err := p.expect([]byte(again), start.Add(40*time.Second)); err != nil {
		t.Fatal(err)
	}
	want(50*time.Second, "compiled 3 of 4 packages, about 40s to go")
	say(t, p, "# example.test/c", "c.go:1:1: wrong", "example.test/c")
	want(time.Minute, "linking all")
	if got := string(p.rest); got != "# example.test/c\nc.go:1:1: wrong\n" {
		t.Errorf("of the error it keeps %q", got)
	}
	select {
	case <-begun:
		t.Error("compiling has begun twice")
	default:
	}
}

func TestProgressOfOtherCommands(t *testing.T) {
	p := &progress{}
	say(t, p, "go: downloading example.test/m v1.0.0", "main.go:1:", "wrong")
	if got := string(p.rest); got != "main.go:1:\nwrong\n" {
		t.Errorf("of the error it keeps %q", got)
	}
}

func TestProgressOfTooLittle(t *testing.T) {
	p, start := &progress{}, time.Now()
	list := ""
	for i := range 60 {
		list += fmt.Sprintf(`{"ImportPath": "example.test/%d", "Stale": true}`, i)
	}
	if err := p.expect([]byte(list), start); err != nil {
		t.Fatal(err)
	}
	for compiled, want := range []string{
		"compiled 0 of 60 packages", "compiled 1 of 60 packages", "compiled 2 of 60 packages, about 29m0s to go",
	} {
		if got := p.at(start.Add(time.Minute)); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
		p.compiled = map[string]bool{}
		for i := range compiled + 1 {
			p.compiled[fmt.Sprintf("example.test/%d", i)] = true
		}
	}
}
