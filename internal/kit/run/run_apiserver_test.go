//go:build apiserver

package run

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	authenticationv1 "k8s.io/api/authentication/v1"

	"example.com/fairlead/internal/kit/authn"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/pace"
)

func TestMain(m *testing.M) { testkit.Main(m, testkit.Options{}) }

func newClient(t *testing.T, cfg *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	if _, err := pace.Until(t.Context(), 20*time.Second, check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// start runs a manager until the test ends.
func start(t *testing.T, cfg *rest.Config, options Options, operators ...Operator) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- runManagers(ctx, logr.Discard(), cfg, options, operators...) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
}

// freeAddress is an address on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func get(t *testing.T, url, token string) (int, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	c := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	resp, err := c.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// recording is an operator of ConfigMaps, and of a kind that is not installed.
func recording(started chan<- string) Operator {
	kind := func(name string, object client.Object) Kind {
		return Kind{Object: object, New: func(Parts) (*Controller, error) {
			return &Controller{Name: name, Reconciler: reconcile.Func(nil), Alarms: silent{source.Func(func(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error { return nil })}, Started: func(context.Context) error {
				started <- name
				return nil
			}}, nil
		}}
	}
	missing := schema.GroupVersion{Group: "test.example.com", Version: "v1"}
	return Operator{
		Name: "recorder",
		AddToScheme: func(scheme *runtime.Scheme) error {
			scheme.AddKnownTypeWithName(missing.WithKind("Later"), &later{})
			return nil
		},
		Kinds: []Kind{kind("ConfigMap", &corev1.ConfigMap{}), kind("Later", &later{})},
	}
}

// silent has no instants.
type silent struct{ source.Source }

func (silent) Ring() ([]types.NamespacedName, time.Duration) { return nil, time.Hour }
func (silent) Next() (time.Time, bool)                       { return time.Time{}, false }

// later is a kind whose CRD comes later.
type later struct {
	metav1.PartialObjectMetadata
}

func (l *later) DeepCopyObject() runtime.Object {
	return &later{PartialObjectMetadata: *l.DeepCopy()}
}

func TestKindStartsWhenItsCRDAppears(t *testing.T) {
	server := testkit.Server(t)
	started := make(chan string, 2)
	address := freeAddress(t)
	start(t, server.Config, Options{ProbeAddress: address}, recording(started))
	if name := <-started; name != "ConfigMap" {
		t.Fatalf("%s started first", name)
	}
	for _, path := range []string{"healthz", "readyz"} {
		eventually(t, path, func() error {
			if code, err := get(t, "http://"+address+"/"+path, ""); err != nil || code != http.StatusOK {
				return fmt.Errorf("%d, %w", code, err)
			}
			return nil
		})
	}
	select {
	case name := <-started:
		t.Fatalf("%s started without a CRD", name)
	case <-time.After(time.Second):
	}

	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(server.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "laters.test.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "test.example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "laters", Singular: "later", Kind: "Later", ListKind: "LaterList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}
	if err := c.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	select {
	case name := <-started:
		if name != "Later" {
			t.Fatalf("%s started again", name)
		}
	case <-time.After(3 * crdPollInterval):
		t.Fatal("the kind did not start after its CRD was installed")
	}
}

func TestMetricsAreForWhoeverTheAPIServerLets(t *testing.T) {
	server := testkit.Server(t)
	address := freeAddress(t)
	start(t, server.Config, Options{MetricsAddress: address, MetricsFilter: authn.Filter}, recording(make(chan string, 2)))
	c := newClient(t, server.Config)
	namespace := server.NewNamespace(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "scraper"}}
	if err := c.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{}
	if err := c.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	token := request.Status.Token

	wants := func(what, token string, want int) {
		t.Helper()
		eventually(t, what, func() error {
			if code, err := get(t, "https://"+address+"/metrics", token); err != nil || code != want {
				return fmt.Errorf("%d, %w, want %d", code, err, want)
			}
			return nil
		})
	}
	wants("without a token", "", http.StatusUnauthorized)
	wants("with a wrong token", "wrong", http.StatusUnauthorized)
	wants("with a token, without the right", token, http.StatusForbidden)
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: namespace},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "scraper"}},
	}
	if err := errors.Join(c.Create(t.Context(), role), c.Create(t.Context(), binding)); err != nil {
		t.Fatal(err)
	}
	// The server keeps a refusal for a while, so another path to the answer.
	request = &authenticationv1.TokenRequest{}
	if err := c.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	wants("with the right", request.Status.Token, http.StatusOK)
}

func TestLeaderForLifeKeepsItsLockUntilItsPodIsGone(t *testing.T) {
	server := testkit.Server(t)
	c := newClient(t, server.Config)
	namespace := server.NewNamespace(t)
	newPod := func(name string) pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
		if err := c.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		return pod{namespace: namespace, name: name}
	}
	try := func(self pod) string {
		t.Helper()
		holder, err := tryForLife(t.Context(), c, c, self, "lock")
		if err != nil {
			t.Fatal(err)
		}
		return holder
	}
	remove := func(self pod) {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: self.name}}
		if err := c.Delete(t.Context(), p, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	}
	wantLeader := func(self pod) {
		t.Helper()
		eventually(t, self.name+" leads", func() error {
			holder, err := tryForLife(t.Context(), c, c, self, "lock")
			if err == nil && holder != self.name {
				err = fmt.Errorf("%s leads", holder)
			}
			return err
		})
	}

	one, two, three := newPod("one"), newPod("two"), newPod("three")
	wantLeader(one)
	if holder := try(two); holder != "one" {
		t.Errorf("%q leads, want one", holder)
	}
	if holder := try(one); holder != "one" {
		t.Errorf("after a restart of its container %q leads, want one", holder)
	}
	remove(one)
	wantLeader(two)

	// A pod of the same name is another pod.
	one = newPod("one")
	if holder := try(one); holder != "two" {
		t.Errorf("%q leads, want two", holder)
	}
	// A pod that ended for good gives the lock up although it is still there.
	ended := &corev1.Pod{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "two"}, ended); err != nil {
		t.Fatal(err)
	}
	ended.Status.Phase = corev1.PodFailed
	if err := c.Status().Update(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	wantLeader(three)

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := acquireForLife(ctx, logr.Discard(), c, c, one, "lock"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("acquire while another leads: %v", err)
	}
}

func TestElectionNamespaceOutsideACluster(t *testing.T) {
	if _, ok := inCluster(); ok {
		t.Fatal("this test runs outside a cluster")
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: x, user: u, namespace: mine}}], clusters: [{name: x, cluster: {server: 'https://127.0.0.1'}}]}"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if namespace, err := electionNamespace(file); err != nil || namespace != "mine" {
		t.Errorf("%q, %v", namespace, err)
	}
}
