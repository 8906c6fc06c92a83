package node

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
)

// component is a process of the cluster.
type component struct {
	name string
	args []string
	// ready tells whether it can be used: what needs it starts after that.
	// Without it nothing waits.
	ready func(context.Context) error
}

func containerd() component {
	return component{
		name:  "containerd",
		args:  []string{"--config=/etc/containerd/config.toml"},
		ready: takesPods,
	}
}

// takesPods asks containerd for its version, as a kubelet does, which ends if that fails: containerd listens before it
// has found the containers that it had before the power failed. It is gRPC with an empty message, without its library.
func takesPods(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://containerd/runtime.v1.RuntimeService/Version", bytes.NewReader(make([]byte, 5)))
	if err != nil {
		return err
	}
	request.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}}
	var http2 http.Protocols
	http2.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{
		Protocols: &http2, DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", containerdSocket)
		},
	}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil { // trailers come after it
		return err
	}
	of := func(name string) string { return cmp.Or(response.Header.Get(name), response.Trailer.Get(name)) }
	if of("Grpc-Status") != "0" {
		return fmt.Errorf("containerd: %s %s", response.Status, of("Grpc-Message"))
	}
	return nil
}

func etcd() component {
	return component{
		name: "etcd",
		args: []string{
			"--name=" + Name,
			"--data-dir=/var/lib/etcd",
			"--listen-client-urls=http://127.0.0.1:2379",
			"--advertise-client-urls=http://127.0.0.1:2379",
			"--listen-peer-urls=http://127.0.0.1:2380",
			"--initial-advertise-peer-urls=http://127.0.0.1:2380",
			"--initial-cluster=" + Name + "=http://127.0.0.1:2380",
			// What a power cut would cost is a cluster that is thrown away anyway,
			// and waiting for the disk is most of what a write costs.
			"--unsafe-no-fsync",
			"--quota-backend-bytes=8589934592",
			"--log-level=warn",
		},
		ready: healthy("http://127.0.0.1:2379/health", nil),
	}
}

func apiServer(spec Spec) component {
	return component{
		name: "kube-apiserver",
		args: []string{
			"--advertise-address=" + spec.first().IP().String(),
			"--secure-port=" + apiPort,
			"--etcd-servers=http://127.0.0.1:2379",
			"--service-cluster-ip-range=" + joined(spec.serviceNets()),
			"--authorization-mode=Node,RBAC",
			"--enable-admission-plugins=NodeRestriction",
			"--allow-privileged=true",
			"--client-ca-file=" + pki("ca.crt"),
			"--tls-cert-file=" + pki("apiserver.crt"),
			"--tls-private-key-file=" + pki("apiserver.key"),
			"--service-account-issuer=https://kubernetes.default.svc." + spec.Domain,
			"--service-account-key-file=" + pki("service-accounts.key"),
			"--service-account-signing-key-file=" + pki("service-accounts.key"),
			"--kubelet-certificate-authority=" + pki("ca.crt"),
			"--kubelet-client-certificate=" + pki("apiserver-kubelet.crt"),
			"--kubelet-client-key=" + pki("apiserver-kubelet.key"),
			"--kubelet-preferred-address-types=InternalIP", // the node's name does not resolve
			"--requestheader-client-ca-file=" + pki("front-proxy-ca.crt"),
			"--requestheader-allowed-names=front-proxy-client",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-username-headers=X-Remote-User",
			"--proxy-client-cert-file=" + pki("front-proxy-client.crt"),
			"--proxy-client-key-file=" + pki("front-proxy-client.key"),
			// On disk when the request is answered: a test that counts requests
			// need not wait.
			"--audit-policy-file=" + configDir + "/audit.yaml",
			"--audit-log-path=" + filepath.Join(clusterDir, LogDir, "audit.log"),
			"--audit-log-mode=blocking",
			"--audit-log-maxsize=200", // MiB
			"--audit-log-maxbackup=3",
			// Load tests shall find the limit of the machine, not of a setting.
			"--max-requests-inflight=2000",
			"--max-mutating-requests-inflight=1000",
		},
	}
}

func controllerManager(spec Spec) component {
	return component{
		name: "kube-controller-manager",
		args: []string{
			"--kubeconfig=" + configDir + "/kube-controller-manager.kubeconfig",
			"--leader-elect=false", // it is the only one
			"--use-service-account-credentials=true",
			"--service-account-private-key-file=" + pki("service-accounts.key"),
			"--root-ca-file=" + pki("ca.crt"),
			"--cluster-signing-cert-file=" + pki("ca.crt"),
			"--cluster-signing-key-file=" + pki("ca.key"),
			"--requestheader-client-ca-file=" + pki("front-proxy-ca.crt"),
			"--cluster-cidr=" + joined(spec.podNets()),
			"--allocate-node-cidrs=false", // the container network knows its range
			"--bind-address=127.0.0.1",
			"--flex-volume-plugin-dir=/var/lib/kubelet/volume-plugins", // the default is below /usr
			"--kube-api-qps=500",
			"--kube-api-burst=1000",
		},
	}
}

func scheduler() component {
	return component{
		name: "kube-scheduler",
		args: []string{
			"--kubeconfig=" + configDir + "/kube-scheduler.kubeconfig",
			"--leader-elect=false",
			"--bind-address=127.0.0.1",
			"--kube-api-qps=500",
			"--kube-api-burst=1000",
		},
	}
}

func kubelet(spec Spec) component {
	args := []string{
		"--config=" + configDir + "/kubelet.yaml",
		"--kubeconfig=" + configDir + "/kubelet.kubeconfig",
		"--node-ip=" + joined(spec.self().ips()),
		"--hostname-override=" + spec.self().Name,
		"--root-dir=/var/lib/kubelet",
	}
	if zone := spec.self().Zone; zone != "" {
		args = append(args, "--node-labels=topology.kubernetes.io/zone="+zone)
	}
	return component{name: "kubelet", args: args}
}

func proxy() component {
	return component{name: "kube-proxy", args: []string{
		"--config=" + configDir + "/kube-proxy.yaml",
		"--v=2", // says when rules were changed
	}}
}

func volumeProvisioner() component {
	return component{
		name: "volume-provisioner",
		args: []string{"--kubeconfig=" + configDir + "/admin.kubeconfig", "--nodes=" + filepath.Join(clusterDir, StateDir)},
	}
}

func pki(file string) string { return filepath.Join(pkiDir, file) }

// healthy asks a URL that answers 200 when all is well.
func healthy(url string, config *tls.Config) func(context.Context) error {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	return func(ctx context.Context) error {
		response, err := get(ctx, client, url)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, response.Status)
		}
		return nil
	}
}

func get(ctx context.Context, client *http.Client, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return client.Do(request)
}
