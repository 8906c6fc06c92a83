// Command localcluster runs a real Kubernetes of one node or more on a bare Linux
// machine: no Docker, no container registry, nothing installed. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"example.com/fairlead/localcluster/internal/build"
	"example.com/fairlead/localcluster/internal/cluster"
	"example.com/fairlead/localcluster/internal/host"
	"example.com/fairlead/localcluster/internal/images"
	"example.com/fairlead/localcluster/internal/node"
)

const usage = `localcluster runs a real Kubernetes, as root, on Linux.

  localcluster assets [--dir DIR]                   build kube-apiserver, etcd, kubectl, ...; prints their folder
  localcluster etcd   [--dir DIR] [VERSION...]      build etcd, etcdctl and etcdutl of versions, such as v3.6.16, or of those
                                                    that the tests use; prints the folder that has a folder for each
  localcluster build [--title TEXT] -o OUT -- ARG...
                                                    go build -o OUT ARG..., with a line that says how far it is
  localcluster up     [--dir DIR] [--images all]    start a cluster in the background
  localcluster down   [--dir DIR]                   end it and remove its folder
  localcluster run    [--dir DIR] [--images all] -- COMMAND [ARG...]
                                                    a cluster for as long as a command runs
  localcluster node   [--dir DIR] NAME off|on|pause|resume
                                                    switch a node off, as when the power fails, or on; stop its processes
  localcluster cut    [--dir DIR] [--one-way] [--loss PERCENT] A B
                                                    drop packets between A and B: nodes, pods as NAMESPACE/NAME, or api
  localcluster heal   [--dir DIR] [A B]             drop no more, between A and B or at all
  localcluster load   [--dir DIR] NAME FILE...      make an image of files and load it; FILE may be PATH-IN-IMAGE=FILE,
                                                    the first one is run; or load an image from an OCI archive, FILE.tar
  localcluster image  [--dir DIR] NAME...           make images of the list below and load them

up and run take --nodes N (1 unless given) and --zones a,b,c, which are dealt out to the nodes in turn; --family ipv4
(unless given), ipv6, dual or ipv6,ipv4, of nodes, pods and Services; and --domain NAME (cluster.local unless given).
DIR is .cluster unless given; run takes a temporary folder, and the parts of .cluster (--cache DIR).
Images, and etcd by the tag of any other version: `

func main() {
	// The program calls itself by these two.
	switch argument(1) {
	case cluster.KeeperCommand:
		exitOn(cluster.Keep())
		return
	case cluster.InitCommand:
		exitOn(cluster.Init())
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	code, err := run(ctx, argument(1), os.Args[min(2, len(os.Args)):])
	if err != nil {
		fmt.Fprintf(os.Stderr, "localcluster %s: %v\n", argument(1), err)
		code = max(code, 1)
	}
	stop()
	os.Exit(code)
}

func run(ctx context.Context, command string, args []string) (int, error) {
	flags := flag.NewFlagSet("localcluster "+command, flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprintln(os.Stderr, usage+strings.Join(images.Names(true), ", ")) }
	dir := flags.String("dir", "", "the cluster's folder")
	cache := flags.String("cache", "", "the folder that has the parts")
	release := flags.String("kubernetes", "", "another release of Kubernetes than that of go.mod, such as v1.31.0")
	out := flags.String("o", "", "for build: the program, or a folder for several, by a slash at its end")
	title := flags.String("title", "building programs of Go", "for build: what is built")
	nodes := flags.Int("nodes", 1, "for up and run: how many nodes the cluster has")
	zones := flags.String("zones", "", "for up and run: the nodes' zones, separated by commas, dealt out in turn")
	family := flags.String("family", "ipv4", "for up and run: the addresses' family: ipv4, ipv6, dual, or ipv6,ipv4 for both with that first")
	domain := flags.String("domain", "cluster.local", "for up and run: what names of Services end in")
	oneWay := flags.Bool("one-way", false, "for cut: drop packets from A to B only")
	loss := flags.Int("loss", 100, "for cut: how many of a hundred packets are dropped")
	stock := flags.String("images", "", "images to load, separated by commas, or all; a few basic ones always are")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0, nil
		}
		return 2, nil // the flag package has said what is wrong
	}
	if command == "run" && flags.NArg() == 0 {
		flags.Usage()
		return 2, nil
	}
	if err := checkNodes(*nodes, split(*zones)); err != nil {
		return 2, err
	}
	families, err := checkNetwork(*family, *domain)
	if err != nil {
		return 2, err
	}
	switch command {
	case "help", "--help", "-h":
		flags.Usage()
		return 0, nil
	case "up", "down", "run", "load", "image", "node", "cut", "heal":
		if os.Geteuid() != 0 {
			return 1, errors.New("namespaces, mounts and network devices take root")
		}
	}
	c, err := newCluster(command, *dir, *cache)
	if err != nil {
		return 1, err
	}
	c.Kubernetes, c.Nodes, c.Zones, c.Families, c.Domain = *release, *nodes, split(*zones), families, *domain
	names := images.Names(*stock == "all")
	if *stock != "all" {
		names = append(names, split(*stock)...)
	}
	switch rest := flags.Args(); {
	case command == "assets" && len(rest) == 0:
		if err := c.Assets(ctx); err != nil {
			return 1, err
		}
		fmt.Println(c.Built())
		return 0, nil
	case command == "etcd":
		if len(rest) == 0 {
			rest = images.EtcdVersions
		}
		if err := c.Etcd(ctx, rest); err != nil {
			return 1, err
		}
		fmt.Println(c.BuiltEtcd())
		return 0, nil
	case command == "build" && *out != "" && len(rest) > 0:
		return 0, build.Builder{Progress: os.Stderr}.Program(ctx, *title, *out, rest)
	case command == "up" && len(rest) == 0:
		return 0, c.Up(ctx, names, true)
	case command == "down" && len(rest) == 0:
		return 0, c.Down()
	case command == "run" && len(rest) > 0:
		return c.Run(ctx, names, rest)
	case command == "load" && len(rest) > 1:
		return 0, c.Load(ctx, rest[0], rest[1:])
	case command == "node" && len(rest) == 2:
		return 0, c.Node(ctx, rest[0], rest[1])
	case command == "cut" && len(rest) == 2 && *loss > 0 && *loss <= 100:
		return 0, c.Cut(ctx, rest[0], rest[1], *oneWay, *loss)
	case command == "heal" && (len(rest) == 0 || len(rest) == 2):
		return 0, c.Heal(ctx, rest)
	case command == "image" && len(rest) > 0:
		return 0, c.LoadStock(ctx, rest)
	}
	flags.Usage()
	return 2, nil
}

// newCluster finds the folders: absolute, and without symbolic links, so that
// one folder is one cluster whatever it is called.
func newCluster(command, dir, cache string) (*cluster.Cluster, error) {
	const usual = ".cluster"
	c := &cluster.Cluster{Progress: os.Stderr}
	var err error
	if command == "run" {
		if cache == "" {
			cache = usual
		}
		if dir == "" {
			c.Temporary = true
			if dir, err = os.MkdirTemp("", "localcluster-"); err != nil {
				return nil, err
			}
		}
	} else if dir == "" {
		dir = usual
	}
	if cache == "" {
		cache = dir
	}
	if c.Dir, err = resolve(dir); err != nil {
		return nil, err
	}
	c.Cache, err = resolve(cache)
	return c, err
}

func resolve(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if _, err := os.Lstat(abs); errors.Is(err, os.ErrNotExist) {
		// It will be made: only what is above it can be a link.
		if err := os.MkdirAll(filepath.Dir(abs), 0o755); err != nil {
			return "", err
		}
		parent, err := filepath.EvalSymlinks(filepath.Dir(abs))
		return filepath.Join(parent, filepath.Base(abs)), err
	}
	return filepath.EvalSymlinks(abs)
}

// checkNodes looks at what the nodes would fail on, or hide.
func checkNodes(nodes int, zones []string) error {
	if nodes < 1 || nodes > node.MaxNodes {
		return fmt.Errorf("--nodes %d: a cluster has 1 to %d nodes", nodes, node.MaxNodes)
	}
	if len(zones) > nodes {
		return fmt.Errorf("--zones: %d zones are too many for --nodes %d", len(zones), nodes)
	}
	for _, zone := range zones {
		if len(zone) > 63 || !labelValue.MatchString(zone) {
			return fmt.Errorf("--zones: %q is no value of a label", zone)
		}
	}
	return nil
}

// checkNetwork looks at what Kubernetes would refuse.
func checkNetwork(family, domain string) ([]host.Family, error) {
	if len(domain) > 100 || !domainName.MatchString(domain) { // names of pods come before it, and a name has 253 characters
		return nil, fmt.Errorf("--domain %q: it must be a domain's name in lower case, such as example.internal", domain)
	}
	families, err := host.FamiliesOf(family)
	if err != nil {
		return nil, fmt.Errorf("--family: %w", err)
	}
	return families, nil
}

var domainName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$`)

// labelValue is what Kubernetes takes, apart from its length.
var labelValue = regexp.MustCompile(`^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$`)

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

func argument(n int) string {
	if n < len(os.Args) {
		return os.Args[n]
	}
	return ""
}

func exitOn(err error) {
	if err != nil {
		log.Fatal(err) // into supervisor.log
	}
}
