package restore

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/testkit"
)

var noon = metav1.NewTime(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))

func aRestore(options ...func(*v1beta2.EtcdRestore)) *v1beta2.EtcdRestore {
	er := &v1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: "ns", UID: "uid", Generation: 1}}
	er.Spec.EtcdCluster.Name = "example"
	for _, option := range options {
		option(er)
	}
	return er
}

func aCluster(change func(*v1beta2.EtcdCluster)) *v1beta2.EtcdCluster {
	ec := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "example", Namespace: "ns", UID: "uid-of-example"}}
	change(ec)
	return ec
}

func restoring(phase v1beta2.RestorePhase, problem string) func(*v1beta2.EtcdCluster) {
	return func(ec *v1beta2.EtcdCluster) {
		ec.Status.Restoring = &v1beta2.Restoring{ID: "uid", Name: "mine", Seed: "example-seed1", Phase: phase, Problem: problem, Key: "key", Revision: 7, StartTime: &noon}
	}
}

func restored(failed string) func(*v1beta2.EtcdCluster) {
	return func(ec *v1beta2.EtcdCluster) {
		ec.Status.Restored = &v1beta2.Restored{ID: "uid", Name: "mine", FailureMessage: failed, Key: "key", Revision: 7, RevisionOffset: 1000, LostRevision: 9, KeptPersistentVolumeClaims: []string{"example-old12"}, Time: &noon}
	}
}

func done(er *v1beta2.EtcdRestore) {
	er.Status = v1beta2.RestoreStatus{Phase: v1beta2.RestoreComplete, Succeeded: true, Key: "key", Revision: 7}
}

// is has a restore be in a phase, of an EtcdCluster with that UID; of before it was written, if that is empty.
func is(phase v1beta2.RestorePhase, of types.UID) func(*v1beta2.EtcdRestore) {
	return func(er *v1beta2.EtcdRestore) { er.Status.Phase, er.Status.EtcdClusterUID = phase, of }
}

// unavailable has a cluster be paused, and serve nothing.
func unavailable(ec *v1beta2.EtcdCluster) {
	ec.Spec.Paused = true
	ec.Status.Conditions = []metav1.Condition{{Type: v1beta2.ConditionAvailable, Status: metav1.ConditionFalse}}
}

func both(a, b func(*v1beta2.EtcdCluster)) func(*v1beta2.EtcdCluster) {
	return func(ec *v1beta2.EtcdCluster) { a(ec); b(ec) }
}

func ending(ec *v1beta2.EtcdCluster) { ec.DeletionTimestamp = &noon }

func TestSummarize(t *testing.T) {
	for name, tc := range map[string]struct {
		restore *v1beta2.EtcdRestore
		cluster *v1beta2.EtcdCluster
		phase   v1beta2.RestorePhase
		// is is the condition that is true, with its reason and the beginning of its message.
		is, want string
	}{
		"no cluster": {aRestore(), nil, v1beta2.RestoreWaiting, status.Stalled, `ClusterNotFound: There is no EtcdCluster "example" in namespace "ns": create it`},
		"not begun":  {aRestore(), aCluster(func(*v1beta2.EtcdCluster) {}), v1beta2.RestoreWaiting, status.Reconciling, `Waiting: Waiting for EtcdCluster "example"`},
		"paused": {aRestore(), aCluster(func(ec *v1beta2.EtcdCluster) { ec.Spec.Paused = true }), v1beta2.RestoreWaiting, status.Stalled,
			`ClusterPaused: EtcdCluster "example" is paused`},
		"paused, switching": {aRestore(), aCluster(both(restoring(v1beta2.RestoreSwitching, ""), unavailable)), v1beta2.RestoreSwitching, status.Stalled,
			`ClusterPaused: EtcdCluster "example" is switched to member "example-seed1", which serves revision 7. The EtcdCluster is paused: its members are stopped, and nothing serves until`},
		"paused, verifying": {aRestore(), aCluster(both(restoring(v1beta2.RestoreVerifying, ""), unavailable)), v1beta2.RestoreVerifying, status.Stalled,
			`ClusterPaused: Member "example-seed1" of EtcdCluster "example" reads and checks the backup; the cluster goes on as it is. The EtcdCluster is paused: nothing of it is changed until`},
		"another is under way": {aRestore(), aCluster(func(ec *v1beta2.EtcdCluster) { ec.Status.Restoring = &v1beta2.Restoring{ID: "other", Name: "theirs"} }),
			v1beta2.RestoreWaiting, status.Reconciling, `AnotherRestore: Waiting for EtcdRestore "theirs"`},
		"the answer to a loss is under way": {aRestore(), aCluster(func(ec *v1beta2.EtcdCluster) { ec.Status.Restoring = &v1beta2.Restoring{ID: "other"} }),
			v1beta2.RestoreWaiting, status.Reconciling, `AnotherRestore: Waiting for EtcdCluster "example" to be restored from its spec.recoverFrom`},
		"verifying": {aRestore(), aCluster(restoring(v1beta2.RestoreVerifying, "")), v1beta2.RestoreVerifying, status.Reconciling, `Verifying: Member "example-seed1" of`},
		"it has a problem": {aRestore(), aCluster(restoring(v1beta2.RestoreVerifying, "StorageHangs: no byte")), v1beta2.RestoreVerifying, status.Reconciling,
			`Verifying: Member "example-seed1" of EtcdCluster "example" reads and checks the backup; the cluster goes on as it is. StorageHangs: no byte`},
		"switching":  {aRestore(), aCluster(restoring(v1beta2.RestoreSwitching, "")), v1beta2.RestoreSwitching, status.Reconciling, `Switching: EtcdCluster "example" is switched`},
		"completing": {aRestore(), aCluster(restoring(v1beta2.RestoreCompleting, "")), v1beta2.RestoreCompleting, status.Reconciling, `Completing: EtcdCluster "example" serves revision 7`},
		"complete": {aRestore(), aCluster(restored("")), v1beta2.RestoreComplete, status.Ready,
			`Complete: The cluster was restored from key, of revision 7, and goes on from revision 1007; the last revision known of the cluster before is 9; these PersistentVolumeClaims are kept: example-old12`},
		"waiting, and the cluster is gone": {aRestore(is(v1beta2.RestoreWaiting, "uid-of-example")), nil, v1beta2.RestoreFailed, status.Stalled,
			`ClusterGone: EtcdCluster "example", of which this restore was, is gone. Nothing is tried again: to restore, create another EtcdRestore`},
		"waiting, and another has its name":             {aRestore(is(v1beta2.RestoreWaiting, "another")), aCluster(func(*v1beta2.EtcdCluster) {}), v1beta2.RestoreFailed, status.Stalled, "ClusterGone: "},
		"under way, and the cluster is gone":            {aRestore(is(v1beta2.RestoreVerifying, "uid-of-example")), nil, v1beta2.RestoreFailed, status.Stalled, "ClusterGone: "},
		"under way of before, and the cluster is gone":  {aRestore(is(v1beta2.RestoreCompleting, "")), nil, v1beta2.RestoreFailed, status.Stalled, "ClusterGone: "},
		"under way of before":                           {aRestore(is(v1beta2.RestoreSwitching, "")), aCluster(restoring(v1beta2.RestoreSwitching, "")), v1beta2.RestoreSwitching, status.Reconciling, "Switching: "},
		"waiting of before, and there was no cluster":   {aRestore(is(v1beta2.RestoreWaiting, "")), nil, v1beta2.RestoreWaiting, status.Stalled, "ClusterNotFound: "},
		"its cluster is being deleted, and is restored": {aRestore(is(v1beta2.RestoreVerifying, "uid-of-example")), aCluster(both(ending, restoring(v1beta2.RestoreVerifying, ""))), v1beta2.RestoreVerifying, status.Reconciling, "Verifying: "},
		"one that is being deleted has the name": {aRestore(), aCluster(ending), v1beta2.RestoreWaiting, status.Reconciling,
			`Waiting: Waiting for EtcdCluster "example", which is being deleted, to be gone`},
		"failed":                         {aRestore(), aCluster(restored("ObjectDamaged: it is short")), v1beta2.RestoreFailed, status.Stalled, `ObjectDamaged: it is short. Nothing is tried again`},
		"failed without a reason":        {aRestore(), aCluster(restored("it is: not so")), v1beta2.RestoreFailed, status.Stalled, `Failed: it is: not so. Nothing`},
		"complete, the cluster is gone":  {aRestore(done), nil, v1beta2.RestoreComplete, status.Ready, `Complete: The cluster was restored from key`},
		"complete, another is under way": {aRestore(done), aCluster(restoring(v1beta2.RestoreVerifying, "")), v1beta2.RestoreComplete, status.Ready, `Complete: `},
	} {
		t.Run(name, func(t *testing.T) {
			st := summarize(tc.restore, observation{cluster: tc.cluster})
			c := meta.FindStatusCondition(st.Conditions, tc.is)
			if c == nil || c.Status != metav1.ConditionTrue || !strings.HasPrefix(c.Reason+": "+c.Message, tc.want) {
				t.Errorf("%s is %+v, want %q", tc.is, c, tc.want)
			}
			if st.Phase != tc.phase || st.Succeeded != (tc.phase == v1beta2.RestoreComplete) || st.ObservedGeneration != 1 {
				t.Errorf("%+v", st)
			}
			after := tc.restore.DeepCopy()
			after.Status = st
			for i := range after.Status.Conditions {
				after.Status.Conditions[i].LastTransitionTime = noon
			}
			if err := testkit.CheckConditions(after); err != nil {
				t.Error(err)
			}
			again := summarize(after, observation{cluster: tc.cluster})
			if a, b := meta.FindStatusCondition(again.Conditions, tc.is), meta.FindStatusCondition(after.Status.Conditions, tc.is); a == nil || b == nil || a.Message != b.Message || a.Reason != b.Reason {
				t.Errorf("a second time it is %+v", a)
			}
			counter := restores.WithLabelValues(map[bool]string{true: "done", false: "failed"}[st.Succeeded])
			before := testutil.ToFloat64(counter)
			events := announce(context.Background(), tc.restore, after)
			if isEnd := isDone(after) && !isDone(tc.restore); isEnd != (len(events) == 1) {
				t.Errorf("%d events: %v", len(events), events)
			}
			if events := announce(context.Background(), after, after); len(events) > 0 {
				t.Errorf("and once more: %v", events)
			}
			if counted := testutil.ToFloat64(counter) - before; counted != float64(len(events)) {
				t.Errorf("counted %v times, with %d events", counted, len(events))
			}
		})
	}
}
