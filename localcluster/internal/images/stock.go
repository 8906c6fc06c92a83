package images

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"example.com/fairlead/localcluster/internal/build"
	"example.com/fairlead/localcluster/internal/debian"
)

// Pause is the image of the containers that hold pods together.
const Pause = "localcluster/pause:1"

// DNSImage is the name of the image of a version of CoreDNS.
func DNSImage(version string) string { return "coredns/coredns:" + strings.TrimPrefix(version, "v") }

// recipe makes one of the images that can be asked for by name.
type recipe struct {
	// basic ones are in every cluster, the others only where they are asked for.
	basic bool
	make  func(context.Context, *Maker) (Image, error)
}

// recipes is the list of images. One more is one more line here, or two with
// its settings.
var recipes = map[string]recipe{
	"pause":            {basic: true, make: pause},
	"coredns":          {basic: true, make: coredns},
	"busybox":          {basic: true, make: busybox},
	"memcached:1.6.18": {make: fromDebian(memcached, debian.Bookworm, "memcached", "libevent-2.1-7", "libsasl2-2", "libssl3")},
	"memcached:1.6.38": {make: fromDebian(memcached, debian.Trixie, "memcached", "libevent-2.1-7t64", "libsasl2-2",
		"libssl3t64", "libzstd1", "zlib1g")},
	"memcached:1.6.45": {make: named("memcached:1.6.45", fromDebian(memcached, debian.Forky, "memcached", "libevent-2.1-7t64",
		"liblua5.4-0", "libsasl2-2", "libssl3t64", "libzstd1", "zlib1g"))},
	"nginx:1.22.1": {make: fromDebian(nginx, debian.Bookworm, "nginx", "nginx-common", "libcrypt1", "libpcre2-8-0", "libssl3", "zlib1g")},
	"nginx:1.26.3": {make: fromDebian(nginx, debian.Trixie, "nginx", "nginx-common", "libcrypt1", "libpcre2-8-0",
		"libssl3t64", "libzstd1", "zlib1g")},
}

// Names lists the images that can be made, the basic ones or all. Other versions of
// etcd can be made, too.
func Names(all bool) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(recipes)) {
		if all || recipes[name].basic {
			names = append(names, name)
		}
	}
	if all {
		for _, version := range EtcdVersions {
			names = append(names, EtcdImage(version))
		}
	}
	return names
}

// Maker makes images of the list.
type Maker struct {
	// Dir is where packages of Debian's that go into images are unpacked.
	Dir string
	// Programs is where those are that a cluster is started from.
	Programs string
	// Etcd is where versions of etcd are built, each in a folder of its name.
	Etcd   string
	Build  build.Builder
	Debian debian.Store
}

// Make makes an image of the list, or one of another version of etcd.
func (m *Maker) Make(ctx context.Context, name string) (Image, error) {
	recipe, err := find(name)
	if err != nil {
		return Image{}, err
	}
	image, err := recipe.make(ctx, m)
	if err != nil {
		return Image{}, fmt.Errorf("make the image %s: %w", name, err)
	}
	return image, nil
}

func find(name string) (recipe, error) {
	if recipe, ok := recipes[name]; ok {
		return recipe, nil
	}
	if version, ok := etcdVersion(name); ok {
		return recipe{make: etcd(name, version)}, nil
	}
	return recipe{}, fmt.Errorf("no image %q; there are %s, and etcd by the tag of any other version", name, strings.Join(Names(true), ", "))
}

func pause(_ context.Context, m *Maker) (Image, error) {
	return Image{
		Names:  []string{Pause},
		Config: v1.Config{Entrypoint: []string{"/pause"}, User: "65535:65535", Labels: standIn("pause", "1", "a program of its own")},
		Files:  Files{"pause": {Mode: 0o755, Source: filepath.Join(m.Programs, "pause")}},
	}, nil
}

// named gives the image of a release whose packages still change a name that stays: what is inside may be a later version,
// which its labels say.
func named(name string, build func(context.Context, *Maker) (Image, error)) func(context.Context, *Maker) (Image, error) {
	return func(ctx context.Context, m *Maker) (Image, error) {
		image, err := build(ctx, m)
		image.Names = []string{name}
		return image, err
	}
}

func coredns(ctx context.Context, m *Maker) (Image, error) {
	version, err := m.Build.Version(ctx, "github.com/coredns/coredns")
	if err != nil {
		return Image{}, err
	}
	return Image{
		Names:  []string{DNSImage(version)},
		Config: v1.Config{Entrypoint: []string{"/coredns"}, User: nobody, Labels: standIn("coredns", version, "the Go module, with five plugins")},
		Files:  Files{"coredns": {Mode: 0o755, Source: filepath.Join(m.Programs, "coredns")}},
	}, nil
}

func busybox(ctx context.Context, m *Maker) (Image, error) {
	packages, err := m.Debian.Fetch(ctx, debian.Bookworm, "busybox-static")
	if err != nil {
		return Image{}, err
	}
	files, err := m.busybox(ctx)
	if err != nil {
		return Image{}, err
	}
	maps.Copy(files, passwd("nobody:x:65534:65534:nobody:/home:/bin/false"))
	version := packages[0].Upstream()
	return Image{
		Names: []string{"busybox:latest", "busybox:" + version},
		Config: v1.Config{Cmd: []string{"sh"}, Env: []string{searchPath},
			Labels: standIn("busybox-static", packages[0].Version, "Debian's package")},
		Files: files,
	}, nil
}

const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// busybox is the static binary with links for its applets, for an image that
// has a shell.
func (m *Maker) busybox(ctx context.Context) (Files, error) {
	packages, err := m.Debian.Fetch(ctx, debian.Bookworm, "busybox-static")
	if err != nil {
		return nil, err
	}
	root := filepath.Join(m.Dir, "busybox")
	if err := debian.Unpack(ctx, root, packages...); err != nil {
		return nil, err
	}
	binary, err := busyboxIn(root)
	if err != nil {
		return nil, err
	}
	applets, err := output(ctx, binary, "--list")
	if err != nil {
		return nil, err
	}
	files := Files{
		"bin/busybox": {Mode: 0o755, Source: binary},
		"tmp":         {Mode: os.ModeDir | os.ModeSticky | 0o777},
		"home":        {Mode: os.ModeDir | 0o777},
		"root":        {Mode: os.ModeDir | 0o700},
	}
	for applet := range strings.FieldsSeq(applets) {
		if applet != "busybox" { // one of its own applets: a link would replace the binary by itself
			files["bin/"+applet] = File{Target: "busybox"}
		}
	}
	return files, nil
}

// busyboxIn finds the program in its unpacked package: since Debian 13 it is in
// usr.
func busyboxIn(root string) (string, error) {
	var err error
	for _, dir := range []string{"bin", "usr/bin"} {
		binary := filepath.Join(root, dir, "busybox")
		if _, err = os.Stat(binary); err == nil {
			return binary, nil
		}
	}
	return "", err
}

// passwd is the two files that turn user and group numbers into names: root
// and one more user.
func passwd(line string) Files {
	name, rest, _ := strings.Cut(line, ":x:")
	gid := strings.Split(rest, ":")[1]
	return Files{
		"etc/passwd": {Mode: 0o644, Data: []byte("root:x:0:0:root:/root:/bin/sh\n" + line + "\n")},
		"etc/group":  {Mode: 0o644, Data: []byte("root:x:0:\n" + name + ":x:" + gid + ":\n")},
	}
}

// standIn are labels that tell what is really inside.
func standIn(pkg, version, source string) map[string]string {
	return map[string]string{
		"org.opencontainers.image.description": "A stand-in made by Fairlead's localcluster, not the upstream image",
		"localcluster/package":                 pkg,
		"localcluster/version":                 version,
		"localcluster/source":                  source,
	}
}
