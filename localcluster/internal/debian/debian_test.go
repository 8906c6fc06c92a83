package debian

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"nginx_1.22.1-9+deb12u3_amd64.deb", "busybox-static_1%3a1.35.0-4+b4_amd64.deb"} {
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]struct{ version, upstream string }{
		"nginx":          {"1.22.1-9+deb12u3", "1.22.1"},
		"busybox-static": {"1:1.35.0-4+b4", "1.35.0"},
	}
	for name, want := range cases {
		pkg, ok := find(dir, name)
		if !ok || pkg.Version != want.version || pkg.Upstream() != want.upstream {
			t.Errorf("find(%s) = %+v (upstream %s), %t, want %+v", name, pkg, pkg.Upstream(), ok, want)
		}
	}
	if _, ok := find(dir, "busybox"); ok {
		t.Error("find(busybox) found busybox-static")
	}
}

func TestUpstream(t *testing.T) {
	cases := map[string]string{
		"1.6.20~ds1-1+deb12u1": "1.6.20",
		"1.1.5+ds1-1":          "1.1.5",
		"1.6.38-1":             "1.6.38",
		"3.5":                  "3.5",
	}
	for version, want := range cases {
		if got := (Package{Version: version}).Upstream(); got != want {
			t.Errorf("Upstream(%s) = %s, want %s", version, got, want)
		}
	}
}

func TestSourceLine(t *testing.T) {
	const debianMirrors = "/etc/apt/mirrors/debian.list"
	cases := map[string]struct {
		files map[string]string
		env   string
		want  string // the mirror, or the error has it
	}{
		"one line": {
			files: map[string]string{"/etc/apt/sources.list": "# comment\ndeb https://third.example/apt stable main\n" +
				"deb [arch=amd64 signed-by=/k] https://third.example/debian bookworm main\n" +
				"deb https://third.example/linux/debian bookworm stable\n" +
				"deb [arch=amd64] https://mirror.example/debian bookworm main\n"},
			want: "https://mirror.example/debian",
		},
		"deb822": {
			files: map[string]string{"/etc/apt/sources.list.d/all.sources": "Types: deb\nURIs: https://third.example/debian\nSuites: a\nComponents: main\nSigned-By: /third.gpg\n\n" +
				"Enabled: no\nTypes: deb\nURIs: https://off.example/debian/\nSuites: bookworm\nComponents: main\n\n" +
				"Types: deb\nURIs: https://mirror.example/debian/\nSuites: bookworm\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"},
			want: "https://mirror.example/debian/",
		},
		"Debian's cloud images": {
			files: map[string]string{
				"/etc/apt/sources.list.d/debian.sources": "Types: deb deb-src\nURIs: mirror+file:///etc/apt/mirrors/debian-security.list\nSuites: bookworm-security\nComponents: main\n\n" +
					"Types: deb deb-src\nURIs: mirror+file:///etc/apt/mirrors/debian.list\nSuites: bookworm bookworm-updates\nComponents: main\n",
				debianMirrors:                           "# by cloud-init\nhttps://mirror.example/debian\tpriority:1\nhttps://other.example/x\n",
				"/etc/apt/mirrors/debian-security.list": "https://mirror.example/debian-security\n",
			},
			want: "mirror+file:///etc/apt/mirrors/debian.list",
		},
		"a list of mirrors on one line, with one slash": {
			files: map[string]string{"/etc/apt/sources.list": "deb mirror+file:/etc/apt/mirrors/debian.list trixie main contrib\n", debianMirrors: "https://mirror.example/debian/\n"},
			want:  "mirror+file:/etc/apt/mirrors/debian.list",
		},
		"a mirror with a folder of its own, by the keys": {
			files: map[string]string{"/etc/apt/sources.list.d/debian.sources": "Types: deb\nURIs: https://mirror.example/debian/packages\nSuites: trixie\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.pgp\n"},
			want:  "https://mirror.example/debian/packages",
		},
		"security only": {
			files: map[string]string{"/etc/apt/sources.list": "deb https://mirror.example/debian-security bookworm-security main\n"},
			want:  "DEBIAN_MIRROR",
		},
		"a file that apt does not read": {
			files: map[string]string{"/etc/apt/sources.list.d/old.list.save": "deb https://mirror.example/debian bookworm main\n"},
			want:  "DEBIAN_MIRROR",
		},
		"Ubuntu, deb822": {
			files: map[string]string{"/etc/apt/sources.list.d/ubuntu.sources": "Types: deb\nURIs: https://mirror.example/ubuntu/\nSuites: noble noble-updates\nComponents: main universe\nSigned-By: /usr/share/keyrings/ubuntu-archive-keyring.gpg\n"},
			want:  "DEBIAN_MIRROR",
		},
		"Ubuntu, a list of mirrors": {
			files: map[string]string{
				"/etc/apt/sources.list":        "deb mirror+file:/etc/apt/mirrors/ubuntu.list noble main universe\n",
				"/etc/apt/mirrors/ubuntu.list": "https://mirror.example/ubuntu\tpriority:1\n",
			},
			want: "DEBIAN_MIRROR",
		},
		"Ubuntu, with a mirror of Debian's": {
			files: map[string]string{"/etc/apt/sources.list": "deb https://mirror.example/ubuntu noble main\n"},
			env:   "https://mirror.example/debian", want: "https://mirror.example/debian",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv(MirrorVariable, tc.env)
			root := t.TempDir()
			write(t, root, "/usr/share/keyrings/debian-archive-keyring.gpg", "")
			for file, content := range tc.files {
				write(t, root, file, content)
			}
			got, err := system(root).sourceLine(Trixie)
			if err != nil {
				got = err.Error()
			} else if want := "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] " + tc.want + " trixie main\n"; got != want {
				t.Errorf("sourceLine() = %q, want %q", got, want)
			}
			if !strings.Contains(got, tc.want) {
				t.Errorf("sourceLine() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSourceLineNeedsKeys(t *testing.T) {
	t.Setenv(MirrorVariable, "https://mirror.example/debian")
	if _, err := system(t.TempDir()).sourceLine(Bookworm); err == nil || !strings.Contains(err.Error(), "apt-get install debian-archive-keyring") {
		t.Errorf("sourceLine() = %v, want how to get the keys", err)
	}
}

func TestRelease(t *testing.T) {
	cases := map[string]Release{
		"PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_CODENAME=bookworm\nID=debian\n": Bookworm,
		"ID=\"debian\"\nVERSION_CODENAME=\"trixie\"\n":                                           Trixie,
		"ID=ubuntu\nVERSION_CODENAME=noble\nID_LIKE=debian\n":                                    "",
		"": "",
	}
	for content, want := range cases {
		root := t.TempDir()
		write(t, root, "/etc/os-release", content)
		if got := system(root).release(); got != want {
			t.Errorf("release() of %q = %q, want %q", content, got, want)
		}
	}
}

func write(t *testing.T, root, file, content string) {
	t.Helper()
	path := filepath.Join(root, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
