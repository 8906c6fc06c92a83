package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// EtcdPrograms are the programs that Etcd builds.
var EtcdPrograms = []string{"etcd", "etcdctl", "etcdutl"}

// etcdVersion is what their modules have versions of: before 3.5 there was one
// module for all, without a proper name.
var etcdVersion = regexp.MustCompile(`^v3\.([5-9]|[1-9][0-9]+)\.(0|[1-9][0-9]*)$`)

// IsEtcdVersion says whether a text is the name of a version that Etcd takes.
func IsEtcdVersion(version string) bool { return etcdVersion.MatchString(version) }

// Etcd builds the programs of a version of etcd, such as v3.6.16, into a folder.
// They tell that version by themselves: it is a constant of the module that they
// are built from.
func (b Builder) Etcd(ctx context.Context, folder, version string) error {
	if !IsEtcdVersion(version) {
		return fmt.Errorf("a version of etcd is called v3.<minor>.<patch>, from v3.5.0 on, and not %q", version)
	}
	if err := Locked(folder, func() error { return b.etcd(ctx, folder, version) }); err != nil {
		return fmt.Errorf("etcd %s: %w", version, err)
	}
	return nil
}

func (b Builder) etcd(ctx context.Context, folder, version string) error {
	source := folder + "-source"
	if err := b.makeEtcdModule(ctx, source, version); err != nil {
		return err
	}
	var modules []string
	for _, program := range EtcdPrograms {
		modules = append(modules, etcdModule(program))
	}
	err := b.build(ctx, goBuild{
		title: fmt.Sprintf("building etcd %s from Go modules (a minute or two the first time, seconds after that)", version),
		dir:   source, out: folder + "/",
		// The module names only what is built. All else is in the go.mod of that,
		// and -mod=mod adds its sums to go.sum, checked as the machine is set up to.
		flags: append(ldflags(""), "-mod=mod"), packages: modules,
	})
	if err != nil {
		return err
	}
	// go build calls it by its module.
	if err := os.Symlink("server", filepath.Join(folder, "etcd")); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// etcdModule is the module that has a program's main package at its root.
func etcdModule(program string) string {
	if program == "etcd" {
		program = "server"
	}
	return "go.etcd.io/etcd/" + program + "/v3"
}

// makeEtcdModule makes a module that requires the programs' modules. Those cannot
// be built by themselves: they replace each other by folders of etcd's repository.
func (b Builder) makeEtcdModule(ctx context.Context, folder, version string) error {
	file := filepath.Join(folder, "go.mod")
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	source, err := moduleDir()
	if err != nil {
		return err
	}
	theirs, err := b.goMod(ctx, source, etcdModule("etcd")+"@"+version)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(file, etcdModuleFor(version, theirs), 0o644))
}

// etcdModuleFor is the go.mod for a version whose server has this one: the
// release of Go there decides how the programs behave.
func etcdModuleFor(version string, theirs goMod) []byte {
	text := fmt.Sprintf("module etcd\n\ngo %s\n\n", theirs.Go)
	for _, program := range EtcdPrograms {
		text += fmt.Sprintf("require %s %s\n", etcdModule(program), version)
	}
	return []byte(text)
}
