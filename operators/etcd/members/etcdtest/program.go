package etcdtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// programsVariable names a folder with a folder for each version, such as v3.6.16, that holds
// etcd, etcdctl and etcdutl. Without it, the local cluster's program builds them.
const programsVariable = "ETCD_BINARIES"

var building sync.Mutex

// Program is the path of the program etcd of a version such as v3.6.16.
func Program(t testing.TB, version string) string {
	t.Helper()
	if dir := os.Getenv(programsVariable); dir != "" {
		program := filepath.Join(dir, version, "etcd")
		if _, err := os.Stat(program); err != nil {
			t.Fatalf("%s has no etcd %s: %v", programsVariable, version, err)
		}
		return program
	}
	building.Lock()
	defer building.Unlock()
	root := root(t)
	program := filepath.Join(root, ".cluster", "etcd", version, "etcd")
	if _, err := os.Stat(program); err == nil {
		return program
	}
	build := exec.CommandContext(t.Context(), "go", "run", ".", "etcd", "--dir", filepath.Join(root, ".cluster"), version)
	build.Dir = filepath.Join(root, "localcluster")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build etcd %s: %v\n%s", version, err, out)
	}
	return program
}

// root is the folder of the repository.
func root(t testing.TB) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(strings.TrimSpace(string(out)))
}
