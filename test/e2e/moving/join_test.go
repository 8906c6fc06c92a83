//go:build e2e

package moving

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/operators/etcd/pki"
	"example.com/fairlead/test/e2e"
)

const whileItRuns = "While it runs"

// TestAloneTakesOverEtcd: the chart's etcd, with authentication on, is taken over while eight clients write to it, or left
// as it was: the cluster stays the same, and no acknowledged write is lost.
func TestAloneTakesOverEtcd(t *testing.T) {
	e2e.NeedsLocalCluster(t, "it loads an image of its own")
	e2e.Load(t, "./writer", "writer:dev")
	m := stand(t, "chart.yaml", `{name: WRITERS, value: "1"}`, `{name: WRITERS, value: "4"}`)
	m.flags = []string{"--dial-timeout=30s", "--command-timeout=30s", "--user=root:" + chartPassword}
	m.names = strings.NewReplacer("headless.shop.svc", "headless."+m.namespace+".svc", "name: shop}", "name: "+m.namespace+"}")
	id := m.clusterID()
	m.guide(whileItRuns, 6) // network policies
	for block := range 3 {  // Helm forgets it, join, lead the clients
		m.guide(whileItRuns, block)
	}
	m.survivesDeletion()
	m.guide(whileItRuns, 5) // go back
	if list := m.inOld("member", "list"); strings.Count(list, "started") != 3 {
		t.Fatalf("after going back, the members are\n%s", list)
	}
	for block := range 4 {
		m.guide(whileItRuns, block+1) // join again, lead, stop the members of before, delete the rest
	}
	m.guide(whileItRuns, 7)
	writes := m.hasAll(id, 3)
	took, none, ofOne := gaps(writes)
	t.Logf("in %s, %.0f a second; the longest time without one %s, of one client %s", took, float64(len(writes))/took.Seconds(), none, ofOne)
	if users, err := m.etcdctl("user", "list"); err != nil || !strings.Contains(users, "reader\n") {
		t.Errorf("users are %q (%v)", users, err)
	}
	m.flags = nil
	if out, err := m.etcdctl("get", "/kept"); err == nil {
		t.Errorf("without a user the cluster answers %s", out)
	}
}

// TestTakesOverWithTLS: the chart's etcd is taken over where members and clients use TLS. Time is not judged here.
func TestTakesOverWithTLS(t *testing.T) {
	e2e.NeedsLocalCluster(t, "it loads an image of its own")
	e2e.Load(t, "./writer", "writer:dev")
	m := &moved{t: t, namespace: e2e.NewNamespace(t, "pod-security.kubernetes.io/enforce=restricted"), secure: withTLS}
	m.names = strings.NewReplacer("headless.shop.svc", "headless."+m.namespace+".svc")
	m.issue()
	m.stand("chart.yaml")
	m.flags = []string{"--dial-timeout=30s", "--command-timeout=30s", "--user=root:" + chartPassword}
	id := m.clusterID()
	m.guide(whileItRuns, 0) // Helm forgets it
	m.guide(whileItRuns, 8) // join
	for block := range 3 {
		m.guide(whileItRuns, block+2) // lead the clients, stop the members of before, delete the rest
	}
	const files = "/etc/etcdtls/member/server-tls/"
	m.flags = append(m.flags, "--endpoints=https://localhost:2379", "--cacert="+files+"ca.crt", "--cert="+files+"tls.crt", "--key="+files+"tls.key")
	m.hasAll(id, 3)
}

// hasAll stops the application, and returns the writes that were acknowledged to it: the cluster is the same, has each of
// them, and never had fewer voting members than that.
func (m *moved) hasAll(id string, voting int) []written {
	m.t.Helper()
	time.Sleep(2 * time.Second) // it writes
	m.kubectl("scale", "deployment", "application", "--replicas=0")
	printed := m.printed()
	writes, now := printed.writes, m.now()
	lost := now.lacks(writes)
	m.t.Logf("%d writes acknowledged, %d lost; voting members: %v", len(writes), len(lost), printed.voting)
	if len(writes) < 100 || len(lost) > 0 || now["/kept"].Version != 2 {
		m.t.Errorf("%d writes were acknowledged, the cluster lacks %v, and /kept is %+v", len(writes), lost, now["/kept"])
	}
	if n := printed.voting; len(n) == 0 || slices.Max(n) <= voting || slices.Min(n) < voting {
		m.t.Errorf("the voting members were %v: want more than %d, and never fewer", n, voting)
	}
	if got := m.kubectl("get", "etcd", "example", "-o", "jsonpath={.status.clusterID}"); got != id {
		m.t.Errorf("the cluster's ID is %s, was %s", got, id)
	}
	return writes
}

// TestTakesOverLayouts: what etcd-io's operator makes, and what somebody has made by hand, of an earlier version and with
// one member, is taken over. Time is not judged here.
func TestTakesOverLayouts(t *testing.T) {
	e2e.NeedsLocalCluster(t, "it loads an image of its own")
	e2e.Load(t, "./writer", "writer:dev")
	const auth = "  auth: {rootSecret: my-etcd}\n"
	t.Run("etcd-io", func(t *testing.T) {
		t.Parallel()
		m := stand(t, "etcd-io.yaml", auth, "", "my-etcd-headless.shop", "store.NAMESPACE", "my-etcd", "store")
		id := m.clusterID()
		m.guide(whileItRuns, 1) // join
		m.guide(whileItRuns, 9) // stop the members of before, and lead the clients meanwhile
		m.hasAll(id, 3)
	})
	t.Run("by hand", func(t *testing.T) {
		t.Parallel()
		endpoint := func(i int) string {
			return fmt.Sprintf("      - http://my-etcd-%d.my-etcd-headless.shop.svc:2379\n", i)
		}
		m := stand(t, "by-hand.yaml", auth, "", endpoint(1), "", endpoint(2), "", "my-etcd-headless.shop", "kv-members.NAMESPACE",
			"for left in 2 1 0", "for left in 0", "my-etcd-headless", "kv-members", "statefulset,poddisruptionbudget,networkpolicy", "statefulset",
			" data-my-etcd-1 data-my-etcd-2", "", "my-etcd", "kv")
		id := m.clusterID()
		m.guide("From a StatefulSet made by hand", 0)
		for block := range 4 { // join, lead the clients, stop the member of before, delete the rest
			m.guide(whileItRuns, block+1)
		}
		m.hasAll(id, 1)
		if got := m.kubectl("get", "etcd", "example", "-o", "jsonpath={.status.currentVersion}"); got != "3.6.15" {
			t.Errorf("its version is %s", got)
		}
	})
}

// withTLS makes the manifests of the chart and of the application ones with TLS.
var withTLS = strings.NewReplacer(
	"http://", "https://",
	"- {name: ETCD_LOG_LEVEL, value: info}", "- {name: ETCD_LOG_LEVEL, value: info}"+strings.ReplaceAll(`
- {name: ETCD_CERT_FILE, value: /certs/tls.crt}
- {name: ETCD_KEY_FILE, value: /certs/tls.key}
- {name: ETCD_TRUSTED_CA_FILE, value: /certs/ca.crt}
- {name: ETCD_CLIENT_CERT_AUTH, value: "true"}
- {name: ETCD_PEER_CERT_FILE, value: /certs/tls.crt}
- {name: ETCD_PEER_KEY_FILE, value: /certs/tls.key}
- {name: ETCD_PEER_TRUSTED_CA_FILE, value: /certs/ca.crt}
- {name: ETCD_PEER_CLIENT_CERT_AUTH, value: "true"}
- {name: ETCDCTL_ENDPOINTS, value: "https://localhost:2379"}
- {name: ETCDCTL_CERT, value: /certs/tls.crt}
- {name: ETCDCTL_KEY, value: /certs/tls.key}
- {name: ETCDCTL_CACERT, value: /certs/ca.crt}`, "\n", "\n            "),
	"httpGet: {path: /livez, port: 2379}", "tcpSocket: {port: 2379}",
	"httpGet: {path: /readyz, port: 2379}", "tcpSocket: {port: 2379}",
	"- {name: etcd-jwt-token, mountPath", "- {name: certs, mountPath: /certs, readOnly: true}\n            - {name: etcd-jwt-token, mountPath",
	"volumes: [", "volumes: [{name: certs, secret: {secretName: my-etcd-crt, defaultMode: 288}}, ",
	// The application has a client's.
	`value: "my-etcd:2379"}`, `value: "https://my-etcd:2379"}
            - {name: CERTIFICATES, value: /certs}`,
	"image: writer:dev", "image: writer:dev\n          volumeMounts: [{name: certs, mountPath: /certs, readOnly: true}]",
	"      containers:\n        - name: writer", "      volumes: [{name: certs, secret: {secretName: clients}}]\n      containers:\n        - name: writer",
)

// issue makes the Secrets of the chart, of the EtcdCluster and of clients, by one CA.
func (m *moved) issue() {
	m.t.Helper()
	ca, err := pki.MakeCA(rand.Reader, "our CA", time.Now(), time.Hour)
	if err != nil {
		m.t.Fatal(err)
	}
	domain := clusterDomain(m.t)
	service := []string{"localhost", "my-etcd", "my-etcd." + m.namespace + ".svc", "my-etcd." + m.namespace + ".svc." + domain}
	chart := append([]string{"*.my-etcd-headless." + m.namespace + ".svc", "*.my-etcd-headless." + m.namespace + ".svc." + domain}, service...)
	e2e.Issue(m.t, m.namespace, "my-etcd-crt", pki.CertManager, ca, pki.Peer, chart, time.Hour)
	e2e.Issue(m.t, m.namespace, "peers", pki.CertManager, ca, pki.Peer, pki.Names(pki.Peer, "example", m.namespace, domain), time.Hour)
	e2e.Issue(m.t, m.namespace, "servers", pki.CertManager, ca, pki.Server, append(pki.Names(pki.Server, "example", m.namespace, domain), service...), time.Hour)
	e2e.Issue(m.t, m.namespace, "clients", pki.CertManager, ca, pki.Client, nil, time.Hour)
}

// survivesDeletion: an EtcdCluster that is deleted leaves its members running, and takes them in when it is created again.
func (m *moved) survivesDeletion() {
	m.t.Helper()
	pods := func() string {
		return m.kubectl("get", "pods", "-l", "etcd_cluster=example", "-o", "jsonpath={.items[*].metadata.uid}")
	}
	before := pods()
	m.kubectl("delete", "etcd", "example")
	time.Sleep(10 * time.Second) // the garbage collector would have deleted them
	if now := pods(); now != before {
		m.t.Fatalf("of the pods %s there are %s", before, now)
	}
	again := e2e.GuideCommands(m.t, "moving/etcd.md", whileItRuns, 2)[1]
	e2e.RunGuide(m.t, m.namespace, m.names.Replace(strings.Replace(again, "  joinFrom:", "  adoptExisting: true\n  joinFrom:", 1)))
	if now := pods(); now != before {
		m.t.Fatalf("of the pods %s there are %s", before, now)
	}
}

// inOld runs etcdctl in a member of before.
func (m *moved) inOld(args ...string) string {
	m.t.Helper()
	return m.output(slices.Concat([]string{"exec", m.names.Replace("my-etcd-0"), "--", "etcdctl"}, m.flags, args)...)
}

// clusterID is that of the etcd of before.
func (m *moved) clusterID() string {
	m.t.Helper()
	out := m.inOld("endpoint", "status", "-w", "json")
	var all []struct {
		Status struct {
			Header struct {
				ID uint64 `json:"cluster_id"`
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != 1 {
		m.t.Fatalf("%s: %v", out, err)
	}
	return fmt.Sprintf("%x", all[0].Status.Header.ID)
}
