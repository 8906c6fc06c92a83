package testkit

import (
	"net/url"
	"testing"
)

func TestExcerpt(t *testing.T) {
	const log = "one\ntwo\nthree\n"
	for options, want := range map[string]string{
		"":                         log,
		"tailLines=2":              "two\nthree\n",
		"tailLines=9":              log,
		"tailLines=0":              "",
		"limitBytes=5":             "one\nt",
		"tailLines=2&limitBytes=5": "two\nt",
	} {
		values, err := url.ParseQuery(options)
		if err != nil {
			t.Fatal(err)
		}
		if got := excerpt(log, values); got != want {
			t.Errorf("excerpt(%s) = %q, want %q", options, got, want)
		}
	}
}
