// Package node is what goes on inside of a cluster: the process that is PID 1
// of its namespaces makes itself a root file system, a network and
// credentials, starts the components, and ends when one of them does. As it is
// PID 1, the kernel ends every process in there with it, and the mounts and
// network devices go with the last process: there is nothing to be undone.
//
// That is the first node, which has the control plane as well. Each further
// node is a process that it starts, and that does the same over again: PID 1
// of namespaces inside of the first one's (further.go). To kill it is to switch
// the node off, and all of them end with the first one.
//
// The root is a small one of its own with the host's /usr read-only in it, so
// that a node sees the same paths wherever the cluster's folder is on the host,
// and nothing of the host's that it could write to:
//
//	/cluster     the cluster's folder
//	/var, /tmp   nodes/NAME/var and nodes/NAME/tmp of it: containers, etcd, volumes
//	/etc         made anew: no configuration of the host's
//	/run         a tmpfs: sockets, network namespaces of the pods
//	/usr         the host's: libc, mount, umount
//	/dev, /sys   the host's, with the cgroup hierarchies
//	/proc        the namespaces' own, but for the settings in kernel.go
package node

import (
	"fmt"
	"math/big"
	"net/netip"
	"strings"

	"example.com/fairlead/localcluster/internal/host"
)

// Spec is what PID 1 of a node needs to know. It comes by a pipe, once the
// network is there: from the keeper, or from the first node.
type Spec struct {
	// Dir is the cluster's folder on the host, which messages name.
	Dir string `json:"dir"`
	// Domain is what names of Services end in, and Families are the addresses'.
	Domain   string        `json:"domain"`
	Families []host.Family `json:"families"`
	// Link is the device that leads to the host and to the other nodes.
	Link       string `json:"link"`
	PauseImage string `json:"pauseImage"`
	// Nodes are all of the cluster, the first one with the control plane, and
	// Self says which of them this is.
	Nodes []Node `json:"nodes"`
	Self  int    `json:"self"`
	// Etc is what a further node has in /etc: the first one makes it.
	Etc map[string][]byte `json:"etc,omitempty"`
}

// NewSpec is the first node's.
func NewSpec(cluster host.Entry, pauseImage string) Spec {
	spec := Spec{Dir: cluster.Dir, Domain: cluster.Domain, Families: cluster.Families, Link: host.NodeLink, PauseImage: pauseImage}
	if cluster.Nodes > 1 {
		spec.Link = bridgeName
	}
	for n := range cluster.Nodes {
		node := Node{Name: NameOf(n), Addresses: cluster.NodeAddresses(n), Cgroup: cluster.Cgroup(n)}
		for _, family := range cluster.Families {
			node.Pods = append(node.Pods, podsOf(family, n))
		}
		if len(cluster.Zones) > 0 {
			node.Zone = cluster.Zones[n%len(cluster.Zones)]
		}
		spec.Nodes = append(spec.Nodes, node)
	}
	return spec
}

// Node is one of the cluster's nodes.
type Node struct {
	Name string `json:"name"`
	// Addresses are one of each family, with the size of the network that the
	// nodes and the host are in.
	Addresses []netip.Prefix `json:"addresses"`
	// Zone is the value of its label topology.kubernetes.io/zone.
	Zone string `json:"zone,omitempty"`
	// Cgroup is where its kubelet has the pods' cgroups.
	Cgroup string `json:"cgroup"`
	// Pods is where its pods' addresses are from, in each family.
	Pods []netip.Prefix `json:"pods"`
}

// IP is its preferred address.
func (n Node) IP() netip.Addr { return n.Addresses[0].Addr() }

// ips are its addresses.
func (n Node) ips() []netip.Addr {
	var all []netip.Addr
	for _, address := range n.Addresses {
		all = append(all, address.Addr())
	}
	return all
}

// MaxNodes is how many parts for nodes the pods' networks have.
const MaxNodes = 16

// NameOf is the name of the nth node, from 0 on.
func NameOf(n int) string {
	if n == 0 {
		return Name
	}
	return fmt.Sprintf("%s-%d", Name, n+1)
}

// networks are what pods and Services have their addresses of.
type networks struct {
	pods     netip.Prefix
	podBits  int // of that for each node
	services netip.Prefix
}

// Those for IPv6 are kind's.
var networksOf = map[host.Family]networks{
	host.IPv4: {netip.MustParsePrefix("10.244.0.0/16"), 20, netip.MustParsePrefix("10.96.0.0/16")}, // 4,000 pods
	host.IPv6: {netip.MustParsePrefix("fd00:10:244::/56"), 64, netip.MustParsePrefix("fd00:10:96::/112")},
}

// podsOf is where the addresses of the nth node's pods are from.
func podsOf(family host.Family, n int) netip.Prefix {
	of := networksOf[family]
	address := new(big.Int).SetBytes(of.pods.Addr().AsSlice())
	address.Add(address, new(big.Int).Lsh(big.NewInt(int64(n)), uint(of.pods.Addr().BitLen()-of.podBits)))
	ip, _ := netip.AddrFromSlice(address.FillBytes(make([]byte, of.pods.Addr().BitLen()/8)))
	return netip.PrefixFrom(ip, of.podBits)
}

// podNets is where all pods' addresses are from, and serviceNets the Services'.
func (s Spec) podNets() []netip.Prefix {
	var all []netip.Prefix
	for _, family := range s.Families {
		all = append(all, networksOf[family].pods)
	}
	return all
}

func (s Spec) serviceNets() []netip.Prefix {
	var all []netip.Prefix
	for _, family := range s.Families {
		all = append(all, networksOf[family].services)
	}
	return all
}

// apiService is where the Service of the API server is: Kubernetes gives it the
// first address.
func (s Spec) apiService() netip.Addr { return s.serviceNets()[0].Addr().Next() }

// DNSService is where CoreDNS has to be: at the tenth address, as usual.
func DNSService(families []host.Family) netip.Addr {
	ip := networksOf[families[0]].services.Addr()
	for range 10 {
		ip = ip.Next()
	}
	return ip
}

// joined is a list as flags take it.
func joined[T fmt.Stringer](list []T) string {
	var all []string
	for _, one := range list {
		all = append(all, one.String())
	}
	return strings.Join(all, ",")
}

func (s Spec) self() Node { return s.Nodes[s.Self] }

// first is the node that the API server is on.
func (s Spec) first() Node { return s.Nodes[0] }

// control tells whether this node has the control plane.
func (s Spec) control() bool { return s.Self == 0 }

// What every cluster has the same, as all of it is in namespaces of its own.
const (
	Name    = "localcluster" // the first node's name
	apiPort = "6443"
)

// Folders of the cluster's folder, here and on the host.
const (
	StateDir   = "nodes"      // the running state, a folder per node
	LogDir     = "log"        // a file per component, a folder per further node
	BinDir     = "bin"        // the Kubernetes binaries
	DebianDir  = "debian"     // unpacked packages
	Kubeconfig = "kubeconfig" // the administrator's
)

// Sockets and tools, inside.
const (
	containerdSocket = "/run/containerd/containerd.sock"
	controlSocket    = "/run/control.sock" // of the first node: what Tell writes to
	runningDir       = "/run/running"      // of the first node: a link to the root of each node that runs
	toolsDir         = "/run/tools"
	pluginsDir       = "/run/cni-plugins"
	pkiDir           = "/etc/kubernetes/pki"
	configDir        = "/etc/kubernetes"
)

// ContainerdSocket is the path of containerd's socket on a node for a process
// on the host: through the root that the cluster's PID 1 has. It is there
// while the node runs.
func ContainerdSocket(init int, node string) string {
	return fmt.Sprintf("/proc/%d/root%s/%s%s", init, runningDir, node, containerdSocket)
}
