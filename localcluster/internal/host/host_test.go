package host

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestChooseNet(t *testing.T) {
	prefixes := func(list ...string) (out []netip.Prefix) {
		for _, p := range list {
			out = append(out, netip.MustParsePrefix(p))
		}
		return out
	}
	cases := map[string]struct {
		id    string
		nodes int
		taken []netip.Prefix
		want  string
	}{
		"the first":                      {id: "00000000", want: "198.18.0.0/30"},
		"where the ID says":              {id: "00000002", want: "198.18.0.8/30"},
		"an ID beyond the last":          {id: "00004001", want: "198.18.0.4/30"},
		"the next one, if it is taken":   {id: "00000002", taken: prefixes("198.18.0.8/30"), want: "198.18.0.12/30"},
		"round the end":                  {id: "00003fff", taken: prefixes("198.18.255.252/30"), want: "198.18.0.0/30"},
		"after a larger network":         {id: "00000000", taken: prefixes("198.18.0.0/24"), want: "198.18.1.0/30"},
		"others' networks do not matter": {id: "00000000", taken: prefixes("10.0.0.0/8", "172.17.0.0/16"), want: "198.18.0.0/30"},
		"an address inside":              {id: "00000000", taken: prefixes("198.18.0.2/32"), want: "198.18.0.4/30"},
		"for three nodes":                {id: "00000002", nodes: 3, want: "198.18.0.16/29"},
		"for the most that fit into it":  {id: "00000000", nodes: 5, want: "198.18.0.0/29"},
		"for one more":                   {id: "00000000", nodes: 6, want: "198.18.0.0/28"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := chooseNet(IPv4, tc.id, max(1, tc.nodes), tc.taken)
			if err != nil || got.String() != tc.want {
				t.Errorf("chooseNet() = %s, %v, want %s", got, err, tc.want)
			}
		})
	}
	if got, err := chooseNet(IPv4, "00000000", 1, prefixes("198.18.0.0/15")); err == nil {
		t.Errorf("chooseNet() = %s with everything taken, want an error", got)
	}
	if got, err := chooseNet(IPv6, "0123abcd", 1, nil); err != nil || got.String() != "fd6c:123:abcd::/64" {
		t.Errorf("chooseNet() = %s, %v with IPv6, want one with the ID in it", got, err)
	}
}

func TestFamiliesOf(t *testing.T) {
	for names, want := range map[string][]Family{
		"ipv4": {IPv4}, "ipv6": {IPv6}, "dual": {IPv4, IPv6}, "ipv6,ipv4": {IPv6, IPv4}, "IPv4": nil, "ipv4,ipv4": nil, "": nil,
	} {
		if got, err := FamiliesOf(names); !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("FamiliesOf(%q) = %v, %v, want %v", names, got, err, want)
		}
	}
}

func TestEntryAddresses(t *testing.T) {
	e := Entry{ID: id("/some/folder"), Nets: []netip.Prefix{netip.MustParsePrefix("198.18.0.8/29"), netip.MustParsePrefix("fd6c::/64")}}
	if got, want := fmt.Sprint(e.HostAddresses(), e.NodeAddresses(0), e.NodeAddresses(1), e.NodeIP(1)),
		"[198.18.0.9/29 fd6c::1/64] [198.18.0.10/29 fd6c::2/64] [198.18.0.11/29 fd6c::3/64] 198.18.0.11"; got != want {
		t.Errorf("addresses %s, want %s", got, want)
	}
	if !strings.HasPrefix(e.Cgroup(1), e.Cgroup(0)) {
		t.Errorf("the cgroup folder %s would not be removed with %s", e.Cgroup(1), e.Cgroup(0))
	}
	if len(e.Link()) > 15 {
		t.Errorf("the device's name %q is longer than the kernel takes", e.Link())
	}
}

func TestParseCgroupMounts(t *testing.T) {
	hybrid := `24 1 0:22 / /sys/fs/cgroup rw,relatime shared:1 - tmpfs tmpfs rw,mode=755
25 24 0:23 / /sys/fs/cgroup/memory rw,relatime shared:2 master:3 - cgroup cgroup rw,memory
26 24 0:24 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
27 24 0:25 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`
	got, err := parseCgroupMounts(strings.NewReader(hybrid))
	want := []cgroupMount{
		{path: "/sys/fs/cgroup/memory"},
		{path: "/sys/fs/cgroup/cpuset", cpuset: true},
		{path: "/sys/fs/cgroup/unified", unified: true},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("parseCgroupMounts() = %+v, %v, want %+v", got, err, want)
	}
}

func TestCreateUnified(t *testing.T) {
	const kernel = "cpu memory pids rdma\n"
	cases := map[string]struct {
		files   map[string]string
		enabled string // what is written last, or was there
		moved   string // the process that is moved
	}{
		"the machine's own root keeps its processes": {
			files:   map[string]string{"cgroup.controllers": kernel, "cgroup.subtree_control": "", "cgroup.procs": "1\n"},
			enabled: "+cpu +memory +pids",
		},
		"only what is missing": {
			files:   map[string]string{"cgroup.controllers": kernel, "cgroup.subtree_control": "cpu pids\n"},
			enabled: "+memory",
		},
		"nothing is missing": {
			files:   map[string]string{"cgroup.controllers": kernel, "cgroup.subtree_control": "cpu memory pids\n", "cgroup.type": "domain\n", "cgroup.procs": "7\n"},
			enabled: "cpu memory pids\n",
		},
		"a container's root": {
			files:   map[string]string{"cgroup.controllers": kernel, "cgroup.subtree_control": "", "cgroup.type": "domain\n", "cgroup.procs": "7\n"},
			enabled: "+cpu +memory +pids",
			moved:   "7",
		},
		"a container with systemd": {
			files:   map[string]string{"cgroup.controllers": kernel, "cgroup.subtree_control": "", "cgroup.type": "domain\n", "cgroup.procs": ""},
			enabled: "+cpu +memory +pids",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for name, content := range tc.files {
				if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := createUnified(root, "localcluster-1"); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(filepath.Join(root, "localcluster-1")); err != nil || !info.IsDir() {
				t.Errorf("no folder: %v", err)
			}
			if got, _ := os.ReadFile(filepath.Join(root, "cgroup.subtree_control")); string(got) != tc.enabled {
				t.Errorf("enabled %q, want %q", got, tc.enabled)
			}
			if got, _ := os.ReadFile(filepath.Join(root, leaf, "cgroup.procs")); string(got) != tc.moved {
				t.Errorf("moved process %q, want %q", got, tc.moved)
			}
		})
	}
}

func TestCreateUnifiedSaysWhatToDo(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{"cgroup.controllers": "cpu\n", "cgroup.type": "domain\n", "cgroup.procs": "0\n0\n"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// It can be read, and a write fails.
	if err := os.Symlink("/proc/version", filepath.Join(root, "cgroup.subtree_control")); err != nil {
		t.Fatal(err)
	}
	err := createUnified(root, "localcluster-1")
	if err == nil || !strings.Contains(err.Error(), "2 processes") || !strings.Contains(err.Error(), "--cgroupns=private") {
		t.Errorf("createUnified() = %v, want the processes and what to do", err)
	}
}

func TestRemoveTree(t *testing.T) {
	root := filepath.Join(t.TempDir(), "localcluster-1")
	if err := os.MkdirAll(filepath.Join(root, "kubepods/burstable/pod1/c1"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := removeTree(root); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(root); !os.IsNotExist(err) {
		t.Errorf("%s is still there", root)
	}
}

func TestStartTime(t *testing.T) {
	stat := "42 (a (odd) name) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 10 18446744073709551615"
	if got, err := startTime(stat); err != nil || got != "98765" {
		t.Errorf("startTime() = %q, %v, want 98765", got, err)
	}
	if _, err := startTime("42 (x) S 1"); err == nil {
		t.Error("startTime() of a short line: no error")
	}
}

func TestProcessKillIsForThatProcessOnly(t *testing.T) {
	self, err := ProcessOf(os.Getpid())
	if err != nil || !self.exists() {
		t.Fatalf("this process does not exist: %v", err)
	}
	// An earlier process with this one's number is gone: there is nothing to kill.
	earlier := Process{PID: self.PID, Started: "1"}
	if err := earlier.kill(); err != nil {
		t.Error(err)
	}
}
