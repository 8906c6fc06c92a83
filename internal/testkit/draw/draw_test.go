package draw

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

var found []string

func TestMain(m *testing.M) {
	found = names(m)
	os.Exit(m.Run())
}

// TestNames: a binary's tests are found, and what is left out is neither drawn nor always to run.
func TestNames(t *testing.T) {
	if !slices.Contains(found, "TestNames") || !slices.Contains(found, "TestIsWhole") {
		t.Fatalf("the tests here are %v", found)
	}
	runs := map[string]int{}
	for seed := range Landings {
		t.Setenv(Seed, strconv.Itoa(seed))
		out := leftOut(slices.Clone(found), regexp.MustCompile("^TestTakes"))
		for _, name := range found {
			if !slices.Contains(out, name) {
				runs[name]++
			}
		}
	}
	for name, want := range map[string]int{"TestTakes": Landings, "TestTakesRefuses": Landings, "TestNames": 1, "TestIsWhole": 1} {
		if runs[name] != want {
			t.Errorf("of %d landings, %d run %s, want %d", Landings, runs[name], name, want)
		}
	}
}

// TestTakes: whatever seed one begins with, so many in a row take each name once, and each takes its share.
func TestTakes(t *testing.T) {
	const names = 3000
	for _, first := range []int{0, 1, 1234, 99999} {
		times, each := map[string]int{}, map[int]int{}
		for seed := first; seed < first+Landings; seed++ {
			t.Setenv(Seed, strconv.Itoa(seed))
			for n := range names {
				if name := fmt.Sprintf("write-%02d-after", n); Takes(name) {
					times[name]++
					each[seed]++
				}
			}
		}
		for name, n := range times {
			if n != 1 {
				t.Errorf("%s is taken %d times, want once", name, n)
			}
		}
		if len(times) != names {
			t.Errorf("%d of %d names are taken", len(times), names)
		}
		for seed, n := range each {
			if n < names/Landings*9/10 || n > names/Landings*11/10 {
				t.Errorf("seed %d takes %d of %d", seed, n, names)
			}
		}
	}
}

// TestOne: one of the variants is run, each by one of so many seeds in a row.
func TestOne(t *testing.T) {
	change(t, "README.md")
	for seed, want := range map[string]string{"": "[a b]", "6": "[a]", "7": "[b]"} {
		t.Setenv(Seed, seed)
		if got := fmt.Sprint(One("a", "b")); got != want {
			t.Errorf("by seed %q it is %s, want %s", seed, got, want)
		}
	}
	change(t, "go.mod")
	if got := fmt.Sprint(One("a", "b")); got != "[a b]" {
		t.Errorf("where what concerns them has changed it is %s, want all", got)
	}
}

// change goes to a repository in which that file differs from the landing before.
func change(t *testing.T, file string) {
	t.Helper()
	t.Chdir(t.TempDir())
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "--quiet")
	git("commit", "--quiet", "--allow-empty", "--message=the landing before")
	git("tag", "before")
	t.Setenv(base, "before")
	if file == "" {
		return
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	git("add", file)
}

func TestTarget(t *testing.T) {
	change(t, "operators/at/chart/values.yaml")
	takes := map[string]int{}
	for seed := range Landings {
		t.Setenv(Seed, strconv.Itoa(seed))
		for name, paths := range map[string][]string{"unchanged": {"tools/olm"}, "changed": {"tools/dist", "operators/*/chart/**"}, "without": nil} {
			if Target(name, paths...) {
				takes[name]++
			}
		}
	}
	if takes["unchanged"] != 1 || takes["without"] != 1 || takes["changed"] != Landings {
		t.Errorf("of %d landings so many run each: %v", Landings, takes)
	}
}

func TestTakesWithoutASeed(t *testing.T) {
	t.Setenv(Seed, "")
	if IsOn() || !Takes("a") || !Takes("b") {
		t.Error("without a seed, something is left out")
	}
}

func TestTakesRefuses(t *testing.T) {
	t.Setenv(Seed, "-1")
	defer func() {
		if got, want := recover(), "CI_SEED=-1: it is a number from 0 on, by which tests are drawn"; got != want {
			t.Errorf("it panics with %v, want %s", got, want)
		}
	}()
	Takes("a")
}

// TestIsWhole: a test of an operator is left out by no seed if the operator, or what all are made of, has changed.
func TestIsWhole(t *testing.T) {
	cases := map[string]struct {
		file string
		want bool
	}{
		"the operator itself":         {"operators/etcd/cluster/decide.go", true},
		"its end-to-end tests":        {"test/e2e/etcd/load_test.go", true},
		"another operator":            {"operators/memcached/decide.go", false},
		"another one's tests":         {"test/e2e/memcached/upgrade_test.go", false},
		"its API":                     {"api/etcd/v1beta2/status_types.go", true},
		"another one's API":           {"api/web/v1/webserver_types.go", false},
		"the kit":                     {"internal/kit/loop/loop.go", true},
		"a test of the kit":           {"internal/kit/loop/loop_test.go", false},
		"a dependency":                {"go.mod", true},
		"the list of operators":       {"operators/operators.go", false},
		"a folder of the same name":   {"docs/etcd/index.md", false},
		"a name that begins the same": {"operators/etcdx/doc.go", false},
		"nothing":                     {"", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv(Seed, "0")
			change(t, tc.file)
			if got := isWhole("etcd"); got != tc.want {
				t.Errorf("after a change of %s it is %v, want %v", tc.file, got, tc.want)
			}
		})
	}
	for file, want := range map[string]bool{"internal/kit/loop/loop.go": false, "test/e2e/install/trouble_test.go": true} {
		t.Run("install after "+file, func(t *testing.T) {
			t.Setenv(Seed, "0")
			change(t, file)
			if got := isWhole(install); got != want {
				t.Errorf("after a change of %s it is %v that all ways to install run, want %v", file, got, want)
			}
		})
	}
	t.Run("every API", func(t *testing.T) {
		operators := map[string]string{"at": "at", "cnat": "at", "cache": "memcached", "web": "webserver", "etcd": "etcd"}
		folders, err := filepath.Glob("../../../api/*")
		if err != nil || len(folders) != len(operators) {
			t.Fatalf("the folders are %v, want those of %v: %v", folders, operators, err)
		}
		t.Setenv(Seed, "0")
		for _, folder := range folders {
			group := filepath.Base(folder)
			change(t, filepath.Join("api", group, "types.go"))
			if !isWhole(operators[group]) {
				t.Errorf("after a change of api/%s, tests of its operator %q are left out", group, operators[group])
			}
		}
	})
	t.Run("not known", func(t *testing.T) {
		t.Setenv(Seed, "0")
		change(t, "")
		for _, commit := range []string{"", "0000000000000000000000000000000000000000"} {
			t.Setenv(base, commit)
			if !isWhole("etcd") {
				t.Errorf("where the landing before is %q, tests are left out", commit)
			}
		}
	})
}
