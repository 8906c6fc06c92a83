package cluster

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"

	"example.com/fairlead/localcluster/internal/build"
	"example.com/fairlead/localcluster/internal/host"
	"example.com/fairlead/localcluster/internal/images"
	"example.com/fairlead/localcluster/internal/node"
)

//go:embed manifests
var manifests embed.FS

// deploy applies what every cluster runs in itself: DNS and a storage class.
func (c *Cluster) deploy(ctx context.Context, entry host.Entry) error {
	version, err := c.builder().Version(ctx, "github.com/coredns/coredns")
	if err != nil {
		return err
	}
	parsed, err := template.ParseFS(manifests, "manifests/*.yaml")
	if err != nil {
		return err
	}
	var all bytes.Buffer
	for _, manifest := range parsed.Templates() {
		all.WriteString("---\n")
		err := manifest.Execute(&all, map[string]string{
			"DNSImage": images.DNSImage(version), "DNSService": node.DNSService(entry.Families).String(), "Domain": entry.Domain,
		})
		if err != nil {
			return err
		}
	}
	_, err = c.kubectl(ctx, &all, "apply", "--server-side", "--force-conflicts", "--field-manager=localcluster", "--filename=-")
	return err
}

// kubectl runs kubectl as the administrator.
func (c *Cluster) kubectl(ctx context.Context, in io.Reader, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(c.Bin(), "kubectl"), append([]string{"--kubeconfig=" + c.Kubeconfig()}, args...)...)
	cmd.Stdin = in
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w\n%s\nthe API server's log: %s", strings.Join(args, " "), err, bytes.TrimSpace(out),
			filepath.Join(c.Dir, node.LogDir, "kube-apiserver.log"))
	}
	return string(out), nil
}

// Load loads an image: from an archive, or one that it makes of files.
func (c *Cluster) Load(ctx context.Context, name string, files []string) error {
	if len(files) == 1 && filepath.Ext(files[0]) == ".tar" {
		archive, err := images.FromArchive(name, files[0])
		if err != nil {
			return err
		}
		return c.load(ctx, archive)
	}
	image, err := images.FromFiles(name, files)
	if err != nil {
		return err
	}
	archive, err := image.Archive()
	if err != nil {
		return err
	}
	return c.load(ctx, archive)
}

// LoadStock makes images of the list and loads them.
func (c *Cluster) LoadStock(ctx context.Context, names []string) error {
	entry, err := c.running()
	if err != nil {
		return err // before anything is fetched for it
	}
	c.borrow(*entry)
	archives, err := c.make(ctx, names)
	if err != nil {
		return err
	}
	return c.load(ctx, archives...)
}

// borrow takes the parts from where the running cluster has them from, unless
// the user names a folder: those of run are in a folder that outlives it.
func (c *Cluster) borrow(running host.Entry) {
	if c.Cache != c.Dir || running.Cache == "" {
		return
	}
	if _, err := os.Stat(running.Cache); err == nil {
		c.Cache = running.Cache
	}
}

func (c *Cluster) running() (*host.Entry, error) {
	entry, err := host.Find(c.Dir)
	if err == nil && entry == nil {
		err = fmt.Errorf("no cluster is up in %s", c.Dir)
	}
	return entry, err
}

func (c *Cluster) make(ctx context.Context, names []string) ([]*images.Archive, error) {
	var archives []*images.Archive
	err := build.Locked(c.Cache, func() error {
		for _, name := range names {
			image, err := c.maker().Make(ctx, name)
			if err != nil {
				return err
			}
			archive, err := image.Archive()
			if err != nil {
				return fmt.Errorf("make the image %s: %w", name, err)
			}
			archives = append(archives, archive)
		}
		return nil
	})
	return archives, err
}

// load imports images into every running node's containerd, those that it does
// not have.
func (c *Cluster) load(ctx context.Context, archives ...*images.Archive) error {
	entry, err := c.running()
	if err != nil {
		return err
	}
	results := make(chan error, entry.Nodes)
	for n := range entry.Nodes {
		go func() { results <- c.loadOnto(ctx, entry.Init.PID, node.NameOf(n), archives) }()
	}
	var errs []error
	for range entry.Nodes {
		errs = append(errs, <-results)
	}
	return errors.Join(errs...)
}

func (c *Cluster) loadOnto(ctx context.Context, init int, name string, archives []*images.Archive) error {
	socket := node.ContainerdSocket(init, name)
	if _, err := os.Stat(socket); name != node.Name && errors.Is(err, fs.ErrNotExist) {
		c.say("%s does not run, and gets no images", name)
		return nil
	}
	ctr := []string{"--address", socket, "--namespace", "k8s.io", "images"}
	have, err := c.ctr(ctx, nil, append(ctr, "list")...)
	if err != nil {
		return err
	}
	for _, archive := range archives {
		if has(have, archive) {
			continue
		}
		if _, err := c.ctr(ctx, bytes.NewReader(archive.Data), append(ctr, "import", "-")...); err != nil {
			return fmt.Errorf("load the image %s onto %s: %w", archive.Names[0], name, err)
		}
		if name == node.Name { // once is enough
			c.say("loaded %s", strings.Join(archive.Names, ", "))
		}
	}
	return nil
}

// Node switches a node off or on, pauses it or resumes it.
func (c *Cluster) Node(ctx context.Context, name, do string) error {
	entry, err := c.running()
	if err != nil {
		return err
	}
	return node.Tell(ctx, entry.Init.PID, node.Request{Node: name, Do: do})
}

// Cut drops a share of the packets between two ends: nodes, pods as
// NAMESPACE/NAME, or the API server.
func (c *Cluster) Cut(ctx context.Context, a, b string, oneWay bool, loss int) error {
	entry, err := c.running()
	if err != nil {
		return err
	}
	cut := &node.Cut{OneWay: oneWay, Loss: loss}
	if cut.A, err = c.cutEnd(ctx, a); err != nil {
		return err
	}
	if cut.B, err = c.cutEnd(ctx, b); err != nil {
		return err
	}
	return node.Tell(ctx, entry.Init.PID, node.Request{Do: node.MakeCut, Cut: cut})
}

// Heal undoes the cut between two ends, or all without any.
func (c *Cluster) Heal(ctx context.Context, ends []string) error {
	entry, err := c.running()
	if err != nil {
		return err
	}
	return node.Tell(ctx, entry.Init.PID, node.Request{Do: node.Heal, Ends: ends})
}

// cutEnd is what has that name, with the addresses that a pod has now.
func (c *Cluster) cutEnd(ctx context.Context, name string) (node.End, error) {
	end := node.End{Name: name}
	namespace, pod, isPod := strings.Cut(name, "/")
	if !isPod {
		return end, nil
	}
	out, err := c.kubectl(ctx, nil, "get", "pod", "--namespace="+namespace, pod, "--output=jsonpath={.status.podIPs[*].ip}")
	if err != nil {
		return end, err
	}
	for address := range strings.FieldsSeq(out) {
		ip, err := netip.ParseAddr(address)
		if err != nil {
			return end, err
		}
		end.IPs = append(end.IPs, ip)
	}
	if len(end.IPs) == 0 {
		return end, fmt.Errorf("pod %s has no address yet", name)
	}
	return end, nil
}

// has looks for all of an image's names, with its digest, in ctr's list: a
// line each, with name, type and digest first.
func has(list string, archive *images.Archive) bool {
	found := map[string]string{}
	for line := range strings.Lines(list) {
		if fields := strings.Fields(line); len(fields) > 2 {
			found[fields[0]] = fields[2]
		}
	}
	for _, name := range archive.Names {
		if found[name] != archive.Digest.String() {
			return false
		}
	}
	return true
}

func (c *Cluster) ctr(ctx context.Context, in io.Reader, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(c.Dir, debianDir, "usr/bin/ctr"), args...)
	cmd.Stdin = in
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("ctr %s: %w\n%s\ncontainerd's log: %s", strings.Join(args[4:], " "), err,
			bytes.TrimSpace(stderr.Bytes()), filepath.Join(c.Dir, node.LogDir, "containerd.log"))
	}
	return stdout.String(), nil
}
