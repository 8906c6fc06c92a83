//go:build apiserver

package status

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	policyv1client "k8s.io/client-go/kubernetes/typed/policy/v1"

	cachev1alpha1 "example.com/fairlead/api/cache/v1alpha1"
	etcdv1beta2 "example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/cmd/kubectl-fairlead/rig"
)

// scraped is what the pods of the test serve as metrics.
var scraped = map[string]string{
	"http:db-0:2381": `etcd_server_proposals_committed_total 1200
etcd_server_proposals_applied_total 1200
etcd_server_quota_backend_bytes 2.147483648e+09
etcd_mvcc_db_total_size_in_bytes 1.610612736e+09
etcd_mvcc_db_total_size_in_use_in_bytes 20480
`,
	"http:db-1:2381": "etcd_server_proposals_committed_total 1150\netcd_server_proposals_applied_total 1100\n",
	"http:cache-a:9150": `# TYPE memcached_commands_total counter
memcached_current_items 100
memcached_current_bytes 2048
memcached_items_evicted_total 3
memcached_commands_total{command="get",status="hit"} 90
memcached_commands_total{command="get",status="miss"} 10
memcached_commands_total{command="set",status="hit"} 1000
`,
}

// scrape serves it, there being no kubelet.
func scrape(w http.ResponseWriter, q *http.Request) bool {
	if !strings.HasSuffix(q.URL.Path, "/proxy/metrics") {
		return false
	}
	said, hasSaid := scraped[path.Base(path.Dir(path.Dir(q.URL.Path)))]
	if !hasSaid {
		w.WriteHeader(http.StatusBadGateway)
	}
	_, _ = io.WriteString(w, said)
	return true
}

// certificate is one until then, without its key.
func certificate(t *testing.T, until time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// world is an etcd cluster and a pool, with what is beside them.
func (r namespace) world() {
	r.Helper()
	core, err := corev1client.NewForConfig(r.Server.Config)
	if err != nil {
		r.Fatal(err)
	}
	policy, err := policyv1client.NewForConfig(r.Server.Config)
	if err != nil {
		r.Fatal(err)
	}
	etcd := &etcdv1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: etcdv1beta2.EtcdClusterSpec{Size: 3}}
	etcd.Spec.TLS = &etcdv1beta2.TLSPolicy{Generated: &etcdv1beta2.GeneratedTLS{}}
	r.Stored(etcd, func() {
		etcd.Status.MemberList = []etcdv1beta2.MemberStatus{{Name: "db-0"}, {Name: "db-1"}, {Name: "db-2"}}
		etcd.Status.Conditions = rig.Ready("True", "Ready", "well")
	})
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
	budget.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(etcd, etcdv1beta2.GroupVersion.WithKind("EtcdCluster"))}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "etcd"}}
	if budget, err = policy.PodDisruptionBudgets(r.Namespace).Create(r.Context(), budget, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
	budget.Status = policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1, CurrentHealthy: 3, ExpectedPods: 3, DesiredHealthy: 2}
	if _, err := policy.PodDisruptionBudgets(r.Namespace).UpdateStatus(r.Context(), budget, metav1.UpdateOptions{}); err != nil {
		r.Fatal(err)
	}
	for name, key := range map[string]string{"db-server-tls": "tls.crt", "db-peer-tls": "peer.crt", "db-client-tls": "other"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
		secret.Data = map[string][]byte{key: certificate(r.T, time.Now().Add(42*24*time.Hour+time.Hour))}
		if _, err := core.Secrets(r.Namespace).Create(r.Context(), secret, metav1.CreateOptions{}); err != nil {
			r.Fatal(err)
		}
	}
	backup := &etcdv1beta2.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: "hourly"}}
	backup.Spec.EtcdCluster, backup.Spec.StorageType = "db", etcdv1beta2.StorageClaim
	backup.Spec.PersistentVolumeClaim = &etcdv1beta2.ClaimSource{ClaimName: "backups", Path: "db"}
	r.Stored(backup, func() {
		hourAgo := metav1.NewTime(time.Now().Add(-time.Hour))
		backup.Status.LastSuccessDate, backup.Status.LastProof = &hourAgo, &etcdv1beta2.BackupProof{Key: "k", Time: hourAgo}
	})
	pool := &cachev1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "cache"}}
	pool.Spec.Metrics = &cachev1alpha1.MetricsSpec{Port: 9150}
	r.Stored(pool, func() {
		pool.Status.Selector, pool.Status.Conditions = "app=cache", rig.Ready("True", "Ready", "well")
		pool.Status.Upgrade = &cachev1alpha1.UpgradeStatus{Revision: "x", Kind: cachev1alpha1.Cold, Message: "the image changes", Updated: 1}
	})
	for _, name := range []string{"cache-a", "cache-b"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "cache"}}}
		pod.Spec.Containers = []corev1.Container{{Name: "memcached", Image: "memcached"}}
		if _, err := core.Pods(r.Namespace).Create(r.Context(), pod, metav1.CreateOptions{}); err != nil {
			r.Fatal(err)
		}
	}
}

// TestStatusBeside looks at what is beside an object's status, with all rights and with none.
func TestStatusBeside(t *testing.T) {
	r := newRig(t)
	r.world()
	status := func(server []string, name string) string { return r.Through(server, "status", name).Out }
	has := func(out string, words ...string) {
		t.Helper()
		flat := strings.Join(strings.Fields(out), " ")
		for _, word := range words {
			if !strings.Contains(flat, word) {
				t.Errorf("no %q in:\n%s", word, out)
			}
		}
	}
	all := r.Between("", scrape)
	has(status(all, "etcd/db"),
		"lag db-0: 0 of 1200 entries behind; database 1.5 GiB, 20.0 KiB of it used, 75% of the quota of 2.0 GiB",
		"db-1: 100 of 1200 entries behind", "db-2: unknown: it does not answer",
		"backups hourly: last ", "; last proved 1h0m",
		"db-server-tls: 42 days left, until ", "db-peer-tls: 42 days left", "db-client-tls: unknown: no certificate is in it",
		`db-ca-tls: unknown: secrets "db-ca-tls" not found`,
		"drains evictions allowed now: 1 (pods healthy: 3 of 3, to stay healthy: 2)")
	has(status(all, "memcached/cache"), "items 100, 2.0 KiB in all; evicted so far: 3", "hits 90.0% of 100 gets",
		"no answer from the exporter of cache-b", "change Cold, 1 changed so far: the image changes",
		"no PodDisruptionBudget: nothing keeps all pods from being evicted")

	none := r.Between("/secrets/|/poddisruptionbudgets$|/etcdbackups$|/proxy/metrics$", scrape)
	has(status(none, "etcd/db"), "etcdcluster/db well: Ready", "lag unknown: you have no right to get pods/proxy",
		"backups unknown: you have no right to list etcdbackups", "certificates unknown: you have no right to get secrets",
		"drains unknown: you have no right to list poddisruptionbudgets")
	has(status(none, "memcached/cache"), "items unknown: you have no right to get pods/proxy")
}

func TestStatusOutput(t *testing.T) {
	r := newRig(t)
	r.world()
	if got := r.status("-o", "name"); got.Code != 2 || got.Out !=
		"etcdbackup.etcd.database.coreos.com/hourly\netcdcluster.etcd.database.coreos.com/db\nmemcached.cache.example.com/cache\n" {
		t.Errorf("status -o name: %+v", got)
	}
	var list struct {
		Kind  string
		Items []metav1.PartialObjectMetadata
	}
	got := r.status("-o", "json")
	if err := json.Unmarshal([]byte(got.Out), &list); err != nil ||
		list.Kind != "List" || len(list.Items) != 3 || list.Items[1].Kind != "EtcdCluster" {
		t.Errorf("status -o json: %v, %+v", err, got)
	}
	if got := r.status("etcd/db", "-o", "jsonpath={.metadata.name}"); got.Code != 0 || got.Out != "db" {
		t.Errorf("status etcd/db -o jsonpath: %+v", got)
	}
	if got := r.status("etcd", "-o", "jsonpath={.items[*].verdict.ready} {.items[*].verdict.status}"); got.Code != 0 || got.Out != "true Ready" {
		t.Errorf("the verdicts: %+v", got)
	}
	if got := r.status("etcd", "db", "-o", "yaml"); got.Code != 0 || !strings.Contains(got.Out, "\nverdict:\n  message: well\n  ready: true\n  since: ") {
		t.Errorf("status etcd db -o yaml: %+v", got)
	}
	shown := map[string]int{}
	for _, output := range []string{"json", "wide"} { // programs get what has changed, people a screen
		got := r.For(5*time.Second, "status", "etcd", "-w", "-o", output)
		shown[output] = strings.Count(got.Out, "db")
		if got.Code != 130 {
			t.Errorf("status -w -o %s: %+v", output, got)
		}
	}
	if shown["json"] == 0 || shown["json"] != strings.Count(r.status("etcd", "-o", "json").Out, "db") || shown["wide"] < 2 {
		t.Errorf("shown while watched: %v", shown)
	}
}
