package memcached

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/memcached/change"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

// workloadApplied is the workload that a plan applies, as a StatefulSet, which has all that is looked
// at of either; nil if it applies none.
func workloadApplied(t *testing.T, next *change.Plan) *appsv1.StatefulSet {
	t.Helper()
	for _, w := range next.Writes {
		if write, is := w.(loop.Apply); is && (loop.KindOf(write.Object) == objects.StatefulSetKind || loop.KindOf(write.Object) == objects.DeploymentKind) {
			s := &appsv1.StatefulSet{}
			decodeInto(t, write.Want, s)
			return s
		}
	}
	return nil
}

func revisionApplied(t *testing.T, next *change.Plan) string {
	t.Helper()
	if s := workloadApplied(t, next); s != nil {
		return s.Spec.Template.Annotations[objects.RevisionAnnotation]
	}
	return ""
}

// missing are inputs without the Secrets of these roles.
func missing(roles ...string) seenOption {
	return func(seen *pool.Observation) { seen.Inputs.Missing = roles }
}

// TestRefusedStaysAndScales: what a spec that cannot be carried out requests besides goes on,
// with the servers as they are.
func TestRefusedStaysAndScales(t *testing.T) {
	low := own("100Mi", "")
	for name, tc := range map[string]struct {
		was, is []mcOption
		seen    []seenOption
		isHeld  bool
	}{
		"a limit":                           {is: []mcOption{low}},
		"a lower limit":                     {was: []mcOption{own("1Gi", "")}, is: []mcOption{low}},
		"a lower limit, with a request":     {was: []mcOption{own("1Gi", "200Mi")}, is: []mcOption{own("100Mi", "50Mi")}},
		"a limit in place of a request":     {was: []mcOption{own("", "200Mi")}, is: []mcOption{low}},
		"more memory than the limit":        {was: []mcOption{own("200Mi", "")}, is: []mcOption{own("200Mi", ""), memory("1Gi")}},
		"more connections than the limit":   {was: []mcOption{own("200Mi", "")}, is: []mcOption{own("200Mi", ""), connections(100_000)}},
		"a limit, and a version":            {is: []mcOption{low, version("1.6.18")}},
		"a limit, and other fields":         {is: []mcOption{low, threads(8), func(mc *v1alpha1.Memcached) { mc.Spec.Port = 11311 }}},
		"a limit, and users":                {is: []mcOption{low, withUsers}},
		"users who are missing":             {is: []mcOption{withUsers}, seen: []seenOption{missing("auth")}},
		"a certificate that is missing":     {was: []mcOption{withUsers}, is: []mcOption{withUsers, withCertificate}, seen: []seenOption{missing("tls")}},
		"the Secret and its copy are gone":  {was: []mcOption{withUsers}, is: []mcOption{withUsers}, seen: []seenOption{missing("auth")}, isHeld: true},
		"something that is not in the args": {is: []mcOption{low, func(mc *v1alpha1.Memcached) { mc.Spec.PodTemplate.Spec.PriorityClassName = "high" }}, isHeld: true},
	} {
		for identity, of := range map[string]mcOption{"random": func(*v1alpha1.Memcached) {}, "stable": stable, "warm": warm} {
			was, is := aPool(append(tc.was, of)...), aPool(append(tc.is, of, size(5))...)
			is.Generation = 2
			options := append([]seenOption{aServer(was, 0), aServer(was, 1), aServer(was, 2)}, tc.seen...)
			if objects.IsStable(was) {
				options = append(options, aStatefulSet(was))
			} else {
				options = append(options, aDeployment(was, 3), func(seen *pool.Observation) {
					t := mustTemplate(was)
					seen.Deployment().Spec.Template = t.PodTemplateSpec
				})
			}
			next, err := decide(is, somethingSeen(options...))
			if err != nil {
				t.Fatal(err)
			}
			s := workloadApplied(t, next)
			switch {
			case tc.isHeld && s != nil:
				t.Errorf("%s, %s: %s is applied", identity, name, s.Name)
			case tc.isHeld:
			case s == nil:
				t.Errorf("%s, %s: nothing is applied", identity, name)
			case s.Spec.Template.Annotations[objects.RevisionAnnotation] != mustTemplate(was).Revision || *s.Spec.Replicas != 5 || next.Upgrade != nil:
				t.Errorf("%s, %s: %d of revision %s; upgrade %+v", identity, name, *s.Spec.Replicas, s.Spec.Template.Annotations[objects.RevisionAnnotation], next.Upgrade)
			}
			if st := summarize(is, somethingSeen(options...), next, nil); !tc.isHeld && (st.Image != objects.ImageOf(was) || st.Memory != was.Spec.Memory.String()) {
				t.Errorf("%s, %s: status has image %s and memory %s", identity, name, st.Image, st.Memory)
			}
		}
	}
}

// TestRefusedInTheMiddle: a warm change that was begun goes on although the spec that is
// there now cannot be carried out, and no other server can be evicted while one restarts.
func TestRefusedInTheMiddle(t *testing.T) {
	old, now := aPool(warm, version("1.6.18"), size(2)), aPool(warm, size(2), announced(v1alpha1.Warm, "cache-1"))
	restarted := func(pod *corev1.Pod) {
		restarting(pod)
		pod.Annotations[objects.ChangedAnnotation] = noon.Format(time.RFC3339)
	}
	edited := func(options ...mcOption) *v1alpha1.Memcached {
		mc := aPool(append([]mcOption{warm, size(2)}, options...)...)
		mc.Status = now.Status
		return mc
	}
	for name, tc := range map[string]struct {
		mc     *v1alpha1.Memcached
		server func(*corev1.Pod)
		seen   []seenOption
		want   int
		goesOn bool
	}{
		"a limit":                         {mc: edited(own("100Mi", "")), server: restarted, want: 0, goesOn: true},
		"users who are missing":           {mc: edited(withUsers), server: restarted, seen: []seenOption{missing("auth")}, want: 0, goesOn: true},
		"a limit, and it is back":         {mc: edited(own("100Mi", "")), server: func(*corev1.Pod) {}, want: 0, goesOn: true},
		"another change, and none is bad": {mc: edited(memory("1Gi")), server: restarted, want: 0},
		"…, and it is back":               {mc: edited(memory("1Gi")), server: func(*corev1.Pod) {}, want: 1},
	} {
		seen := append([]seenOption{aStatefulSet(now), aServer(old, 0), aServer(now, 1, tc.server), aPull(now, pulled(""))}, tc.seen...)
		next, err := decide(tc.mc, somethingSeen(seen...))
		if err != nil {
			t.Fatal(err)
		}
		goesOn := next.Upgrade != nil && next.Upgrade.Revision == mustTemplate(now).Revision
		if evictable := evictableOf(t, next); evictable != tc.want || goesOn != tc.goesOn {
			t.Errorf("%s: %d may be evicted, the change is %+v", name, evictable, next.Upgrade)
		}
	}

	held := edited(own("100Mi", ""))
	held.Spec.PodTemplate.Spec.PriorityClassName = "high"
	next, err := decide(held, somethingSeen(aStatefulSet(now), aServer(old, 0), aServer(now, 1, restarted)))
	if evictable := evictableOf(t, next); err != nil || evictable != 0 || next.WakeAfter == 0 {
		t.Errorf("with what cannot be read back: %d may be evicted, woken after %s (%v)", evictable, next.WakeAfter, err)
	}
}
