package debian

import (
	"os"
	"path/filepath"
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

func TestMirror(t *testing.T) {
	cases := map[string]struct{ sources, want string }{
		"one line": {
			"# comment\ndeb https://third.example/apt stable main\ndeb [arch=amd64 signed-by=/k] https://mirror.example/debian bookworm main\n",
			"https://mirror.example/debian",
		},
		"deb822": {
			"Types: deb\nURIs: https://third.example/debian\nSigned-By: /third.gpg\n\n" +
				"Types: deb\nURIs: https://mirror.example/debian/\nSuites: bookworm\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n",
			"https://mirror.example/debian/",
		},
		"security only": {"deb https://mirror.example/debian-security bookworm-security main\n", ""},
	}
	for name, tc := range cases {
		if got := mirror(tc.sources); got != tc.want {
			t.Errorf("%s: mirror() = %q, want %q", name, got, tc.want)
		}
	}
}
