//go:build e2e

package etcd

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/testkit/draw"
	"example.com/fairlead/internal/testkit/stall"
	"example.com/fairlead/test/e2e"
	"example.com/fairlead/test/e2e/etcd/disturb"
	"example.com/fairlead/test/e2e/etcd/load"
)

const (
	generated  = "TLS: {generated: {}}"
	restricted = "pod-security.kubernetes.io/enforce=restricted"
)

// TestAloneEtcdLoad: no acknowledged write is lost, and the history is linearizable, while
// members and the operator are killed, the cluster is scaled and upgraded, and its CA is replaced.
// A write that is lost on a machine that stalled is lost as well.
func TestAloneEtcdLoad(t *testing.T) {
	e2e.NeedsLocalCluster(t, "processes are killed on the machine")
	type variant struct {
		name string
		spec []string
	}
	for _, v := range draw.One(variant{"without volumes", nil}, variant{"with volumes and TLS", []string{volumes, generated}}) {
		t.Run(v.name, func(t *testing.T) {
			var e etcd
			stall.Judge(t, "the load", func(inTime testing.TB) {
				e = etcd{inTime, e2e.NewNamespace(inTime, restricted)}
				e.underLoad(t, v.spec, disturb.Short)
			}, func(t testing.TB) {
				e2e.Kubectl(t, "delete", "namespace", e.namespace)
			})
		})
	}
}

// TestSoak is 20 minutes of it, for `make soak`.
func TestSoak(t *testing.T) {
	e2e.NeedsLocalCluster(t, "processes are killed on the machine")
	etcd{t, e2e.NewNamespace(t, restricted)}.underLoad(t, []string{volumes, generated}, disturb.Soak)
}

// underLoad fails the cluster's test for what is not in time, and the other for what is wrong.
func (e etcd) underLoad(t *testing.T, spec []string, mixOf func(uint64, disturb.Facts) disturb.Mix) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("seed %d", seed)
	e.apply(append([]string{"size: 3", "version: " + patch}, spec...)...)
	e.ready()
	isSecure := slices.Contains(spec, generated)
	config := load.Config{Endpoints: e.exposed(), Seed: seed}
	if isSecure {
		config.TLS = e.trusting()
	}
	l, err := load.Start(t.Context(), config)
	if err != nil {
		e.t.Fatal(err)
	}
	mix := mixOf(seed, disturb.Facts{Size: 3, Persistent: slices.Contains(spec, volumes), Versions: []string{current, newer, current}, Certificates: isSecure})
	diary, failure := disturb.Run(t.Context(), &kubernetes{etcd: e}, mix, disturb.Config{Log: func(line string) { t.Log(line) }})
	history, err := l.Stop(context.Background())
	if err != nil {
		e.t.Error(err)
	}
	members, operators := mix.Kills()
	report := load.NewReport(history)
	t.Logf("%d kills of members and %d of the operator\n%s", members, operators, report)
	for _, entry := range diary.Entries() {
		if entry.Err == nil {
			t.Logf("%s: longest write gap %s", entry.Step, report.Gap(entry.Begin, entry.Whole).Round(time.Millisecond))
		}
	}
	if err := load.Check(history); err != nil {
		t.Errorf("%v\nthe history is in %s", err, keep(t, history))
	}
	if failure != nil {
		e.t.Errorf("%v\n%s", failure, e.kubectl("describe", "pods", "-l", "etcd_cluster=example"))
	}
}

// keep saves a history that is wrong.
func keep(t *testing.T, history load.History) string {
	t.Helper()
	file := filepath.Join(os.TempDir(), fmt.Sprintf("etcd-history-%d.jsonl", time.Now().Unix()))
	if err := history.Save(file); err != nil {
		t.Error(err)
	}
	return file
}

// exposed makes a Service with a port of the node, through which a client gets to any member
// that serves, as the guide has it.
func (e etcd) exposed() func() []string {
	e.t.Helper()
	e2e.Apply(e.t, e.namespace, `
apiVersion: v1
kind: Service
metadata: {name: outside}
spec:
  type: NodePort
  selector: {etcd_cluster: example, etcd.database.coreos.com/voter: "true"}
  ports: [{port: 2379}]
`)
	address := net.JoinHostPort(
		e.kubectl("get", "nodes", "-o", `jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}`),
		e.kubectl("get", "service", "outside", "-o", "jsonpath={.spec.ports[0].nodePort}"))
	return func() []string { return []string{address} }
}

// trusting has the configuration of a client, with the certificates that there are at the time.
func (e etcd) trusting() func() *tls.Config {
	var mu sync.Mutex
	var last *tls.Config // while the Secret cannot be read
	return func() *tls.Config {
		mu.Lock()
		defer mu.Unlock()
		data, err := e.secret("example-client-tls")
		if err != nil {
			return last
		}
		pair, err := tls.X509KeyPair(data["etcd-client.crt"], data["etcd-client.key"])
		if err != nil {
			return last
		}
		trusted := x509.NewCertPool()
		trusted.AppendCertsFromPEM(data["etcd-client-ca.crt"])
		last = &tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
			// Etcd's client wants a certificate for the address that it has, which is that of a node.
			InsecureSkipVerify: true, //nolint:gosec // it is verified here
			VerifyConnection: func(state tls.ConnectionState) error {
				_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: trusted, DNSName: "example-client." + e.namespace + ".svc"})
				return err
			},
		}
		return last
	}
}

// kubernetes is a cluster of the local Kubernetes, to be disturbed.
type kubernetes struct {
	etcd

	// replaced is the CA that has to be replaced by another one.
	replaced *x509.Certificate
}

func (k *kubernetes) Members(context.Context) ([]string, error) {
	ec, err := k.get()
	if err != nil {
		return nil, err
	}
	all := slices.Concat(ec.Status.Members.Ready, ec.Status.Members.Unready)
	slices.Sort(all)
	return all, nil
}

// Healthy looks at the pods as well, because status is that of an operator which may be dead.
func (k *kubernetes) Healthy(ctx context.Context) error {
	ec, err := k.get()
	if err != nil {
		return err
	}
	if err := isReady(ec); err != nil {
		return err
	}
	for _, m := range ec.Status.MemberList {
		if m.Version != ec.Spec.Version {
			return fmt.Errorf("member %s has version %s, want %s", m.Name, m.Version, ec.Spec.Version)
		}
	}
	if k.replaced != nil {
		ca, err := k.findIssuer()
		if err != nil {
			return err
		}
		if ca.Equal(k.replaced) {
			return errors.New("the certificates are those of the CA before")
		}
	}
	var pods corev1.PodList
	if err := cluster.List(ctx, &pods, client.InNamespace(k.namespace), client.MatchingLabels{"etcd_cluster": "example"}); err != nil {
		return err
	}
	if len(pods.Items) != int(ec.Spec.Size) {
		return fmt.Errorf("there are %d pods, want %d", len(pods.Items), ec.Spec.Size)
	}
	for _, pod := range pods.Items {
		isReady := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
		if !isReady || pod.DeletionTimestamp != nil || !slices.Contains(ec.Status.Members.Ready, pod.Name) {
			return fmt.Errorf("pod %s is not ready", pod.Name)
		}
	}
	operator, err := e2e.TryKubectl("", "get", "deployment", "etcd-operator-controller-manager", "-n", "etcd-operator-system", "-o", "jsonpath={.status.readyReplicas}")
	if err != nil || operator != "1" {
		return fmt.Errorf("the operator is not ready (%w)", err)
	}
	return nil
}

func (k *kubernetes) DeletePod(_ context.Context, member string) error {
	_, err := e2e.TryKubectl("", "delete", "pod", member, "-n", k.namespace, "--force", "--grace-period=0", "--ignore-not-found")
	return err
}

// KillProcess finds the process by the name that it was given in its environment.
func (*kubernetes) KillProcess(_ context.Context, member string) error {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(data, []byte("ETCD_NAME="+member+"\x00")) {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(file, "/")[2])
		if err != nil {
			return err
		}
		return syscall.Kill(pid, syscall.SIGKILL)
	}
	return fmt.Errorf("there is no process of member %s", member)
}

func (k *kubernetes) DeleteVolume(ctx context.Context, member string) error {
	if _, err := e2e.TryKubectl("", "delete", "pvc", member, "-n", k.namespace, "--wait=false", "--ignore-not-found"); err != nil {
		return err
	}
	return k.DeletePod(ctx, member)
}

func (*kubernetes) KillOperator(context.Context) error {
	_, err := e2e.TryKubectl("", "delete", "pod", "-n", "etcd-operator-system", "-l", "control-plane=controller-manager", "--force", "--grace-period=0")
	return err
}

func (k *kubernetes) Scale(_ context.Context, size int) error {
	return k.set(fmt.Sprintf(`{"size":%d}`, size))
}

func (k *kubernetes) Upgrade(_ context.Context, version string) error {
	return k.set(`{"version":"` + version + `"}`)
}

// RotateCertificates deletes the Secret of the CA, so that there has to be another one.
func (k *kubernetes) RotateCertificates(context.Context) error {
	ca, err := k.findIssuer()
	if err != nil {
		return err
	}
	k.replaced = ca
	_, err = e2e.TryKubectl("", "delete", "secret", "example-ca-tls", "-n", k.namespace)
	return err
}

func (k *kubernetes) set(spec string) error {
	_, err := e2e.TryKubectl("", "patch", "etcd", "example", "-n", k.namespace, "--type=merge", "-p", `{"spec":`+spec+`}`)
	return err
}
