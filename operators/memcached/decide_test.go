package memcached

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/cache/v1alpha1"
)

// TestInPlace has the steps of a change in place, and what keeps it waiting.
func TestInPlace(t *testing.T) {
	old := aPool(warm, version("1.6.18"))
	now := aPool(warm)
	named := func(server string) *v1alpha1.Memcached { return aPool(warm, told(v1alpha1.Warm, server)) }
	all := func(options ...seenOption) observation {
		return somethingSeen(append([]seenOption{aStatefulSet(now)}, options...)...)
	}
	had := func(pod *corev1.Pod) { // a restart that is over
		pod.Annotations[replacedAnnotation] = "memcached-2-0"
	}
	crashed := func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, FinishedAt: metav1.Time{Time: noon}}
	}
	upgraded := func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{FinishedAt: metav1.Time{Time: noon}}
	}
	restartedAt := func(at time.Time) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Annotations[endedAnnotation] = at.Format(time.RFC3339)
		}
	}
	moreThreads := aPool(warm, threads(8))

	type step struct {
		Pulls         int
		Named, Change string
		Waits         string // a part of it
	}
	cases := map[string]struct {
		mc   *v1alpha1.Memcached
		seen observation
		want step
	}{
		"first the image is pulled": {
			mc: now, seen: all(aServer(old, 0), aServer(old, 1), aServer(old, 2)),
			want: step{Pulls: 1, Waits: "is being pulled on node n"},
		},
		"it is being pulled": {
			mc: now, seen: all(aServer(old, 0), aServer(old, 1), aServer(old, 2), aPull(now)),
			want: step{Waits: "is being pulled on node n"},
		},
		"then the highest is named": {
			mc: now, seen: all(aServer(old, 0), aServer(old, 1), aServer(old, 2), aPull(now, pulled(""))),
			want: step{Named: "cache-2"},
		},
		"then it is changed": {
			mc: named("cache-2"), seen: all(aServer(old, 0), aServer(old, 1), aServer(old, 2), aPull(now, pulled(""))),
			want: step{Named: "cache-2", Change: "cache-2"},
		},
		"its kubelet has not got to it": {
			mc: named("cache-2"), seen: all(aServer(old, 0), aServer(old, 1), aServer(now, 2, restarting), aPull(now, pulled(""))),
			want: step{Named: "cache-2", Waits: "cache-2 is restarting"},
		},
		"it is not ready yet": {
			mc: named("cache-2"), seen: all(aServer(old, 0), aServer(old, 1), aServer(now, 2, had, unready), aPull(now, pulled(""))),
			want: step{Named: "cache-2", Waits: "cache-2 is restarting"},
		},
		"it is back, and the next one is named": {
			mc: named("cache-2"), seen: all(aServer(old, 0), aServer(old, 1), aServer(now, 2, had), aPull(now, pulled(""))),
			want: step{Named: "cache-1"},
		},
		"one is away: no other": {
			mc: now, seen: all(aServer(old, 0), aServer(old, 1, ending), aServer(old, 2), aPull(now, pulled(""))),
			want: step{Waits: "servers are away: cache-1"},
		},
		"one is missing: no other": {
			mc: now, seen: all(aServer(old, 0), aServer(old, 2), aPull(now, pulled(""))),
			want: step{Waits: "servers are away: one that does not exist"},
		},
		"one is not ready: it is the first": {
			mc: now, seen: all(aServer(old, 0, unready), aServer(old, 1), aServer(old, 2), aPull(now, pulled(""))),
			want: step{Named: "cache-0"},
		},
		"one goes away after another was named": {
			mc: named("cache-2"), seen: all(aServer(old, 0, unready), aServer(old, 1), aServer(old, 2), aPull(now, pulled(""))),
			want: step{Named: "cache-2", Waits: "servers are away: cache-0"},
		},
		"the one that was named is gone": {
			mc: named("cache-2"), seen: all(aServer(old, 0), aServer(old, 1), aPull(now, pulled(""))),
			want: step{Waits: "servers are away: one that does not exist"},
		},
		"one made anew is of the old template": {
			mc: named("cache-2"), seen: all(aServer(old, 0), aServer(now, 1), aServer(now, 2), aPull(now, pulled(""))),
			want: step{Named: "cache-0"},
		},
		"the StatefulSet is not what it is to be": {
			mc: now, seen: somethingSeen(aStatefulSet(old), aServer(old, 0), aServer(old, 1), aServer(old, 2)),
			want: step{},
		},
		"its controller has not seen it": {
			mc: now, seen: all(func(o *observation) { o.statefulSet().Status.ObservedGeneration = 1 }, aServer(old, 0), aServer(old, 1), aServer(old, 2)),
			want: step{},
		},
		"settings only: no pull": {
			mc:   moreThreads,
			seen: somethingSeen(aStatefulSet(moreThreads), aServer(now, 0), aServer(now, 1), aServer(now, 2)),
			want: step{Named: "cache-2"},
		},
		"settings only, and so a while ago: Kubernetes would hold it back": {
			mc:   moreThreads,
			seen: somethingSeen(aStatefulSet(moreThreads), aServer(now, 0), aServer(now, 1), aServer(now, 2, restartedAt(noon.Add(-time.Minute)))),
			want: step{Waits: "hold back its next start for 10 s or more, until 12:09:30"},
		},
		"settings only, crashed a while ago": {
			mc:   moreThreads,
			seen: somethingSeen(aStatefulSet(moreThreads), aServer(now, 0), aServer(now, 1), aServer(now, 2, crashed)),
			want: step{Waits: "until 12:10:30"},
		},
		"settings only, upgraded a while ago": {
			mc:   moreThreads,
			seen: somethingSeen(aStatefulSet(moreThreads), aServer(now, 0), aServer(now, 1), aServer(now, 2, upgraded)),
			want: step{Named: "cache-2"},
		},
		"settings only, and so long ago": {
			mc:   moreThreads,
			seen: somethingSeen(aStatefulSet(moreThreads), aServer(now, 0), aServer(now, 1), aServer(now, 2, restartedAt(noon.Add(-time.Hour)))),
			want: step{Named: "cache-2"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			next, err := decide(tc.mc, tc.seen)
			if err != nil {
				t.Fatal(err)
			}
			if tc.want.Waits != "" && !strings.Contains(next.waits, tc.want.Waits) {
				t.Errorf("waits for %q, want %q", next.waits, tc.want.Waits)
			}
			got := step{Pulls: len(next.pulls), Waits: next.waits}
			if tc.want.Waits != "" {
				got.Waits = tc.want.Waits
			}
			if next.upgrade != nil {
				got.Named = next.upgrade.Server
			}
			if next.change != nil {
				got.Change = next.change.pod.Name
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("decide() (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEffect: what a change does to the cache.
func TestEffect(t *testing.T) {
	pool := aPool
	cases := map[string]struct {
		was, is *v1alpha1.Memcached
		pulled  string // what the image said about itself
		want    v1alpha1.UpgradeKind
	}{
		"nothing":                           {was: pool(warm), is: pool(warm)},
		"only the size":                     {was: pool(warm), is: pool(warm, size(5))},
		"a newer version":                   {was: pool(warm, version("1.6.18")), is: pool(warm), want: v1alpha1.Warm},
		"threads":                           {was: pool(warm), is: pool(warm, threads(8)), want: v1alpha1.Warm},
		"an older version":                  {was: pool(warm), is: pool(warm, version("1.6.18")), want: v1alpha1.Cold},
		"an older one that reads the file":  {was: pool(warm), is: pool(warm, version("1.6.25")), want: v1alpha1.Warm},
		"both before 1.6.25":                {was: pool(warm, version("1.6.24")), is: pool(warm, version("1.6.18")), want: v1alpha1.Warm},
		"an image without a version":        {was: pool(warm), is: pool(warm, image("cache@sha256:1")), want: v1alpha1.Warm},
		"an image that said its version":    {was: pool(warm), is: pool(warm, image("cache@sha256:1")), pulled: "memcached 1.6.18", want: v1alpha1.Cold},
		"memory":                            {was: pool(warm), is: pool(warm, memory("128Mi")), want: v1alpha1.Cold},
		"warm from now on":                  {was: pool(stable), is: pool(warm), want: v1alpha1.Cold},
		"a version, not warm":               {was: pool(stable, version("1.6.18")), is: pool(stable), want: v1alpha1.Cold},
		"the exporter":                      {was: pool(stable, exporting("e:1")), is: pool(stable, exporting("e:2")), want: v1alpha1.Untouched},
		"an exporter":                       {was: pool(stable), is: pool(stable, exporting("e:2")), want: v1alpha1.Cold},
		"the exporter and a version":        {was: pool(warm, exporting("e:1"), version("1.6.18")), is: pool(warm, exporting("e:2")), want: v1alpha1.Warm},
		"more memory, not warm":             {was: pool(stable), is: pool(stable, memory("128Mi")), want: v1alpha1.Untouched},
		"less memory, not warm":             {was: pool(stable), is: pool(stable, memory("32Mi")), want: v1alpha1.Cold},
		"more memory and connections":       {was: pool(stable), is: pool(stable, memory("128Mi"), connections(99)), want: v1alpha1.Cold},
		"a Deployment's memory":             {was: pool(), is: pool(memory("128Mi")), want: v1alpha1.Cold},
		"a Deployment's version":            {was: pool(version("1.6.18")), is: pool(), want: v1alpha1.Cold},
		"the shape, from random to stable":  {was: pool(), is: pool(stable), want: v1alpha1.Cold},
		"the shape, and warm, all at once":  {was: pool(), is: pool(warm), want: v1alpha1.Cold},
		"the shape, from stable to random":  {was: pool(warm), is: pool(), want: v1alpha1.Cold},
		"the shape, when no server is left": {was: pool(size(0)), is: pool(warm, size(0))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var options []seenOption
			if isStable(tc.was) {
				options = append(options, aStatefulSet(tc.was))
			} else {
				options = append(options, aDeployment(tc.was, *tc.was.Spec.Size))
			}
			for i := range int(*tc.was.Spec.Size) {
				options = append(options, aServer(tc.was, i))
			}
			if tc.pulled != "" {
				options = append(options, aPull(tc.is, pulled(tc.pulled)))
			}
			seen := somethingSeen(options...)
			next, err := decide(tc.is, seen)
			if err != nil {
				t.Fatal(err)
			}
			var got v1alpha1.UpgradeKind
			if next.upgrade != nil {
				got = next.upgrade.Kind
			}
			if got != tc.want {
				t.Errorf("%q is %q, want %q", next.upgrade.Message, got, tc.want)
			}
		})
	}
}

// TestColdIsToldFirst: nothing is replaced before status has told of it.
func TestColdIsToldFirst(t *testing.T) {
	was := aPool(warm)
	more := []mcOption{warm, memory("128Mi")}
	servers := []seenOption{aStatefulSet(was), aServer(was, 0), aServer(was, 1), aServer(was, 2)}
	for name, tc := range map[string]struct {
		mc   *v1alpha1.Memcached
		want int32
	}{
		"not told":               {aPool(more...), aboveAll},
		"told of something else": {aPool(warm, memory("256Mi"), told(v1alpha1.Cold, ""), memory("128Mi")), aboveAll},
		"told":                   {aPool(append(more, told(v1alpha1.Cold, ""))...), 0},
	} {
		next, err := decide(tc.mc, somethingSeen(servers...))
		if err != nil {
			t.Fatal(err)
		}
		if got := partitionOf(t, next); got != tc.want {
			t.Errorf("%s: partition %d, want %d", name, got, tc.want)
		}
		if name != "told" && !strings.HasPrefix(next.upgrade.Message, "memory from 64Mi to 128Mi: the servers are replaced") {
			t.Errorf("%s: message %q", name, next.upgrade.Message)
		}
	}

	random, changed := aPool(), aPool(version("1.6.18"))
	pods := []seenOption{aDeployment(random, 3), aServer(random, 0)}
	if next, _ := decide(changed, somethingSeen(pods...)); wants(next, deploymentKind.kind) {
		t.Error("a Deployment is changed before status has told of it")
	}
	told(v1alpha1.Cold, "")(changed)
	if next, _ := decide(changed, somethingSeen(pods...)); !wants(next, deploymentKind.kind) {
		t.Error("a Deployment is not changed after status has told of it")
	}
}

// TestColdGoesOnUntilPromoted: the partition stays open until no pod can come
// back with the old template.
func TestColdGoesOnUntilPromoted(t *testing.T) {
	mc := aPool(warm, told(v1alpha1.Cold, ""))
	pods := []seenOption{aServer(mc, 0), aServer(mc, 1), aServer(mc, 2)}
	unpromoted := somethingSeen(append(pods, aStatefulSet(mc, func(s *appsv1.StatefulSet) { *s.Spec.UpdateStrategy.RollingUpdate.Partition = 0 }))...)
	promoted := somethingSeen(append(pods, aStatefulSet(mc, func(s *appsv1.StatefulSet) { s.Status.CurrentRevision = s.Status.UpdateRevision }))...)
	if next, _ := decide(mc, unpromoted); next.upgrade == nil || next.upgrade.Kind != v1alpha1.Cold || partitionOf(t, next) != 0 {
		t.Errorf("before it is promoted: %+v", next.upgrade)
	}
	mc.Status.Upgrade.Message = "what was told"
	if next, _ := decide(mc, unpromoted); next.upgrade.Message != "what was told" {
		t.Errorf("it tells %q now", next.upgrade.Message)
	}
	if next, _ := decide(mc, promoted); next.upgrade != nil || partitionOf(t, next) != aboveAll {
		t.Errorf("after it is promoted: %+v", next.upgrade)
	}
}

// TestShapes: clients see the old servers until the new ones are ready.
func TestShapes(t *testing.T) {
	random, want := aPool(size(1)), aPool(stable, size(1))
	told(v1alpha1.Cold, "")(want)
	starting := somethingSeen(aDeployment(random, 1), aServer(random, 7), aStatefulSet(want))
	ready := somethingSeen(aDeployment(random, 1), aServer(random, 7), aStatefulSet(want, func(s *appsv1.StatefulSet) { s.Status.ReadyReplicas = 1 }))
	next, err := decide(want, starting)
	if err != nil || servingIdentity(want, starting, mustTemplate(want)) != v1alpha1.RandomIdentity || len(next.unwanted) > 0 {
		t.Errorf("while they start: %d objects are removed (%v)", len(next.unwanted), err)
	}
	next, err = decide(want, ready)
	if err != nil || servingIdentity(want, ready, mustTemplate(want)) != v1alpha1.StableIdentity || len(next.unwanted) != 1 {
		t.Errorf("when they are ready: %d objects are removed (%v)", len(next.unwanted), err)
	}
}

// TestPullTrouble: a pull that fails is told, stops nothing, and is tried again.
func TestPullTrouble(t *testing.T) {
	old, now := aPool(warm, version("1.6.18"), size(1)), aPool(warm, size(1))
	failed := func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodFailed
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 127}}}}
	}
	longAgo := func(pod *corev1.Pod) { pod.CreationTimestamp.Time = noon.Add(-time.Minute) }
	for name, tc := range map[string]struct {
		pull    seenOption
		message string
		removed int
		wake    time.Duration
	}{
		"cannot be pulled": {aPull(now, cannotPull), "image memcached:1.6.38 cannot be pulled on node n", 0, 0},
		"does not start":   {aPull(now, failed), "image memcached:1.6.38 does not start on node n (it needs memcached and /bin/sh): exit code 127", 0, 20 * time.Second},
		"tried again":      {aPull(now, failed, longAgo), "image memcached:1.6.38 does not start on node n (it needs memcached and /bin/sh): exit code 127", 1, 0},
	} {
		next, err := decide(now, somethingSeen(aStatefulSet(now), aServer(old, 0), tc.pull))
		if err != nil {
			t.Fatal(err)
		}
		if next.trouble == nil || next.trouble.message != tc.message || !next.trouble.passes {
			t.Errorf("%s: %+v", name, next.trouble)
		}
		if next.change != nil || next.upgrade.Server != "" || len(next.unwanted) != tc.removed || next.wakeAfter != tc.wake {
			t.Errorf("%s: change %v, %d removed, wake after %v", name, next.change, len(next.unwanted), next.wakeAfter)
		}
	}
}

// TestChanged: what a change in place writes.
func TestChanged(t *testing.T) {
	old, now := aPool(warm, version("1.6.18"), exporting("e:1")), aPool(warm, threads(8), exporting("e:1"))
	seen := somethingSeen(aServer(old, 0, func(pod *corev1.Pod) { pod.UID, pod.ResourceVersion = "u", "7" }))
	template := mustTemplate(now)
	got := change{&seen.pods[0], template, "cache-new", noon}.changed()
	want := map[string]any{
		"metadata": map[string]any{
			"uid": seen.pods[0].UID, "resourceVersion": "7",
			"labels": map[string]any{"controller-revision-hash": "cache-new"},
			"annotations": map[string]any{
				revisionAnnotation: template.revision, settingsAnnotation: template.Annotations[settingsAnnotation],
				threadsAnnotation: "8", replacedAnnotation: "memcached-0-1",
			},
		},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "memcached", "image": "memcached:1.6.38"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changed() (-want +got):\n%s", diff)
	}
}

// TestMemoryGrows: the container gets more memory first, then memcached.
func TestMemoryGrows(t *testing.T) {
	was, is := aPool(stable, size(1)), aPool(stable, size(1), memory("128Mi"))
	named := aPool(stable, size(1), memory("128Mi"), told(v1alpha1.Untouched, "cache-0"))
	limit := func(m string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(m)}
	}
	asked := func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Limits, pod.Spec.Containers[0].Resources.Requests = limit("224Mi"), limit("224Mi")
	}
	has := func(m string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].Resources = &corev1.ResourceRequirements{Limits: limit(m)}
		}
	}
	refused := func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible})
	}
	old := func(seen *observation) { seen.resizes = false }
	for name, tc := range map[string]struct {
		mc             *v1alpha1.Memcached
		pod            []func(*corev1.Pod)
		seen           seenOption
		kind           v1alpha1.UpgradeKind
		resize, change bool
		waits          string
	}{
		"first it is named":               {mc: is, kind: v1alpha1.Untouched},
		"then its container is resized":   {mc: named, pod: []func(*corev1.Pod){has("144Mi")}, kind: v1alpha1.Untouched, resize: true},
		"that takes a while":              {mc: named, pod: []func(*corev1.Pod){asked, has("144Mi")}, kind: v1alpha1.Untouched, waits: "the container of server cache-0 is getting more memory"},
		"then memcached is told":          {mc: named, pod: []func(*corev1.Pod){asked, has("224Mi")}, kind: v1alpha1.Untouched, change: true},
		"the node has no room: cold":      {mc: named, pod: []func(*corev1.Pod){asked, has("144Mi"), refused}, kind: v1alpha1.Cold},
		"the cluster cannot resize: cold": {mc: is, seen: old, kind: v1alpha1.Cold},
	} {
		options := []seenOption{aStatefulSet(is), aServer(was, 0, tc.pod...)}
		if tc.seen != nil {
			options = append(options, tc.seen)
		}
		next, err := decide(tc.mc, somethingSeen(options...))
		if err != nil {
			t.Fatal(err)
		}
		if next.upgrade.Kind != tc.kind || (next.resize != nil) != tc.resize || (next.change != nil) != tc.change || next.waits != tc.waits {
			t.Errorf("%s: %s, resize %v, change %v, waits for %q", name, next.upgrade.Kind, next.resize, next.change, next.waits)
		}
	}
}

func connections(n int32) mcOption {
	return func(mc *v1alpha1.Memcached) { mc.Spec.MaxConnections = n }
}

func image(name string) mcOption { return func(mc *v1alpha1.Memcached) { mc.Spec.Image = name } }

func wants(next plan, kind string) bool {
	for _, w := range next.wanted {
		if w.kind == kind {
			return true
		}
	}
	return false
}

func partitionOf(t *testing.T, next plan) int32 {
	t.Helper()
	for _, w := range next.wanted {
		if w.kind == statefulSetKind.kind {
			seen := somethingSeen()
			set := seen.statefulSet()
			decodeInto(t, w.config, set)
			return *set.Spec.UpdateStrategy.RollingUpdate.Partition
		}
	}
	t.Fatal("no StatefulSet is wanted")
	return 0
}
