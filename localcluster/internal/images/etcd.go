package images

import (
	"context"
	"maps"
	"os"
	"path"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"example.com/fairlead/localcluster/internal/build"
)

// EtcdVersions are the versions of etcd that the tests and the demo use, the
// first of them most. Any other is made where it is asked for by name.
var EtcdVersions = []string{"v3.6.16", "v3.6.15", "v3.7.3", "v3.5.35"}

// EtcdImage is the upstream name of the image of a version of etcd.
func EtcdImage(version string) string { return "quay.io/coreos/etcd:" + version }

// etcdVersion is the version that the name of an image of etcd has as its tag. The
// registry may be any.
func etcdVersion(image string) (version string, ok bool) {
	tag, err := name.NewTag(image)
	if err != nil || path.Base(tag.RepositoryStr()) != "etcd" || !build.IsEtcdVersion(tag.TagStr()) {
		return "", false
	}
	return tag.TagStr(), true
}

// etcd makes the image of that name.
func etcd(image, version string) func(context.Context, *Maker) (Image, error) {
	return func(ctx context.Context, m *Maker) (Image, error) {
		programs := filepath.Join(m.Etcd, version)
		if err := m.Build.Etcd(ctx, programs, version); err != nil {
			return Image{}, err
		}
		return etcdFrom(programs, image, version), nil
	}
}

// etcdFrom is the image of built programs. Its folders, ports and command are those
// of the upstream image, and like that one it has no shell.
func etcdFrom(programs, image, version string) Image {
	files := Files{
		"tmp":          {Mode: os.ModeDir | os.ModeSticky | 0o777},
		"var/etcd":     {Mode: os.ModeDir | 0o755},
		"var/lib/etcd": {Mode: os.ModeDir | 0o755},
	}
	maps.Copy(files, passwd("nonroot:x:65532:65532:nonroot:/nonexistent:/sbin/nologin"))
	for _, program := range build.EtcdPrograms {
		files["usr/local/bin/"+program] = File{Mode: 0o755, Source: filepath.Join(programs, program)}
	}
	return Image{
		Names: []string{image},
		Config: v1.Config{
			Cmd: []string{"/usr/local/bin/etcd"}, Env: []string{searchPath}, WorkingDir: "/var/lib/etcd/",
			ExposedPorts: map[string]struct{}{"2379/tcp": {}, "2380/tcp": {}},
			Labels:       standIn("go.etcd.io/etcd/server/v3", version, "the Go modules server, etcdctl and etcdutl"),
		},
		Files: files,
	}
}
