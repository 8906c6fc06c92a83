package build

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// progress says how far a build is: how many modules were fetched, how many of
// how many packages are compiled, and how long the rest takes at the same speed.
// The compiler needs about as long for a package as its source is large, so that
// is what the time goes by, and not the number of packages.
//
// It says nothing of a build that is over within a second.
type progress struct {
	title, program string
	begun          func() // is called when the first package is compiled

	mu       sync.Mutex
	line     []byte          // of which the end has not been read
	rest     []byte          // what is not about progress: it tells of an error
	fetched  int             // modules
	compiled map[string]bool // packages, by their import paths
	sizes    map[string]int  // of the packages that were to be compiled, since it was looked up first
	since    time.Time       // when that was
}

// perPackage is what a package costs however small it is, in bytes of source.
const perPackage = 8 << 10

// Write takes what the go command writes to its standard error, with -v.
func (p *progress) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line = append(p.line, text...)
	for {
		end := bytes.IndexByte(p.line, '\n')
		if end < 0 {
			return len(text), nil
		}
		p.read(p.line[:end+1])
		p.line = p.line[end+1:]
	}
}

func (p *progress) read(line []byte) {
	switch word := string(bytes.TrimSpace(line)); {
	case strings.HasPrefix(word, "go: downloading "):
		p.fetched++
	case word == "" || p.begun == nil || strings.ContainsAny(word, " \t"):
		p.rest = append(p.rest, line...)
	default: // an import path
		if p.compiled == nil {
			p.compiled = map[string]bool{}
			go p.begun()
		}
		p.compiled[word] = true
	}
}

// expect takes what go list -json says of the packages that are to be compiled.
func (p *progress) expect(list []byte, now time.Time) error {
	sizes := map[string]int{}
	for packages := json.NewDecoder(bytes.NewReader(list)); ; {
		var pkg struct {
			ImportPath, Dir string
			GoFiles         []string
			Stale           bool
		}
		if err := packages.Decode(&pkg); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if !pkg.Stale {
			continue
		}
		sizes[pkg.ImportPath] = perPackage
		for _, file := range pkg.GoFiles {
			if about, err := os.Stat(filepath.Join(pkg.Dir, file)); err == nil {
				sizes[pkg.ImportPath] += int(about.Size())
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.compiled {
		if size, counted := p.sizes[name]; counted {
			sizes[name] = size
		} else {
			delete(sizes, name) // it was compiled before there was anything to compare its time with
		}
	}
	if p.sizes == nil {
		p.since = now
	}
	p.sizes = sizes
	return nil
}

// String is how far it is, as one line.
func (p *progress) String() string { return p.at(time.Now()) }

func (p *progress) at(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case len(p.compiled) == 0 && p.sizes == nil && p.fetched == 0:
		return "looking at its packages"
	case len(p.compiled) == 0 && p.sizes == nil:
		return fmt.Sprintf("fetched %d modules", p.fetched)
	case p.sizes == nil:
		return fmt.Sprintf("compiled %d packages", len(p.compiled))
	}
	var done, left int
	total := len(p.compiled)
	for name, size := range p.sizes {
		if p.compiled[name] {
			done += size
		} else {
			left += size
			total++
		}
	}
	if left == 0 {
		return "linking " + p.program
	}
	line := fmt.Sprintf("compiled %d of %d packages", len(p.compiled), total)
	// How long, and what part of all has to be done before the speed is known.
	const enough, part = 5 * time.Second, 50
	if took := now.Sub(p.since); took >= enough && done > 0 && done*part >= done+left {
		left := time.Duration(float64(took) * float64(left) / float64(done))
		line += fmt.Sprintf(", about %s to go", max(left.Round(5*time.Second), 5*time.Second))
	}
	return line
}

// tell writes the progress until the build is over: to a terminal as one line
// that changes, to anything else as one every quarter of a minute.
func (p *progress) tell(building <-chan struct{}, out io.Writer) {
	select {
	case <-building:
		return
	case <-time.After(time.Second):
	}
	fmt.Fprintln(out, p.title)
	format, every := "  %s\n", 15*time.Second
	if file, ok := out.(*os.File); ok && isTerminal(file) {
		format, every = "\r\033[K  %s", time.Second
		defer fmt.Fprint(out, "\r\033[K")
	}
	for ticks := time.NewTicker(every); ; {
		select {
		case <-building:
			ticks.Stop()
			return
		case <-ticks.C:
			fmt.Fprintf(out, format, p)
		}
	}
}

func isTerminal(file *os.File) bool {
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}
