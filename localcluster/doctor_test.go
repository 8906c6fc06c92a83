package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// machine is what hack/doctor.sh looks at: programs, and files below a root.
type machine struct{ programs, files map[string]string }

// goodMachine is a stock Debian 12 with Go from its makers, in which the
// programs are such that every probe works.
func goodMachine() machine {
	return machine{
		programs: map[string]string{
			"uname": "echo Linux", "id": "echo 0", "apt-get": "", "dpkg-deb": "", "mount": "", "git": "",
			"gcc": "", "node": "", "npm": "", "tmux": "", "ip": "", "nft": "", "iptables": "", "unshare": "",
			"go":   `case $1 in version) echo go version go1.26.1 linux/amd64 ;; *) case $2 in GOCACHE) echo /tmp ;; *) echo auto ;; esac ;; esac`,
			"df":   `printf 'Filesystem 1024-blocks Used Available Capacity Mounted\n/dev/vda 1 1 99999999 1%% /\n'`,
			"stat": "echo ext2/ext3",
		},
		files: map[string]string{
			"etc/os-release":                    "ID=debian\n",
			"proc/meminfo":                      "MemTotal: 6000000 kB\nMemAvailable: 5900000 kB\nSwapFree: 1000000 kB\n",
			"proc/filesystems":                  "nodev\toverlay\n",
			"proc/mounts":                       "",
			"sys/fs/cgroup/cgroup.controllers":  "cpuset cpu io memory hugetlb pids rdma\n",
			"usr/share/keyrings/nothing":        "",
			"etc/apt/sources.list.d/other.list": "deb https://mirror.example/ubuntu noble main\n",
		},
	}
}

func TestDoctor(t *testing.T) {
	cases := map[string]struct {
		target string
		change func(machine)
		want   []string // the findings have these, one each
		ways   bool     // it names what works without a node
	}{
		"nothing": {target: "test"},
		"sudo's PATH": {
			target: "demo", change: func(m machine) { delete(m.programs, "go") },
			want: []string{`sudo env "PATH=$PATH" make demo`},
		},
		"Debian 12's own Go": {
			target: "demo", change: func(m machine) { m.programs["go"] = "echo go version go1.19.8 linux/amd64" },
			want: []string{`Go 1.19 is too old, 1.26 is needed: install it (https://go.dev/doc/install), then: sudo env "PATH=/usr/local/go/bin:$PATH" make demo`},
		},
		"a Go that fetches the one it needs": {
			target: "demo", change: func(m machine) {
				m.programs["go"] = strings.ReplaceAll(m.programs["go"], "1.26.1", "1.22.5")
			},
		},
		"a Go that may not": {
			target: "demo", change: func(m machine) {
				m.programs["go"] = strings.NewReplacer("1.26.1", "1.22.5", "auto", "local").Replace(m.programs["go"])
			},
			want: []string{"Go 1.22 is too old"},
		},
		"no C compiler, for CI": {
			target: "ci", change: func(m machine) { delete(m.programs, "gcc"); delete(m.programs, "git") },
			want: []string{"apt-get install gcc libc6-dev", "apt-get install git"},
		},
		"no C compiler, for the tests of the first day": {
			target: "test", change: func(m machine) { delete(m.programs, "gcc"); delete(m.programs, "git") },
		},
		"no npm, for CI": {
			target: "ci", change: func(m machine) { delete(m.programs, "npm") },
			want: []string{"apt-get install nodejs npm"},
		},
		"no npm, for the demo": {
			target: "demo", change: func(m machine) { delete(m.programs, "npm"); delete(m.programs, "node") },
		},
		"not root": {
			ways:   true,
			target: "up", change: func(m machine) { m.programs["id"] = "echo 1000" },
			want: []string{`take root: sudo env "PATH=$PATH" make up`},
		},
		"little memory": {
			target: "demo", change: func(m machine) {
				m.files["proc/meminfo"] = "MemAvailable: 1900000 kB\nSwapFree: 0 kB\n"
			},
			want: []string{"1855 MiB of memory are free, 3 GiB are needed"},
		},
		"a container with little memory": {
			target: "demo", change: func(m machine) { m.files["sys/fs/cgroup/memory.max"] = "1073741824\n" },
			want: []string{"1024 MiB of memory are free"},
		},
		"no bridges, for CI": {
			target: "ci", change: func(m machine) { m.programs["unshare"] = `case "$*" in *"type bridge"*) exit 2 ;; esac` },
			want: []string{"modprobe -a bridge, or"},
		},
		"no bridges, for the demo": {
			target: "demo", change: func(m machine) { m.programs["unshare"] = `case "$*" in *"type bridge"*) exit 2 ;; esac` },
		},
		"a full disk": {
			target: "demo", change: func(m machine) {
				m.programs["df"] = `printf 'Filesystem 1024-blocks Used Available Capacity Mounted\n/dev/vda 1 1 1100000 1%% /\n'`
			},
			want: []string{"TMPDIR=FOLDER make demo", "GOCACHE=FOLDER make demo"},
		},
		"Ubuntu": {
			target: "demo", change: func(m machine) { m.files["etc/os-release"] = "ID=ubuntu\n" },
			want: []string{"make demo DEBIAN_MIRROR=URL", "apt-get install debian-archive-keyring"},
		},
		"another Linux": {
			ways:   true,
			target: "demo", change: func(m machine) { delete(m.programs, "apt-get"); delete(m.programs, "dpkg-deb") },
			want: []string{"no apt-get dpkg-deb: the local cluster needs Debian"},
		},
		"another system": {
			ways:   true,
			target: "demo", change: func(m machine) { m.programs["uname"] = "echo Darwin" },
			want: []string{"KUBECONFIG=FILE make install run"},
		},
		"a container's own disk": {
			target: "demo", change: func(m machine) {
				m.files[".dockerenv"] = ""
				m.programs["unshare"] = `case "$*" in *overlay*) exit 32 ;; esac`
				m.programs["stat"] = "echo overlayfs"
			},
			want: []string{"docker run --volume NAME:/volume, and TMPDIR=/volume make demo"},
		},
		"a kernel without its modules": {
			ways:   true,
			target: "demo", change: func(m machine) {
				m.files["proc/filesystems"] = "ext4\n"
				m.programs["unshare"] = `case "$*" in *overlay*|*veth*|*MASQ*|*nft*) exit 2 ;; esac`
			},
			want: []string{"modprobe -a overlay, or", "modprobe -a veth, or", "modprobe -a nft_compat nft_chain_nat xt_MASQUERADE, or"},
		},
		"the older tables only": {
			target: "demo", change: func(m machine) {
				m.programs["unshare"] = `case "$*" in *nft*|*" iptables -t"*) exit 1 ;; esac`
				m.programs["iptables-legacy"] = ""
			},
		},
		"a container without privileges": {
			ways:   true,
			target: "demo", change: func(m machine) {
				m.files[".dockerenv"] = ""
				m.programs["unshare"] = `case "$*" in *--pid*) exit 1 ;; esac`
			},
			want: []string{"namespaces of its own cannot be had here: docker run --privileged"},
		},
		"the memory controller is off": {
			target: "demo", change: func(m machine) { m.files["sys/fs/cgroup/cgroup.controllers"] = "cpuset cpu io pids\n" },
			want: []string{"controllers memory are off: add cgroup_enable=NAME"},
		},
		"cgroup v1": {
			target: "demo", change: func(m machine) {
				delete(m.files, "sys/fs/cgroup/cgroup.controllers")
				m.files["sys/fs/cgroup/memory/tasks"] = ""
				m.files["proc/mounts"] = "cgroup ROOT/sys/fs/cgroup/cpu cgroup rw,relatime,cpu,cpuacct 0 0\n" +
					"cgroup ROOT/sys/fs/cgroup/memory cgroup rw,memory 0 0\ncgroup ROOT/sys/fs/cgroup/x cgroup rw,cpuset,pids 0 0\n"
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := goodMachine()
			if tc.change != nil {
				tc.change(m)
			}
			out, code := m.doctor(t, "--quiet", tc.target)
			if (code != 0) != (len(tc.want) > 0) {
				t.Errorf("exit code %d", code)
			}
			if got := strings.Count(out, "\n  - "); got != len(tc.want) {
				t.Errorf("%d findings, want %d", got, len(tc.want))
			}
			if len(tc.want) == 0 && out != "" {
				t.Error("it is not quiet")
			}
			if got := strings.Contains(out, "make first-tests"); got != tc.ways {
				t.Errorf("it names other ways: %t, want %t", got, tc.ways)
			}
			for _, want := range tc.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q", want)
				}
			}
			if t.Failed() {
				t.Logf("it says:\n%s", out)
			}
		})
	}
}

// The list of all checks, with what is well.
func TestDoctorLists(t *testing.T) {
	m := goodMachine()
	delete(m.programs, "gcc")
	out, code := m.doctor(t, "all")
	if code == 0 || !strings.Contains(out, "ok  Go 1.26\n") || !strings.Contains(out, "!!  no C compiler") {
		t.Errorf("exit code %d, and\n%s", code, out)
	}
}

// What make does before it builds anything.
func TestMakeAsksFirst(t *testing.T) {
	const hint = "With the one of your KUBECONFIG: make install run"
	ours, err := filepath.Abs("../.cluster/kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		target, kubeconfig string
		hinted             bool
	}{
		"demo":                          {target: "demo"},
		"demo, with a cluster at hand":  {target: "demo", kubeconfig: "/somewhere/kubeconfig", hinted: true},
		"demo, with the one of make up": {target: "demo", kubeconfig: ours},
		"up, with a cluster at hand":    {target: "up", kubeconfig: "/somewhere/kubeconfig", hinted: true},
		"test":                          {target: "test", kubeconfig: "/somewhere/kubeconfig"},
		"ci":                            {target: "ci", kubeconfig: "/somewhere/kubeconfig"},
	}
	for name, tc := range cases {
		cmd := exec.Command("make", "--directory=..", "--no-print-directory", tc.target,
			"DOCTOR=sh -c 'echo asked for $$2; exit 1' doctor")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "KUBECONFIG=" + tc.kubeconfig}
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "asked for "+tc.target) || strings.Contains(string(out), "go build") {
			t.Errorf("%s: it does not stop when the machine lacks something (%v):\n%s", name, err, out)
		}
		if strings.Contains(string(out), hint) != tc.hinted {
			t.Errorf("%s: how to use the cluster of the user's: want %t, in\n%s", name, tc.hinted, out)
		}
	}
}

// doctor runs the script with nothing but the machine's programs and a few
// that it may count on.
func (m machine) doctor(t *testing.T, args ...string) (string, int) {
	t.Helper()
	bin, root := t.TempDir(), t.TempDir()
	for _, name := range []string{"sh", "sed", "awk", "grep", "tr", "cat", "dirname", "mktemp", "mkdir", "rmdir", "rm"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, body := range m.programs {
		writeFile(t, filepath.Join(bin, name), "#!/bin/sh\n"+body+"\n", 0o755)
	}
	for name, content := range m.files {
		writeFile(t, filepath.Join(root, name), strings.ReplaceAll(content, "ROOT", root), 0o644)
	}
	cmd := exec.Command("../hack/doctor.sh", args...)
	cmd.Env = []string{"PATH=" + bin, "DOCTOR_ROOT=" + root, "TMPDIR=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func writeFile(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}
