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
	"runtime"
	"strings"
	"time"
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

// Kubernetes builds the multi-call binary and its names, and the volume provisioner,
// into a folder: of the release that go.mod has, or of another one, such as v1.31.0.
func (b Builder) Kubernetes(ctx context.Context, bin, release string) error {
	const component = "./components/kubernetes"
	source, err := moduleDir()
	if err != nil {
		return err
	}
	version := release
	if release == "" {
		if version, err = b.Version(ctx, "k8s.io/kubernetes"); err != nil {
			return err
		}
	} else {
		from := filepath.Join(source, component)
		source = bin + "-source"
		if err := b.makeModule(ctx, source, release, from); err != nil {
			return fmt.Errorf("kubernetes %s: %w", release, err)
		}
	}
	title := fmt.Sprintf("building Kubernetes %s from Go modules (minutes the first time, seconds after that)", version)
	if err := b.build(ctx, title, source, component, filepath.Join(bin, "kubernetes"), stamp(version), "-tags", tags(version)); err != nil {
		return err
	}
	if err := b.Component(ctx, "volume-provisioner", filepath.Join(bin, "volume-provisioner")); err != nil {
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

// Component builds one of the programs that go into images.
func (b Builder) Component(ctx context.Context, name, file string) error {
	source, err := moduleDir()
	if err != nil {
		return err
	}
	return b.build(ctx, "building "+name, source, "./components/"+name, file, "")
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

// build links a package, as the module in a folder has it, into a file. The go
// command sees for itself when the file is up to date.
func (b Builder) build(ctx context.Context, title, source, pkg, file, ldflags string, flags ...string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	building, done := context.WithCancel(ctx)
	defer done()
	go b.tell(building, title, filepath.Base(file))
	args := append([]string{"build",
		"-buildvcs=false", // or every commit would mean linking again
		"-ldflags", strings.TrimSpace("-s -w " + ldflags), "-o", file}, flags...)
	_, err := b.command(ctx, source, append(args, pkg)...)
	return err
}

// tell says that a build is going on, unless it is up to date and over before
// anybody wonders, and how long it has been.
func (b Builder) tell(building context.Context, title, program string) {
	start := time.Now()
	for wait := time.Second; ; wait = 15 * time.Second {
		select {
		case <-building.Done():
			return
		case <-time.After(wait):
		}
		if wait == time.Second {
			fmt.Fprintln(b.Progress, title)
		} else {
			fmt.Fprintf(b.Progress, "  still building %s, %s\n", program, time.Since(start).Round(time.Second))
		}
	}
}

// command runs the go command in a module's folder and returns its output.
func (b Builder) command(ctx context.Context, source string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = source
	// Without cgo the binaries are static: they run in images without a libc,
	// and are built without a C compiler.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("go %s in %s: %w\n%s", args[0], source, err, bytes.TrimSpace(withoutDownloads(stderr.Bytes())))
	}
	return stdout.Bytes(), nil
}

// withoutDownloads drops the hundreds of lines that tell of modules being
// fetched: the error is below them.
func withoutDownloads(stderr []byte) []byte {
	var kept []byte
	for line := range bytes.Lines(stderr) {
		if !bytes.HasPrefix(line, []byte("go: downloading ")) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// moduleDir is where this module's source is: where this program was built.
func moduleDir() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(file), "..", "..")
	if _, err := os.Stat(filepath.Join(dir, "components")); !ok || err != nil {
		return "", fmt.Errorf("the source of localcluster is not in %s any more: build it again where it is", dir)
	}
	return dir, nil
}
