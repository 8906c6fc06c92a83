package backup

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/job"
	"example.com/fairlead/operators/etcd/task"
)

func taskFor(t *testing.T, b *v1beta2.EtcdBackup, seen observation, step v1beta2.BackupStep) task.Task {
	t.Helper()
	place, err := task.PlaceOf(b.Spec.StorageType, b.Spec.BackupSource)
	if err != nil {
		t.Fatal(err)
	}
	p := pod(b, seen, 7, step, place, "fairlead:dev")
	todo := taskOf(p)
	if step == prove {
		todo.Member, todo.Endpoints = nil, nil // package job's
	}
	if todo.Number != 7 || todo.Owner != "uid" || string(todo.Action) != string(step) || todo.Place.Bucket != "mybucket" {
		t.Errorf("the task is %+v", todo)
	}
	return todo
}

// TestTasks: what the agent is told.
func TestTasks(t *testing.T) {
	todo := taskFor(t, aBackup(), observation{}, save)
	if todo.Timeout != time.Minute || todo.Periodic || todo.TLS || todo.Hash || !slices.Equal(todo.Endpoints, []string{"http://example-client:2379"}) {
		t.Errorf("a backup that is made once: %+v", todo)
	}
	secure := aCluster(func(ec *v1beta2.EtcdCluster) { ec.Spec.TLS = &v1beta2.TLSPolicy{Generated: &v1beta2.GeneratedTLS{}} })
	members := []string{"https://example-aaaaa.example.default.svc:2379", "https://example-bbbbb.example.default.svc:2379"}
	todo = taskFor(t, aBackup(ofCluster, byRestore, every(60)), observation{cluster: secure}, save)
	if !todo.Periodic || !todo.TLS || !todo.Hash || !slices.Equal(todo.Endpoints, members) {
		t.Errorf("a backup of a cluster with TLS: %+v", todo)
	}
	todo = taskFor(t, aBackup(ofCluster), observation{cluster: aCluster(func(ec *v1beta2.EtcdCluster) { ec.Spec.Auth = &v1beta2.AuthPolicy{RootSecret: "root"} })}, save)
	if !todo.User || todo.TLS {
		t.Errorf("a backup of a cluster with authentication: %+v", todo)
	}
	if todo = taskFor(t, aBackup(func(b *v1beta2.EtcdBackup) { b.Spec.ClientUserSecret = "root" }), observation{}, save); !todo.User {
		t.Errorf("a backup as a user: %+v", todo)
	}
	week := policy(func(p *v1beta2.BackupPolicy) {
		p.MaxAge, p.TimeoutInSecond = &metav1.Duration{Duration: 168 * time.Hour}, 5
	})
	todo = taskFor(t, aBackup(every(60), keeps(4), week, made(3, noon), proved, made(5, noon)), observation{}, prune)
	if todo.Timeout != 5*time.Second || *todo.Keep != (task.Retention{Max: 4, MaxAge: 168 * time.Hour, Last: keyOf(5), Proved: keyOf(3)}) {
		t.Errorf("the pruning: %+v, %+v", todo, todo.Keep)
	}
	todo = taskFor(t, aBackup(byRestore, made(5, noon)), observation{}, prove)
	if todo.Saved == nil || todo.Saved.Key != keyOf(5) {
		t.Errorf("the proof: %+v", todo)
	}
}

// TestImageOfProof: the throw-away etcd is of the version that the backup is from, and comes from
// where the cluster's does.
func TestImageOfProof(t *testing.T) {
	b := aBackup(ofCluster, byRestore, made(5, noon))
	for want, seen := range map[string]observation{
		"registry.example.com/etcd:v3.6.16": {cluster: aCluster(func(ec *v1beta2.EtcdCluster) { ec.Spec.Version = "3.7.3" })},
		"quay.io/coreos/etcd:v3.6.16":       {},
	} {
		if got := etcdImage(b, seen); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestPod: a pod waits behind its gate, and has nothing of the credentials but the name of their Secret.
func TestPod(t *testing.T) {
	p := podFor(aBackup(withSecret, changed), save)
	if !pods.IsGated(p, gate) || p.Annotations[annotation.Generation] != "2" || p.Labels["etcd_cluster"] != "" || metav1.GetControllerOf(p).UID != "uid" {
		t.Errorf("%+v", p.ObjectMeta)
	}
	if c := p.Spec.Containers[0]; c.Name != job.AgentContainer || len(c.Env) > 0 || strings.Contains(fmt.Sprint(c.Args), "aws") {
		t.Errorf("%+v", c)
	}
	for _, users := range []string{"mesh/inject", "etcd.database.coreos.com/mine"} {
		p := podFor(aBackup(func(b *v1beta2.EtcdBackup) {
			b.Spec.Pod = &v1beta2.JobPod{Annotations: map[string]string{users: "no"}}
		}), save)
		if p.Annotations[users] != "no" || p.Annotations[annotation.Generation] != "1" || p.Annotations[annotation.BackupUID] != "uid" {
			t.Errorf("annotations %v", p.Annotations)
		}
	}
}

// TestNames: they are bounded, and no two are the same.
func TestNames(t *testing.T) {
	long := aBackup()
	long.Name, long.Namespace = strings.Repeat("a.", 126)+"b", strings.Repeat("n", 63)
	again := aBackup()
	again.UID = "another"
	seen := map[string]bool{}
	for _, b := range []*v1beta2.EtcdBackup{aBackup(), long, again} {
		for number := range int64(3) {
			for _, step := range []v1beta2.BackupStep{save, prove, prune} {
				name := podName(b, number, step)
				if seen[name] || len(b.Namespace)+len(name)+uidLength+2 > maxPodFolder || len(name) > maxName {
					t.Errorf("%q: known %v, %d bytes", name, seen[name], len(name))
				}
				seen[name] = true
			}
		}
	}
	if name := podName(aBackup(), 1, save); !strings.HasPrefix(name, "example-save-") {
		t.Error(name)
	}
}
