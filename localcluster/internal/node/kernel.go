package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// kernelSettings are what the kubelet sets for the whole machine, below
// /proc/sys: no namespace has them for itself.
var kernelSettings = []string{
	"vm/overcommit_memory", "vm/panic_on_oom",
	"kernel/panic", "kernel/panic_on_oops",
	"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// shieldKernel puts a file of the cluster's own in the place of each of these
// settings: the kubelet reads and writes that one, and the machine stays as it
// is. What it wants are the habits of a machine that is only a node, such as
// starting again after a kernel panic.
func shieldKernel(root string, cover func(target, file string) error) error {
	own := filepath.Join(root, "run", "kernel-settings")
	for _, setting := range kernelSettings {
		target := filepath.Join(root, "proc", "sys", setting)
		value, err := os.ReadFile(target)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a kernel built without it
		}
		if err != nil {
			return err
		}
		file := filepath.Join(own, setting)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, value, 0o644); err != nil {
			return err
		}
		if err := cover(target, file); err != nil {
			return err
		}
	}
	return nil
}

// coverFile makes a path show another file.
func coverFile(target, file string) error {
	if err := unix.Mount(file, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s on %s: %w", file, target, err)
	}
	return nil
}
