package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
)

// archive is what keeps the backups of a story.
type archive interface {
	// backup stores what the cluster has.
	backup(r *testkit.Run, key string) error
	// spoilBackup damages it, so that it is not read as what it was.
	spoilBackup(key string) error
	// failToFetch has the storage fail some times.
	failToFetch(times int)
	// hasBackup returns an error if the cluster does not have what a backup has.
	hasBackup(r *testkit.Run, key string) error
}

func archived(r *testkit.Run) archive { return r.Own.(archive) }

// restoreTales are those in which something is restored.
func restoreTales() []tale {
	start := []testkit.Step{backUp("a"), {Name: "writes", When: ready, Do: writes(3)}, restores("first", "a")}
	with := func(more ...testkit.Step) []testkit.Step { return append(start[:len(start):len(start)], more...) }
	return []tale{
		{name: "restored", steps: start, settled: restoredFrom("first", "a")},
		{name: "restored-one-member", spec: []ecOption{size(1)}, steps: start, settled: restoredFrom("first", "a")},
		{name: "restored-with-volumes", spec: []ecOption{stored}, steps: start, settled: restoredFrom("first", "a")},
		{name: "restored-one-with-volume", spec: []ecOption{stored, size(1)}, steps: start, settled: restoredFrom("first", "a")},
		{name: "restored-with-tls", spec: []ecOption{withTLS}, steps: start, settled: restoredFrom("first", "a")},
		{name: "restored-keeps-old", spec: []ecOption{stored}, steps: []testkit.Step{
			backUp("a"), restores("first", "a", func(er *v1beta2.EtcdRestore) { er.Spec.KeepOld = true }),
		}, settled: keptOld},
		{name: "restored-anew", steps: anew("a"), settled: restoredFrom("first", "a")},
		{name: "restored-anew-with-volumes", spec: []ecOption{stored}, steps: anew("a", stored), settled: restoredFrom("first", "a")},
		{name: "restore-outlived", steps: outlives("a"), settled: restoresNothingElse("first")},
		{name: "restore-fails", steps: []testkit.Step{backUp("a"), spoil("a"), {Name: "writes", When: ready, Do: writes(3)}, restores("first", "a")}, settled: restoreFailed("first")},
		{name: "restore-of-newer", spec: []ecOption{version("3.7.3")}, steps: []testkit.Step{
			backUp("a"), whenReady(`{"version":"3.6.16"}`), restores("first", "a"),
		}, settled: restoreFailed("first")},
		{name: "restore-of-nothing", spec: []ecOption{stored}, steps: []testkit.Step{restores("first", "nothing")}, settled: restoreFailed("first")},
		{name: "restore-retried", steps: []testkit.Step{backUp("a"), {Name: "breaks the storage", Do: func(_ context.Context, r *testkit.Run) error {
			archived(r).failToFetch(3)
			return nil
		}}, restores("first", "a")}, settled: restoredFrom("first", "a")},
		{name: "restore-cancelled", steps: with(testkit.Step{Name: "deletes the EtcdRestore", When: isRestoring(v1beta2.RestoreVerifying), Do: deleteRestore("first")}), settled: cancelledOrRestored},
		{name: "two-restores", steps: with(backUp("b"), restores("second", "b")), settled: restoredFrom("second", "b")},
		{name: "two-restores-at-once", steps: with(testkit.Step{Name: "restores again", Do: restores("second", "a").Do}), settled: restoredFrom("second", "a")},
		{name: "seed-lost-before", steps: with(deleteSeed(v1beta2.RestoreVerifying)), settled: restoredFrom("first", "a")},
		{name: "seed-lost-before-with-volumes", spec: []ecOption{stored}, steps: with(deleteSeed(v1beta2.RestoreVerifying)), settled: restoredFrom("first", "a")},
		{name: "seed-lost-switching", steps: with(deleteSeed(v1beta2.RestoreSwitching)), settled: restoredOrReported("first", "a")},
		{name: "seed-lost-after-with-volumes", spec: []ecOption{stored}, steps: with(deleteSeed(v1beta2.RestoreCompleting)), settled: restoredFrom("first", "a")},
		{name: "member-lost-meanwhile", steps: with(testkit.Step{Name: "deletes a pod", When: isRestoring(v1beta2.RestoreVerifying), Do: deletePods(1)}), settled: restoredOrReported("first", "a")},
		{name: "member-down-meanwhile", spec: []ecOption{stored}, steps: with(testkit.Step{Name: "deletes a pod", When: isRestoring(v1beta2.RestoreSwitching), Do: deletePods(1)}), settled: restoredFrom("first", "a")},
		{name: "quorum-lost-restored", steps: []testkit.Step{
			backUp("a"), {Name: "deletes two pods", When: ready, Do: deletePods(2)}, {Name: "restores", When: lossEnds, Do: restores("first", "a").Do},
		}, settled: restoredFrom("first", "a")},
		{name: "quorum-lost-recovered", lossy: true, accepts: true, steps: []testkit.Step{
			backUp("a"), {Name: "takes a backup", Do: patched(`{"recoverFrom":` + sourceOf("a") + `}`)},
			{Name: "deletes two pods", When: ready, Do: deletePods(2)}, {Name: "accepts it", When: lossEnds, Do: accept},
		}},
		{name: "all-lost-recovered-with-volumes", spec: []ecOption{stored}, lossy: true, accepts: true, steps: []testkit.Step{
			backUp("a"), {Name: "takes a backup", Do: patched(`{"recoverFrom":` + sourceOf("a") + `}`)},
			{Name: "deletes all volumes", When: ready, Do: deleteVolumes(3)}, {Name: "accepts it", When: lossEnds, Do: accept},
		}},
	}
}

func sourceOf(key string) string {
	return `{"backupStorageType":"S3","s3":{"path":"bucket/` + key + `"}}`
}

func backUp(key string) testkit.Step {
	return testkit.Step{Name: "backs up to " + key, When: ready, Do: func(_ context.Context, r *testkit.Run) error { return archived(r).backup(r, key) }}
}

func spoil(key string) testkit.Step {
	return testkit.Step{Name: "damages " + key, Do: func(_ context.Context, r *testkit.Run) error { return archived(r).spoilBackup(key) }}
}

// writes puts keys, as far as anybody takes them.
func writes(n int) func(context.Context, *testkit.Run) error {
	return func(_ context.Context, r *testkit.Run) error {
		for range n {
			_ = own(r).put(r)
		}
		return nil
	}
}

func restores(name, key string, options ...func(*v1beta2.EtcdRestore)) testkit.Step {
	return testkit.Step{Name: "restores " + key, When: ready, Do: func(ctx context.Context, r *testkit.Run) error {
		return r.Client.Create(ctx, aRestore(r, name, key, options...))
	}}
}

func aRestore(r *testkit.Run, name, key string, options ...func(*v1beta2.EtcdRestore)) *v1beta2.EtcdRestore {
	er := &v1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: name}, Spec: v1beta2.RestoreSpec{
		EtcdCluster: v1beta2.ClusterReference{Name: "example"},
		RestoreSource: v1beta2.RestoreSource{
			BackupStorageType: v1beta2.StorageS3, BackupSource: v1beta2.BackupSource{S3: &v1beta2.S3Source{Path: "bucket/" + key, AWSSecret: "aws"}},
		},
	}}
	for _, option := range options {
		option(er)
	}
	return er
}

// anew backs up, deletes the cluster, and has another one begin with the backup.
func anew(key string, options ...ecOption) []testkit.Step {
	return []testkit.Step{
		backUp(key),
		{Name: "deletes the cluster", Do: func(ctx context.Context, r *testkit.Run) error { return r.Client.Delete(ctx, story(r)) }},
		{Name: "restores into a new one", When: allGone, Do: func(ctx context.Context, r *testkit.Run) error {
			return errors.Join(r.Client.Create(ctx, aRestore(r, "first", key)), r.Client.Create(ctx, story(r, options...)))
		}},
	}
}

// outlives has an EtcdRestore be under way when its cluster is deleted, and another one of that name begin a while later.
func outlives(key string) []testkit.Step {
	storageFails := func(times int) func(context.Context, *testkit.Run) error {
		return func(_ context.Context, r *testkit.Run) error {
			archived(r).failToFetch(times)
			return nil
		}
	}
	return []testkit.Step{
		backUp(key), {Name: "breaks the storage", Do: storageFails(1000)}, restores("first", key),
		{Name: "deletes the cluster", When: isRestoring(v1beta2.RestoreVerifying), Do: func(ctx context.Context, r *testkit.Run) error { return r.Client.Delete(ctx, story(r)) }},
		{Name: "repairs the storage", When: allGone, Do: storageFails(0)},
		{Name: "creates another one", Do: func(ctx context.Context, r *testkit.Run) error { return r.Client.Create(ctx, story(r)) }},
	}
}

// restoreAndCluster reads an EtcdRestore and its cluster.
func restoreAndCluster(ctx context.Context, r *testkit.Run, name string) (*v1beta2.EtcdRestore, *v1beta2.EtcdCluster, error) {
	var er v1beta2.EtcdRestore
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, &er); err != nil {
		return nil, nil, err
	}
	ec, err := currently(ctx, r)
	return &er, ec, err
}

// restoresNothingElse is nil when the cluster has begun empty, and the EtcdRestore, which was of another one, has failed.
func restoresNothingElse(name string) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		if err := errors.Join(ready(ctx, r), nothingLeft(ctx, r)); err != nil {
			return err
		}
		er, ec, err := restoreAndCluster(ctx, r, name)
		if err != nil {
			return err
		}
		if er.Status.Phase != v1beta2.RestoreFailed || !strings.HasPrefix(er.Status.Reason, "ClusterGone: ") || ec.Status.Restored != nil {
			return fmt.Errorf("EtcdRestore %s is %s %s: %s", name, er.Status.Phase, er.Status.Reason, inShort(ec))
		}
		return nil
	}
}

// allGone is nil when nothing is left of the cluster.
func allGone(ctx context.Context, r *testkit.Run) error {
	if _, err := currently(ctx, r); !apierrors.IsNotFound(err) {
		return errors.Join(err, errors.New("the cluster is there"))
	}
	for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.PersistentVolumeClaimList{}, &corev1.ServiceList{}} {
		if err := r.Client.List(ctx, list, client.InNamespace(r.Namespace)); err != nil {
			return err
		}
		switch l := list.(type) {
		case *corev1.PodList:
			if len(l.Items) > 0 {
				return errors.New("pods are there")
			}
		case *corev1.PersistentVolumeClaimList:
			if len(l.Items) > 0 {
				return errors.New("volumes are there")
			}
		case *corev1.ServiceList:
			if len(l.Items) > 0 {
				return errors.New("Services are there")
			}
		}
	}
	return nil
}

// isRestoring is nil when a restore is in a phase, or is over.
func isRestoring(phase v1beta2.RestorePhase) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		ec, err := currently(ctx, r)
		if err != nil {
			return err
		}
		if under := ec.Status.Restoring; under != nil && under.Phase == phase && under.SeedDataUID != "" || ec.Status.Restored != nil {
			return nil
		}
		return fmt.Errorf("no restore is %s: %s", phase, inShort(ec))
	}
}

// deleteSeed deletes the seed's pod in a phase, unless that is over.
func deleteSeed(phase v1beta2.RestorePhase) testkit.Step {
	return testkit.Step{Name: "deletes the seed", When: isRestoring(phase), Do: func(ctx context.Context, r *testkit.Run) error {
		ec, err := currently(ctx, r)
		if err != nil || ec.Status.Restoring == nil || ec.Status.Restoring.Phase != phase {
			return err
		}
		return client.IgnoreNotFound(r.Client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: ec.Status.Restoring.Seed}}))
	}}
}

func deleteRestore(name string) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error { return r.Client.Delete(ctx, aRestore(r, name, "")) }
}

// isOverAs returns an error until an EtcdRestore, and its cluster, say that it is in the phase.
func isOverAs(ctx context.Context, r *testkit.Run, name string, phase v1beta2.RestorePhase) error {
	er, ec, err := restoreAndCluster(ctx, r, name)
	if err != nil {
		return err
	}
	if er.Status.Phase != phase || ec.Status.Restoring != nil || ec.Status.Restored == nil || ec.Status.Restored.ID != string(er.UID) {
		return fmt.Errorf("EtcdRestore %s is %s %s: %s", name, er.Status.Phase, er.Status.Reason, inShort(ec))
	}
	return nil
}

func restoredFrom(name, key string) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		if err := errors.Join(isOverAs(ctx, r, name, v1beta2.RestoreComplete), ready(ctx, r)); err != nil {
			return err
		}
		return errors.Join(archived(r).hasBackup(r, key), nothingLeft(ctx, r))
	}
}

// restoredOrReported is for stories in which what was restored may be lost together with what was
// before: then that has to be reported. If a member survives, the restore goes on when it is answered.
func restoredOrReported(name, key string) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		if stalled(reason.QuorumLost)(ctx, r) == nil {
			if ec, err := currently(ctx, r); err != nil || ec.Status.Restoring != nil {
				return err
			}
			return isOverAs(ctx, r, name, v1beta2.RestoreFailed)
		}
		return restoredFrom(name, key)(ctx, r)
	}
}

func restoreFailed(name string) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		return errors.Join(isOverAs(ctx, r, name, v1beta2.RestoreFailed), ready(ctx, r), own(r).lost(r), nothingLeft(ctx, r))
	}
}

func cancelledOrRestored(ctx context.Context, r *testkit.Run) error {
	ec, err := currently(ctx, r)
	if err != nil {
		return err
	}
	if ec.Status.Restoring != nil {
		return fmt.Errorf("a restore is under way: %s", inShort(ec))
	}
	return errors.Join(ready(ctx, r), nothingLeft(ctx, r))
}

// nothingLeft returns an error if there are pods or volumes that no member has.
func nothingLeft(ctx context.Context, r *testkit.Run) error {
	ec, err := currently(ctx, r)
	if err != nil {
		return err
	}
	is := map[string]bool{}
	for _, m := range ec.Status.MemberList {
		is[m.Name] = true
	}
	var pods corev1.PodList
	var claims corev1.PersistentVolumeClaimList
	err = errors.Join(r.Client.List(ctx, &pods, client.InNamespace(r.Namespace)), r.Client.List(ctx, &claims, client.InNamespace(r.Namespace)))
	for i := range pods.Items {
		if !is[pods.Items[i].Name] {
			err = errors.Join(err, fmt.Errorf("pod %s is left", pods.Items[i].Name))
		}
	}
	for i := range claims.Items {
		if c := &claims.Items[i]; !is[c.Name] && c.Labels[objects.ClusterLabel] != "" {
			err = errors.Join(err, fmt.Errorf("volume %s is left", c.Name))
		}
	}
	return err
}

// keptOld is nil when the cluster is restored, and the replaced volumes are there.
func keptOld(ctx context.Context, r *testkit.Run) error {
	if err := restoredFrom("first", "a")(ctx, r); err != nil {
		return err
	}
	ec, err := currently(ctx, r)
	if err != nil {
		return err
	}
	if len(ec.Status.Restored.KeptPersistentVolumeClaims) != 3 {
		return fmt.Errorf("%d volumes are kept: %s", len(ec.Status.Restored.KeptPersistentVolumeClaims), inShort(ec))
	}
	for _, name := range ec.Status.Restored.KeptPersistentVolumeClaims {
		var c corev1.PersistentVolumeClaim
		if err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, &c); err != nil {
			return err
		}
	}
	return nil
}
