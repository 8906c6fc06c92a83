package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// CheckDisk tells whether containers can have their file systems in a folder,
// which they are given as overlays: it mounts one, where nobody else sees it.
// If not, the error says what to do, which costs nothing as long as nothing
// has been built.
func CheckDisk(dir string) error {
	failure := tryOverlay(dir)
	if failure == nil {
		return nil
	}
	var fsType unix.Statfs_t
	if err := unix.Statfs(dir, &fsType); err != nil {
		return err
	}
	return explainDisk(dir, failure, fsType.Type == unix.OVERLAYFS_SUPER_MAGIC)
}

func explainDisk(dir string, failure error, overlay bool) error {
	switch {
	case errors.Is(failure, unix.ENODEV):
		return errors.New("the kernel has no overlay file system, which containers need: modprobe overlay " +
			"(on the machine itself, if this is a container; after an upgrade of the kernel, restart the machine)")
	case errors.Is(failure, unix.EPERM):
		return fmt.Errorf("mounting takes root, and in a container: docker run --privileged (%w)", failure)
	case overlay:
		return fmt.Errorf("%s is on an overlay file system, as everything in a container that is not a volume, "+
			"and cannot hold the node's disk: use a folder of a volume (docker run --volume NAME:/volume): --dir /volume/cluster, "+
			"or for run TMPDIR=/volume", dir)
	}
	return fmt.Errorf("%s cannot hold the node's disk: use a folder on another file system: --dir DIR, or for run TMPDIR=DIR (%w)", dir, failure)
}

// tryOverlay mounts an overlay in a folder, in a mount namespace that ends
// with the thread it is for.
func tryOverlay(dir string) error {
	place, err := os.MkdirTemp(dir, "overlay-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(place)
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(place, name), 0o755); err != nil {
			return err
		}
	}
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread is of no use to others
		result <- func() error {
			if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
				return fmt.Errorf("make a mount namespace: %w", err)
			}
			if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
				return fmt.Errorf("make the mounts private: %w", err)
			}
			// By names without a folder: a comma in one would end the option.
			if err := unix.Chdir(place); err != nil {
				return err
			}
			if err := unix.Mount("overlay", "merged", "overlay", 0, "lowerdir=lower,upperdir=upper,workdir=work"); err != nil {
				return fmt.Errorf("mount an overlay: %w", err)
			}
			return unix.Unmount("merged", unix.MNT_DETACH)
		}()
	}()
	return <-result
}
