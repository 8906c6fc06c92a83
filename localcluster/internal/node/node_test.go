package node

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var spec = Spec{
	Dir: "/somewhere/.cluster", NodeIP: netip.MustParseAddr("198.18.0.2"), HostIP: netip.MustParseAddr("198.18.0.1"),
	LinkBits: 30, Link: "eth0", CgroupRoot: "localcluster-1", PauseImage: "localcluster/pause:1",
}

func TestEtc(t *testing.T) {
	c, err := newCredentials(spec.NodeIP.String())
	if err != nil {
		t.Fatal(err)
	}
	files, err := etc(spec, c)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if strings.Contains(string(content), "<no value>") {
			t.Errorf("%s has a field that was not filled in:\n%s", name, content)
		}
		switch {
		case strings.HasSuffix(name, ".yaml"), strings.HasSuffix(name, ".kubeconfig"):
			if err := yaml.UnmarshalStrict(content, &map[string]any{}); err != nil {
				t.Errorf("%s: %v\n%s", name, err, content)
			}
		case strings.HasSuffix(name, ".conflist"):
			if !json.Valid(content) {
				t.Errorf("%s is not JSON:\n%s", name, content)
			}
		}
	}
	wants := map[string]string{
		"kubernetes/kubelet.yaml":     "cgroupRoot: /localcluster-1\n",
		"containerd/config.toml":      `sandbox_image = "localcluster/pause:1"`,
		"cni/net.d/10-pods.conflist":  `"subnet": "10.244.0.0/16"`,
		"kubernetes/admin.kubeconfig": "server: https://198.18.0.2:6443\n",
		"hosts":                       "198.18.0.2 localcluster\n",
	}
	for name, want := range wants {
		if !strings.Contains(string(files[name]), want) {
			t.Errorf("%s lacks %q:\n%s", name, want, files[name])
		}
	}
}

func TestCredentials(t *testing.T) {
	c, err := newCredentials("198.18.0.2")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(c.ca.cert)

	server := certificate(t, c.files["apiserver.crt"])
	for _, host := range []string{"198.18.0.2", "127.0.0.1", apiService, "kubernetes.default.svc"} {
		if _, err := server.Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
			t.Errorf("the API server's certificate at %s: %v", host, err)
		}
	}
	kubelet := certificate(t, c.clients["system:node:"+Name].cert)
	if _, err := kubelet.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Errorf("the kubelet's certificate: %v", err)
	}
	if got := kubelet.Subject.Organization; !slices.Equal(got, []string{"system:nodes"}) {
		t.Errorf("the kubelet is in the groups %q, want system:nodes", got)
	}
	front := certificate(t, c.files["front-proxy-client.crt"])
	if _, err := front.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err == nil {
		t.Error("the front proxy's certificate passes as a user's")
	}
}

func certificate(t *testing.T, data []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(data)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
