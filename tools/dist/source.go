package main

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/blang/semver/v4"
)

// localBase is the image's name for who has none of their own: an image of
// this name stays on the machine.
const localBase = "fairlead"

// unknownCommit is that of a source without git's history.
const unknownCommit = "unknown"

// options are the command line's.
type options struct {
	repo, out, version, base, image, operator string
	platforms                                 []string
	// pluginURL is where the plugin's archives will be downloaded from.
	pluginURL       string
	pluginPlatforms []string
	// govulncheck is the program, vulnerabilities the address of its database.
	govulncheck, vulnerabilities string
	signer                       signer
}

// release is one version to be made, and where it is made from.
type release struct {
	options
	// tree is the source: the repository's folder, or a commit of it unpacked.
	tree   string
	commit string
	date   time.Time
	// past are the released versions before this one, oldest first.
	past []past
	temp string
	// digest is the manager's image's, once it is known.
	digest string
}

// past is a version in hack/releases.
type past struct{ version, commit string }

// open finds the source of the version that the options name.
func open(o options) (*release, error) {
	if _, err := semver.Parse(o.version); err != nil {
		return nil, fmt.Errorf("VERSION %q must be a version such as 0.0.2: %w", o.version, err)
	}
	if o.image == "" {
		o.image = o.base + ":v" + o.version
	}
	r := &release{options: o, tree: o.repo}
	released, err := readReleases(filepath.Join(o.repo, "hack", "releases"))
	if err != nil {
		return nil, err
	}
	revision := "HEAD"
	for _, p := range released {
		if semver.MustParse(p.version).LT(semver.MustParse(o.version)) {
			r.past = append(r.past, p)
		}
		if p.version == o.version {
			revision = p.commit
		}
	}
	if revision != "HEAD" {
		if r.tree, err = r.unpack(revision); err != nil {
			return nil, err
		}
	}
	return r, r.readCommit(revision)
}

// readCommit finds out the commit and its date. Without git, in an unpacked
// source archive say, there is none to tell.
func (r *release) readCommit(revision string) error {
	about, err := r.git("log", "-1", "--format=%H %ct", revision)
	hash, seconds, ok := strings.Cut(strings.TrimSpace(about), " ")
	if err != nil || !ok {
		r.commit, r.date = unknownCommit, time.Unix(0, 0).UTC()
		return nil //nolint:nilerr // that is an answer as well
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return err
	}
	r.commit, r.date = hash, time.Unix(unix, 0).UTC()
	if changes, err := r.git("status", "--porcelain"); revision == "HEAD" && (err != nil || changes != "") {
		r.commit += "-dirty"
	}
	return nil
}

// ofVersion is the same for a version that was released before.
func (r *release) ofVersion(version string) (*release, error) {
	o := r.options
	o.version, o.image = version, ""
	return open(o)
}

func (r *release) close() {
	if r.temp != "" {
		_ = os.RemoveAll(r.temp)
	}
}

// readReleases reads lines of a version and a commit.
func readReleases(file string) ([]past, error) {
	content, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	var released []past
	lines := bufio.NewScanner(content)
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 2 {
			return nil, fmt.Errorf("%s: %q is not a version and a commit", file, lines.Text())
		}
		if _, err := semver.Parse(fields[0]); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		released = append(released, past{version: fields[0], commit: fields[1]})
	}
	return released, lines.Err()
}

// unpack puts a commit's files into a temporary folder.
func (r *release) unpack(commit string) (string, error) {
	if _, err := r.git("cat-file", "-e", commit+"^{commit}"); err != nil {
		return "", fmt.Errorf("version %s is built from commit %s, which this clone does not have; "+
			"if it is shallow: git fetch --unshallow", r.version, commit)
	}
	var err error
	if r.temp, err = os.MkdirTemp("", "fairlead-"); err != nil {
		return "", err
	}
	cmd := command("git", "-C", r.repo, "archive", "--format=tar", commit)
	files, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	err = untar(files, r.temp)
	return r.temp, errors.Join(err, cmd.Wait())
}

func untar(from io.Reader, to string) error {
	in := tar.NewReader(from)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		file := filepath.Join(to, filepath.FromSlash(header.Name))
		switch header.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(file, 0o755)
		case tar.TypeReg:
			var content []byte
			if content, err = io.ReadAll(in); err == nil {
				err = os.WriteFile(file, content, header.FileInfo().Mode())
			}
		case tar.TypeSymlink: // what the charts have in common
			err = os.Symlink(header.Linkname, file)
		}
		if err != nil {
			return err
		}
	}
}

// git is what git says of the repository.
func (r *release) git(args ...string) (string, error) {
	out, err := command("git", append([]string{"-C", r.repo}, args...)...).Output()
	return string(out), err
}

// command is a program to run. It needs no context: Ctrl-C reaches it as well.
func command(program string, args ...string) *exec.Cmd {
	return exec.CommandContext(context.Background(), program, args...)
}

// operators are those that the source has, by the names of their folders, or
// the one that was asked for.
func (r *release) operators() ([]string, error) {
	found, err := filepath.Glob(filepath.Join(r.tree, "operators", "*", "operator.go"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, file := range found {
		if name := filepath.Base(filepath.Dir(file)); r.operator == all || r.operator == name {
			names = append(names, name)
		}
	}
	return names, nil
}

// installs are what can be installed: each operator, and all in one manager.
func (r *release) installs() ([]string, error) {
	names, err := r.chosen()
	if r.operator == all {
		names = append(names, all)
	}
	return names, err
}

// chosen are the operators, at least one.
func (r *release) chosen() ([]string, error) {
	names, err := r.operators()
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("version %s has no operator %q", r.version, r.operator)
	}
	return names, err
}

// write puts a file into the output folder.
func (r *release) write(name string, content []byte) error {
	file := filepath.Join(r.out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}
