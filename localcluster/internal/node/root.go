package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// clusterDir is the cluster's folder, inside.
const clusterDir = "/cluster"

// enterRoot makes the new root file system of a node and makes it the root. The
// mount namespace is a new one, so nobody outside of it sees it. dir is the
// cluster's folder.
func enterRoot(dir, name string) error {
	// Private, or the mounts below would show outside.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	state := filepath.Join(dir, StateDir, name)
	root := filepath.Join(state, "root")
	for _, folder := range []string{root, filepath.Join(state, "var"), filepath.Join(state, "tmp")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	if err := mount("tmpfs", root, "tmpfs", 0, "mode=0755"); err != nil {
		return err
	}
	steps := []func() error{
		func() error { return bindSystem(root) },
		func() error { return bind(dir, root+clusterDir, 0) },
		func() error { return bind(filepath.Join(state, "var"), root+"/var", 0) },
		func() error { return bind(filepath.Join(state, "tmp"), root+"/tmp", 0) },
		func() error { return bind("/dev", root+"/dev", unix.MS_REC) },
		func() error { return bind("/sys", root+"/sys", unix.MS_REC) },
		func() error { return mount("proc", root+"/proc", "proc", 0, "") },
		func() error { return mount("tmpfs", root+"/run", "tmpfs", 0, "mode=0755") },
		func() error { return shieldKernel(root, coverFile) },
		func() error { return os.Symlink("/run", root+"/var/run") },
		func() error { return os.Mkdir(root+"/root", 0o700) },
		func() error { return os.Chmod(root+"/tmp", os.ModeSticky|0o777) },
	}
	for _, step := range steps {
		if err := step(); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return pivot(root)
}

// bindSystem brings in the host's programs and libraries. On a merged-/usr
// system all but /usr are symbolic links into it.
func bindSystem(root string) error {
	for _, dir := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		info, err := os.Lstat(dir)
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue
		case err != nil:
			return err
		case info.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(dir)
			if err != nil {
				return err
			}
			if err := os.Symlink(target, root+dir); err != nil {
				return err
			}
		default:
			if err := bind(dir, root+dir, unix.MS_REC); err != nil {
				return err
			}
			if err := unix.Mount("", root+dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
				return fmt.Errorf("make %s read-only: %w", dir, err)
			}
		}
	}
	return nil
}

// pivot changes the root and lets go of the old one.
func pivot(root string) error {
	old := root + "/old"
	if err := os.Mkdir(old, 0o700); err != nil {
		return err
	}
	if err := unix.PivotRoot(root, old); err != nil {
		return fmt.Errorf("change the root file system: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	if err := unix.Unmount("/old", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("let go of the host's root file system: %w", err)
	}
	// Shared inside, as containerd and the kubelet need the same view of what
	// either mounts.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share the mounts inside: %w", err)
	}
	return os.Remove("/old")
}

func bind(source, target string, flags uintptr) error {
	return mount(source, target, "", unix.MS_BIND|flags, "")
}

func mount(source, target, fsType string, flags uintptr, options string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(source, target, fsType, flags, options); err != nil {
		return fmt.Errorf("mount %s on %s: %w", source, target, err)
	}
	return nil
}
