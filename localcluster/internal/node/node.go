// Package node is what goes on inside of a cluster: the process that is PID 1
// of its namespaces makes itself a root file system, a network and
// credentials, starts the components, and ends when one of them does. As it is
// PID 1, the kernel ends every process in there with it, and the mounts and
// network devices go with the last process: there is nothing to be undone.
//
// The root is a small one of its own with the host's /usr read-only in it, so
// that the cluster sees the same paths wherever its folder is on the host, and
// nothing of the host's that it could write to:
//
//	/cluster     the cluster's folder
//	/var, /tmp   node/var and node/tmp of it: the containers, etcd, volumes
//	/etc         made anew: no configuration of the host's
//	/run         a tmpfs: sockets, network namespaces of the pods
//	/usr         the host's: libc, mount, umount
//	/dev, /sys   the host's, with the cgroup hierarchies
//	/proc        the namespaces' own, but for the settings in kernel.go
package node

import (
	"net/netip"
)

// Spec is what PID 1 needs to know. It comes from the keeper, by a pipe, once
// the network is there.
type Spec struct {
	Dir      string     `json:"dir"`
	NodeIP   netip.Addr `json:"nodeIP"`
	HostIP   netip.Addr `json:"hostIP"`
	LinkBits int        `json:"linkBits"`
	Link     string     `json:"link"`
	// CgroupRoot is where the kubelet has the pods' cgroups.
	CgroupRoot string `json:"cgroupRoot"`
	PauseImage string `json:"pauseImage"`
}

// What every cluster has the same, as all of it is in namespaces of its own.
const (
	Name       = "localcluster" // the node's name
	podCIDR    = "10.244.0.0/16"
	serviceNet = "10.96.0.0/16"
	apiService = "10.96.0.1"
	DNSService = "10.96.0.10" // where CoreDNS has to be
	dnsDomain  = "cluster.local"
	apiPort    = "6443"
)

// Folders of the cluster's folder, here and on the host.
const (
	StateDir   = "node"       // the running state
	LogDir     = "log"        // a file per component
	BinDir     = "bin"        // the Kubernetes binaries
	DebianDir  = "debian"     // unpacked packages
	Kubeconfig = "kubeconfig" // the administrator's
)

// Sockets and tools, inside.
const (
	containerdSocket = "/run/containerd/containerd.sock"
	toolsDir         = "/run/tools"
	pkiDir           = "/etc/kubernetes/pki"
	configDir        = "/etc/kubernetes"
)

// ContainerdSocket is the path of containerd's socket for a process on the
// host: through the root that PID 1 has.
func ContainerdSocket(init string) string { return "/proc/" + init + "/root" + containerdSocket }
