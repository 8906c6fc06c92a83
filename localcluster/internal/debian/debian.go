// Package debian fetches Debian's packages and unpacks them into folders.
// Nothing is installed: installing would start services on ordinary machines,
// and Debian's containerd package conflicts with Docker's.
package debian

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Store keeps fetched packages in a folder.
type Store struct{ Dir string }

// Package is a fetched package.
type Package struct {
	Name, Version, File string
}

// Release is a Debian release that packages are taken from, whatever the
// machine itself runs: their libraries come along, so that they are the same
// everywhere.
type Release string

// The releases.
const (
	Bookworm Release = "bookworm" // Debian 12
	Trixie   Release = "trixie"   // Debian 13
	Forky    Release = "forky"    // Debian 14, whose packages change until it is released
)

// Fetch downloads the packages that the store does not have yet.
func (s Store) Fetch(ctx context.Context, release Release, names ...string) ([]Package, error) {
	dir := s.dir(release)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var missing []string
	for _, name := range names {
		if _, ok := find(dir, name); !ok {
			missing = append(missing, name)
		}
	}
	if err := s.download(ctx, release, missing); err != nil {
		return nil, err
	}
	var packages []Package
	for _, name := range names {
		pkg, ok := find(dir, name)
		if !ok {
			return nil, fmt.Errorf("apt-get download %s brought no file into %s", name, dir)
		}
		packages = append(packages, pkg)
	}
	return packages, nil
}

// Unpack extracts packages into a folder, later ones over earlier ones.
func Unpack(ctx context.Context, into string, packages ...Package) error {
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	for _, pkg := range packages {
		if err := run(ctx, "", "dpkg-deb", "--extract", pkg.File, into); err != nil {
			return err
		}
	}
	return nil
}

func (s Store) download(ctx context.Context, release Release, names []string) error {
	if len(names) == 0 {
		return nil
	}
	options, err := s.options(release)
	if err != nil {
		return err
	}
	get := append(append([]string{}, options...), "download")
	get = append(get, names...)
	if run(ctx, s.dir(release), "apt-get", get...) == nil {
		return nil
	}
	// The package lists are empty on a new machine, and old ones name versions
	// that a mirror no longer has.
	if err := run(ctx, "", "apt-get", append(options, "update")...); err != nil {
		return err
	}
	return run(ctx, s.dir(release), "apt-get", get...)
}

// options make apt-get use a release's lists: the machine's own ones, if it
// runs that release, or ones in the store that are made from its mirror.
func (s Store) options(release Release) ([]string, error) {
	// As root, apt would hand downloading to a user who may not write here.
	options := []string{"-q", "-o", "APT::Sandbox::User=root"}
	const machine system = "/"
	if release == machine.release() {
		return options, nil
	}
	dir := s.dir(release)
	sources := filepath.Join(dir, "sources.list")
	line, err := machine.sourceLine(release)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "lists", "partial"), 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(sources, []byte(line), 0o644); err != nil {
		return nil, err
	}
	return append(options,
		"-o", "Dir::Etc::SourceList="+sources,
		"-o", "Dir::Etc::SourceParts=-",
		"-o", "APT::Default-Release=", // one of the machine's would not be there
		"-o", "Dir::State::Lists="+filepath.Join(dir, "lists"),
		"-o", "Dir::Cache="+filepath.Join(dir, "cache")), nil
}

func (s Store) dir(release Release) string { return filepath.Join(s.Dir, string(release)) }

// find looks for a package's file, name_version_architecture.deb, with the
// colon of an epoch escaped.
func find(dir, name string) (Package, bool) {
	files, _ := filepath.Glob(filepath.Join(dir, name+"_*.deb"))
	if len(files) == 0 {
		return Package{}, false
	}
	file := files[len(files)-1]
	version := strings.Split(filepath.Base(file), "_")[1]
	return Package{Name: name, Version: strings.ReplaceAll(version, "%3a", ":"), File: file}, true
}

// Upstream is the version that the package's software has by itself: without
// Debian's epoch, revision, and notes on how the source was repacked.
func (p Package) Upstream() string {
	version := p.Version
	if _, after, ok := strings.Cut(version, ":"); ok {
		version = after
	}
	if i := strings.LastIndex(version, "-"); i >= 0 {
		version = version[:i]
	}
	version, _, _ = strings.Cut(version, "~")
	version, _, _ = strings.Cut(version, "+")
	return version
}

func run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}
