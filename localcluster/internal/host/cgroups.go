package host

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"example.com/fairlead/localcluster/internal/pace"
)

// A kubelet deletes the cgroups of pods that it does not know, so each node
// has a folder of its own for them, which its kubelet takes for the root. With
// cgroup v1 that is a folder in every hierarchy, with v2 there is only one.

const cgroupRoot = "/sys/fs/cgroup"

// CreateCgroups makes the cgroup folders of the cluster's nodes.
func (e Entry) CreateCgroups() error {
	for n := range e.Nodes {
		if err := createCgroup(e.Cgroup(n)); err != nil {
			return fmt.Errorf("make the cgroup folder %s: %w", e.Cgroup(n), err)
		}
	}
	return nil
}

// RenewCgroup leaves a node's cgroup folder empty, as a machine that has lost its
// power does. A kubelet that starts with those of dead containers looks for each of
// them for three seconds before it registers its node.
func RenewCgroup(name string) error {
	if err := removeCgroups(name); err != nil {
		return err
	}
	return createCgroup(name)
}

func createCgroup(name string) error {
	var fsType unix.Statfs_t
	if err := unix.Statfs(cgroupRoot, &fsType); err != nil {
		return fmt.Errorf("look at %s: %w", cgroupRoot, err)
	}
	if fsType.Type == unix.CGROUP2_SUPER_MAGIC {
		return createUnified(cgroupRoot, name)
	}
	mounts, err := cgroupMounts()
	if err != nil {
		return err
	}
	for _, mount := range mounts {
		if mount.unified {
			continue // on a hybrid system the kubelet uses the v1 hierarchies
		}
		folder := filepath.Join(mount.path, name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if mount.cpuset {
			if err := copyCpuset(mount.path, folder); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyCpuset hands on the processors and memory nodes: a new folder has none,
// and no process can be put into it until it has.
func copyCpuset(parent, child string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(child, file), value, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// createUnified makes a cgroup v2 folder and hands it the controllers that
// pods need. systemd hands its own slices the same ones, so this changes
// nothing for others.
func createUnified(root, name string) error {
	available, err := words(filepath.Join(root, "cgroup.controllers"))
	if err != nil {
		return err
	}
	enabled, err := words(filepath.Join(root, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	var missing []string
	for _, controller := range []string{"cpuset", "cpu", "io", "memory", "hugetlb", "pids"} {
		// The kubelet says which ones it cannot do without.
		if slices.Contains(available, controller) && !slices.Contains(enabled, controller) {
			missing = append(missing, "+"+controller)
		}
	}
	if len(missing) > 0 {
		if err := vacate(root); err != nil {
			return err
		}
		// All at once: with only some of them, processes could not be moved any more.
		if err := os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte(strings.Join(missing, " ")), 0o644); err != nil {
			return fmt.Errorf("enable the cgroup controllers %s in %s: %w%s", strings.Join(missing, " "), root, err, occupied(root))
		}
	}
	return os.MkdirAll(filepath.Join(root, name), 0o755)
}

// leaf is where a container's processes go: Docker in Docker calls it so, too.
const leaf = "init"

// vacate moves the processes of a container out of the folder that is its root
// of the hierarchy: a folder with processes cannot hand controllers to others.
// They stay below it, within the container's limits. The machine's own root is
// exempt, and has no cgroup.type; with systemd in the container nothing is in
// there either.
func vacate(root string) error {
	if _, err := os.Stat(filepath.Join(root, "cgroup.type")); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for range 10 { // they may start others meanwhile
		pids, err := words(filepath.Join(root, "cgroup.procs"))
		if err != nil || len(pids) == 0 {
			return err
		}
		if err := os.MkdirAll(filepath.Join(root, leaf), 0o755); err != nil {
			return err
		}
		for _, pid := range pids {
			// One that has ended cannot be moved, and need not be; of one that
			// stays, the kernel tells when the controllers are enabled.
			_ = os.WriteFile(filepath.Join(root, leaf, "cgroup.procs"), []byte(pid), 0o644)
		}
	}
	return nil
}

// occupied says what to do when processes are still there.
func occupied(root string) string {
	pids, err := words(filepath.Join(root, "cgroup.procs"))
	if err != nil || len(pids) == 0 {
		return ""
	}
	return fmt.Sprintf(": %d processes are in that folder and could not be moved to %s below it; "+
		"a container needs a cgroup namespace of its own (docker run --privileged --cgroupns=private)", len(pids), leaf)
}

func words(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	return strings.Fields(string(data)), err
}

// removeCgroups kills what is left in the cgroup folders of a cluster's nodes,
// whose names begin with that of the first, and removes them.
func removeCgroups(name string) error {
	mounts, err := cgroupMounts()
	if err != nil {
		return err
	}
	for _, mount := range mounts {
		folders, err := filepath.Glob(filepath.Join(mount.path, name+"*"))
		if err != nil {
			return err
		}
		for _, folder := range folders {
			if err := removeTree(folder); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeTree removes a cgroup folder, from the leaves up: its files cannot be
// removed, only folders without processes can. Processes that were just killed
// take a moment to leave.
func removeTree(root string) error {
	for deadline := pace.In(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		var folders []string
		_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				folders = append(folders, path)
			}
			return nil // folders vanish while we look: the next round sees
		})
		var failed error
		for _, folder := range slices.Backward(folders) {
			killAll(folder)
			if err := unix.Rmdir(folder); err != nil && !errors.Is(err, unix.ENOENT) {
				failed = fmt.Errorf("remove the cgroup folder %s: %w", folder, err)
			}
		}
		if failed == nil || deadline.Passed() {
			return failed
		}
	}
}

func killAll(folder string) {
	data, err := os.ReadFile(filepath.Join(folder, "cgroup.procs"))
	if err != nil {
		return
	}
	for line := range strings.Lines(string(data)) {
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && pid > 0 {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

type cgroupMount struct {
	path            string
	unified, cpuset bool
}

func cgroupMounts() ([]cgroupMount, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return parseCgroupMounts(file)
}

// parseCgroupMounts reads proc_pid_mountinfo(5): six fields, optional ones, a
// hyphen, then type, source and the file system's own options.
func parseCgroupMounts(mountinfo io.Reader) ([]cgroupMount, error) {
	var mounts []cgroupMount
	lines := bufio.NewScanner(mountinfo)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		hyphen := slices.Index(fields, "-")
		if hyphen < 6 || len(fields) < hyphen+4 {
			continue
		}
		switch fields[hyphen+1] {
		case "cgroup2":
			mounts = append(mounts, cgroupMount{path: fields[4], unified: true})
		case "cgroup":
			options := strings.Split(fields[hyphen+3], ",")
			mounts = append(mounts, cgroupMount{path: fields[4], cpuset: slices.Contains(options, "cpuset")})
		}
	}
	return mounts, lines.Err()
}
