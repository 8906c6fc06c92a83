package memcached

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

// TestEffectOnEach: servers of several versions and settings, as after edits in the middle
// of a change. The worst is announced, and only servers that lose their items are at stake.
func TestEffectOnEach(t *testing.T) {
	before, now := aPool(warm, version("1.6.18")), aPool(warm)
	back := aPool(warm, version("1.6.18"), threads(8)) // after an upgrade that was half undone
	const isOld = "because memcached 1.6.18 cannot read what one of 1.6.25 or newer has left"
	unnamed := aPool(warm, image("cache@sha256:1"))
	grown := aPool(stable, memory("128Mi"))
	on := func(node string) func(*corev1.Pod) { return func(pod *corev1.Pod) { pod.Spec.NodeName = node } }
	pulledOn := func(mc *v1alpha1.Memcached, node, message string) seenOption {
		return aPull(mc, pulled(message), on(node))
	}
	byHand := func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Image = "memcached:1.6.18"
		for manager, fields := range map[string]string{"maker": `{".":{},"f:name":{}}`, "kubectl-edit": `{"f:image":{}}`} {
			pod.ManagedFields = append(pod.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate,
				FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:containers":{"k:{\"name\":\"memcached\"}":` + fields + `}}}`)})
		}
	}
	lost := func(pod *corev1.Pod) {
		pod.Annotations[objects.ReplacedAnnotation] = "memcached-2-0"
		pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: "memcached-2-0", ExitCode: 137}
	}
	for name, tc := range map[string]struct {
		is      *v1alpha1.Memcached
		servers []seenOption
		kind    v1alpha1.UpgradeKind
		message string // a part of it
		stake   int32
		kept    string
	}{
		"the last one has gone back already": {
			is: back, servers: []seenOption{aServer(now, 0), aServer(now, 1), aServer(before, 2)},
			kind: v1alpha1.Cold, message: "cache-0, cache-1 start with empty caches, " + isOld + "; the others keep theirs", stake: 2, kept: "cache-2",
		},
		"the first one has": {
			is: back, servers: []seenOption{aServer(before, 0), aServer(before, 1), aServer(now, 2)},
			kind: v1alpha1.Cold, message: "cache-2 starts with an empty cache, " + isOld + "; the others keep theirs", stake: 1, kept: "cache-0 cache-1",
		},
		"all have": {
			is: back, servers: []seenOption{aServer(before, 0), aServer(before, 1), aServer(before, 2)},
			kind: v1alpha1.Warm, message: "each with its cache", kept: "cache-0 cache-1 cache-2",
		},
		"none has": {
			is: back, servers: []seenOption{aServer(now, 0), aServer(now, 1), aServer(now, 2)},
			kind: v1alpha1.Cold, message: "and each starts with an empty cache, " + isOld, stake: 3,
		},
		"the one that loses its items is done": {
			is: back, servers: []seenOption{aServer(before, 0), aServer(before, 1), aServer(back, 2)},
			kind: v1alpha1.Warm, message: "each with its cache", kept: "cache-0 cache-1",
		},
		"many": {
			is: back, servers: []seenOption{aServer(now, 0), aServer(now, 1), aServer(now, 2), aServer(now, 3), aServer(now, 4), aServer(before, 5)},
			kind: v1alpha1.Cold, message: "cache-0, cache-1, cache-2 and 2 more start with empty caches", stake: 5, kept: "cache-5",
		},
		"one has the image, whose tag names no version": {
			is:      aPool(warm, image("cache@sha256:1"), threads(8)),
			servers: []seenOption{aServer(now, 0), aServer(now, 1), aServer(unnamed, 2), pulledOn(unnamed, "n", "memcached 1.6.18")},
			kind:    v1alpha1.Cold, message: "cache-0, cache-1 start with empty caches", stake: 2, kept: "cache-2",
		},
		"a tag that was another image on another node": {
			is: aPool(warm, image("cache:latest")),
			servers: []seenOption{aServer(now, 0, on("a")), aServer(now, 1, on("b")),
				pulledOn(aPool(warm, image("cache:latest")), "a", "memcached 1.6.38"), pulledOn(aPool(warm, image("cache:latest")), "b", "memcached 1.6.18")},
			kind: v1alpha1.Cold, message: "cache-1 starts with an empty cache, " + isOld, stake: 1, kept: "cache-0",
		},
		"more memory, and an image changed by hand": {
			is: grown, servers: []seenOption{aServer(aPool(stable), 0), aServer(aPool(stable), 1, byHand)},
			kind: v1alpha1.Cold, message: "of which the image was changed by hand", stake: 1, kept: "cache-0",
		},
		"one lost its items that was to keep them": {
			is: back, servers: []seenOption{aServer(before, 0), aServer(before, 1), aServer(back, 2, lost)},
			kind: v1alpha1.Warm, stake: 2, kept: "cache-0 cache-1",
		},
		"replaced": {
			is: aPool(warm, memory("128Mi"), version("1.6.18")), servers: []seenOption{aServer(now, 0), aServer(before, 1)},
			kind: v1alpha1.Cold, message: "the servers are replaced", stake: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			mc := tc.is.DeepCopy()
			seen := somethingSeen(append(tc.servers, aStatefulSet(mc))...)
			mc.Spec.Size = new(int32(len(seen.Pods)))
			next, err := decide(mc, seen)
			if err != nil {
				t.Fatal(err)
			}
			if up := next.Upgrade; up == nil || up.Kind != tc.kind || !strings.Contains(up.Message, tc.message) {
				t.Fatalf("%+v, want %s: …%s", up, tc.kind, tc.message)
			}
			if mc.Status = summarize(mc, seen, next, nil); tc.kind == v1alpha1.Warm {
				mc.Status.Upgrade.Kind = v1alpha1.Cold // as announced before
			}
			if got := figureOf(mc, seen).atStake; got != tc.stake {
				t.Errorf("%d servers at stake, want %d", got, tc.stake)
			}
			if got := strings.Join(pool.Kept(mc, seen, mustTemplate(mc)), " "); got != tc.kept {
				t.Errorf("kept are %q, want %q", got, tc.kept)
			}
		})
	}
}

// TestWorseIsAnnounced: what was announced to do less to the cache is announced again.
func TestWorseIsAnnounced(t *testing.T) {
	was, is := aPool(warm, exporting("e:1")), aPool(warm, exporting("e:2"), announced(v1alpha1.Untouched, ""))
	is.Status.Upgrade.Revision = mustTemplate(is).Revision
	for name, tc := range map[string]struct {
		mc   *v1alpha1.Memcached
		pod  *v1alpha1.Memcached
		want v1alpha1.UpgradeKind
	}{
		"as announced":                       {is, was, v1alpha1.Untouched},
		"a server turns out to be restarted": {is, aPool(warm, exporting("e:1"), threads(8)), v1alpha1.Warm},
		"… or emptied":                       {is, aPool(warm, exporting("e:1"), memory("128Mi")), v1alpha1.Cold},
	} {
		next, err := decide(tc.mc, somethingSeen(aStatefulSet(tc.mc), aServer(was, 0), aServer(was, 1), aServer(tc.pod, 2)))
		if err != nil {
			t.Fatal(err)
		}
		if next.Upgrade == nil || next.Upgrade.Kind != tc.want {
			t.Errorf("%s: %+v, want %s", name, next.Upgrade, tc.want)
		}
	}
}
