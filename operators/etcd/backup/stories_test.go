package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/task"
)

// stories are those that need nothing of a cluster but EtcdBackups and pods, so that a simulated one
// can play them, too.
func stories() []testkit.Scenario {
	complete := nothingLeft(isReady(reasonComplete))
	return []testkit.Scenario{
		{Name: "once", Pods: does(nil), Arrange: arranged(), Settled: complete},
		{Name: "proved", Pods: does(nil), Arrange: arranged(byRestore), Settled: complete},
		{Name: "refuted", Pods: does(refutesFirst), Arrange: arranged(byRestore), Settled: complete, Check: madeAgain},
		{Name: "evicted", Pods: does(once(testkit.Outcome{PodReason: "Evicted", Message: "The node was low on resource: memory."})), Arrange: arranged(), Settled: complete},
		{Name: "says-nothing", Pods: does(once(testkit.Outcome{})), Arrange: arranged(), Settled: complete},
		{Name: "says-something-else", Pods: does(once(testkit.Outcome{ExitCode: 2, Message: "panic: {\"Saved\""})), Arrange: arranged(byRestore), Settled: complete},
		{Name: "credentials-mended", Pods: does(untilChanged(denied())), Arrange: arranged(), Steps: []testkit.Step{
			{Name: "another bucket", When: isUnready(task.ReasonAccessDenied), Do: patched(`{"spec":{"s3":{"path":"another/etcd.backup"}}}`)},
		}, Settled: complete},
		{Name: "cannot-start", Pods: does(untilChanged(testkit.Stuck("ImagePullBackOff"))), Arrange: arranged(), Steps: []testkit.Step{
			{Name: "another node", When: isClaimed, Do: patched(`{"spec":{"pod":{"nodeSelector":{"a":"b"}}}}`)},
		}, Settled: complete},
		{Name: "again-and-again", Pods: does(nil), Arrange: arranged(every(1)), Steps: pausesAfter(3), Settled: isPausedAfter(3)},
		{Name: "scheduled", Pods: does(nil), Arrange: arranged(scheduled("@every 1s", "Europe/Berlin")), Steps: pausesAfter(2), Settled: isPausedAfter(2)},
		{Name: "keeps-what-is-proved", Pods: does(refutesFirst), Arrange: arranged(every(1), byRestore, keeps(2)), Steps: pausesAfter(2), Settled: isPausedAfter(2)},
		{Name: "slower-than-its-interval", Pods: slowly, Arrange: arranged(every(1)), Steps: pausesAfter(2), Settled: isPausedAfter(2)},
		{Name: "fails-now-and-then", Pods: does(nowAndThen), Arrange: arranged(every(1), byRestore, keeps(1)), Steps: pausesAfter(6), Settled: isPausedAfter(6)},
		{Name: "loses-its-marks", Pods: slowly, Arrange: arranged(), Steps: []testkit.Step{{Name: "strips the pod", When: isClaimed, Do: strip}}, Settled: complete},
		{Name: "waits-for-others", Pods: does(nil), Arrange: arranged(ofCluster, withSecret), Steps: []testkit.Step{
			{Name: "the Secret", When: isUnready(reasonNoSecret), Do: createSecret},
			{Name: "the cluster", When: isUnready(reasonNoCluster), Do: createCluster},
			{Name: "it serves", When: isUnready(reasonClusterNotReady), Do: serve},
		}, Settled: complete},
		{Name: "paused-at-first", Pods: does(nil), Arrange: arranged(isPaused), Steps: []testkit.Step{
			{Name: "goes on", When: isUnready(reasonPaused), Do: patched(`{"spec":{"paused":false}}`)},
		}, Settled: complete},
		{Name: "deleted", Without: map[string]string{takesOwner: "a pod that has no owner when its EtcdBackup is deleted stays"}, Pods: does(nil), Arrange: arranged(every(1)), Steps: []testkit.Step{
			{Name: "deletes it", When: isClaimed, Do: func(ctx context.Context, r *testkit.Run) error { return r.Client.Delete(ctx, story(r)) }},
		}, Settled: func(ctx context.Context, r *testkit.Run) error {
			pods, err := podsOf(ctx, r)
			if len(pods) > 0 {
				return fmt.Errorf("%d pods are left", len(pods))
			}
			return err
		}},
	}
}

// story is an EtcdBackup called "example".
func story(r *testkit.Run, options ...option) *v1beta2.EtcdBackup {
	b := aBackup(options...)
	b.ObjectMeta = metav1.ObjectMeta{Namespace: r.Namespace, Name: b.Name}
	return b
}

func arranged(options ...option) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error { return r.Client.Create(ctx, story(r, options...)) }
}

func patched(patch string) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		return r.Client.Patch(ctx, story(r), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
}

// does is what becomes of pods: what the special function says, and otherwise what their task is.
func does(special func(*corev1.Pod, task.Task) (testkit.Outcome, bool)) func(*corev1.Pod) testkit.Outcome {
	return func(pod *corev1.Pod) testkit.Outcome {
		todo := taskOf(pod)
		if special != nil {
			if o, ok := special(pod, todo); ok {
				return o
			}
		}
		return outcome(result(todo), 20*time.Millisecond)
	}
}

// result is that of a task that was done.
func result(todo task.Task) task.Result {
	switch todo.Action {
	case task.Save:
		key := todo.Place.Key
		if todo.Periodic {
			key = fmt.Sprintf("%s_v%d", key, 100+todo.Number)
		}
		return task.Result{Saved: &v1beta2.StoredBackup{Key: key, Revision: 100 + todo.Number, Size: 4096, EtcdVersion: "3.6.16"}}
	case task.Prove:
		return task.Result{Proved: &v1beta2.BackupProof{Key: todo.Saved.Key, Revision: todo.Saved.Revision, Time: metav1.NewTime(noon)}}
	case task.Prune, task.Fetch:
	}
	return task.Result{Pruned: 1, Left: int(todo.Keep.Max)}
}

func outcome(r task.Result, after time.Duration) testkit.Outcome {
	text, _ := json.Marshal(r)
	o := testkit.Outcome{RunsFor: after, Message: string(text)}
	if r.Problem != nil {
		o.ExitCode = 1
	}
	return o
}

func denied() testkit.Outcome {
	return outcome(task.Result{Problem: &task.Problem{Reason: task.ReasonAccessDenied, Message: "The storage does not let the credentials write: change them."}}, time.Millisecond)
}

// once is what becomes of the first pod.
func once(o testkit.Outcome) func(*corev1.Pod, task.Task) (testkit.Outcome, bool) {
	return func(_ *corev1.Pod, todo task.Task) (testkit.Outcome, bool) { return o, todo.Number == 1 }
}

// untilChanged is what becomes of pods of the first version of the spec.
func untilChanged(o testkit.Outcome) func(*corev1.Pod, task.Task) (testkit.Outcome, bool) {
	return func(pod *corev1.Pod, _ task.Task) (testkit.Outcome, bool) {
		return o, pod.Annotations[annotation.Generation] == "1"
	}
}

// nowAndThen fails the first try and every fifth.
func nowAndThen(_ *corev1.Pod, todo task.Task) (testkit.Outcome, bool) {
	return denied(), todo.Number == 1 || todo.Number%5 == 0
}

// refutesFirst has proofs of the backups that the first two tries have made fail.
func refutesFirst(_ *corev1.Pod, todo task.Task) (testkit.Outcome, bool) {
	return outcome(task.Result{Problem: &task.Problem{Reason: task.ReasonProofDiffers, Message: "It has another hash."}}, time.Millisecond),
		todo.Action == task.Prove && todo.Saved.Number <= 2
}

// slowly takes three seconds for everything.
func slowly(pod *corev1.Pod) testkit.Outcome { return outcome(result(taskOf(pod)), 3*time.Second) }

func current(ctx context.Context, r *testkit.Run) (*v1beta2.EtcdBackup, error) {
	var b v1beta2.EtcdBackup
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: "example"}, &b)
	return &b, err
}

func podsOf(ctx context.Context, r *testkit.Run) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := r.Client.List(ctx, &pods, client.InNamespace(r.Namespace))
	return pods.Items, err
}

// holds is a condition of the EtcdBackup.
func holds(wrong func(b *v1beta2.EtcdBackup, ready *metav1.Condition) bool) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		b, err := current(ctx, r)
		if err != nil {
			return err
		}
		ready := meta.FindStatusCondition(b.Status.Conditions, status.Ready)
		if ready == nil || wrong(b, ready) {
			return fmt.Errorf("not yet: Ready is %+v, %d tries, last %+v, running %+v", ready, b.Status.Tries, b.Status.LastBackup, b.Status.Running)
		}
		return nil
	}
}

func isReady(reason string) func(context.Context, *testkit.Run) error {
	return holds(func(b *v1beta2.EtcdBackup, ready *metav1.Condition) bool {
		return ready.Status != metav1.ConditionTrue || ready.Reason != reason || ready.ObservedGeneration != b.Generation || !b.Status.Succeeded || b.Status.Running != nil
	})
}

// isUnready holds for that reason, or when it is complete: the user may come too late to see more.
func isUnready(reason string) func(context.Context, *testkit.Run) error {
	return holds(func(_ *v1beta2.EtcdBackup, ready *metav1.Condition) bool {
		return ready.Reason != reason && ready.Reason != reasonComplete
	})
}

// isClaimed holds once a pod is claimed, and the kubelet may start it: what a user does then is no race with the operator.
func isClaimed(ctx context.Context, r *testkit.Run) error {
	pods, err := podsOf(ctx, r)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(pods, func(p corev1.Pod) bool { return len(p.Spec.SchedulingGates) > 0 }) {
		return errors.New("a pod may not start yet")
	}
	return holds(func(b *v1beta2.EtcdBackup, _ *metav1.Condition) bool { return b.Status.Tries == 0 })(ctx, r)
}

// isMade says whether so many backups were made. Each takes a try at least.
func isMade(b *v1beta2.EtcdBackup, backups int64) bool {
	return b.Status.LastBackup != nil && b.Status.LastBackup.Number >= backups && b.Status.Succeeded
}

func pausesAfter(backups int64) []testkit.Step {
	return []testkit.Step{{
		Name: "pauses", Do: patched(`{"spec":{"paused":true}}`),
		When: holds(func(b *v1beta2.EtcdBackup, _ *metav1.Condition) bool { return !isMade(b, backups) }),
	}}
}

func isPausedAfter(backups int64) func(context.Context, *testkit.Run) error {
	return nothingLeft(holds(func(b *v1beta2.EtcdBackup, ready *metav1.Condition) bool {
		return ready.Reason != reasonPaused || b.Status.Running != nil || b.Status.LastBackup == nil || b.Status.LastBackup.Number < backups
	}))
}

// takesOwner is what others do to the pod in a simulation.
const takesOwner = "takes the owner of the pod"

// nothingLeft holds if there is no pod besides, but for those that lost their marks when they were
// over.
func nothingLeft(also func(context.Context, *testkit.Run) error) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		if err := also(ctx, r); err != nil {
			return err
		}
		pods, err := podsOf(ctx, r)
		if err != nil {
			return err
		}
		pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool {
			return metav1.GetControllerOf(&p) == nil || p.Labels[apply.ManagedByLabel] == ""
		})
		if len(pods) > 0 {
			return fmt.Errorf("pod %s is left", pods[0].Name)
		}
		return nil
	}
}

// strip takes the label and the owner of the pod that is at work.
func strip(ctx context.Context, r *testkit.Run) error {
	b, err := current(ctx, r)
	if err != nil || b.Status.Running == nil {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: b.Status.Running.Pod}}
	patch := `{"metadata":{"labels":{"` + apply.ManagedByLabel + `":null},"ownerReferences":null}}`
	return client.IgnoreNotFound(r.Client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// madeAgain holds when what the first tries have made was replaced.
func madeAgain(ctx context.Context, r *testkit.Run) error {
	b, err := current(ctx, r)
	if err == nil && (b.Status.LastBackup.Number < 3 || b.Status.LastProof.Number != b.Status.LastBackup.Number) {
		err = fmt.Errorf("the last backup is %d, and that of the last proof is %d", b.Status.LastBackup.Number, b.Status.LastProof.Number)
	}
	return err
}

func createSecret(ctx context.Context, r *testkit.Run) error {
	return r.Client.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: "aws"}})
}

func createCluster(ctx context.Context, r *testkit.Run) error {
	ec := aCluster()
	ec.ObjectMeta, ec.Status = metav1.ObjectMeta{Namespace: r.Namespace, Name: ec.Name}, v1beta2.EtcdClusterStatus{}
	return r.Client.Create(ctx, ec)
}

func serve(ctx context.Context, r *testkit.Run) error {
	patch := `{"status":{"clusterID":"abc","size":1,"memberList":[{"name":"example-aaaaa"}]}}`
	ec := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: "example"}}
	return r.Client.Status().Patch(ctx, ec, client.RawPatch(types.MergePatchType, []byte(patch)))
}
