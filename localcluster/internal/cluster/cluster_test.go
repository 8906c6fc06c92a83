package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"example.com/fairlead/localcluster/internal/host"
	"example.com/fairlead/localcluster/internal/images"
)

func TestHas(t *testing.T) {
	const list = `REF                                  TYPE                                       DIGEST          SIZE
docker.io/library/busybox:1.35.0     application/vnd.oci.image.manifest.v1+json sha256:aa       2.0 MiB
docker.io/library/busybox:latest     application/vnd.oci.image.manifest.v1+json sha256:aa       2.0 MiB
docker.io/library/fairlead:dev       application/vnd.oci.image.manifest.v1+json sha256:bb       60.0 MiB
`
	image := func(hex string, names ...string) *images.Archive {
		return &images.Archive{Names: names, Digest: v1.Hash{Algorithm: "sha256", Hex: hex}}
	}
	cases := map[string]struct {
		archive *images.Archive
		want    bool
	}{
		"there":          {image("bb", "docker.io/library/fairlead:dev"), true},
		"all names":      {image("aa", "docker.io/library/busybox:latest", "docker.io/library/busybox:1.35.0"), true},
		"another one":    {image("cc", "docker.io/library/fairlead:dev"), false},
		"not there":      {image("aa", "docker.io/library/nginx:1"), false},
		"a name is new":  {image("aa", "docker.io/library/busybox:latest", "docker.io/library/busybox:2"), false},
		"a longer name ": {image("bb", "docker.io/library/fairlead:dev2"), false},
	}
	for name, tc := range cases {
		if got := has(list, tc.archive); got != tc.want {
			t.Errorf("%s: has() = %t", name, got)
		}
	}
}

func TestManifestsRender(t *testing.T) {
	parsed, err := template.ParseFS(manifests, "manifests/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := parsed.ExecuteTemplate(&out, "coredns.yaml", map[string]string{"DNSImage": "coredns/coredns:1", "DNSService": "fd00:10:96::a", "Domain": "example.internal"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"image: coredns/coredns:1\n", "clusterIP: \"fd00:10:96::a\"\n", "kubernetes example.internal in-addr.arpa"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("coredns.yaml lacks %q", want)
		}
	}
}

func TestLinkTree(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "to")
	if err := os.WriteFile(filepath.Join(from, "kubernetes"), []byte("binary"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("kubernetes", filepath.Join(from, "kubectl")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := linkTree(t.Context(), from, to); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile(filepath.Join(to, "kubectl")); err != nil || string(data) != "binary" {
		t.Errorf("the copy has %q, %v", data, err)
	}
}

func TestBorrow(t *testing.T) {
	dir, cache, other := t.TempDir(), t.TempDir(), t.TempDir()
	cases := map[string]struct {
		named   string // by the user
		running string
		want    string
	}{
		"the folder that run took the parts from": {named: dir, running: cache, want: cache},
		"a folder that the user names":            {named: other, running: cache, want: other},
		"a folder that is gone":                   {named: dir, running: filepath.Join(cache, "gone"), want: dir},
		"a cluster of an earlier version":         {named: dir, want: dir},
	}
	for name, tc := range cases {
		c := &Cluster{Dir: dir, Cache: tc.named}
		c.borrow(host.Entry{Cache: tc.running})
		if c.Cache != tc.want {
			t.Errorf("%s: the parts are from %s, want %s", name, c.Cache, tc.want)
		}
	}
}

func TestNeedsPrivilege(t *testing.T) {
	if got := needsPrivilege(fmt.Errorf("mkdir: %w", unix.EROFS)); !strings.Contains(got, "--privileged") {
		t.Errorf("needsPrivilege() = %q, want what to do", got)
	}
	if got := needsPrivilege(unix.ENOSPC); got != "" {
		t.Errorf("needsPrivilege() of another error = %q", got)
	}
}

func TestRemoveKeepsWhatOthersPutThere(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"kubeconfig", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := &Cluster{Dir: dir, Cache: dir, Progress: os.Stderr}
	if err := c.removeAll(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "notes.txt")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(c.Kubeconfig()); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig is still there: %v", err)
	}
}
