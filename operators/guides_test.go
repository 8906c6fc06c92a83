package operators

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestGuidesHaveReasons: what a user finds as a reason in status is in the kind's guide, or in that of what goes wrong.
func TestGuidesHaveReasons(t *testing.T) {
	reason := regexp.MustCompile(`(?m)^\t[rR]eason\w+\s+= "(\w+)"$`)
	wrong := readFile(t, "../docs/troubleshooting.md")
	for folder, guide := range map[string]string{"at": "at.md", "memcached": "memcached.md", "webserver": "webserver.md", "etcd/cluster": "etcd.md"} {
		text := readFile(t, "../docs/"+guide) + wrong
		for _, file := range matching(t, filepath.Join(folder, "*.go")) {
			for _, match := range reason.FindAllStringSubmatch(readFile(t, file), -1) {
				if name := match[1]; name != "Ready" && !strings.Contains(text, "`"+name+"`") {
					t.Errorf("%s: neither docs/%s nor docs/troubleshooting.md says anything of the reason %s", file, guide, name)
				}
			}
		}
	}
}

// matching are the files that patterns match, each of them some.
func matching(t *testing.T, patterns ...string) (all []string) {
	t.Helper()
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		all = append(all, files...)
	}
	return all
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```")
	// anyFence is also one in a list, and unwrapped what may be long: rows of tables, and addresses.
	anyFence  = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	unwrapped = regexp.MustCompile(`^ *\||^\[[^]]+\]: `)
)

// TestIndexOfDocs: every page is in the index. Runbooks are in that of the alerts.
func TestIndexOfDocs(t *testing.T) {
	index := readFile(t, "../docs/README.md")
	for _, file := range matching(t, "../docs/*.md", "../docs/*/*.md") {
		page, isRunbook := strings.TrimPrefix(file, "../docs/"), strings.HasPrefix(file, "../docs/runbooks/")
		if page != "README.md" && !isRunbook && !strings.Contains(index, "]("+page+")") {
			t.Errorf("docs/README.md has no link to %s", page)
		}
	}
}

// TestEventsAreListed: every event that has a reason of its own is in the table of them.
func TestEventsAreListed(t *testing.T) {
	_, table, _ := strings.Cut(readFile(t, "../docs/troubleshooting.md"), "\n## Events\n")
	table, _, _ = strings.Cut(table, "\n## ")
	own, found := regexp.MustCompile(`Event\{.*?Reason: "([^"]+)"|(?m)^\tevent\w+ += "([^"]+)"$`), 0
	for _, file := range matching(t, "*/*.go", "*/*/*.go", "../internal/kit/*/*.go") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, match := range own.FindAllStringSubmatch(readFile(t, file), -1) {
			name := match[1] + match[2]
			if found++; !strings.Contains(table, "`"+name+"`") {
				t.Errorf("%s: the events in docs/troubleshooting.md have no %s", file, name)
			}
		}
	}
	if found < 15 {
		t.Errorf("%d are found, which cannot be all", found)
	}
}

// TestLabelsAreListed: every label and annotation with a prefix of the operators' own is on the page about them.
func TestLabelsAreListed(t *testing.T) {
	page, found := readFile(t, "../docs/labels.md"), 0
	prefixed := regexp.MustCompile(`(?m)(prefix \+ ")([a-z-]+)"$|"((?:(?:memcached|webserver)-operator|at\.example\.com|etcd\.database\.coreos\.com)/[a-z-]+)"$`)
	for _, file := range matching(t, "../api/*/*/*.go", "*/*.go", "*/*/*.go", "../internal/kit/*/*.go") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, match := range prefixed.FindAllStringSubmatch(readFile(t, file), -1) {
			name := match[3]
			if match[1] != "" {
				name = "etcd.database.coreos.com/" + match[2]
			}
			if found++; !strings.Contains(page, name) {
				t.Errorf("docs/labels.md has no %s, of %s", name, file)
			}
		}
	}
	if found < 30 {
		t.Errorf("%d are found, which cannot be all", found)
	}
}

// TestLinksOfGuides: each leads to a file that is there, and to a heading in it.
func TestLinksOfGuides(t *testing.T) {
	for _, file := range matching(t, "../*.md", "../docs/*.md", "../docs/*/*.md") {
		if filepath.Base(file) == "reference.md" {
			continue // generated
		}
		for _, match := range link.FindAllStringSubmatch(fenced.ReplaceAllString(readFile(t, file), ""), -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, ":") {
				continue
			}
			to := file
			if target != "" {
				to = filepath.Join(filepath.Dir(file), target)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: %v", file, err)
			} else if anchor != "" && filepath.Ext(to) == ".md" && !hasHeading(readFile(t, to), anchor) {
				t.Errorf("%s: %s has no heading #%s", file, to, anchor)
			}
		}
	}
}

// TestLinesOfGuides: prose is wrapped, so that a change of a word is a change of a line. What cannot be wrapped is a
// table, an address, or a command and its output.
func TestLinesOfGuides(t *testing.T) {
	for _, file := range matching(t, "../*.md", "../*/README.md", "../docs/*.md", "../docs/*/*.md") {
		if filepath.Base(file) == "reference.md" {
			continue // generated
		}
		for line := range strings.Lines(anyFence.ReplaceAllString(readFile(t, file), "")) {
			line = strings.TrimRight(line, "\n")
			if utf8.RuneCountInString(line) > 120 && !unwrapped.MatchString(line) {
				t.Errorf("%s: wrap this line at 120: %s", file, line)
			}
		}
	}
}

// hasHeading says whether a page has a heading with that anchor, as GitHub makes them.
func hasHeading(page, anchor string) bool {
	for _, match := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		id := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, match[1])
		if id == anchor {
			return true
		}
	}
	return false
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
