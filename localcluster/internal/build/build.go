// Package build makes the cluster's programs from Go modules, by the go
// command and its build cache: minutes the first time, seconds after that.
package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// names are what the multi-call binary is called by.
var names = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler",
	"kubelet", "kube-proxy", "kubectl"}

// Builder builds packages of this module.
type Builder struct {
	// Progress gets a line when a build takes longer than a second, and more
	// while it goes on.
	Progress io.Writer
}

// Kubernetes builds what a cluster is started from into a folder: the multi-call
// binary and its names, and the cluster's other programs. Kubernetes is of the
// release that go.mod has, or of another one, such as v1.31.0.
func (b Builder) Kubernetes(ctx context.Context, bin, release string) error {
	source, err := moduleDir()
	if err != nil {
		return err
	}
	version := release
	if release == "" {
		if version, err = b.Version(ctx, "k8s.io/kubernetes"); err != nil {
			return err
		}
	}
	all := goBuild{
		title: fmt.Sprintf("building Kubernetes %s from Go modules (minutes the first time, seconds after that)", version),
		dir:   source, out: bin + "/", flags: ldflags(stamp(version)),
		packages: []string{"./components/kubernetes", "./components/coredns", "./components/pause", "./components/volume-provisioner"},
	}
	if release != "" {
		own := all
		all.packages, own.packages = all.packages[1:], all.packages[:1]
		own.dir, own.flags = bin+"-source", append(own.flags, "-tags", tags(version))
		if err := b.makeModule(ctx, own.dir, release, filepath.Join(source, own.packages[0])); err != nil {
			return fmt.Errorf("kubernetes %s: %w", release, err)
		}
		if err := b.build(ctx, own); err != nil {
			return err
		}
		all.title, all.flags = "building CoreDNS and the cluster's other programs", ldflags("")
	}
	if err := b.build(ctx, all); err != nil {
		return err
	}
	for _, name := range names {
		err := os.Symlink("kubernetes", filepath.Join(bin, name))
		if err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}

// Program runs go build with these arguments in the working directory, into a file or,
// with a slash at its end, a folder.
func (b Builder) Program(ctx context.Context, title, out string, args []string) error {
	return b.build(ctx, goBuild{title: title, out: out, packages: args})
}

// Version is the version of a module that this one is built with.
func (b Builder) Version(ctx context.Context, module string) (string, error) {
	source, err := moduleDir()
	if err != nil {
		return "", err
	}
	out, err := b.command(ctx, source, "list", "-m", "-f", "{{.Version}}", module)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(out)), nil
}

// stamp are the linker flags that tell Kubernetes its version. Without them it
// calls itself v0.0.0-master+$Format:%H$, which Helm, OLM and version checks
// cannot parse.
func stamp(version string) string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, field := range []string{"gitVersion=" + version, "gitMajor=" + major, "gitMinor=" + minor, "gitTreeState=clean"} {
			flags = append(flags, "-X", pkg+"."+field)
		}
	}
	return strings.Join(flags, " ")
}

// goBuild is a run of go build. The go command sees for itself what is up to date.
type goBuild struct {
	title    string // what progress calls it
	dir      string // of a module
	out      string // a file, or a folder by a slash at its end
	flags    []string
	packages []string
}

// ldflags are flags for go build that leave out what only a debugger needs. The folder's path is not put in, nor the
// commit: each would mean compiling or linking again.
func ldflags(more string) []string {
	return []string{"-trimpath", "-buildvcs=false", "-ldflags", strings.TrimSpace("-s -w " + more)}
}

// build runs go build, and says how far it is.
func (b Builder) build(ctx context.Context, run goBuild) error {
	if err := os.MkdirAll(filepath.Dir(run.out), 0o755); err != nil {
		return err
	}
	args := append(slices.Clone(run.flags), run.packages...)
	p := &progress{title: run.title, program: filepath.Base(run.packages[len(run.packages)-1])}
	listing, done := context.WithCancel(ctx)
	defer done()
	p.begun = func() {
		list := append([]string{"list", "-deps", "-json=ImportPath,Dir,GoFiles,Stale"}, args...)
		// A package whose dependency is compiled anew, to the same as before, turns out
		// not to be stale. So this is looked up again, ever more seldom: it takes seconds.
		for wait := 30 * time.Second; ; wait *= 2 {
			if out, err := b.command(listing, run.dir, list...); err == nil {
				_ = p.expect(out, time.Now()) // without it, progress says less
			}
			select {
			case <-listing.Done():
				return
			case <-time.After(wait):
			}
		}
	}
	go p.tell(listing.Done(), b.Progress)
	_, err := b.follow(ctx, p, run.dir, append([]string{"build", "-v", "-o", run.out}, args...)...)
	return err
}

// command runs the go command in a module's folder and returns its output.
func (b Builder) command(ctx context.Context, dir string, args ...string) ([]byte, error) {
	return b.follow(ctx, &progress{}, dir, args...)
}

// follow is command with a progress of one's own.
func (b Builder) follow(ctx context.Context, p *progress, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	// Without cgo the binaries are static: they run in images without a libc,
	// and are built without a C compiler.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var stdout bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, p
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("go %s in %s: %w\n%s", args[0], dir, err, bytes.TrimSpace(append(p.rest, p.line...)))
	}
	return stdout.Bytes(), nil
}

// source is the folder of this module. The linker sets it, because programs have no paths of the machine (-trimpath):
// what a package is compiled to is the same in every clone. As it is, it is right for go run and go test.
var source = "."

// moduleDir is where this module's source is: where this program was built.
func moduleDir() (string, error) {
	if _, err := os.Stat(filepath.Join(source, "components")); err != nil {
		return "", fmt.Errorf("the source of localcluster is not in %s: build it where it is, by make build-localcluster", source)
	}
	return source, nil
}

// Locked runs f while no other process makes parts in the same folder.
func Locked(dir string, f func() error) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := unix.Flock(int(folder.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", dir, err)
	}
	return f()
}
