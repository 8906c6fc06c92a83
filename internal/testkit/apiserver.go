package testkit

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Options say what the server of the tests holds beyond a plain Kubernetes.
type Options struct {
	// CRDs are folders of CustomResourceDefinitions (*.yaml). They are there
	// before the garbage collector starts, so it knows their kinds.
	CRDs []string

	// Controllers are kube-controller-manager's controllers to run besides
	// those for garbage collection, namespaces, quota and service accounts,
	// by its own names, for example "deployment-controller".
	Controllers []string

	// NamespaceLabels are put on every namespace that NewNamespace makes, for
	// example pod-security.kubernetes.io/enforce: restricted.
	NamespaceLabels map[string]string
}

// APIServer is a Kubernetes whose one node is an object only: etcd, kube-apiserver and the few
// controllers that clean up. Pods run where a [Kubelet] pretends to run them.
type APIServer struct {
	// Config is an administrator's, without a rate limit.
	Config *rest.Config

	options Options
	servers *servers
	client  client.Client
}

const (
	startTimeout   = time.Minute
	cleaningUp     = "garbage-collector-controller,namespace-controller,resourcequota-controller,serviceaccount-controller"
	assetsVariable = "KUBEBUILDER_ASSETS"
)

// StartAPIServer starts a server. Tests share one instead, see [Main]; this is
// for what needs a server that is not a test's, such as a benchmark.
func StartAPIServer(o Options) (*APIServer, error) {
	assets, err := findAssets()
	if err != nil {
		return nil, err
	}
	// A port that was free may be taken a moment later by another process.
	for attempt := 0; ; attempt++ {
		s, err := startOnce(assets, o)
		if err == nil || attempt == 2 || !strings.Contains(err.Error(), "address already in use") {
			return s, err
		}
	}
}

// Stop ends the server's processes and removes their folder.
func (s *APIServer) Stop() error { return s.servers.stop() }

// Minor is the server's minor version, such as 36.
func (s *APIServer) Minor(t testing.TB) int {
	t.Helper()
	c, err := discovery.NewDiscoveryClientForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	version, err := c.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	minor, err := strconv.Atoi(version.Minor)
	if err != nil {
		t.Fatalf("minor version %q: %v", version.Minor, err)
	}
	return minor
}

// NewNamespace makes a namespace for one test, with its default ServiceAccount in place
// so that pods are admitted. It ends with the server.
func (s *APIServer) NewNamespace(t testing.TB) string {
	t.Helper()
	name, err := s.newNamespace(t.Context(), t.Name(), nil)
	if err != nil {
		t.Fatalf("make a namespace: %v", err)
	}
	return name
}

// newNamespace makes one in which a policy is enforced, if there is one.
func (s *APIServer) newNamespace(ctx context.Context, purpose string, p *Policy) (string, error) {
	labels := maps.Clone(s.options.NamespaceLabels)
	if p != nil {
		if labels == nil {
			labels = map[string]string{}
		}
		labels[policyLabel] = p.Name
	}
	random := make([]byte, 4)
	_, _ = rand.Read(random) // never fails
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   namespaceName(purpose) + "-" + hex.EncodeToString(random),
		Labels: labels,
	}}
	if err := s.client.Create(ctx, ns); err != nil {
		return "", err
	}
	account := client.ObjectKey{Namespace: ns.Name, Name: "default"}
	err := poll(ctx, startTimeout, func() error {
		return s.client.Get(ctx, account, &corev1.ServiceAccount{})
	})
	if err == nil && p != nil {
		err = s.enforce(ctx, ns.Name, *p)
	}
	return ns.Name, err
}

// namespaceName is what a test's name leaves of a DNS label, 40 bytes at most.
func namespaceName(purpose string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(purpose))
	return strings.Trim(clean[:min(len(clean), 40)], "-")
}

func findAssets() (string, error) {
	assets := os.Getenv(assetsVariable)
	if assets == "" {
		return "", fmt.Errorf("%s is not set: these tests need etcd, kube-apiserver and kube-controller-manager; "+
			"`make assets` builds them and says where they are", assetsVariable)
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		if _, err := os.Stat(filepath.Join(assets, name)); err != nil {
			return "", fmt.Errorf("%s has no %s: `make assets` builds it: %w", assetsVariable, name, err)
		}
	}
	return assets, nil
}

func startOnce(assets string, o Options) (_ *APIServer, err error) {
	procs, err := newServers()
	if err != nil {
		return nil, err
	}
	s := &APIServer{options: o, servers: procs}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()

	etcdPort, apiPort, err := freePorts()
	if err != nil {
		return nil, err
	}
	token := make([]byte, 16)
	_, _ = rand.Read(token) // never fails
	s.Config = &rest.Config{
		Host:        "https://" + net.JoinHostPort("127.0.0.1", apiPort),
		BearerToken: hex.EncodeToString(token),
		QPS:         -1, // no limit
		TLSClientConfig: rest.TLSClientConfig{
			CAFile: filepath.Join(procs.dir, "apiserver.crt"), // kube-apiserver makes it
		},
	}
	kubeconfig, keys, tokens := filepath.Join(procs.dir, "kubeconfig"), filepath.Join(procs.dir, "serviceaccount.key"), filepath.Join(procs.dir, "tokens.csv")
	if err := errors.Join(
		writeServiceAccountKey(keys),
		os.WriteFile(tokens, []byte(s.Config.BearerToken+`,admin,admin,"system:masters"`+"\n"), 0o600),
		clientcmd.WriteToFile(kubeconfigFor(s.Config), kubeconfig),
	); err != nil {
		return nil, err
	}

	etcdURL := "http://" + net.JoinHostPort("127.0.0.1", etcdPort)
	etcd, err := procs.start(filepath.Join(assets, "etcd"),
		"--data-dir="+filepath.Join(procs.dir, "etcd"),
		"--listen-client-urls="+etcdURL,
		"--advertise-client-urls="+etcdURL,
		"--listen-peer-urls=http://127.0.0.1:0",
		"--unsafe-no-fsync",
		"--log-level=warn",
	)
	if err != nil {
		return nil, err
	}
	apiserver, err := procs.start(filepath.Join(assets, "kube-apiserver"),
		"--etcd-servers="+etcdURL,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port="+apiPort,
		"--cert-dir="+procs.dir,
		"--token-auth-file="+tokens,
		"--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.0.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+keys,
		"--service-account-signing-key-file="+keys,
		"--endpoint-reconciler-type=none",
		"--enable-priority-and-fairness=false",
		"--allow-privileged",
		"--profiling=false",
	)
	if err != nil {
		return nil, err
	}
	if err := s.ready(apiserver, etcd); err != nil {
		return nil, err
	}
	if s.client, err = client.New(s.Config, client.Options{}); err != nil {
		return nil, err
	}
	for _, folder := range o.CRDs {
		if err := s.installCRDs(folder); err != nil {
			return nil, fmt.Errorf("install the CRDs of %s: %w", folder, err)
		}
	}
	if err := s.makeNode(); err != nil {
		return nil, fmt.Errorf("make the node: %w", err)
	}
	controllers, err := procs.start(filepath.Join(assets, "kube-controller-manager"),
		"--kubeconfig="+kubeconfig,
		"--controllers="+strings.Join(append([]string{cleaningUp}, o.Controllers...), ","),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=2000",
		"--kube-api-burst=4000",
		// The Deployment controller tries again ten times a second at most, over all
		// namespaces. A sweep's many runs make it fail more often: each status that it
		// writes from an old cache is a conflict. What waits for its turn then stands
		// still for a minute. One worker lets the cache catch up and halves the
		// conflicts; a resync ends the wait of the rest.
		"--concurrent-deployment-syncs=1",
		"--min-resync-period=5s",
		"--profiling=false",
	)
	if err != nil {
		return nil, err
	}
	account := client.ObjectKey{Namespace: "default", Name: "default"}
	return s, waitFor(controllers, nil, func(ctx context.Context) error {
		return s.client.Get(ctx, account, &corev1.ServiceAccount{})
	})
}

// installCRDs installs those in the manifests (*.yaml) of a folder, and returns when they are served. It is not envtest's:
// make demo would have to compile that before there is something to look at.
func (s *APIServer) installCRDs(folder string) error {
	ctx := context.Background()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		return errors.Join(errors.New("there is no manifest (*.yaml)"), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		crd, content := apiextensionsv1.CustomResourceDefinition{}, map[string]any{}
		if err := errors.Join(yaml.Unmarshal(text, &crd), yaml.Unmarshal(text, &content)); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		if crd.Kind != "CustomResourceDefinition" {
			continue
		}
		if err := s.client.Create(ctx, &unstructured.Unstructured{Object: content}); err != nil {
			return err
		}
		kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
		if err := poll(ctx, startTimeout, func() error {
			_, err := s.client.RESTMapper().RESTMapping(kind, crd.Spec.Versions[0].Name)
			return err
		}); err != nil {
			return fmt.Errorf("it is not served: %w", err)
		}
	}
	return nil
}

// makeNode makes the node that a [Kubelet] binds pods to: the API server checks on it whether a pod may
// grow, and no EndpointSlice has a pod of a node that is not there.
func (s *APIServer) makeNode() error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
	if err := s.client.Create(context.Background(), node); err != nil {
		return err
	}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi"), corev1.ResourceCPU: resource.MustParse("1")}
	node.Status.Capacity = node.Status.Allocatable
	return s.client.Status().Update(context.Background(), node)
}

// ready waits until kube-apiserver says that it is.
func (s *APIServer) ready(apiserver, etcd *server) error {
	return waitFor(apiserver, etcd, func(ctx context.Context) error {
		transport, err := rest.TransportFor(rest.CopyConfig(s.Config))
		if err != nil {
			return err // no certificate yet
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Config.Host+"/readyz", nil)
		if err != nil {
			return err
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("readyz: %s", resp.Status)
		}
		return nil
	})
}

// waitFor polls until done says nil, or one of the servers is gone.
func waitFor(srv, needs *server, done func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	for _, s := range []*server{srv, needs} {
		if s == nil {
			continue
		}
		go func() {
			select {
			case <-s.done:
				cancel(fmt.Errorf("%s ended:\n%s", s.name, s.tail()))
			case <-ctx.Done():
			}
		}()
	}
	if err := poll(ctx, startTimeout, func() error { return done(ctx) }); err != nil {
		return fmt.Errorf("%s is not ready: %w", srv.name, err)
	}
	return nil
}

func freePorts() (a, b string, err error) {
	var ports [2]string
	for i := range ports {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return "", "", err
		}
		defer func() { _ = l.Close() }() // both are held until both are known
		ports[i] = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	}
	return ports[0], ports[1], nil
}

func writeServiceAccountKey(path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

func kubeconfigFor(cfg *rest.Config) clientcmdapi.Config {
	return clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"test": {Server: cfg.Host, CertificateAuthority: cfg.CAFile}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"admin": {Token: cfg.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "admin"}},
		CurrentContext: "test",
	}
}
