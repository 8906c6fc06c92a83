package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/rollout"
)

// nodes are what runs the members of a story: kubelets with etcd, a model of it or a real one.
type nodes interface {
	// put has a client put a key, through whichever member serves, and remembers that it was
	// acknowledged.
	put(r *testkit.Run) error
	// lost returns an error if a write that was acknowledged is not in the cluster any more.
	lost(r *testkit.Run) error
	// corrupt changes what a member has of a write that was acknowledged, upon which etcd has an alarm: for whoever has
	// other data than the leader.
	corrupt(r *testkit.Run, member string) error
	// damage destroys a part of a member's data, so that it does not start again.
	damage(r *testkit.Run, member string) error
	// fill fills the database.
	fill(r *testkit.Run) error
	// age writes so much history that it takes most of the room of the database.
	age(r *testkit.Run) error
	// bloat has the members' files grow until most of them is not in use.
	bloat(r *testkit.Run) error
	// loseImages has no image of quay.io to be had any more, and restarts all members.
	loseImages(r *testkit.Run) error
	// isSteady says that all members have run for so long that etcd lets their list be changed.
	isSteady() bool
	// byHand is a client of the members that a user has, and where the leader is.
	byHand(r *testkit.Run) (members.Client, members.Endpoint, error)
	// putV2 writes a key by the API v2 of etcd 3.5, and dropV2 deletes it, and has the members take a snapshot of their logs.
	putV2(r *testkit.Run) error
	dropV2(r *testkit.Run) error
	// beginElsewhere begins an etcd of so many members that is no EtcdCluster's, and returns where they are.
	beginElsewhere(ctx context.Context, r *testkit.Run, size int, version string) (urls []string, err error)
	// endElsewhere has the process of one of its members end, and giveUpElsewhere says that it is for good.
	endElsewhere(r *testkit.Run, member string) error
	giveUpElsewhere(ctx context.Context, r *testkit.Run, member string) error
	// startElsewhere starts one of its members, with its data.
	startElsewhere(r *testkit.Run, member int, version string) error
}

func own(r *testkit.Run) nodes { return r.Own.(nodes) }

// tale is a story that can be told in one line per step.
type tale struct {
	name    string
	spec    []ecOption
	steps   []testkit.Step
	settled func(ctx context.Context, r *testkit.Run) error
	// nodes is how many there are; 0 for one that nobody sees.
	nodes int
	// lossy is a story in which the user accepts that writes are lost.
	lossy bool
	// accepts is one in which the user answers each loss of quorum.
	accepts bool
	// drains says that nodes are drained.
	drains bool
	// joins is how many members the etcd has that the cluster takes over, and of which version; 0 for none, and 3.6.15.
	joins   int
	joinsAt string
}

func stories() []testkit.Scenario {
	var all []testkit.Scenario
	for _, t := range slices.Concat(tales(), corruptTales(), restoreTales(), lossTales(), joinTales(), v2Tales(), drainTales()) {
		all = append(all, t.scenario())
	}
	return all
}

func tales() []tale {
	return []tale{
		{name: "one-member", spec: []ecOption{size(1)}},
		{name: "three-members"},
		{name: "scales", spec: []ecOption{size(1)}, steps: []testkit.Step{
			whenReady(`{"size":3,"disruption":{"enabled":false}}`), whenReady(`{"size":2}`),
		}, settled: withoutBudget},
		{name: "second-budget", spec: []ecOption{size(1)}, steps: []testkit.Step{{Name: "makes a budget", When: ready, Do: makeBudget}}, settled: secondBudget},
		{name: "scales-with-volumes", spec: []ecOption{size(2), stored}, steps: []testkit.Step{whenReady(`{"size":3}`), whenReady(`{"size":1}`)}},
		{name: "pod-deleted", steps: []testkit.Step{{Name: "deletes a pod", When: ready, Do: deletePods(1)}}},
		{name: "pod-deleted-with-volumes", spec: []ecOption{stored}, steps: []testkit.Step{{Name: "deletes a pod", When: ready, Do: deletePods(1)}}},
		{name: "all-pods-deleted", spec: []ecOption{stored}, steps: []testkit.Step{{Name: "deletes all pods", When: ready, Do: deletePods(3)}}},
		{name: "volume-deleted", spec: []ecOption{stored}, steps: []testkit.Step{{Name: "deletes a volume", When: ready, Do: deleteVolumes(1)}}},
		{name: "quorum-lost", lossy: true, accepts: true, steps: []testkit.Step{
			{Name: "deletes two pods", When: ready, Do: deletePods(2)}, {Name: "accepts it", When: lossEnds, Do: accept},
		}},
		{name: "quorum-lost-with-volumes", lossy: true, accepts: true, spec: []ecOption{stored}, steps: []testkit.Step{
			{Name: "deletes two volumes", When: ready, Do: deleteVolumes(2)}, {Name: "accepts it", When: lossEnds, Do: accept},
		}},
		{name: "all-lost", lossy: true, accepts: true, steps: []testkit.Step{
			{Name: "deletes all pods", When: ready, Do: deletePods(3)}, {Name: "accepts it", When: lossEnds, Do: accept},
		}},
		{name: "lost-at-once", lossy: true, settled: reportedOrKept, steps: []testkit.Step{{Name: "deletes all pods", When: writable, Do: deletePods(3)}}},
		{name: "not-accepted", lossy: true, steps: []testkit.Step{{Name: "deletes all pods", When: ready, Do: deletePods(3)}}, settled: lossEnds},
		{name: "upgrades", spec: []ecOption{version("3.5.35")}, steps: []testkit.Step{whenReady(`{"version":"3.7.3"}`)}},
		{name: "upgrades-promoted", spec: []ecOption{size(1), version("3.5.9")}, steps: []testkit.Step{whenReady(`{"size":3}`), whenReady(`{"version":"3.6.16"}`)}},
		{name: "downgrades", steps: []testkit.Step{whenReady(`{"version":"3.5.35"}`)}},
		{name: "volume-deleted-in-downgrade", spec: []ecOption{stored, version("3.7.3")}, steps: []testkit.Step{
			whenReady(`{"version":"3.6.16"}`), {Name: "deletes a volume", When: oneIsAt("3.6.16"), Do: deleteVolumes(1)},
		}},
		{name: "volume-deleted-after-downgrade", spec: []ecOption{stored}, steps: []testkit.Step{
			whenReady(`{"version":"3.5.35"}`), {Name: "deletes a volume", When: ready, Do: deleteVolumes(1)},
		}},
		{name: "no-such-version", steps: []testkit.Step{whenReady(`{"version":"3.6.999"}`), {Name: "reverts", When: oneIsDown, Do: patched(`{"version":"3.6.16"}`)}}},
		{name: "repository-changed", steps: []testkit.Step{whenReady(`{"repository":"registry.example.com/etcd"}`)}},
		{name: "image-edited", steps: []testkit.Step{{Name: "edits the image of a pod", When: ready, Do: editImage}}},
		{name: "registry-gone", steps: []testkit.Step{
			{Name: "turns the registry off, and all nodes off and on", When: ready, Do: func(_ context.Context, r *testkit.Run) error { return own(r).loseImages(r) }},
			{Name: "takes another registry", Do: patched(`{"repository":"registry.example.com/etcd"}`)},
		}},
		{name: "upgrade-refused", steps: []testkit.Step{whenReady(`{"version":"3.4.37"}`)}, settled: stalled(reason.VersionRefused)},
		{name: "pods-changed", spec: []ecOption{stored}, steps: []testkit.Step{whenReady(`{"pod":{"nodeSelector":{"disk":"fast"}}}`)}},
		{name: "damaged", spec: []ecOption{stored}, steps: []testkit.Step{{Name: "damages the data of a member", When: ready, Do: func(_ context.Context, r *testkit.Run) error {
			return own(r).damage(r, aMember(r))
		}}}, settled: keeps(1)},
		{name: "history-takes-room", spec: []ecOption{withQuota("1073741824")}, steps: []testkit.Step{
			{Name: "writes history", When: ready, Do: func(_ context.Context, r *testkit.Run) error { return own(r).age(r) }},
		}, settled: hasRoom},
		{name: "database-full", spec: []ecOption{keepHistory(0)}, steps: []testkit.Step{{Name: "fills the database", When: ready, Do: func(_ context.Context, r *testkit.Run) error { return own(r).fill(r) }}}},
		{name: "database-full-one-down", steps: []testkit.Step{
			whenReady(`{"version":"3.6.999"}`),
			{Name: "fills the database", When: oneIsDown, Do: func(_ context.Context, r *testkit.Run) error { return own(r).fill(r) }},
			{Name: "reverts", When: writable, Do: patched(`{"version":"3.6.16"}`)},
		}},
		{name: "database-full-one-member", spec: []ecOption{size(1)}, steps: []testkit.Step{fills(nil)}},
		{name: "database-full-slow-disks", steps: []testkit.Step{fills(func(n *modelNodes) { n.slowDisks() })}},
		{name: "database-full-pod-deleted", spec: []ecOption{stored}, steps: []testkit.Step{
			fills(nil), {Name: "deletes the pod that is defragmented", When: isDefragmenting, Do: deleteDefragmenting},
		}},
		{name: "database-full-paused", steps: []testkit.Step{
			fills(nil), {Name: "pauses", When: isDefragmenting, Do: patched(`{"paused":true}`)}, whenIs(reason.Paused, `{"paused":false}`),
		}},
		{name: "file-bloated", spec: []ecOption{withQuota("8589934592")}, steps: []testkit.Step{
			{Name: "bloats the files", When: ready, Do: func(_ context.Context, r *testkit.Run) error { return own(r).bloat(r) }},
		}, settled: smallAgain},
		{name: "nodes-cordoned", nodes: 6, steps: []testkit.Step{
			{Name: "cordons a node", When: ready, Do: cordon(0, true)}, {Name: "cordons another", Do: cordon(1, true)}, {Name: "and another", Do: cordon(2, true)},
		}, settled: moved},
		{name: "node-uncordoned", nodes: 4, steps: []testkit.Step{
			{Name: "cordons a node", When: ready, Do: cordon(0, true)}, {Name: "uncordons it", Do: cordon(0, false)},
		}},
		{name: "one-member-cordoned", nodes: 2, spec: []ecOption{size(1)}, steps: []testkit.Step{{Name: "cordons its node", When: ready, Do: cordon(0, true)}}, settled: moved},
		{name: "replaced-by-hand", spec: []ecOption{stored}, steps: []testkit.Step{{Name: "annotates a pod", When: ready, Do: replaceByHand}}, settled: keeps(1)},
		{name: "removed-by-hand", steps: []testkit.Step{{Name: "removes a member by hand", When: steady, Do: removeByHand}}},
		{name: "added-by-hand", steps: []testkit.Step{{Name: "adds a member by hand", When: steady, Do: addByHand}}},
		{name: "status-emptied", steps: []testkit.Step{{Name: "empties status", When: ready, Do: emptyStatus}, whenReady(`{"size":4}`)}},
		{name: "owners-removed", spec: []ecOption{stored}, steps: []testkit.Step{{Name: "takes the owner references", When: ready, Do: disown("")}}, settled: owned},
		{name: "come-back-bare", spec: []ecOption{stored}, steps: []testkit.Step{
			whenReady(`{"paused":true}`),
			{Name: "brings all back without owners and status", When: stalled(reason.Paused), Do: comeBackBare(0)},
			{Name: "goes on", Do: patched(`{"paused":false}`)}, whenIs(reason.Existing, `{"adoptExisting":true}`),
		}},
		{name: "come-back-as-volumes", spec: []ecOption{stored}, steps: []testkit.Step{
			whenReady(`{"paused":true}`),
			{Name: "brings the volumes back without owners and status", When: stalled(reason.Paused), Do: comeBackBare(3)},
			{Name: "goes on", Do: patched(`{"paused":false}`)}, whenIs(reason.Existing, `{"adoptExisting":true}`),
		}},
		{name: "paused", steps: []testkit.Step{whenReady(`{"paused":true}`), whenIs(reason.Paused, `{"size":5}`), {Name: "goes on", Do: patched(`{"paused":false,"size":3}`)}}},
		{name: "tls", spec: []ecOption{size(2), withTLS}, steps: []testkit.Step{whenReady(`{"size":3}`)}},
		{name: "ca-replaced", spec: []ecOption{withTLS}, steps: []testkit.Step{{Name: "deletes the CA", When: ready, Do: deleteCA}}, settled: replacedCA},
		{name: "authentication", spec: []ecOption{size(1), withAuth}, steps: []testkit.Step{
			{Name: "makes root's Secret", When: stalled(reason.NoSecret), Do: makeRoot("secret")}, whenReady(`{"size":2}`),
		}, settled: needsPassword},
		{name: "authentication-by-hand", steps: []testkit.Step{
			{Name: "turns it on by hand", When: ready, Do: enableByHand},
			{Name: "makes root's Secret", When: stalled(reason.Refused), Do: makeRoot("secret")},
			{Name: "names it", Do: patched(`{"auth":{"rootSecret":"root"}}`)},
			{Name: "deletes a pod", When: ready, Do: deletePods(1)},
		}, settled: needsPassword},
		{name: "authentication-with-tls", spec: []ecOption{withAuth, withTLS}, steps: []testkit.Step{
			{Name: "makes root's Secret", When: stalled(reason.NoSecret), Do: makeRoot("first")},
			{Name: "changes the password", When: ready, Do: makeRoot("secret")},
		}, settled: needsPassword},
		{name: "volumes-grow", spec: []ecOption{stored}, steps: []testkit.Step{whenReady(`{"pod":{"persistentVolumeClaimSpec":{"resources":{"requests":{"storage":"2Gi"}}}}}`)}},
	}
}

func (t tale) scenario() testkit.Scenario {
	settled := t.settled
	if t.accepts {
		// What the user has accepted may not be all that was lost by then.
		settled = func(ctx context.Context, r *testkit.Run) error {
			if err := ready(ctx, r); err != nil {
				return errors.Join(err, again(ctx, r))
			}
			return nil
		}
	}
	if settled == nil {
		settled = func(ctx context.Context, r *testkit.Run) error {
			if err := ready(ctx, r); err != nil {
				return err
			}
			return own(r).put(r)
		}
	}
	return testkit.Scenario{
		Name:     t.name,
		OwnNodes: true,
		Before:   t.before,
		Arrange:  t.arrange,
		Steps:    t.steps,
		Settled:  settled,
		Check: func(_ context.Context, r *testkit.Run) error {
			if t.lossy {
				return nil
			}
			return own(r).lost(r)
		},
	}
}

// arrange is what there is before the first step.
func (t tale) arrange(ctx context.Context, r *testkit.Run) error {
	for i := range t.nodes {
		if err := r.Client.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)}}); err != nil {
			return err
		}
	}
	ec := story(r, t.spec...)
	if t.joins > 0 {
		urls, err := own(r).beginElsewhere(ctx, r, t.joins, cmp.Or(t.joinsAt, versionElsewhere))
		if err != nil {
			return err
		}
		ec.Spec.JoinFrom = &v1beta2.JoinSource{EtcdEndpoints: urls}
	}
	return r.Client.Create(ctx, ec)
}

// story is an EtcdCluster called "example".
func story(r *testkit.Run, options ...ecOption) *v1beta2.EtcdCluster {
	ec := anEtcd(append([]ecOption{notFormed}, options...)...)
	ec.Namespace, ec.UID, ec.Generation = r.Namespace, "", 0
	return ec
}

func stored(ec *v1beta2.EtcdCluster) {
	ec.Spec.Pod = &v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
}

func currently(ctx context.Context, r *testkit.Run) (*v1beta2.EtcdCluster, error) {
	var ec v1beta2.EtcdCluster
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: "example"}, &ec)
	return &ec, err
}

// ready is nil when the cluster is as its spec requests.
func ready(ctx context.Context, r *testkit.Run) error {
	ec, err := currently(ctx, r)
	if err != nil {
		return err
	}
	c := meta.FindStatusCondition(ec.Status.Conditions, status.Ready)
	if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != ec.Generation || ec.Status.ReadyMembers != ec.Spec.Size {
		return fmt.Errorf("not ready: %s", inShort(ec))
	}
	if err := havePods(ctx, r, ec, ec.Status.Members.Ready); err != nil {
		return err
	}
	return own(r).put(r)
}

// makeBudget makes a PodDisruptionBudget for all pods.
func makeBudget(ctx context.Context, r *testkit.Run) error {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: "mine"}}
	b.Spec.MaxUnavailable, b.Spec.Selector = new(intstr.FromInt32(1)), &metav1.LabelSelector{}
	return client.IgnoreAlreadyExists(r.Client.Create(ctx, b))
}

// secondBudget is nil when the cluster is ready, and its status names the PodDisruptionBudget of the user's.
func secondBudget(ctx context.Context, r *testkit.Run) error {
	ec, err := currently(ctx, r)
	if err == nil && !strings.Contains(inShort(ec), `PodDisruptionBudget "mine"`) {
		err = errors.New(inShort(ec))
	}
	return errors.Join(err, ready(ctx, r))
}

// withoutBudget is nil when the cluster is as its spec requests, without a PodDisruptionBudget.
func withoutBudget(ctx context.Context, r *testkit.Run) error {
	var list policyv1.PodDisruptionBudgetList
	if err := r.Client.List(ctx, &list, client.InNamespace(r.Namespace)); err != nil {
		return err
	}
	if len(list.Items) > 0 {
		return fmt.Errorf("PodDisruptionBudget %s is there", list.Items[0].Name)
	}
	return ready(ctx, r)
}

// havePods returns an error if members that status names have no pods: then it is that of before.
func havePods(ctx context.Context, r *testkit.Run, ec *v1beta2.EtcdCluster, named []string) error {
	all, err := podsOf(ctx, r)
	for _, name := range named {
		if !slices.ContainsFunc(all, func(pod corev1.Pod) bool { return pod.Name == name && pod.DeletionTimestamp == nil }) {
			return errors.Join(err, fmt.Errorf("%s has no pod: %s", name, inShort(ec)))
		}
	}
	return err
}

func steady(ctx context.Context, r *testkit.Run) error {
	if !own(r).isSteady() {
		return errors.New("members were started lately")
	}
	return ready(ctx, r)
}

// inShort is what status says.
func inShort(ec *v1beta2.EtcdCluster) string {
	said := string(ec.Status.Phase)
	for _, c := range ec.Status.Conditions {
		if c.Type == status.Ready {
			said += " " + c.Reason + ": " + c.Message
		}
	}
	for _, m := range ec.Status.MemberList {
		said += fmt.Sprintf("; %s %s ready=%t learner=%t %s", m.Name, m.Version, m.Ready, m.Learner, m.Problem)
	}
	return said
}

// hasRoom is nil when the cluster is as it should be, and less of its quota is in use than an operator leaves that has just
// begun and does not know what of it is keys.
func hasRoom(ctx context.Context, r *testkit.Run) error {
	if err := own(r).put(r); err != nil { // etcd counts what was freed once something is written
		return err
	}
	c, leader, err := own(r).byHand(r)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	is, err := c.Status(ctx, leader)
	if err != nil {
		return err
	}
	quota := is.Quota
	if quota == 0 {
		quota = 1 << 30 // a model's
	}
	if is.DBSizeInUse > quota/4*3 || len(is.Alarms) > 0 {
		return fmt.Errorf("%d bytes of %d are in use, and there are the alarms %v", is.DBSizeInUse, quota, is.Alarms)
	}
	return ready(ctx, r)
}

// smallAgain is nil when the cluster is as it should be, and the files of its members are small.
func smallAgain(ctx context.Context, r *testkit.Run) error {
	ec, err := currently(ctx, r)
	if err != nil {
		return err
	}
	for _, m := range ec.Status.MemberList {
		if m.DBSize == nil || m.DBSize.Value() > rollout.WorthFreeing {
			return fmt.Errorf("the file of %s has %s", m.Name, m.DBSize)
		}
	}
	return ready(ctx, r)
}

func stalled(reason string) func(ctx context.Context, r *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		ec, err := currently(ctx, r)
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(ec.Status.Conditions, status.Stalled)
		if c == nil || c.Reason != reason {
			return fmt.Errorf("not stalled for %s: %s", reason, inShort(ec))
		}
		return nil
	}
}

// lossEnds is nil when a loss of quorum is reported that no more is lost after, or the cluster is as
// it should be: what was deleted slowly was replaced before it came to that.
func lossEnds(ctx context.Context, r *testkit.Run) error {
	ec, err := currently(ctx, r)
	if err != nil {
		return err
	}
	if ec.Status.QuorumLoss != nil {
		return havePods(ctx, r, ec, ec.Status.QuorumLoss.Surviving)
	}
	return ready(ctx, r)
}

func oneIsDown(ctx context.Context, r *testkit.Run) error {
	ec, err := currently(ctx, r)
	if err != nil {
		return err
	}
	if ec.Status.ReadyMembers != 2 {
		return fmt.Errorf("%d members serve, want 2", ec.Status.ReadyMembers)
	}
	return nil
}

// oneIsAt is nil when a member has a version.
func oneIsAt(version string) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		ec, err := currently(ctx, r)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(ec.Status.MemberList, func(m v1beta2.MemberStatus) bool { return m.Version == version }) {
			return errors.New("no member has version " + version)
		}
		return nil
	}
}

func patched(spec string) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		return r.Client.Patch(ctx, story(r), client.RawPatch(types.MergePatchType, []byte(`{"spec":`+spec+`}`)))
	}
}

func whenReady(spec string) testkit.Step {
	return testkit.Step{Name: "sets " + spec, When: ready, Do: patched(spec)}
}

func whenIs(reason, spec string) testkit.Step {
	return testkit.Step{Name: "sets " + spec, When: stalled(reason), Do: patched(spec)}
}
