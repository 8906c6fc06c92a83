package report

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestRedactText(t *testing.T) {
	r := &redactor{known: map[string]bool{}, names: map[string]bool{"cache-server": true}}
	for _, value := range []string{"open sesame", "open sesame, please", "short", "cache-server"} {
		r.remember(value)
	}
	for text, want := range map[string]string{
		`he said "open sesame, please" and "open sesame"`:        `he said "REDACTED" and "REDACTED"`,
		"a short one on cache-server":                            "a short one on cache-server",
		`Secret "db-tls": tls.key is missing`:                    `Secret "db-tls": tls.key is missing`,
		`{"db_password":"a b","n":1}`:                            `{"db_password":REDACTED,"n":1}`,
		`PASSWD='x y'; API-KEY: z, more`:                         `PASSWD=REDACTED; API-KEY: REDACTED, more`,
		"Authorization: Basic dXNlcjpwYXNz":                      "Authorization: REDACTED REDACTED",
		"basic lessons, a bearer of news":                        "basic REDACTED, a bearer of news",
		"postgres://me:pw@db:5432/x and http://h/p?a=b&c=d HTTP": "postgres://REDACTED@db:5432/x and http://h/p?REDACTED HTTP",
		"what? a=b":                 "what? a=b",
		"key AKIAIOSFODNN7EXAMPLE.": "key REDACTED.",
		"x eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJtZSJ9.c2ln y":                        "x REDACTED y",
		"-----BEGIN PRIVATE KEY-----\nabc\n":                                    "REDACTED",
		"-----BEGIN EC PRIVATE KEY-----\\nabc\\n-----END EC PRIVATE KEY----- x": "REDACTED x",
	} {
		if got := r.text(text); got != want {
			t.Errorf("text(%q): %q, want %q", text, got, want)
		}
	}
}

// TestCitations: what a program quotes of a ConfigMap is taken out, in a log, in a line of JSON, and cut.
func TestCitations(t *testing.T) {
	r := &redactor{known: map[string]bool{}, names: map[string]bool{"cache-server": true}}
	r.object(map[string]any{"kind": "ConfigMap", "data": map[string]any{
		"site.conf": "open_sesame on;\nproxy_pass http://me:pw@db.internal/;\n# for cache-server, as tall as a tree",
	}}, false)
	for text, want := range map[string]string{
		`[emerg] unknown directive "open_sesame" in /etc/nginx/site.conf:1`:                  `[emerg] unknown directive "REDACTED" in /etc/nginx/site.conf:1`,
		`{"level":"error","message":"unknown directive \"open_sesame\" in \"db.internal\""}`: `{"level":"error","message":"unknown directive \"REDACTED\" in \"REDACTED\""}`,
		`Invalid command 'open_sesame', of "cache-server", "tall"`:                           `Invalid command 'REDACTED', of "cache-server", "tall"`,
		`too long parameter "open_sesam..." started`:                                         `too long parameter "REDACTED" started`,
		`an open "door", open_sesame`:                                                        `an open "door", open_sesame`,
	} {
		if got := r.text(text); got != want {
			t.Errorf("text(%q): %q, want %q", text, got, want)
		}
	}
}

func TestEndOfLog(t *testing.T) {
	const cut = "[cut: no more than the last 2000 lines and 1024 KiB of a log are taken]\n"
	line := strings.Repeat("x", 99) + "\n"
	for name, tc := range map[string]struct{ log, want string }{
		"nothing":        {"", ""},
		"short":          {"a\nb", "a\nb"},
		"as many lines":  {strings.Repeat("a\n", 2000), strings.Repeat("a\n", 2000)},
		"a line more":    {"b\n" + strings.Repeat("a\n", 2000), cut + strings.Repeat("a\n", 2000)},
		"more bytes":     {"b" + strings.Repeat(strings.Repeat("x", 1<<18-1)+"\n", 9), cut + strings.Repeat(strings.Repeat("x", 1<<18-1)+"\n", 3)},
		"one long line":  {strings.Repeat("x", 3<<20), cut + strings.Repeat("x", 1<<20)},
		"many of a page": {strings.Repeat(line, 50000), cut + strings.Repeat(line, 2000)},
	} {
		got, err := endOfLog(strings.NewReader(tc.log))
		if err != nil || got != tc.want {
			t.Errorf("%s: %d bytes that begin %.80q, %v; want %d that begin %.80q", name, len(got), got, err, len(tc.want), tc.want)
		}
	}
}

// TestOwnAnnotations: a report keeps what each operator has put on its objects.
func TestOwnAnnotations(t *testing.T) {
	found := map[string]bool{}
	for _, file := range []string{"at/annotations.go", "memcached/objects/annotations.go", "webserver/annotations.go", "etcd/annotation/annotation.go"} {
		source, err := os.ReadFile(filepath.Join("../../../operators", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, prefix := range regexp.MustCompile(`"([a-z.-]+/)`).FindAllStringSubmatch(string(source), -1) {
			all := map[string]any{prefix[1] + "x": "kept"}
			(&redactor{known: map[string]bool{}, names: map[string]bool{}}).annotations(all, false)
			if found[file] = true; all[prefix[1]+"x"] != "kept" {
				t.Errorf("%s: the annotation %sx is %q in a report", file, prefix[1], all[prefix[1]+"x"])
			}
		}
	}
	if len(found) != 4 {
		t.Errorf("annotations were found in these files only: %v", found)
	}
}
