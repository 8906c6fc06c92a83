package memcached

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/contents"
	"example.com/fairlead/internal/kit/disruption"
	"example.com/fairlead/internal/kit/services"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/memcached/change"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

// TestReady: what the condition Ready says, the worst first.
func TestReady(t *testing.T) {
	mc := aPool(warm)
	upgrade := change.Plan{Upgrade: &v1alpha1.UpgradeStatus{Kind: v1alpha1.Warm, Message: "image from a to b: warm", Updated: 1}, Waits: "server cache-1 is restarting"}
	hangs := upgrade
	hangs.Waits, hangs.Overdue = "server cache-1 was to restart at 11:00:00", true
	pullFails := upgrade
	pullFails.Problem = &status.Problem{Reason: change.ReasonPullFailed, Message: "image b cannot be pulled on node n", Retriable: true}
	stuck := func(pod *corev1.Pod) {
		unready(pod)
		pod.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}
		pod.Status.ContainerStatuses[0].Image = "memcached:0" // the one before
	}
	ends := func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: noon} }
	evicts := func(pod *corev1.Pod) {
		ends(pod)
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI"})
	}
	recreated := func(pod *corev1.Pod) { pod.UID = "new" }
	leadsToOthers := func(seen *pool.Observation) { seen.Reached = services.Targets{"": true} }
	heldBack := func(pod *corev1.Pod) {
		unready(pod)
		pod.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
	}
	homeless := func(pod *corev1.Pod) {
		unready(pod)
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no room"})
	}
	cold := change.Plan{Upgrade: &v1alpha1.UpgradeStatus{Kind: v1alpha1.Cold, Message: "image from a to b: one by one", Updated: 1}}
	all := []seenOption{aServer(mc, 0), aServer(mc, 1), aServer(mc, 2)}
	badUsers := func(seen *pool.Observation) {
		seen.Inputs.Problem = &status.Problem{Reason: reasonBadSecret, Message: "too many users"}
	}
	second := func(seen *pool.Observation) { seen.Budgets = []string{"mine"} }
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "cache", errors.New("no"))

	cases := map[string]struct {
		mc      *v1alpha1.Memcached
		seen    pool.Observation
		next    change.Plan
		failure error
		reason  string
		busy    bool
		message string
	}{
		"all is well":       {mc: mc, seen: somethingSeen(all...), reason: "Ready", message: "All servers are ready"},
		"a second budget":   {mc: mc, seen: somethingSeen(append(all, second)...), reason: "Ready", message: "All servers are ready" + disruption.Sentence([]string{"mine"})},
		"nothing asked for": {mc: aPool(size(0)), seen: somethingSeen(), reason: "Ready", message: "spec.size is 0"},
		"one is not ready":  {mc: mc, seen: somethingSeen(aServer(mc, 0), aServer(mc, 1), aServer(mc, 2, unready)), reason: "ServersNotReady", busy: true, message: "2 of 3 servers are ready"},
		"one is evicted": {mc: mc, seen: somethingSeen(aServer(mc, 0), aServer(mc, 1), aServer(mc, 2, evicts)), reason: "ServerEvicted", busy: true,
			message: `2 of 3 servers are ready: server cache-2 is leaving node "n" (EvictionByEvictionAPI), and its items are lost; those of the other servers stay`},
		"one was deleted":   {mc: mc, seen: somethingSeen(aServer(mc, 0), aServer(mc, 1), aServer(mc, 2, ends)), reason: "ServersNotReady", busy: true, message: "2 of 3 servers are ready"},
		"one is not in DNS": {mc: mc, seen: somethingSeen(aServer(mc, 0), aServer(mc, 1), aServer(mc, 2, recreated), leadsToOthers), reason: "ServersNotReady", busy: true, message: `2 of 3 servers are ready: Service "cache" does not lead to cache-2 yet`},
		"one cannot start":  {mc: mc, seen: somethingSeen(aServer(mc, 0, stuck)), reason: "ServersNotReady", busy: true, message: `0 of 3 servers are ready: the image "memcached:1.6.38" cannot be pulled`},
		"one too many":      {mc: aPool(warm, size(2)), seen: somethingSeen(all...), reason: "ServersNotReady", busy: true, message: "3 of 2 servers are ready"},
		"upgrading":         {mc: mc, seen: somethingSeen(all...), next: upgrade, reason: "Upgrading", busy: true, message: "Warm: image from a to b: warm. 1 updated; server cache-1 is restarting"},
		"a cold change":     {mc: mc, seen: somethingSeen(all...), next: cold, reason: "Upgrading", busy: true, message: "Cold: image from a to b: one by one. 1 updated"},
		"to no image": {mc: mc, seen: somethingSeen(aServer(mc, 0), aServer(mc, 1), aServer(mc, 2, stuck)), next: cold, reason: "ServersNotReady", busy: true,
			message: `Cold: image from a to b: one by one. 1 updated; the image "memcached:1.6.38" cannot be pulled`},
		"to no node": {mc: mc, seen: somethingSeen(aServer(mc, 0), aServer(mc, 1), aServer(mc, 2, homeless)), next: cold, reason: "ServersNotReady", busy: true,
			message: `Cold: image from a to b: one by one. 1 updated; pod "cache-2" cannot be scheduled: no room`},
		"of one that is evicted": {mc: mc, seen: somethingSeen(aServer(mc, 0), aServer(mc, 1), aServer(mc, 2, evicts)), next: upgrade, reason: "ServerEvicted", busy: true,
			message: `Warm: image from a to b: warm. 1 updated; server cache-1 is restarting; server cache-2 is leaving node "n" (EvictionByEvictionAPI), and its items are lost; those of the other servers stay`},
		"a start is held back": {mc: mc, seen: somethingSeen(aServer(mc, 0), aServer(mc, 1, heldBack), aServer(mc, 2)), next: upgrade, reason: "Upgrading", busy: true,
			message: `Warm: image from a to b: warm. 1 updated; server cache-1 is restarting; Kubernetes holds back the next start of container "memcached" of cache-1`},
		"a restart is overdue":  {mc: mc, seen: somethingSeen(all...), next: hangs, reason: "RestartOverdue", busy: true, message: "Warm: image from a to b: warm. 1 updated; server cache-1 was to restart at 11:00:00"},
		"a pull fails":          {mc: mc, seen: somethingSeen(all...), next: pullFails, reason: "ImagePullFailed", busy: true, message: "image b cannot be pulled on node n"},
		"bad users":             {mc: mc, seen: somethingSeen(append(all, badUsers)...), next: upgrade, reason: "InvalidSecret", message: "too many users"},
		"a foreign Service":     {mc: mc, seen: somethingSeen(append(all, badUsers)...), failure: &apply.ConflictError{Kind: "Service", Name: "cache"}, reason: "NameConflict", message: `Service "cache" exists and is not owned by this object: delete or rename it`},
		"a predecessor's":       {mc: mc, seen: somethingSeen(all...), failure: errors.Join(&apply.ConflictError{Kind: "Service", Name: "cache", Predecessor: true}), reason: "NameConflict", busy: true, message: `Service "cache" still belongs to a deleted object of the same name and is about to be removed`},
		"refused":               {mc: mc, seen: somethingSeen(all...), failure: errors.Join(forbidden), reason: "Refused", message: `The API server refuses what this Memcached needs: services "cache" is forbidden: no`},
		"trouble that passes":   {mc: mc, seen: somethingSeen(all...), failure: errors.New("timeout"), reason: "Retrying", busy: true, message: "A request to the API server failed and is retried: timeout"},
		"the last one is going": {mc: aPool(size(0)), seen: somethingSeen(aServer(mc, 0, ending)), reason: "Ready", message: "spec.size is 0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			st := summarize(tc.mc, tc.seen, &tc.next, tc.failure)
			ready := meta.FindStatusCondition(st.Conditions, status.Ready)
			if ready.Reason != tc.reason || ready.Message != tc.message {
				t.Errorf("Ready is %s %q, want %s %q", ready.Reason, ready.Message, tc.reason, tc.message)
			}
			if busy := meta.IsStatusConditionTrue(st.Conditions, status.Reconciling); busy != tc.busy {
				t.Errorf("Reconciling is %v", busy)
			}
			if good, bad := meta.IsStatusConditionTrue(st.Conditions, status.Ready), meta.IsStatusConditionTrue(st.Conditions, status.Stalled); good && bad || good != (tc.reason == "Ready") || bad != (!good && !tc.busy) {
				t.Errorf("Ready is %v, Stalled is %v", good, bad)
			}
		})
	}
}

// TestLacksPods: a StatefulSet that has no pods is reported, but not at once.
func TestLacksPods(t *testing.T) {
	unseen := func(seen *pool.Observation) { seen.StatefulSet().Status.ObservedGeneration = 1 }
	for name, tc := range map[string]struct {
		mc      *v1alpha1.Memcached
		since   time.Duration // pods have been missing
		seen    []seenOption
		message string
		wake    time.Duration
	}{
		"it starts":      {mc: aPool(stable), message: "0 of 3 servers are ready", wake: 15 * time.Second},
		"a while ago":    {mc: aPool(stable), since: 5 * time.Second, message: "0 of 3 servers are ready", wake: 10 * time.Second},
		"for long":       {mc: aPool(stable), since: 15 * time.Second, message: "0 of 3 servers are ready: the StatefulSet has fewer pods than spec.size: kubectl describe statefulset cache says why", wake: change.LostPause},
		"one is missing": {mc: aPool(stable, size(2)), since: time.Minute, seen: []seenOption{aServer(aPool(stable), 0)}, message: "1 of 2 servers are ready: the StatefulSet has fewer pods than spec.size: kubectl describe statefulset cache says why", wake: change.LostPause},
		"not seen yet":   {mc: aPool(stable), since: time.Minute, seen: []seenOption{unseen}, message: "0 of 3 servers are ready", wake: change.LostPause},
		"all are made":   {mc: aPool(stable, size(1)), since: time.Minute, seen: []seenOption{aServer(aPool(stable), 0, unready)}, message: "0 of 1 servers are ready"},
	} {
		set := aStatefulSet(tc.mc, func(s *appsv1.StatefulSet) { s.Status.CurrentRevision = s.Status.UpdateRevision })
		seen := somethingSeen(append([]seenOption{set}, tc.seen...)...)
		if seen.Missing = pool.MissingServers(tc.mc, seen); len(seen.Missing) > 0 {
			seen.MissingSince = seen.Now.Add(-tc.since)
		}
		next, err := decide(tc.mc, seen)
		if err != nil {
			t.Fatal(err)
		}
		st := summarize(tc.mc, seen, next, nil)
		if got := meta.FindStatusCondition(st.Conditions, status.Ready).Message; got != tc.message {
			t.Errorf("%s: message %q, want %q", name, got, tc.message)
		}
		if next.WakeAfter != tc.wake {
			t.Errorf("%s: looks again after %v, want %v", name, next.WakeAfter, tc.wake)
		}
	}
}

func TestServers(t *testing.T) {
	mc := aPool(stable, size(11))
	st := summarize(mc, somethingSeen(aServer(mc, 0), aServer(mc, 10), aServer(mc, 2, unready), aServer(mc, 3, ending)), &change.Plan{Serving: v1alpha1.StableIdentity}, nil)
	want := []string{"cache-0.cache.shop.svc:11211", "cache-2.cache.shop.svc:11211", "cache-10.cache.shop.svc:11211"}
	if diff := cmp.Diff(want, st.Servers); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"cache-0", "cache-10", "cache-2"}, st.Nodes); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if st.Replicas != 3 || st.ReadyReplicas != 2 || st.Version != "1.6.38" || st.Memory != "64Mi" {
		t.Errorf("status %+v", st)
	}

	random := aPool(func(mc *v1alpha1.Memcached) { mc.Spec.Port = 11311 })
	at := func(ip string) func(*corev1.Pod) { return func(pod *corev1.Pod) { pod.Status.PodIP = ip } }
	st = summarize(random, somethingSeen(aServer(random, 0, at("10.0.0.2")), aServer(random, 1), aServer(random, 2, at("fd00::1"))), &change.Plan{Serving: v1alpha1.RandomIdentity}, nil)
	if diff := cmp.Diff([]string{"10.0.0.2:11311", "[fd00::1]:11311"}, st.Servers); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
}

// TestServersOfOneShape: a client is given the servers that the Service gives, also while
// the identity changes.
func TestServersOfOneShape(t *testing.T) {
	random, stable := aPool(size(1)), aPool(stable, size(1))
	at := func(pod *corev1.Pod) { pod.Status.PodIP = "10.0.0.2" }
	starting := []seenOption{aDeployment(random, 1), aServer(random, 7, at), aStatefulSet(stable), aServer(stable, 0)}
	ready := slices.Concat(starting, []seenOption{func(seen *pool.Observation) { seen.StatefulSet().Status.ReadyReplicas = 1 }})
	for name, tc := range map[string]struct {
		seen []seenOption
		want string
	}{"while they start": {starting, "10.0.0.2:11211"}, "when they are ready": {ready, "cache-0.cache.shop.svc:11211"}} {
		seen := somethingSeen(tc.seen...)
		next, err := decide(stable, seen)
		if err != nil {
			t.Fatal(err)
		}
		st := summarize(stable, seen, next, nil)
		if diff := cmp.Diff([]string{tc.want}, st.Servers); diff != "" || st.Replicas != 2 {
			t.Errorf("%s: %d replicas, servers (-want +got):\n%s", name, st.Replicas, diff)
		}
	}
}

func TestUsers(t *testing.T) {
	lines := func(n int) string { return strings.Repeat("user:password\n", n) }
	for name, tc := range map[string]struct {
		file, want string // what goes to the servers
		wrong      string
	}{
		"one":            {file: "me:secret\n", want: "me:secret\n"},
		"no end of line": {file: "me:secret", want: "me:secret\n"},
		"from Windows":   {file: "me:secret\r\nyou:other\r\n", want: "me:secret\nyou:other\n"},
		"from Windows, the last line without an end": {file: "me:secret\r\nyou:other\r", want: "me:secret\nyou:other\n"},
		"a return within":     {file: "me:se\rcret\n", wrong: `has no user:password in line 1 of "users"`},
		"a space within":      {file: "you:other\nme:se cret\n", wrong: `has a space in line 2 of "users", with which nobody can log in to memcached: remove it`},
		"a space at the end":  {file: "me:secret \r\n", wrong: `has a space in line 1 of "users", with which nobody can log in to memcached: remove it`},
		"a colon within":      {file: "me:se:cret\n", want: "me:se:cret\n"},
		"eight":               {file: lines(8), want: lines(8)},
		"nine":                {file: lines(9), wrong: `has 9 users in "users", memcached reads 8 at most`},
		"nothing":             {file: "", wrong: `has no user:password in line 1 of "users"`},
		"no colon":            {file: "me:secret\nyou\n", wrong: `has no user:password in line 2 of "users"`},
		"an empty line":       {file: "me:secret\n\nyou:other\n", wrong: `has no user:password in line 2 of "users"`},
		"no user":             {file: ":secret\n", wrong: `has no user:password in line 1 of "users"`},
		"no password":         {file: "me:\n", wrong: `has no user:password in line 1 of "users"`},
		"too long a password": {file: "me:" + strings.Repeat("x", 300), wrong: `has a line 1 of 303 bytes in "users", memcached reads 254 at most`},
	} {
		data, wrong := objects.CheckUsers(map[string][]byte{"users": []byte(tc.file)}, "users")
		if wrong != tc.wrong || string(data[objects.UsersFile]) != tc.want {
			t.Errorf("%s: %q, wrong: %q", name, data[objects.UsersFile], wrong)
		}
	}
	if _, wrong := objects.CheckUsers(nil, "users"); wrong != `has no key "users"` {
		t.Errorf("without the key: %q", wrong)
	}
	if _, wrong := contents.Pair(map[string][]byte{"tls.crt": []byte("x")}); wrong != `has no key "tls.key"` {
		t.Errorf("a certificate without its key: %q", wrong)
	}
	if _, wrong := contents.Pair(map[string][]byte{"tls.crt": []byte("x"), "tls.key": []byte("x")}); !strings.HasPrefix(wrong, "has no certificate and key that fit together") {
		t.Errorf("no certificate: %q", wrong)
	}
}

func TestVersions(t *testing.T) {
	for image, want := range map[string]string{
		"memcached:1.6.38": "1.6.38", "registry.example.com:5000/memcached:v1.6.38-alpine": "1.6.38-alpine",
		"memcached:1.6.38@sha256:0": "1.6.38", "memcached": "", "memcached:latest": "", "memcached@sha256:0": "", "registry.example.com:5000/memcached": "", "memcached:1.6": "",
	} {
		if got := pool.VersionOf(image); got != want {
			t.Errorf("versionOf(%q) = %q, want %q", image, got, want)
		}
	}
}
