package memcached

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

// TestLostCache: a server that has lost its cache although it should not is reported,
// before another one is touched, and also if it is the last one.
func TestLostCache(t *testing.T) {
	old, now := aPool(warm, version("1.6.18"), size(2)), aPool(warm, size(2), announced(v1alpha1.Warm, "cache-1"))
	now.Status.Upgrade.Message = "warm"
	ended := func(id string, code int32, after time.Duration) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Annotations[objects.ReplacedAnnotation], pod.Annotations[objects.ChangedAnnotation] = "memcached-1-0", noon.Format(time.RFC3339)
			pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: id, ExitCode: code, FinishedAt: metav1.Time{Time: noon.Add(after)}}
		}
	}
	for name, tc := range map[string]struct {
		end     func(*corev1.Pod)
		message string // of the upgrade; "" if the next one is named
	}{
		"it was kept":      {ended("memcached-1-0", 0, time.Second), ""},
		"it was killed":    {ended("memcached-1-0", 137, time.Minute), "warm; but server cache-1 has lost its cache: memcached did not stop on SIGUSR1, but with exit code 137"},
		"its time was up":  {ended("memcached-1-0", 0, 61*time.Second), "warm; but server cache-1 has most likely lost its cache: memcached did not stop on SIGUSR1, but after 1m1s, when Kubernetes ends it"},
		"that was another": {ended("memcached-1", 137, time.Minute), ""},
		"it is not known":  {func(*corev1.Pod) {}, ""},
	} {
		for last, other := range map[bool]*v1alpha1.Memcached{false: old, true: now} {
			seen := somethingSeen(aStatefulSet(now), aServer(other, 0), aServer(now, 1, tc.end), aPull(now, pulled("")))
			next, err := decide(now, seen)
			if err != nil {
				t.Fatal(err)
			}
			up := next.Upgrade
			switch {
			case tc.message != "" && (up.Kind != v1alpha1.Cold || up.Message != tc.message || up.Server != "" || patchOf(next, "change") != nil):
				t.Errorf("%s, the last one %v: %+v", name, last, up)
			case tc.message == "" && (up.Kind != v1alpha1.Warm || up.Message != "warm" || !last && up.Server != "cache-0"):
				t.Errorf("%s, the last one %v: %+v", name, last, up)
			}
			now := now.DeepCopy()
			now.Status.Upgrade = up
			if next, err = decide(now, seen); err != nil {
				t.Fatal(err)
			}
			if tc.message != "" && !last && (next.Upgrade.Server != "cache-0" || next.Upgrade.Kind != v1alpha1.Cold) {
				t.Errorf("%s: then %+v", name, next.Upgrade)
			}
		}
	}
}

// TestStarts: what a change leaves for the next one to know.
func TestStarts(t *testing.T) {
	old, now := aPool(warm, version("1.6.18")), aPool(warm)
	for name, tc := range map[string]struct {
		was, is *v1alpha1.Memcached
		before  string
		ended   bool
		want    string
	}{
		"the first image":         {old, now, "", false, ""},
		"the second one":          {old, now, "", true, `{"memcached:1.6.38":{"times":1,"last":"2026-01-02T12:00:00Z"}}`},
		"settings":                {now, aPool(warm, threads(2)), "", false, `{"memcached:1.6.38":{"times":1,"last":"2026-01-02T12:00:00Z"}}`},
		"once more":               {old, now, `{"memcached:1.6.38":{"times":1,"last":"2026-01-02T11:59:00Z"}}`, true, `{"memcached:1.6.38":{"times":2,"last":"2026-01-02T12:00:00Z"}}`},
		"another one long ago":    {old, now, `{"a":{"times":1,"last":"2026-01-02T11:00:00Z"}}`, true, `{"memcached:1.6.38":{"times":1,"last":"2026-01-02T12:00:00Z"}}`},
		"another one":             {old, now, `{"a":{"times":1,"last":"2026-01-02T11:59:00Z"}}`, false, `{"a":{"times":1,"last":"2026-01-02T11:59:00Z"}}`},
		"somebody else's text":    {old, now, `null`, true, `{"memcached:1.6.38":{"times":1,"last":"2026-01-02T12:00:00Z"}}`},
		"no restart of memcached": {aPool(warm, exporting("e:1")), aPool(warm, exporting("e:2")), "", true, ""},
	} {
		seen := somethingSeen(aServer(tc.was, 0, func(pod *corev1.Pod) {
			if tc.before != "" {
				pod.Annotations[objects.StartsAnnotation] = tc.before
			}
			if tc.ended {
				pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{}
			}
		}))
		got, err := pool.StartsAfter(&seen.Pods[0], mustTemplate(tc.is), noon)
		if err != nil || got != tc.want {
			t.Errorf("%s: %s (%v), want %s", name, got, err, tc.want)
		}
	}
}

// TestWakes: what causes no event is looked at again.
func TestWakes(t *testing.T) {
	was, is := aPool(warm, threads(2), size(1)), aPool(warm, size(1))
	for name, tc := range map[string]struct {
		pod  []func(*corev1.Pod)
		want time.Duration
	}{
		"a restart that may not come": {[]func(*corev1.Pod){restarting}, pool.RestartLasts},
		"a start that may fail": {[]func(*corev1.Pod){unready, func(pod *corev1.Pod) {
			pod.Annotations[objects.ReplacedAnnotation] = "another"
			pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.Time{Time: noon.Add(-time.Second)}}
		}}, pool.StartLasts - time.Second},
	} {
		next, err := decide(is, somethingSeen(aStatefulSet(is), aServer(was, 0, tc.pod...)))
		if err != nil {
			t.Fatal(err)
		}
		if next.WakeAfter != tc.want {
			t.Errorf("%s: looks again after %v, want %v", name, next.WakeAfter, tc.want)
		}
	}
}
