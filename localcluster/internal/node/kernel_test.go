package node

import (
	"os"
	"path/filepath"
	"testing"
)

func TestShieldKernel(t *testing.T) {
	root := t.TempDir()
	proc := filepath.Join(root, "proc", "sys")
	for _, setting := range kernelSettings[1:] { // this kernel lacks one of them
		if err := os.MkdirAll(filepath.Dir(filepath.Join(proc, setting)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, setting), []byte("host\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	mounted := map[string]string{}
	err := shieldKernel(root, func(target, file string) error {
		mounted[target] = file
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(mounted) != len(kernelSettings)-1 {
		t.Errorf("%d settings are shielded, want %d", len(mounted), len(kernelSettings)-1)
	}
	for target, file := range mounted {
		if value, err := os.ReadFile(file); err != nil || string(value) != "host\n" {
			t.Errorf("in the place of %s is %q (%v), want the host's value", target, value, err)
		}
	}
}
