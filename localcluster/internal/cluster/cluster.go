// Package cluster is the commands: what makes a cluster's parts, brings it up,
// puts things into it and takes it down.
//
// A cluster is a folder. What is in it is either made once and could be made
// again (the parts), or the state of the running cluster:
//
//	bin/        Kubernetes, etcd and CoreDNS     parts
//	packages/   Debian's packages, as fetched    parts
//	debian/     and unpacked                     parts
//	images/     and unpacked for images          parts
//	etcd/       versions of etcd, a folder each  parts
//	kubeconfig  the administrator's              state
//	log/        a file per component, audit.log  state
//	nodes/      disks of the nodes, by name      state
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"example.com/fairlead/localcluster/internal/build"
	"example.com/fairlead/localcluster/internal/debian"
	"example.com/fairlead/localcluster/internal/host"
	"example.com/fairlead/localcluster/internal/images"
	"example.com/fairlead/localcluster/internal/node"
)

// Cluster is a cluster by its folder, whether it runs or not.
type Cluster struct {
	Dir string
	// Cache is the folder that has the parts. It is Dir unless the cluster
	// borrows another one's.
	Cache string
	// Kubernetes is another release than that of go.mod, such as v1.31.0.
	Kubernetes string
	// Temporary says that Dir goes with the cluster.
	Temporary bool
	// Nodes is how many it starts with, and Zones are dealt out to them in turn.
	Nodes int
	Zones []string
	// Families are those of all addresses, and Domain is what names end in.
	Families []host.Family
	Domain   string
	// Progress gets a line per step.
	Progress io.Writer

	// lifeline is what Run's cluster lives by: it ends when this is closed. It
	// is kept here because a file that nothing refers to is closed by the
	// garbage collector, some two minutes later.
	lifeline *os.File
}

// The parts' folders.
const (
	binDir      = node.BinDir
	debianDir   = node.DebianDir
	packagesDir = "packages"
	imagesDir   = "images"
	etcdDir     = "etcd"
)

// Bin is where kubectl, kube-apiserver and etcd are.
func (c *Cluster) Bin() string { return filepath.Join(c.Dir, binDir) }

// Kubeconfig is the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.Dir, node.Kubeconfig) }

func (c *Cluster) say(format string, args ...any) {
	fmt.Fprintf(c.Progress, format+"\n", args...)
}

// Assets builds the Kubernetes binaries, where they are not up to date.
func (c *Cluster) Assets(ctx context.Context) error {
	return build.Locked(c.Cache, func() error {
		return c.builder().Kubernetes(ctx, c.Built(), c.Kubernetes)
	})
}

// Built is where the Kubernetes binaries are built: each release has a folder.
func (c *Cluster) Built() string {
	if c.Kubernetes == "" {
		return filepath.Join(c.Cache, binDir)
	}
	return filepath.Join(c.Cache, binDir+"-"+c.Kubernetes)
}

// Etcd builds versions of etcd, such as v3.6.16, where they are not up to date.
func (c *Cluster) Etcd(ctx context.Context, versions []string) error {
	for _, version := range versions {
		if err := c.builder().Etcd(ctx, filepath.Join(c.BuiltEtcd(), version), version); err != nil {
			return err
		}
	}
	return nil
}

// BuiltEtcd is where versions of etcd are built: each has a folder, named by it.
func (c *Cluster) BuiltEtcd() string { return filepath.Join(c.Cache, etcdDir) }

// parts makes everything that a cluster is started from.
func (c *Cluster) parts(ctx context.Context) error {
	err := build.Locked(c.Cache, func() error {
		unpacked := make(chan error, 1)
		go func() { unpacked <- c.unpack(ctx) }() // compiling takes no network, and fetching takes no processor
		return errors.Join(c.builder().Kubernetes(ctx, c.Built(), c.Kubernetes), <-unpacked)
	})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	for part, from := range map[string]string{binDir: c.Built(), debianDir: filepath.Join(c.Cache, debianDir)} {
		to := filepath.Join(c.Dir, part)
		if from == to {
			continue
		}
		if err := linkTree(ctx, from, to); err != nil {
			return err
		}
	}
	return nil
}

// nodePackages are Debian 12's packages that the node runs on: the container
// runtime, the container network, iptables, and the libraries of those that a
// small system may lack.
var nodePackages = []string{
	"containerd", "runc", "libseccomp2", "containernetworking-plugins",
	"iptables", "libip4tc2", "libip6tc2", "libxtables12", "libmnl0", "libnftnl11",
	"libnetfilter-conntrack3", "libnfnetlink0",
}

// unpack fetches and unpacks the node's packages, unless it has done so.
func (c *Cluster) unpack(ctx context.Context) error {
	fetched, err := c.debian().Fetch(ctx, debian.Bookworm, nodePackages...)
	if err != nil {
		return fmt.Errorf("fetch Debian's packages: %w", err)
	}
	var names []string
	for _, pkg := range fetched {
		names = append(names, filepath.Base(pkg.File))
	}
	want := strings.Join(names, "\n")
	root := filepath.Join(c.Cache, debianDir)
	done := filepath.Join(c.Cache, packagesDir, "unpacked")
	if have, err := os.ReadFile(done); err == nil && string(have) == want {
		if _, err := os.Stat(root); err == nil {
			return nil
		}
	}
	c.say("unpacking containerd, runc, CNI plugins and iptables")
	// First of all it is not done any more: this may be interrupted.
	if err := errors.Join(os.RemoveAll(done), os.RemoveAll(root)); err != nil {
		return err
	}
	if err := debian.Unpack(ctx, root, fetched...); err != nil {
		return err
	}
	return os.WriteFile(done, []byte(want), 0o644)
}

func (c *Cluster) builder() build.Builder { return build.Builder{Progress: c.Progress} }

func (c *Cluster) debian() debian.Store {
	return debian.Store{Dir: filepath.Join(c.Cache, packagesDir)}
}

func (c *Cluster) maker() *images.Maker {
	return &images.Maker{
		Dir: filepath.Join(c.Cache, imagesDir), Programs: c.Bin(), Etcd: c.BuiltEtcd(), Build: c.builder(), Debian: c.debian(),
	}
}

// linkTree gives a cluster the parts of another one: as hard links, which take
// no space and stay when the other one is removed, or as copies if it is on
// another file system.
func linkTree(ctx context.Context, from, to string) error {
	for _, how := range []string{"--link", "--reflink=auto"} {
		if err := os.RemoveAll(to); err != nil {
			return err
		}
		out, err := exec.CommandContext(ctx, "cp", "--archive", how, from, to).CombinedOutput()
		if err == nil {
			return nil
		}
		if how != "--link" {
			return fmt.Errorf("copy %s to %s: %w\n%s", from, to, err, out)
		}
	}
	return errors.New("unreachable")
}
