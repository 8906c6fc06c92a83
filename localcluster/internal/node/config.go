package node

import (
	"bytes"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed config
var configs embed.FS

// settings are what the templates in config/ take.
type settings struct {
	Node                      Node
	PauseImage                string
	Cluster, Config, PKI      string
	PodNets, DNSService       string
	Domain                    string
	ContainerdSocket, Plugins string
}

func newSettings(spec Spec) settings {
	return settings{
		Node: spec.self(), PauseImage: spec.PauseImage, Cluster: clusterDir, Config: configDir, PKI: pkiDir,
		PodNets: joined(spec.podNets()), DNSService: DNSService(spec.Families).String(), Domain: spec.Domain,
		ContainerdSocket: containerdSocket, Plugins: pluginsDir,
	}
}

// etc is everything in a node's /etc: the configuration of the components, of
// the container network, credentials, and the little that a C library looks
// for.
func etc(spec Spec, c *credentials) (map[string][]byte, error) {
	self := spec.self()
	files := map[string][]byte{
		"hostname": []byte(self.Name + "\n"),
		"hosts":    hosts(self),
		// Nobody answers there, and that at once. The host's own file may name
		// servers that cannot be reached from here, and those time out.
		"resolv.conf":   []byte("nameserver 127.0.0.1\n"),
		"nsswitch.conf": []byte("passwd: files\ngroup: files\nhosts: files dns\n"),
		"passwd":        []byte("root:x:0:0:root:/root:/bin/sh\n"),
		"group":         []byte("root:x:0:\n"),
		"machine-id":    fmt.Appendf(nil, "%032x\n", self.IP().AsSlice()),
	}
	for source, target := range map[string]string{
		"containerd.toml": "containerd/config.toml",
		"cni.conflist":    "cni/net.d/10-pods.conflist",
		"kubelet.yaml":    "kubernetes/kubelet.yaml",
		"kube-proxy.yaml": "kubernetes/kube-proxy.yaml",
		"audit.yaml":      "kubernetes/audit.yaml",
	} {
		content, err := render(source, newSettings(spec))
		if err != nil {
			return nil, err
		}
		files[target] = content
	}
	users := map[string]string{"kube-proxy": "system:kube-proxy", "kubelet": nodeUser(self.Name)}
	if spec.control() {
		users["admin"] = "admin"
		users["kube-controller-manager"] = "system:kube-controller-manager"
		users["kube-scheduler"] = "system:kube-scheduler"
		for name, content := range c.files {
			files["kubernetes/pki/"+name] = content
		}
	}
	for file, user := range users {
		content, err := c.kubeconfig(user, spec.apiServer())
		if err != nil {
			return nil, err
		}
		files["kubernetes/"+file+".kubeconfig"] = content
	}
	for name, content := range c.of(self) {
		files["kubernetes/pki/"+name] = content
	}
	return files, nil
}

func hosts(node Node) []byte {
	names := []byte("127.0.0.1 localhost\n")
	for _, ip := range node.ips() {
		names = fmt.Appendf(names, "%s %s\n", ip, node.Name)
	}
	return names
}

// apiServer is where the API server is reached: at the first node's address,
// which is the same from all nodes and from the host.
func (s Spec) apiServer() string {
	return "https://" + net.JoinHostPort(s.first().IP().String(), apiPort)
}

// kubeconfig is the file that a user reaches the API server with.
func (c *credentials) kubeconfig(user, server string) ([]byte, error) {
	return render("kubeconfig.yaml", struct{ Server, User, CA, Cert, Key string }{
		Server: server,
		User:   user,
		CA:     base64.StdEncoding.EncodeToString(c.ca.pem),
		Cert:   base64.StdEncoding.EncodeToString(c.clients[user].cert),
		Key:    base64.StdEncoding.EncodeToString(c.clients[user].key),
	})
}

func render(name string, data any) ([]byte, error) {
	parsed, err := template.New(name).Option("missingkey=error").ParseFS(configs, "config/"+name)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = parsed.Execute(&out, data)
	return out.Bytes(), err
}

// newEtc makes /etc of every node.
func newEtc(spec Spec) ([]map[string][]byte, error) {
	c, err := newCredentials(spec)
	if err != nil {
		return nil, err
	}
	var all []map[string][]byte
	for i := range spec.Nodes {
		spec.Self = i
		files, err := etc(spec, c)
		if err != nil {
			return nil, err
		}
		all = append(all, files)
	}
	return all, nil
}

// writeEtc writes a node's /etc.
func writeEtc(files map[string][]byte) error {
	for name, content := range files {
		path := filepath.Join("/etc", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	for link, target := range map[string]string{
		"/etc/os-release": "/usr/lib/os-release",
		"/etc/localtime":  "/usr/share/zoneinfo/UTC",
	} {
		if err := os.Symlink(target, link); err != nil {
			return err
		}
	}
	return nil
}

// linkPlugins makes the folder of CNI plugins: links to Debian's, but for one
// that is called through a script (config/ptp).
func linkPlugins() error {
	all, err := filepath.Glob(filepath.Join(clusterDir, DebianDir, "usr/lib/cni/*"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(pluginsDir, 0o755); err != nil {
		return err
	}
	script, err := render("ptp", filepath.Join(clusterDir, DebianDir))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(pluginsDir, "ptp"), script, 0o755); err != nil {
		return err
	}
	for _, plugin := range all {
		if err := os.Symlink(plugin, filepath.Join(pluginsDir, filepath.Base(plugin))); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// linkTools makes the names that iptables is called by. Debian's package
// leaves that to its alternatives, as there are two kinds: rules in nf_tables,
// and the older tables for kernels that do not have it.
func linkTools(kind string) error {
	if err := os.RemoveAll(toolsDir); err != nil {
		return err
	}
	if err := os.MkdirAll(toolsDir, 0o755); err != nil {
		return err
	}
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, suffix := range []string{"", "-save", "-restore"} {
			target := filepath.Join(clusterDir, DebianDir, "usr/sbin", family+"-"+kind+suffix)
			if _, err := os.Stat(target); errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if err := os.Symlink(target, filepath.Join(toolsDir, family+suffix)); err != nil {
				return err
			}
		}
	}
	return nil
}
