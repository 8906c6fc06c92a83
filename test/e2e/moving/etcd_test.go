//go:build e2e

// Package moving is the end-to-end tests of the pages that move an etcd in. They take minutes, so they are not in the
// package of the operator, whose tests take longest.
package moving

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

func TestMain(m *testing.M) { os.Exit(e2e.Run(m, "etcd")) }

// moved is an etcd that is moved in as docs/moving/etcd.md has it, word for word but for names.
type moved struct {
	t         testing.TB
	namespace string
	names     *strings.Replacer
	// printed waits until the application has stopped, and has what it had printed.
	printed func() printed
	stopped time.Time
	// flags say who runs etcdctl, where authentication is on.
	flags []string
	// secure makes a manifest one with TLS; nil for none.
	secure *strings.Replacer
}

// TestMoveEtcd: no key, no revision and no acknowledged write is lost, from each layout.
func TestMoveEtcd(t *testing.T) {
	e2e.NeedsLocalCluster(t, "it loads an image of its own")
	e2e.Load(t, "./writer", "writer:dev")
	for name, move := range map[string]func(*testing.T){
		"chart without authentication": moveChart,
		"chart with authentication":    moveChartSecurely,
		"etcd-io and back":             moveFromOperator,
		"by hand":                      moveFromHand,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); move(t) })
	}
}

func moveChart(t *testing.T) {
	m := stand(t, "chart.yaml")
	m.guide("1. Rehearse", 0)
	m.guide("2. Stop the writers", 0)
	m.guide("If authentication is on", 1)
	before := m.keys("my-etcd-0")
	m.guide("3. Take the last snapshot", 0)
	m.guide("4. Begin the new cluster with it", 0)
	m.compares(before)
	if users, err := m.etcdctl("user", "list"); err != nil || !strings.Contains(users, "reader\n") {
		t.Errorf("users are %q (%v)", users, err)
	}
	m.guide("6. Lead the clients to it", 0)
	m.writesOn(before)
	m.guide("7. Delete the old one", 0)
	if left := m.kubectl("get", "all,pvc,secret,pdb,networkpolicy", "-l", "app.kubernetes.io/instance=my", "-o", "name"); strings.TrimSpace(left) !=
		"service/my-etcd\nsecret/my-etcd" {
		t.Errorf("of the chart there is\n%s", left)
	}
	m.writesOn(before)
}

func moveChartSecurely(t *testing.T) {
	m := stand(t, "chart.yaml")
	m.flags = []string{"--dial-timeout=30s", "--user=root:" + chartPassword}
	m.guide("1. Rehearse", 0)
	rehearsal := e2e.GuideCommands(t, "moving/etcd.md", "1. Rehearse", 2)[1]
	e2e.RunGuide(t, m.namespace, strings.Replace(rehearsal, "  storageType", "  clientUserSecret: my-etcd\n  storageType", 1))
	m.guide("2. Stop the writers", 0)
	before := m.keys("my-etcd-0")
	m.guide("If authentication is on", 0)
	m.same(before, m.now())
	m.guide("6. Lead the clients to it", 0)
	m.writesOn(before)
	m.flags = nil
	if out, err := m.etcdctl("get", "/kept"); err == nil {
		t.Errorf("without a user the new cluster answers %s", out)
	}
	m.flags = []string{"--dial-timeout=30s", "--user=reader:r"}
	if out, err := m.etcdctl("get", "/application", "--prefix", "--limit=1"); err != nil || !strings.Contains(out, "/application") {
		t.Errorf("a user who may read: %s (%v)", out, err)
	}
	if out, err := m.etcdctl("put", "/application", "x"); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("a user who may only read: %s (%v)", out, err)
	}
}

func moveFromOperator(t *testing.T) {
	m := stand(t, "etcd-io.yaml", "my-etcd", "store", "data-my-etcd", "etcd-data-store", "size: 3", "size: 1",
		"app.kubernetes.io/name=etcd,app.kubernetes.io/instance=my,app.kubernetes.io/component=etcd", "app=store,controller=store")
	m.guide("1. Rehearse", 0)
	m.guide("1. Rehearse", 1)
	before := m.moves("store-0")
	m.guide("Go back", 0)
	if got := m.keys("store-0"); got.has(before) != "" {
		t.Errorf("the old cluster lacks %s", got.has(before))
	}
}

func moveFromHand(t *testing.T) {
	m := stand(t, "by-hand.yaml", "my-etcd", "kv", "size: 3", "size: 1", "version: 3.6.15", "version: 3.5.35")
	m.guide("1. Rehearse", 0)
	m.guide("From a StatefulSet made by hand", 0)
	m.moves("kv-0")
}

// moves goes from step 2 to 6, without authentication.
func (m *moved) moves(pod string) store {
	m.t.Helper()
	m.guide("2. Stop the writers", 0)
	before := m.keys(pod)
	m.guide("3. Take the last snapshot", 0)
	m.guide("4. Begin the new cluster with it", 0)
	m.compares(before)
	m.guide("6. Lead the clients to it", 0)
	m.writesOn(before)
	return before
}

const chartPassword = "the chart's password"

// stand makes the old cluster, with keys, and an application that writes to it.
func stand(t *testing.T, manifest string, names ...string) *moved {
	t.Helper()
	m := &moved{t: t, namespace: e2e.NewNamespace(t, "pod-security.kubernetes.io/enforce=restricted"), names: strings.NewReplacer(names...)}
	m.stand(manifest)
	return m
}

func (m *moved) stand(manifest string) {
	t := m.t
	t.Helper()
	isChart := manifest == "chart.yaml"
	if isChart {
		m.kubectl("create", "secret", "generic", "my-etcd-jwt-token", "--from-literal=jwt-token.pem="+privateKey(t))
	}
	m.applyFile(manifest)
	old := m.names.Replace("my-etcd")
	m.kubectl("rollout", "status", "statefulset", old, e2e.Patience)
	in := func(args ...string) {
		t.Helper()
		pace.Eventually(t, time.Minute, func() error {
			_, err := e2e.TryKubectl("", append([]string{"exec", "-n", m.namespace, old + "-0", "--", "etcdctl"}, args...)...)
			return err
		})
	}
	in("put", "/kept", "1")
	in("put", "/kept", "2")
	in("put", "/deleted", "1")
	in("del", "/deleted")
	if isChart {
		in("user", "add", "root", "--new-user-password="+chartPassword)
		in("user", "grant-role", "root", "root")
		in("user", "add", "reader", "--new-user-password=r")
		in("role", "add", "reading")
		in("role", "grant-permission", "reading", "--prefix=true", "read", "/application")
		in("user", "grant-role", "reader", "reading")
		in("auth", "enable")
	}
	m.applyFile("application.yaml")
	m.kubectl("rollout", "status", "deployment", "application", e2e.Patience)
	m.printed = m.follow()
	pace.Eventually(t, time.Minute, func() error {
		if logs := m.kubectl("logs", "-l", "app=application", "--tail=-1"); strings.Count(logs, "\n/application/") < 20 {
			return fmt.Errorf("the application has hardly written:\n%s", logs)
		}
		return nil
	})
}

func (m *moved) kubectl(args ...string) string {
	m.t.Helper()
	return e2e.Kubectl(m.t, append([]string{"-n", m.namespace}, args...)...)
}

// output is what kubectl prints. What it or etcdctl warns of is not in it: that could come in the middle of a line.
func (m *moved) output(args ...string) string {
	m.t.Helper()
	var out, warnings bytes.Buffer
	cmd := exec.CommandContext(m.t.Context(), "kubectl", append([]string{"-n", m.namespace}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &warnings
	if err := cmd.Run(); err != nil {
		m.t.Fatalf("kubectl %v: %v\n%s", args, err, warnings.String())
	}
	return out.String()
}

// etcdctl runs etcdctl in a pod of the new cluster.
func (m *moved) etcdctl(args ...string) (string, error) {
	m.t.Helper()
	return e2e.TryKubectl("", append([]string{"-n", m.namespace}, m.inNew(args...)...)...)
}

// inNew are the arguments of kubectl for etcdctl in a pod of the new cluster.
func (m *moved) inNew(args ...string) []string {
	m.t.Helper()
	pod, _, _ := strings.Cut(m.kubectl("get", "pods", "-l", "etcd_cluster=example", "-o", "name"), "\n")
	return slices.Concat([]string{"exec", pod, "-c", "etcd", "--", "etcdctl", "--command-timeout=30s"}, m.flags, args)
}

func (m *moved) applyFile(name string) {
	m.t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		m.t.Fatal(err)
	}
	text := strings.ReplaceAll(string(data), "NAMESPACE.svc", m.namespace+".svc")
	text = strings.ReplaceAll(text, ".svc.cluster.local", ".svc."+clusterDomain(m.t))
	if name == "application.yaml" {
		text = m.names.Replace(text)
	}
	if m.secure != nil {
		text = m.secure.Replace(text)
	}
	e2e.Apply(m.t, m.namespace, text)
}

// clusterDomain is the domain of the Kubernetes cluster, such as cluster.local, as the kubelet of a node has it.
func clusterDomain(t testing.TB) string {
	t.Helper()
	node := e2e.Kubectl(t, "get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
	var config struct {
		Kubeletconfig struct{ ClusterDomain string }
	}
	if err := json.Unmarshal([]byte(e2e.Kubectl(t, "get", "--raw", "/api/v1/nodes/"+node+"/proxy/configz")), &config); err != nil {
		t.Fatal(err)
	}
	return config.Kubeletconfig.ClusterDomain
}

func privateKey(t testing.TB) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

// guide runs a block of a section.
func (m *moved) guide(section string, block int) {
	m.t.Helper()
	if strings.HasPrefix(section, "2.") {
		m.stopped = time.Now()
	}
	commands := e2e.GuideCommands(m.t, "moving/etcd.md", section, block+1)[block]
	began := time.Now()
	e2e.RunGuide(m.t, m.namespace, strings.ReplaceAll(m.names.Replace(commands), "NAMESPACE", m.namespace))
	m.t.Logf("%s took %.1f s", section, time.Since(began).Seconds())
	if strings.HasPrefix(section, "6.") {
		m.t.Logf("writes paused for %.1f s", time.Since(m.stopped).Seconds())
	}
}

// store is what an etcd has: keys with their revisions.
type store map[string]pair

// pair is a key as etcdctl prints it.
type pair struct {
	Key, Value      []byte
	Create_revision int64 //nolint:revive,staticcheck // as it is printed
	Mod_revision    int64 //nolint:revive,staticcheck // as it is printed
	Version, Lease  int64
}

func parse(t testing.TB, out string) store {
	t.Helper()
	var got struct{ Kvs []pair }
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	all := store{}
	for _, kv := range got.Kvs {
		all[string(kv.Key)] = kv
	}
	return all
}

// has is a key of others that the store has not, or not so.
func (s store) has(others store) string {
	for key, kv := range others {
		if !reflect.DeepEqual(s[key], kv) {
			return fmt.Sprintf("%s: %+v, want %+v", key, s[key], kv)
		}
	}
	return ""
}

// keys is what the old cluster has once the application has stopped; each write that was acknowledged is there.
func (m *moved) keys(pod string) store {
	m.t.Helper()
	all := parse(m.t, m.output(append([]string{"exec", pod, "--", "etcdctl", "get", "", "--prefix", "-w", "json"}, m.flags...)...))
	writes := m.printed().writes
	if lost := all.lacks(writes); len(lost) > 0 {
		m.t.Errorf("the old cluster lacks %v", lost)
	}
	if len(writes) < 10 || all["/kept"].Version != 2 {
		m.t.Fatalf("%d writes were acknowledged, /kept is %+v", len(writes), all["/kept"])
	}
	m.t.Logf("%d keys, %d writes acknowledged", len(all), len(writes))
	return all
}

// compares is step 5, and looks at each key.
func (m *moved) compares(before store) {
	m.t.Helper()
	m.guide("5. Compare", 0)
	m.same(before, m.now())
}

func (m *moved) same(before, after store) {
	m.t.Helper()
	if len(before) != len(after) || after.has(before) != "" {
		m.t.Errorf("of %d keys the new cluster has %d; %s", len(before), len(after), after.has(before))
	}
}

func (m *moved) now() store {
	m.t.Helper()
	return parse(m.t, m.output(m.inNew("get", "", "--prefix", "-w", "json")...))
}

// writesOn waits until the application writes to the new cluster, which keeps what it had.
func (m *moved) writesOn(before store) {
	m.t.Helper()
	first := len(m.now())
	pace.Eventually(m.t, time.Minute, func() error {
		now := m.now()
		if lacks := now.has(before); lacks != "" {
			m.t.Fatalf("the new cluster lacks %s", lacks)
		}
		if len(now) <= first {
			return fmt.Errorf("there are %d keys, as before", first)
		}
		return nil
	})
}
