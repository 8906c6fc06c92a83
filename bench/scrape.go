package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// scrapeRounds is how often a manager's metrics are read, after the first time.
const scrapeRounds = 20

// scrape is what Prometheus gets of a manager, and how long that takes.
type scrape struct {
	took         []time.Duration
	size, series int
	heap         uint64 // in use, which is the manager's own word
}

func (s scrape) String() string {
	return fmt.Sprintf("a scrape of %d KiB takes %s, heap in use %d MiB", s.size>>10, spread(s.took, inMillis), s.heap>>20)
}

// scrapes reads the metrics as Prometheus does, compressed and over one connection.
// The first time is not counted: the manager asks the API server then who calls.
func (b *bench) scrapes(ctx context.Context, o operator) (s scrape, err error) {
	address, token, err := b.metricsOf(ctx, o)
	if err != nil {
		return s, err
	}
	// The manager's certificate is its own.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	read := func() ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("the metrics of the operator %s: %s", o, resp.Status)
		}
		return io.ReadAll(resp.Body)
	}
	var failure error
	if err := eventually(ctx, time.Minute, "the metrics of the operator "+string(o), func() (bool, error) {
		_, failure = read()
		return failure == nil, nil
	}); err != nil {
		return s, fmt.Errorf("%w: %w", err, failure)
	}
	for range scrapeRounds {
		started := time.Now()
		text, err := read()
		if err != nil {
			return s, err
		}
		s.took = append(s.took, time.Since(started))
		s.size = len(text)
		s.series, s.heap = metricsIn(text)
	}
	return s, nil
}

// metricsIn counts series, and finds the heap in use.
func metricsIn(text []byte) (count int, heap uint64) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if name == "" || name == "#" {
			continue
		}
		count++
		if name == "go_memstats_heap_inuse_bytes" {
			bytes, _ := strconv.ParseFloat(value, 64)
			heap = uint64(bytes)
		}
	}
	return count, heap
}

// metricsOf is where the node serves an operator's metrics, and the token of an
// account that may read them.
func (b *bench) metricsOf(ctx context.Context, o operator) (address, token string, err error) {
	const name = "bench-scrapes"
	service := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Selector: managerPods, Ports: []corev1.ServicePort{{Port: 8443}}}}
	account := &corev1.ServiceAccount{}
	may := &rbacv1.ClusterRoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: string(o) + "-operator-metrics-reader"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: o.namespace(), Name: name}},
	}
	service.Namespace, service.Name = o.namespace(), name
	account.Namespace, account.Name = o.namespace(), name
	may.Name = name + "-" + string(o)
	for _, obj := range []client.Object{service, account, may} {
		if err := b.client.Create(ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
			return "", "", err
		}
	}
	if err := b.client.Get(ctx, client.ObjectKeyFromObject(service), service); err != nil {
		return "", "", err
	}
	answer, err := b.kube.CoreV1().ServiceAccounts(o.namespace()).CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", "", err
	}
	node := &corev1.Node{}
	if err := b.client.Get(ctx, client.ObjectKey{Name: b.node}, node); err != nil {
		return "", "", err
	}
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return net.JoinHostPort(a.Address, strconv.Itoa(int(service.Spec.Ports[0].NodePort))), answer.Status.Token, nil
		}
	}
	return "", "", fmt.Errorf("node %s has no address", b.node)
}
