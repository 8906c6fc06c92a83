package images

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"example.com/fairlead/localcluster/internal/build"
)

func TestEtcdVersion(t *testing.T) {
	for image, want := range map[string]string{
		EtcdImage("v3.6.16"):                   "v3.6.16",
		"etcd:v3.5.35":                         "v3.5.35",
		"registry.test:5000/a/b/etcd:v3.10.0":  "v3.10.0",
		"quay.io/coreos/etcd":                  "", // of no version
		"quay.io/coreos/etcd:latest":           "",
		"quay.io/coreos/etcd:3.6.16":           "",
		"quay.io/coreos/etcd:v3.6.16-arm64":    "",
		"quay.io/coreos/etcd:v3.4.33":          "", // its modules have other names
		"quay.io/coreos/etcd-operator:v3.6.16": "",
		"quay.io/etcd/server:v3.6.16":          "",
		"Not A Name":                           "",
	} {
		if got, ok := etcdVersion(image); got != want || ok != (want != "") {
			t.Errorf("etcdVersion(%s) = %q, %t, want %q", image, got, ok, want)
		}
	}
}

// The image has what the upstream one has: the three programs and no shell.
func TestEtcdImage(t *testing.T) {
	dir := t.TempDir()
	for _, program := range build.EtcdPrograms {
		if err := os.WriteFile(filepath.Join(dir, program), []byte(program), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	archive, err := etcdFrom(dir, "registry.test/etcd:v3.6.16", "v3.6.16").Archive()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"registry.test/etcd:v3.6.16"}; !slices.Equal(archive.Names, want) {
		t.Errorf("the image is called %q, want %q", archive.Names, want)
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(file(t, archive.Data, blob(archive.Digest))))
	if err != nil {
		t.Fatal(err)
	}
	config, err := v1.ParseConfigFile(bytes.NewReader(file(t, archive.Data, blob(manifest.Config.Digest))))
	if err != nil {
		t.Fatal(err)
	}
	if got := config.Config; !slices.Equal(got.Cmd, []string{"/usr/local/bin/etcd"}) || len(got.Entrypoint) > 0 || got.User != "" {
		t.Errorf("config = %+v, want to run etcd as the upstream image does", got)
	}
	want := standIn("go.etcd.io/etcd/server/v3", "v3.6.16", "the Go modules server, etcdctl and etcdutl")
	if got := config.Config.Labels; !maps.Equal(got, want) {
		t.Errorf("labels %q, want %q", got, want)
	}
	layer := file(t, archive.Data, blob(manifest.Layers[0].Digest))
	wantEntries := []string{"etc/", "etc/group", "etc/passwd", "tmp/", "usr/", "usr/local/", "usr/local/bin/",
		"usr/local/bin/etcd", "usr/local/bin/etcdctl", "usr/local/bin/etcdutl", "var/", "var/etcd/", "var/lib/", "var/lib/etcd/"}
	if got := entries(t, layer); !slices.Equal(got, wantEntries) {
		t.Errorf("layer has %q, want %q", got, wantEntries)
	}
	for _, program := range build.EtcdPrograms {
		if got := string(file(t, layer, "usr/local/bin/"+program)); got != program {
			t.Errorf("%s is %q", program, got)
		}
	}
}
