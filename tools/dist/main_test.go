package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// current is the version that is made from the files here, and out where the
// tests find what was made of all versions.
var current, out string

const repo = "../.."

// TestMain makes the bundles, the catalog and the charts once for all tests.
func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	fail := func(err error) int {
		fmt.Fprintf(os.Stderr, "make what is tested: %v\n", err)
		return 1
	}
	released, err := readReleases(filepath.Join(repo, "hack", "releases"))
	if err != nil {
		return fail(err)
	}
	if out, err = os.MkdirTemp("", "dist-test-"); err != nil {
		return fail(err)
	}
	defer func() { _ = os.RemoveAll(out) }()
	current = "999.0.0" // later than any
	for _, version := range append(released, past{version: current}) {
		if err := makeAll(version.version, out); err != nil {
			return fail(err)
		}
	}
	return m.Run()
}

// base is a place in a registry, as a publisher has one.
const base = "registry.example.com/you/fairlead"

func makeAll(version, to string) error {
	r, err := open(options{repo: repo, out: to, version: version, base: base, operator: all, platforms: []string{"linux/" + runtime.GOARCH}})
	if err != nil {
		return err
	}
	defer r.close()
	for _, step := range []func() error{r.writeYAML, r.writeCharts, r.writeBundles, r.writeCatalog} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// glob is the files of the output folder, at least one.
func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(out, pattern))
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %v, %v", pattern, found, err)
	}
	return found
}
