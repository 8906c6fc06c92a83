package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/disruption"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/testkit/obstacles"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/session"
	"example.com/fairlead/operators/etcd/view"
)

// TestStatus: what `kubectl get` and `kubectl describe` say about a cluster.
func TestStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		world *world
		// want is the phase, then the conditions Ready and Available.
		want string
	}{
		"as it should be": {
			healthy(anEtcd(), 1, 2, 3),
			"Running; Ready True Ready: All 3 members serve; Available True Serving",
		},
		"a second budget": {
			budgeted(healthy(anEtcd(), 1, 2, 3), "mine"),
			"Running; Ready True Ready: All 3 members serve" + disruption.Sentence([]string{"mine"}) + "; Available True Serving",
		},
		"serving, and no pod is ready": {
			healthy(anEtcd(), 1, 2, 3).unready(1, 2, 3),
			`Running; Ready False NoReadyAddress: Member #1 serves, and Service "example-client" does not lead to it: its pod is not ready; Available False NoReadyAddress`,
		},
		"serving, and a pod is not ready": {
			healthy(anEtcd(), 1, 2, 3).unready(2),
			`Running; Ready False NoReadyAddress: Member #2 serves, and Service "example-client" does not lead to it: its pod is not ready; Available True Serving`,
		},
		"being created": {
			healthy(anEtcd(notFormed)),
			"Creating; Ready False Scaling: The cluster is being created; Available False Creating",
		},
		"being created, and an image is not there": {
			healthy(anEtcd(notFormed), 1, 2, 3).founding().waits(2, "ImagePullBackOff", ""),
			`Creating; Ready False Scaling: The cluster is being created; member #2: the image "quay.io/coreos/etcd:v3.6.16" cannot be pulled; Available False Creating`,
		},
		"no version": {
			healthy(anEtcd(version("latest")), 1, 2, 3),
			"Running; Ready False InvalidVersion: spec.version: ",
		},
		"one is silent": {
			healthy(anEtcd(), 1, 2, 3).silences(3),
			"Running; Ready False MembersNotReady: 2 of 3 members serve: member #3: it does not answer: ",
		},
		"one has another's data": {
			healthy(anEtcd(), 1, 2, 3).lies(3, func(a *session.Answer) { a.Status.ID, a.List.By = 8, 8 }),
			"Running; Ready False MembersNotReady: 2 of 3 members serve: member #3: it says that it is member 8 of cluster",
		},
		"the volume of one is being deleted": {
			healthy(anEtcd(onVolumes), 1, 2, 3).losesVolumeSoon(2),
			"Running; Ready False VolumeBeingDeleted: PersistentVolumeClaim #2 of a member that serves is being deleted: the member's data is gone when its pod ends, for whatever reason. To have the member replaced before: kubectl annotate pod #2 etcd.database.coreos.com/replace=true; Available True Serving",
		},
		"one reports what nobody knows": {
			healthy(anEtcd(), 1, 2, 3).amends(2, func(a *session.Answer) { a.Status.Errors = []string{"etcdserver: on fire"} }),
			"Running; Ready False MemberReportsError: Member #2 serves, and says: etcdserver: on fire; Available True Serving",
		},
		"the data of members differs": {
			healthy(anEtcd(), 1, 2, 3).alarms(accuses(0)).hashes(7, 8, 9),
			"Running; Ready False DataDiffers: Etcd has an alarm CORRUPT, and takes no reads and no writes. No majority of its members has the same data, so nothing is changed: ",
		},
		"full, and a member is missing": {
			healthy(anEtcd(size(4)), 1, 2, 3).alarms(members.Alarm{Type: members.NoSpace}),
			"Running; Ready False DatabaseFull: The database is full, and takes no writes",
		},
		"one crash-loops": {
			healthy(anEtcd(), 1, 2, 3).silences(3).crashes(3, `{"level":"fatal","msg":"failed to listen","error":"address in use"}`),
			"Running; Ready False MembersNotReady: 2 of 3 members serve: member #3: etcd is crash-looping: failed to listen: address in use",
		},
		"the image of one is not there": {
			healthy(anEtcd(), 1, 2, 3).silences(3).waits(3, "ImagePullBackOff", ""),
			`Running; Ready False MembersNotReady: 2 of 3 members serve: member #3: the image "quay.io/coreos/etcd:v3.6.16" cannot be pulled`,
		},
		"the container of one cannot start": {
			healthy(anEtcd(), 1, 2, 3).silences(3).waits(3, "CreateContainerConfigError", "no such Secret"),
			"Running; Ready False MembersNotReady: 2 of 3 members serve: member #3: container \"etcd\" cannot start: no such Secret",
		},
		"one has no node": {
			healthy(anEtcd(), 1, 2, 3).silences(3).unschedulable(3, "0/1 nodes are available"),
			"Running; Ready False MembersNotReady: 2 of 3 members serve: member #3: its pod cannot be scheduled: 0/1 nodes are available",
		},
		"no quorum": {
			healthy(anEtcd(), 1, 2, 3).silences(2, 3).leaderless(),
			"Running; Ready False Recovering: Waiting for a quorum of members; member #1: it has no leader, or another one than the others; Available False NoQuorum",
		},
		"no quorum, with certificates that may be refused": {
			healthy(anEtcd(), 1, 2, 3).silences(2, 3).leaderless().doubts("add the name *.example"),
			"Running; Ready False Recovering: Waiting for a quorum of members; member #1: it has no leader, or another one than the others; add the name *.example",
		},
		"no quorum, because all certificates were replaced": {
			distrusting(0),
			"Running; Ready False CertificatesReplaced: The members started with other CAs than the Secrets have now, and no quorum of them can be reached: they are restarted in their pods, with their data, which is an outage of seconds; Available False NoQuorum",
		},
		"heard during an election": {
			healthy(anEtcd(served), 1, 2, 3).heard(0, 1, 2, 3).elects(2),
			"Running; Ready True Ready: All 3 members serve; Available True Serving",
		},
		"heard during an election, after an edit": {
			healthy(anEtcd(served, func(ec *v1beta2.EtcdCluster) { ec.Generation++ }), 1, 2, 3).heard(0, 1, 2, 3).elects(2),
			"Running; Ready False Recovering: Waiting for a quorum of members; Available True Serving",
		},
		"no quorum, of which nothing is known": {
			healthy(anEtcd(served), 1, 2, 3).heard(view.Lately, 1, 2, 3).hangs(2, 3),
			"Running; Ready False Recovering: Waiting for a quorum of members; member #2: it does not answer: no answer: context deadline exceeded; Available False NoQuorum",
		},
		"users are on": {
			healthy(anEtcd(), 1, 2, 3).refuses(1, 2, 3),
			"Running; Ready False AuthenticationRequired: Etcd refuses the operator: authentication is on. Set spec.auth.rootSecret to the name of a Secret that has root's password under the key password; Available True Serving",
		},
		"users are on, and no pod is ready": {
			healthy(anEtcd(), 1, 2, 3).refuses(1, 2, 3).unready(1, 2, 3),
			"Running; Ready False AuthenticationRequired: Etcd refuses the operator: authentication is on. Set spec.auth.rootSecret to the name of a Secret that has root's password under the key password; Available Unknown AuthenticationRequired",
		},
		"users are on, with a probe that only connects": {
			healthy(anEtcd(version("3.2.32")), 1, 2, 3).podsOf("3.2.32").refuses(1, 2, 3),
			"Running; Ready False AuthenticationRequired: Etcd refuses the operator: authentication is on. Set spec.auth.rootSecret to the name of a Secret that has root's password under the key password; Available Unknown AuthenticationRequired",
		},
		"the data of a member is lost": {
			healthy(anEtcd(), 1, 2, 3).loses(3),
			"Running; Ready False Recovering: Replacing member #3, whose data is lost; member #3: its data is lost: it has no pod; Available True Serving",
		},
		"no place for another one, and a voter is lost": {
			healthy(anEtcd(), 1, 2, 3, 4).learns(4).cordons(1, 2, 3).loses(3).silences(4).unschedulable(4, "0/3 nodes are available"),
			"Running; Ready False MembersNotReady: 2 of 4 members serve: member #3: its data is lost: it has no pod; member #4: its pod cannot be scheduled: 0/3 nodes are available; " +
				"a drain of node node-1 does not take pod #1 until member #4 serves; member #4 is being added in place of member #2: its node node-2 is cordoned; Available True Serving",
		},
		"no place for another one, and a voter is down": {
			healthy(anEtcd(), 1, 2, 3, 4).learns(4).cordons(1, 2, 3).silences(3, 4).unschedulable(4, "0/3 nodes are available"),
			"Running; Ready False MembersNotReady: 2 of 4 members serve: member #3: it does not answer: timeout; member #4: its pod cannot be scheduled: 0/3 nodes are available; ",
		},
		"no place for another one": {
			healthy(anEtcd(), 1, 2, 3, 4).learns(4).cordons(1, 2, 3).silences(4).unschedulable(4, "0/3 nodes are available"),
			"Running; Ready False Scaling: Member #4 is being added in place of member #2: its node node-2 is cordoned; member #4: its pod cannot be scheduled: 0/3 nodes are available; ",
		},
		"a voter is down before another one is added": {
			healthy(anEtcd(), 1, 2, 3).cordons(2).silences(3),
			"Running; Ready False MembersNotReady: 2 of 3 members serve: member #3: it does not answer: timeout; a drain of node node-2 does not take pod #2 until member #3 serves; " +
				"a member is to be added in place of member #2: its node node-2 is cordoned, once all members serve; Available True Serving",
		},
		"the data of two is lost": {
			healthy(anEtcd(), 1, 2, 3).loses(2, 3).leaderless(),
			"Failed; Ready False QuorumLost: Quorum is lost: the data of #2, #3 is lost, #1 survives. If more volumes can be brought back, do that. To start again from what survives",
		},
		"the data of all is lost": {
			healthy(anEtcd(), 1, 2, 3).loses(1, 2, 3),
			"Failed; Ready False QuorumLost: The data of all members is lost: #2, #1, #3. To start an empty cluster, set spec.acceptDataLoss to ",
		},
		"a member is to be added": {
			healthy(anEtcd(size(4)), 1, 2, 3),
			"Running; Ready False Scaling: 3 members are to become 4; Available True Serving",
		},
		"another version": {
			healthy(anEtcd(version("3.6.15"), changing(2)), 1, 2, 3),
			"Running; Ready False Upgrading: Members are changed from 3.6.16 to 3.6.15; Available True Serving",
		},
		"a version that etcd does not go to": {
			healthy(anEtcd(version("3.4.37")), 1, 2, 3),
			"Running; Ready False VersionRefused: etcd 3.6.16 cannot be downgraded to 3.4.37",
		},
		"another pod": {
			healthy(anEtcd(onVolumes, changing(2)), 1, 2, 3).changesPolicy(),
			"Running; Ready False RollingOut: Members are changed one after the other, now #2: spec.pod has changed; Available True Serving",
		},
		"another pod, and another member is down": {
			healthy(anEtcd(onVolumes, changing(2)), 1, 2, 3).changesPolicy().silences(3),
			"Running; Ready False RollingOut: Members are changed one after the other, now #2: spec.pod has changed, waiting for member #3: it does not answer: ",
		},
		"a full database": {
			healthy(anEtcd(), 1, 2, 3).alarms(members.Alarm{Member: 3, Type: members.NoSpace}),
			"Running; Ready False DatabaseFull: The database is full, and takes no writes: ",
		},
		"a pod that is somebody else's": {
			healthy(anEtcd(), 1, 2, 3).taken(3),
			`Running; Ready False NameConflict: Pod "#3" has the name of a member, and is not owned by this EtcdCluster: delete or rename it`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := tc.world
			p := decide(w.ec, w.seen)
			ec := w.ec.DeepCopy()
			ec.Status = summarize(ec, w.seen, p, nil)
			got := string(ec.Status.Phase)
			for _, kind := range []string{status.Ready, v1beta2.ConditionAvailable} {
				c := meta.FindStatusCondition(ec.Status.Conditions, kind)
				got += fmt.Sprintf("; %s %s %s", kind, c.Status, c.Reason)
				if kind == status.Ready {
					got += ": " + c.Message
				}
			}
			for n := range int64(5) {
				got = strings.ReplaceAll(got, objects.MemberName(ec, n), fmt.Sprintf("#%d", n))
			}
			if !strings.HasPrefix(got, tc.want) {
				t.Errorf("status says\n%s, want\n%s", got, tc.want)
			}
		})
	}
}

// TestReadyMembers: a member counts as ready unless it is known not to be.
func TestReadyMembers(t *testing.T) {
	for name, tc := range map[string]struct {
		world *world
		want  int32
	}{
		"all follow":                         {healthy(anEtcd(), 1, 2, 3), 3},
		"one is silent":                      {healthy(anEtcd(), 1, 2, 3).silences(3), 2},
		"users are on":                       {healthy(anEtcd(), 1, 2, 3).refuses(1, 2, 3), 3},
		"one has not answered for a moment":  {healthy(anEtcd(served), 1, 2, 3).heard(5*time.Second, 1, 2, 3).hangs(3), 3},
		"two have not answered for a moment": {healthy(anEtcd(served), 1, 2, 3).heard(5*time.Second, 1, 2, 3).hangs(2, 3), 3},
		"one has not answered for long":      {healthy(anEtcd(served), 1, 2, 3).heard(view.Lately, 1, 2, 3).hangs(3), 2},
		"one that was not ready is silent":   {healthy(anEtcd(), 1, 2, 3).heard(5*time.Second, 1, 2, 3).hangs(3), 2},
		"one is silent, and its pod unready": {healthy(anEtcd(served), 1, 2, 3).heard(5*time.Second, 1, 2, 3).hangs(3).probesFail(3), 2},
		"one refuses connections":            {healthy(anEtcd(served), 1, 2, 3).heard(5*time.Second, 1, 2, 3).silences(3), 2},
		"they are heard during an election":  {healthy(anEtcd(served), 1, 2, 3).heard(0, 1, 2, 3).elects(2), 3},
		"one says that nobody leads":         {healthy(anEtcd(served), 1, 2, 3).heard(5*time.Second, 1, 2, 3).lies(3, func(a *session.Answer) { a.Status.Leader = 0 }), 2},
		"users are on, one is down":          {healthy(anEtcd(), 1, 2, 3).refuses(1, 2, 3).unready(3), 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := decide(tc.world.ec, tc.world.seen)
			if got := summarize(tc.world.ec, tc.world.seen, p, nil).ReadyMembers; got != tc.want {
				t.Errorf("%d members are ready, want %d", got, tc.want)
			}
		})
	}
}

// TestReplacedCertificatesAreAnnounced: that members are restarted all at once is said in an event.
func TestReplacedCertificatesAreAnnounced(t *testing.T) {
	w := distrusting(0)
	served(w.ec)
	p := decide(w.ec, w.seen)
	after := w.ec.DeepCopy()
	after.Status = summarize(w.ec, w.seen, p, nil)
	events := announce(t.Context(), w.ec, after)
	if len(events) != 1 || events[0].Type != corev1.EventTypeWarning || events[0].Reason != reason.NotTrusted || !strings.Contains(events[0].Note, "an outage of seconds") {
		t.Errorf("the events are %+v", events)
	}
}

// TestRefusedWrite: what the API server does not let the operator do is for the user to see.
func TestRefusedWrite(t *testing.T) {
	w := healthy(anEtcd(), 1, 2, 3)
	p := decide(w.ec, w.seen)
	cut := errors.New("the wire is cut")
	for failure, want := range map[error]string{
		cut: "A request to the API server failed and is retried: the wire is cut",
		&loop.WriteError{Write: loop.Call{Part: "etcd add"}, Err: cut}: "A request to etcd failed and is retried: etcd add: the wire is cut",
	} {
		st := summarize(w.ec, w.seen, p, failure)
		if c := meta.FindStatusCondition(st.Conditions, status.Ready); c.Reason != apply.ReasonRetrying || c.Message != want {
			t.Errorf("Ready is %s: %s", c.Reason, c.Message)
		}
	}
}

// TestForeignNames: a member that the operator does not run is not shown by a name that one which it does
// run could have.
func TestForeignNames(t *testing.T) {
	ec := anEtcd()
	for name, want := range map[string]string{"by-hand": "by-hand", ec.Name + "-abcde": "2a", "": "2a"} {
		m := &view.Member{Member: members.Member{ID: 42, Name: name}}
		if got := m.ShownName(ec); got != want {
			t.Errorf("%q is shown as %q, want %q", name, got, want)
		}
	}
}

// TestObstacles: whatever keeps a pod from starting is in Ready, whatever is under way, and in the EtcdRestore that
// waits for it.
func TestObstacles(t *testing.T) {
	for what, phase := range map[string]struct {
		world func() *world
		n     int64 // the pod that does not start
	}{
		"creating":   {func() *world { return healthy(anEtcd(notFormed, onVolumes), 1, 2, 3).founding() }, 1},
		"scaling":    {func() *world { return healthy(anEtcd(size(4), onVolumes), 1, 2, 3).isAdded(4).leaves(4) }, 4},
		"upgrading":  {func() *world { return healthy(anEtcd(version("3.6.15"), changing(2), onVolumes), 1, 2, 3).silences(2) }, 2},
		"recovering": {func() *world { return healthy(anEtcd(onVolumes), 1, 2, 3).losesPod(2, 3).startsFrom(1).silences(1) }, 1},
		"restoring":  {func() *world { return healthy(anEtcd(onVolumes), 1, 2, 3).verifies().hasSeed() }, 4},
		"restored":   {func() *world { return healthy(anEtcd(onVolumes), 1, 2, 3).verifies().hasSeed(fetched) }, 4},
	} {
		cell := func(obstacle string, failure error, put func(w *world, pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) (says []string)) {
			w := phase.world()
			pod, claim := w.seen.Pods[w.name(phase.n)], w.seen.Claims[w.name(phase.n)]
			isSeed := strings.HasPrefix(what, "restor")
			says := put(w, pod, claim)
			p := decide(w.ec, w.seen)
			st := summarize(w.ec, w.seen, p, failure)
			for _, words := range says {
				if c := meta.FindStatusCondition(st.Conditions, status.Ready); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, words) {
					t.Errorf("%s, %s: Ready is %s %s: %s; want %q", what, obstacle, c.Status, c.Reason, c.Message, words)
				}
				if isSeed && !strings.Contains(st.Restoring.Problem, words) {
					t.Errorf("%s, %s: the EtcdRestore hears %q, want %q", what, obstacle, st.Restoring.Problem, words)
				}
			}
		}
		for obstacle, put := range obstacles.Of {
			cell(obstacle, nil, func(_ *world, pod *corev1.Pod, _ *corev1.PersistentVolumeClaim) []string {
				return put(pod, objects.ContainerName)
			})
		}
		cell("no volume, and no word of the scheduler", nil, func(_ *world, pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) []string {
			pod.Spec.NodeName, pod.Spec.SchedulingGates, pod.CreationTimestamp.Time = "", nil, noon.Add(-time.Minute)
			claim.Status.Phase = corev1.ClaimPending
			return []string{"is not bound"}
		})
		cell("crashes, with a log", nil, func(_ *world, pod *corev1.Pod, _ *corev1.PersistentVolumeClaim) []string {
			obstacles.Of[obstacles.Crashes](pod, objects.ContainerName)
			pod.Status.ContainerStatuses[0].LastTerminationState.Terminated.Message = `{"level":"fatal","msg":"address in use"}`
			return []string{"crash-looping: address in use"}
		})
		cell("a quota", obstacles.ErrQuota, func(*world, *corev1.Pod, *corev1.PersistentVolumeClaim) []string {
			return []string{obstacles.QuotaSays}
		})
	}
}
