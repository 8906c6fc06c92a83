package memcached

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/memcached/change"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

// TestInPlace has the steps of a change in place, and what keeps it waiting.
func TestInPlace(t *testing.T) {
	old := aPool(warm, version("1.6.18"))
	now := aPool(warm)
	named := func(server string) *v1alpha1.Memcached { return aPool(warm, announced(v1alpha1.Warm, server)) }
	all := func(options ...seenOption) pool.Observation {
		return somethingSeen(append([]seenOption{aStatefulSet(now)}, options...)...)
	}
	had := func(pod *corev1.Pod) { // a restart that is over
		pod.Annotations[objects.ReplacedAnnotation] = "memcached-2-0"
	}
	crashed := func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, FinishedAt: metav1.Time{Time: noon}}
	}
	upgraded := func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{FinishedAt: metav1.Time{Time: noon}}
	}
	restartedAt := func(at time.Time) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Annotations[objects.EndedAnnotation] = at.Format(time.RFC3339)
		}
	}
	moreThreads := aPool(warm, threads(8))
	before := aPool(warm, threads(2)) // what one that is being restarted was changed to
	state := func(s corev1.ContainerState) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].State = s }
	}
	started := func(ago time.Duration) func(*corev1.Pod) {
		return state(corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Time{Time: noon.Add(-ago)}}})
	}
	crashing := state(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}})
	over := state(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}})
	ended := state(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.Time{Time: noon}}})
	changedAt := func(at time.Time) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Annotations[objects.ChangedAnnotation] = at.Format(time.RFC3339) }
	}
	upgradedBefore := func(ago time.Duration, starts string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Annotations[objects.StartsAnnotation] = starts
			pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{FinishedAt: metav1.Time{Time: noon.Add(-ago)}}
		}
	}
	promoted := func(seen *pool.Observation) { seen.StatefulSet().Status.CurrentRevision = "cache-new" }

	type step struct {
		Pulls         int
		Named, Change string
		Waits         string // a part of it
	}
	cases := map[string]struct {
		mc   *v1alpha1.Memcached
		seen pool.Observation
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
			want: step{Waits: "waiting for unavailable servers: cache-1"},
		},
		"one is missing: no other": {
			mc: now, seen: all(aServer(old, 0), aServer(old, 2), aPull(now, pulled(""))),
			want: step{Waits: "waiting for unavailable servers: 1 server not created yet"},
		},
		"one is not ready: it is the first": {
			mc: now, seen: all(aServer(old, 0, unready), aServer(old, 1), aServer(old, 2), aPull(now, pulled(""))),
			want: step{Named: "cache-0"},
		},
		"one goes away after another was named": {
			mc: named("cache-2"), seen: all(aServer(old, 0, unready), aServer(old, 1), aServer(old, 2), aPull(now, pulled(""))),
			want: step{Named: "cache-2", Waits: "waiting for unavailable servers: cache-0"},
		},
		"the one that was named is gone": {
			mc: named("cache-2"), seen: all(aServer(old, 0), aServer(old, 1), aPull(now, pulled(""))),
			want: step{Waits: "waiting for unavailable servers: 1 server not created yet"},
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
			mc: now, seen: all(func(o *pool.Observation) { o.StatefulSet().Status.ObservedGeneration = 1 }, aServer(old, 0), aServer(old, 1), aServer(old, 2)),
			want: step{},
		},
		"settings only: no pull": {
			mc:   moreThreads,
			seen: somethingSeen(aStatefulSet(moreThreads), aServer(now, 0), aServer(now, 1), aServer(now, 2)),
			want: step{Named: "cache-2"},
		},
		"settings only, and so a while ago: Kubernetes would hold it back": {
			mc:   moreThreads,
			seen: somethingSeen(aStatefulSet(moreThreads), aServer(moreThreads, 0), aServer(moreThreads, 1), aServer(now, 2, restartedAt(noon.Add(-time.Minute)))),
			want: step{Waits: "hold back its next start for 10 s or more, until 12:09:30"},
		},
		"settings only, crashed a while ago": {
			mc:   moreThreads,
			seen: somethingSeen(aStatefulSet(moreThreads), aServer(moreThreads, 0), aServer(moreThreads, 1), aServer(now, 2, crashed)),
			want: step{Waits: "until 12:10:30"},
		},
		"settings only, one would be held back: the others do not wait": {
			mc:   moreThreads,
			seen: somethingSeen(aStatefulSet(moreThreads), aServer(now, 0), aServer(now, 1), aServer(now, 2, crashed)),
			want: step{Named: "cache-1"},
		},
		"settings only, the one that was named has crashed: the others do not wait": {
			mc:   aPool(warm, threads(8), announced(v1alpha1.Warm, "cache-2")),
			seen: somethingSeen(aStatefulSet(moreThreads), aServer(now, 0), aServer(now, 1), aServer(now, 2, crashed)),
			want: step{Named: "cache-1"},
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
		"another change, while one is being restarted: it comes first": {
			mc:   moreThreads,
			seen: somethingSeen(aStatefulSet(moreThreads), aServer(now, 0), aServer(now, 1), aServer(before, 2, restarting, started(time.Hour))),
			want: step{Waits: "cache-2 is restarting"},
		},
		"another change, while one that was named is being restarted": {
			mc:   aPool(warm, threads(8), announced(v1alpha1.Warm, "cache-2")),
			seen: somethingSeen(aStatefulSet(moreThreads), aServer(now, 0), aServer(now, 1), aServer(before, 2, restarting, restartedAt(noon))),
			want: step{Named: "cache-2", Waits: "cache-2 is restarting"},
		},
		"another change, while one reads its items in": {
			mc:   moreThreads,
			seen: somethingSeen(aStatefulSet(moreThreads), aServer(now, 0), aServer(now, 1), aServer(before, 2, had, unready, started(time.Second))),
			want: step{Waits: "cache-2 is restarting"},
		},
		"another change, and the restarted one does not get ready": {
			mc:   moreThreads,
			seen: somethingSeen(aStatefulSet(moreThreads), aServer(now, 0), aServer(now, 1), aServer(before, 2, had, unready, started(time.Minute))),
			want: step{Named: "cache-2"},
		},
		"another change, and the restarted one crashes": {
			mc:   moreThreads,
			seen: somethingSeen(aStatefulSet(moreThreads), aServer(now, 0), aServer(now, 1), aServer(before, 2, restarting, unready, crashing)),
			want: step{Named: "cache-2"},
		},
		"another change, and the restarted one does not come back": {
			mc:   aPool(warm, threads(8), announced(v1alpha1.Warm, "cache-2")),
			seen: somethingSeen(aStatefulSet(moreThreads), aServer(now, 0), aServer(now, 1), aServer(before, 2, restarting, unready, over)),
			want: step{Named: "cache-2", Change: "cache-2"},
		},
		"another change, while the restarted one is about to start": {
			mc:   moreThreads,
			seen: somethingSeen(aStatefulSet(moreThreads), aServer(now, 0), aServer(now, 1), aServer(before, 2, restarting, unready, ended)),
			want: step{Waits: "cache-2 is restarting"},
		},
		"another change, and the restarted one hangs": {
			mc:   moreThreads,
			seen: somethingSeen(aStatefulSet(moreThreads), aServer(now, 0), aServer(now, 1), aServer(before, 2, restarting, started(time.Hour), changedAt(noon.Add(-pool.RestartLasts)))),
			want: step{Named: "cache-2"},
		},
		"it does not stop": {
			mc: named("cache-2"), seen: all(aServer(old, 0), aServer(old, 1), aServer(now, 2, restarting, started(time.Hour), changedAt(noon.Add(-2*time.Minute))), aPull(now, pulled(""))),
			want: step{Named: "cache-2", Waits: "server cache-2 was to restart at 11:58:00, and has not stopped: it hangs, or memcached in its image ignores SIGUSR1. kubectl delete pod cache-2 "},
		},
		"it does not get ready": {
			mc: named("cache-2"), seen: all(aServer(old, 0), aServer(old, 1), aServer(now, 2, had, unready, changedAt(noon.Add(-2*time.Minute))), aPull(now, pulled(""))),
			want: step{Named: "cache-2", Waits: "server cache-2 was restarted at 11:58:00, and is not ready: kubectl logs cache-2 -c memcached may say why"},
		},
		"the last one is restarting": {
			mc: named("cache-0"), seen: all(promoted, aServer(now, 0, had, unready), aServer(now, 1), aServer(now, 2)),
			want: step{Named: "cache-0", Waits: "cache-0 is restarting"},
		},
		"an image that it was started with again lately": {
			mc: now, seen: all(aServer(old, 0), aServer(old, 1), aServer(old, 2, upgradedBefore(2*time.Second, `{"memcached:1.6.38":{"times":1,"last":"2026-01-02T11:59:40Z"}}`)), aServer(now, 3), aPull(now, pulled(""))),
			want: step{Named: "cache-1"},
		},
		"all were started with the image lately": {
			mc: now, seen: all(aServer(now, 0), aServer(now, 1), aServer(old, 2, upgradedBefore(2*time.Second, `{"memcached:1.6.38":{"times":2,"last":"2026-01-02T11:59:40Z"}}`)), aPull(now, pulled(""))),
			want: step{Waits: "hold back its next start for 10 s or more, until 12:00:19"},
		},
		"… and that was long enough ago": {
			mc: now, seen: all(aServer(now, 0), aServer(now, 1), aServer(old, 2, upgradedBefore(20*time.Second, `{"memcached:1.6.38":{"times":1,"last":"2026-01-02T11:59:40Z"}}`)), aPull(now, pulled(""))),
			want: step{Named: "cache-2"},
		},
		"settings only, after several images": {
			mc:   moreThreads,
			seen: somethingSeen(aStatefulSet(moreThreads), aServer(moreThreads, 0), aServer(moreThreads, 1), aServer(now, 2, upgradedBefore(time.Minute, `{"memcached:1.6.38":{"times":1,"last":"2026-01-02T11:59:00Z"}}`))),
			want: step{Waits: "until 12:09:30"},
		},
		"the settings are what it was started with": {
			mc: named("cache-2"), seen: all(aServer(before, 0), aServer(before, 1), aServer(now, 2, restarting, restartedAt(noon.Add(-pool.RestartLasts)))),
			want: step{Named: "cache-1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			next, err := decide(tc.mc, tc.seen)
			if err != nil {
				t.Fatal(err)
			}
			if tc.want.Waits != "" && !strings.Contains(next.Waits, tc.want.Waits) {
				t.Errorf("waits for %q, want %q", next.Waits, tc.want.Waits)
			}
			got := step{Pulls: count[loop.Create](next), Waits: next.Waits}
			if tc.want.Waits != "" {
				got.Waits = tc.want.Waits
			}
			if next.Upgrade != nil {
				got.Named = next.Upgrade.Server
			}
			if change := patchOf(next, "change"); change != nil {
				got.Change = change.Object.GetName()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("decide() (-want +got):\n%s", diff)
			}
		})
	}
}

// TestChanged: what a change in place writes.
func TestChanged(t *testing.T) {
	old, now := aPool(warm, version("1.6.18"), exporting("e:1")), aPool(warm, threads(8), exporting("e:1"))
	seen := somethingSeen(aServer(old, 0, func(pod *corev1.Pod) {
		pod.Annotations[objects.EndedAnnotation] = "2026-01-02T11:00:00Z"
	}))
	template := mustTemplate(now)
	got, err := change.ServerChange{Pod: &seen.Pods[0], Template: template, Image: "memcached:1.6.38", Revision: "cache-new", Now: noon}.Patch()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"metadata": map[string]any{
			"labels": map[string]any{"controller-revision-hash": "cache-new"},
			"annotations": map[string]any{
				objects.RevisionAnnotation: template.Revision, objects.SettingsAnnotation: template.Annotations[objects.SettingsAnnotation],
				objects.ThreadsAnnotation: "8", objects.ImageAnnotation + objects.ServerContainer: "memcached:1.6.38", objects.ReplacedAnnotation: "memcached-0-1", objects.EndedAnnotation: nil,
				objects.ChangedAnnotation: "2026-01-02T12:00:00Z",
			},
		},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "memcached", "image": "memcached:1.6.38"}}},
	}
	if diff := cmp.Diff(want, map[string]any{"metadata": got.Metadata, "spec": got.Spec}); diff != "" || !got.IfSame {
		t.Errorf("patch(), if same %t (-want +got):\n%s", got.IfSame, diff)
	}
}

// TestMemoryGrows: the container gets more memory first, then memcached.
func TestMemoryGrows(t *testing.T) {
	was, is := aPool(stable, size(1)), aPool(stable, size(1), memory("128Mi"))
	named := aPool(stable, size(1), memory("128Mi"), announced(v1alpha1.Untouched, "cache-0"))
	limit := func(m string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(m)}
	}
	requested := func(pod *corev1.Pod) {
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
	deferred := func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred})
	}
	atOnce := func(pod *corev1.Pod) { pod.Annotations[objects.RefusedAnnotation] = "224Mi" }
	old := func(seen *pool.Observation) { seen.Resizes = false }
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
		"that takes a while":              {mc: named, pod: []func(*corev1.Pod){requested, has("144Mi")}, kind: v1alpha1.Untouched, waits: "the container of server cache-0 is getting more memory"},
		"until there is room":             {mc: named, pod: []func(*corev1.Pod){requested, has("144Mi"), deferred}, kind: v1alpha1.Untouched, waits: "server cache-0 waits for room on node n to get more memory"},
		"then memcached is told":          {mc: named, pod: []func(*corev1.Pod){requested, has("224Mi")}, kind: v1alpha1.Untouched, change: true},
		"the node has no room: cold":      {mc: named, pod: []func(*corev1.Pod){requested, has("144Mi"), refused}, kind: v1alpha1.Cold},
		"refused at once: cold":           {mc: named, pod: []func(*corev1.Pod){has("144Mi"), atOnce}, kind: v1alpha1.Cold},
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
		resize, change := patchOf(next, "resize"), patchOf(next, "change")
		isAs := (resize != nil) == tc.resize && (change != nil) == tc.change && next.Waits == tc.waits
		if next.Upgrade.Kind != tc.kind || !isAs {
			t.Errorf("%s: %s, resize %v, change %v, waits for %q", name, next.Upgrade.Kind, resize, change, next.Waits)
		}
	}
}
