package build

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Another release of Kubernetes is built in a module of its own, of the same
// source: its go.mod requires that release and the etcd that goes with it, and
// everything else is as the release's own go.mod has it.

// goMod is what `go mod edit -json` prints, as far as it matters here.
type goMod struct {
	Go      string
	Require []goModule
	Replace []struct{ Old, New goModule }
}

type goModule struct{ Path, Version string }

// makeModule makes the module in a folder, of the source that is in another.
func (b Builder) makeModule(ctx context.Context, folder, release, source string) error {
	to := filepath.Join(folder, "components", "kubernetes")
	if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(source))); err != nil {
		return err
	}
	done := filepath.Join(folder, "tidied")
	if _, err := os.Stat(done); err == nil {
		return nil
	}
	theirs, err := b.goMod(ctx, source, "k8s.io/kubernetes@"+release)
	if err != nil {
		return err
	}
	ours, err := moduleFor(release, theirs)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "go.mod"), ours, 0o644); err != nil {
		return err
	}
	if _, err := b.command(ctx, folder, "mod", "tidy"); err != nil {
		return err
	}
	return os.WriteFile(done, nil, 0o644)
}

// goMod fetches the go.mod of a version of a module, such as
// k8s.io/kubernetes@v1.31.0.
func (b Builder) goMod(ctx context.Context, source, module string) (goMod, error) {
	var mod goMod
	out, err := b.command(ctx, source, "list", "-m", "-f", "{{.GoMod}}", module)
	if err != nil {
		return mod, err
	}
	if out, err = b.command(ctx, source, "mod", "edit", "-json", strings.TrimSpace(string(out))); err != nil {
		return mod, err
	}
	return mod, json.Unmarshal(out, &mod)
}

// tags chooses between the files for functions that releases before 1.34 have in
// another form.
func tags(release string) string {
	minor, _, _ := strings.Cut(strings.TrimPrefix(release, "v1."), ".")
	if n, err := strconv.Atoi(minor); err == nil && n < 34 {
		return "before_1_34"
	}
	return ""
}

// moduleFor is the go.mod for a release that has this one. Its staging modules,
// which it replaces by folders, are published under a version that belongs to the
// release.
func moduleFor(release string, theirs goMod) ([]byte, error) {
	const etcd = "go.etcd.io/etcd/"
	minor, ok := strings.CutPrefix(release, "v1.")
	if !ok {
		return nil, fmt.Errorf("a release of Kubernetes is called v1.<minor>.<patch>, and not %q", release)
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "module kubernetes\n\ngo %s\n\nrequire k8s.io/kubernetes %s\n", theirs.Go, release)
	for _, required := range theirs.Require {
		if required.Path == etcd+"client/v3" {
			fmt.Fprintf(&text, "require %sserver/v3 %s\n", etcd, required.Version)
		}
	}
	for _, replaced := range theirs.Replace {
		if strings.HasPrefix(replaced.New.Path, "./staging/") {
			fmt.Fprintf(&text, "replace %s => %[1]s v0.%s\n", replaced.Old.Path, minor)
		}
	}
	return text.Bytes(), nil
}
