// Package draw spreads tests over several landings.
//
// Much of what is worth testing is not worth a landing's time each time. Such a test, or such a part of one, runs at one
// landing of [Landings]. Which one depends on its name and on the seed, a number in CI_SEED: a seed and the [Landings]-1
// that follow it leave nothing out. make ci takes the number of commits up to the one that it tests, so that landings of
// one commit each take turns; any other number can be given. Without a seed, everything runs.
//
// What a change is most likely to break runs at once: all tests of an operator whose files differ from those of the
// landing before, the commit CI_BASE, and all tests if what the operators share differs. Where git does not know that
// commit, all is taken for changed.
package draw

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Landings is of how many landings in a row one runs what is drawn.
const Landings = 3

// Seed is the environment variable that has the seed, and base the one with the commit of the landing before.
const (
	Seed = "CI_SEED"
	base = "CI_BASE"
)

// shared is what all operators are made of: a change there is a change of each. Tests of the kit are not: every landing runs
// them, and no operator is made of them. Nor is it a change of the ways to install them.
var shared = []string{"internal/kit", "cmd/fairlead", "go.mod"}

// install is the folder of the tests of those ways.
const install = "install"

const testsOfTheKit = "internal/kit/**/*_test.go"

// groups are the folders of api that have another name than their operator.
var groups = map[string]string{"at": "cnat", "memcached": "cache", "webserver": "web"}

// IsOn says whether something is left to other landings.
func IsOn() bool { return os.Getenv(Seed) != "" }

// seed panics if CI_SEED is no number.
func seed() uint64 {
	seed, err := strconv.ParseUint(os.Getenv(Seed), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("%s=%s: it is a number from 0 on, by which tests are drawn", Seed, os.Getenv(Seed)))
	}
	return seed
}

// Takes says whether this landing runs what has that name.
func Takes(name string) bool {
	if !IsOn() {
		return true
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return uint64(h.Sum32())%Landings == seed()%Landings
}

// One is the one of several variants of a test that this landing runs, or all: without a seed, and if a change concerns
// the test's operator.
func One[T any](variants ...T) []T {
	if isWhole() {
		return variants
	}
	return variants[seed()%uint64(len(variants)):][:1]
}

// Run is a TestMain's m.Run for the tests that this landing runs: those that were drawn, those whose names always matches,
// and all if a change concerns their operator. That is the one which a folder on the way to them is named after, or one
// of those given.
func Run(m *testing.M, always string, operators ...string) int {
	if isWhole(operators...) {
		return m.Run()
	}
	if out := leftOut(names(m), regexp.MustCompile(always)); len(out) > 0 {
		fmt.Printf("drawn for other landings than %s=%d: %s\n", Seed, seed(), strings.Join(out, " "))
		flag.Parse()
		skip := flag.Lookup("test.skip").Value
		also := "^(" + strings.Join(out, "|") + ")$"
		if before := skip.String(); before != "" {
			also = before + "|" + also
		}
		_ = skip.Set(also) // a string's never fails
	}
	return m.Run()
}

// Target says whether this landing runs what has that name and is no test of this module: it was drawn, or something at
// one of the paths has changed, which are git's patterns from the root of the repository.
func Target(name string, paths ...string) bool {
	return Takes(name) || len(paths) > 0 && hasChanged(paths...)
}

// Part skips a part of a test that this landing does not run: it was not drawn, by its name, nor does a change concern
// its operator.
func Part(t testing.TB) {
	t.Helper()
	if !isWhole() && !Takes(t.Name()) {
		t.Skipf("drawn for another landing than %s=%d", Seed, seed())
	}
}

// leftOut are the names that neither the seed takes nor the pattern matches.
func leftOut(names []string, always *regexp.Regexp) []string {
	return slices.DeleteFunc(names, func(name string) bool { return Takes(name) || always.MatchString(name) })
}

// names are those of a binary's tests, which package testing keeps to itself.
func names(m *testing.M) (all []string) {
	tests := reflect.ValueOf(m).Elem().FieldByName("tests")
	for i := range tests.Len() {
		all = append(all, tests.Index(i).FieldByName("Name").String())
	}
	return all
}

// isWhole says whether this landing runs all tests of the package.
func isWhole(operators ...string) bool {
	if !IsOn() {
		return true
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		operators = append(operators, strings.Split(strings.TrimSuffix(info.Path, ".test"), "/")...)
	}
	var paths []string
	if !slices.Contains(operators, install) {
		paths = slices.Clone(shared)
	}
	for _, operator := range operators {
		paths = append(paths, "operators/"+operator, "test/e2e/"+operator, "api/"+operator)
		if group, ok := groups[operator]; ok {
			paths = append(paths, "api/"+group)
		}
	}
	return hasChanged(paths...)
}

// hasChanged says whether anything at these paths differs from the landing before. They are git's patterns, from the root
// of the repository.
func hasChanged(paths ...string) bool {
	commit := os.Getenv(base)
	if commit == "" {
		return true
	}
	args := []string{"diff", "--quiet", commit, "--", ":(top,glob,exclude)" + testsOfTheKit}
	for _, path := range paths {
		args = append(args, ":(top,glob)"+path)
	}
	return exec.CommandContext(context.Background(), "git", args...).Run() != nil //nolint:gosec // what differs, or is not known
}
