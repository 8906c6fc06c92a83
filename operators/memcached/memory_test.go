package memcached

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

// own has a template that says how much memory the server's container gets; "" for nothing.
func own(limit, request string) mcOption {
	of := func(m string) corev1.ResourceList {
		if m == "" {
			return nil
		}
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(m)}
	}
	return func(mc *v1alpha1.Memcached) {
		mc.Spec.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: objects.ServerContainer, Resources: corev1.ResourceRequirements{Limits: of(limit), Requests: of(request)}},
		}}}
	}
}

// TestMemoryOfContainers: the limit counts connections, and what the user's template says
// counts; the templates of 0.0.2 stay as they were.
func TestMemoryOfContainers(t *testing.T) {
	for name, tc := range map[string]struct {
		options        []mcOption
		limit, request string
		of002          string
	}{
		"the default":                  {nil, "144Mi", "144Mi", "144Mi"},
		"few connections":              {[]mcOption{connections(64)}, "144Mi", "144Mi", "144Mi"},
		"the default, with TLS":        {[]mcOption{withCertificate}, "144Mi", "144Mi", "144Mi"},
		"many connections":             {[]mcOption{connections(10_000)}, "215Mi", "215Mi", "144Mi"},
		"many connections with TLS":    {[]mcOption{connections(10_000), withCertificate}, "425Mi", "425Mi", "144Mi"},
		"the most":                     {[]mcOption{connections(1_000_000), withCertificate}, "31362Mi", "31362Mi", "144Mi"},
		"warm":                         {[]mcOption{warm, connections(10_000)}, "215Mi", "215Mi", "144Mi"},
		"a limit of one's own":         {[]mcOption{own("1Gi", "")}, "1Gi", "1Gi", "144Mi"},
		"a limit and a request":        {[]mcOption{own("1Gi", "200Mi")}, "1Gi", "200Mi", "144Mi"},
		"a request":                    {[]mcOption{own("", "100Mi")}, "144Mi", "100Mi", "144Mi"},
		"a request of more":            {[]mcOption{own("", "256Mi")}, "256Mi", "256Mi", "144Mi"},
		"a limit that is just as much": {[]mcOption{own("144Mi", "")}, "144Mi", "144Mi", "144Mi"},
	} {
		mc := aPool(tc.options...)
		for version, want := range []string{tc.limit, tc.of002} {
			template := rendered(t, mc, objects.Renderings[version])
			has := template.Server().Resources
			wantRequest := tc.request
			if version > 0 {
				wantRequest = tc.of002
			}
			if limit, request := has.Limits.Memory().String(), has.Requests.Memory().String(); limit != want || request != wantRequest {
				t.Errorf("%s, rendering %d: limit %s, request %s; want %s and %s", name, version, limit, request, want, wantRequest)
			}
			if p := pool.LowLimit(mc, template); p != nil {
				t.Errorf("%s, rendering %d: %s", name, version, p.Message)
			}
		}
	}
}

// TestLimitTooLow: a limit that cannot hold what the spec allows changes nothing, and is
// reported with what would do.
func TestLimitTooLow(t *testing.T) {
	was := aPool(stable, own("200Mi", ""))
	servers := []seenOption{aStatefulSet(was), aServer(was, 0), aServer(was, 1), aServer(was, 2)}
	for name, tc := range map[string]struct {
		mc   *v1alpha1.Memcached
		seen []seenOption
		want string // in the message; "" if it holds
	}{
		"it holds":                  {was, servers, ""},
		"more connections":          {aPool(stable, own("200Mi", ""), connections(10_000)), servers, `container "memcached" to 200Mi of memory, which is too little for 64Mi of items and 10000 connections: set limits.memory to 215Mi or more, or leave it out`},
		"… with TLS":                {aPool(stable, own("215Mi", ""), connections(10_000), withCertificate), servers, `64Mi of items and 10000 connections with TLS: set limits.memory to 425Mi or more`},
		"more memory":               {aPool(stable, own("200Mi", ""), memory("128Mi")), servers, `128Mi of items and 1024 connections: set limits.memory to 224Mi or more`},
		"less, from the beginning":  {aPool(own("100Mi", "")), nil, `to 100Mi of memory`},
		"another identity as well":  {aPool(own("100Mi", "")), servers, `to 100Mi of memory`},
		"more, and a limit for it":  {aPool(stable, own("1Gi", ""), connections(10_000)), servers, ""},
		"more, and no limit at all": {aPool(stable, connections(10_000)), servers, ""},
	} {
		seen := somethingSeen(tc.seen...)
		next, err := decide(tc.mc, seen)
		if err != nil {
			t.Fatal(err)
		}
		revision := revisionApplied(t, next)
		isChanged := patchOf(next, "change") != nil || count[loop.Delete](next) > 0
		touched := revision != "" && revision != mustTemplate(was).Revision || isChanged
		ready := meta.FindStatusCondition(summarize(tc.mc, seen, next, nil).Conditions, status.Ready)
		if tc.want == "" {
			if next.Problem != nil || revision != mustTemplate(tc.mc).Revision {
				t.Errorf("%s: %+v, servers are touched: %v", name, next.Problem, touched)
			}
			continue
		}
		if touched || ready.Reason != pool.ReasonLowLimit || !strings.Contains(ready.Message, tc.want) {
			t.Errorf("%s: servers are touched: %v; Ready is %s: %s", name, touched, ready.Reason, ready.Message)
		}
		if stalled := meta.FindStatusCondition(summarize(tc.mc, seen, next, nil).Conditions, status.Stalled); stalled == nil {
			t.Errorf("%s: it is not Stalled", name)
		}
	}
}

// TestLimitOf002: a pool that 0.0.2 made keeps its pods, whatever limit its template has,
// and says so.
func TestLimitOf002(t *testing.T) {
	for name, tc := range map[string]struct {
		limit, want string
	}{
		"more":    {"1Gi", "All servers are ready. The container of each server is limited to 144Mi of memory, as an earlier version of the operator did it, and to the 1Gi of spec.podTemplate from the next cold change on"},
		"less":    {"100Mi", "All servers are ready. The container of each server is limited to 144Mi of memory, as an earlier version of the operator did it, and to the 100Mi of spec.podTemplate from the next cold change on"},
		"as much": {"144Mi", "All servers are ready"},
	} {
		mc := aPool(stable, connections(10_000), own(tc.limit, ""))
		of002 := rendered(t, mc, objects.Renderings[1])
		made := func(s *appsv1.StatefulSet) {
			s.Annotations, s.Spec.Template.Annotations = objects.WorkloadAnnotations(mc, of002), of002.Annotations
		}
		server := func(pod *corev1.Pod) { pod.Annotations = of002.Annotations }
		seen := somethingSeen(aStatefulSet(mc, made), aServer(mc, 0, server), aServer(mc, 1, server), aServer(mc, 2, server))
		next, err := decide(mc, seen)
		if err != nil {
			t.Fatal(err)
		}
		ready := meta.FindStatusCondition(summarize(mc, seen, next, nil).Conditions, status.Ready)
		if next.Upgrade != nil || ready.Message != tc.want {
			t.Errorf("%s: upgrade %+v; Ready is %s: %s", name, next.Upgrade, ready.Reason, ready.Message)
		}
	}
}

// TestConnectionsGrow: a warm server is allowed more connections once its container has
// the memory for them.
func TestConnectionsGrow(t *testing.T) {
	one := func(options ...mcOption) *v1alpha1.Memcached {
		return aPool(append([]mcOption{warm, size(1)}, options...)...)
	}
	named := func(options ...mcOption) *v1alpha1.Memcached {
		return one(append(options, announced(v1alpha1.Warm, "cache-0"))...)
	}
	const many = 10_000
	limit := func(m string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(m)}
	}
	has := func(m string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].Resources = &corev1.ResourceRequirements{Limits: limit(m)}
		}
	}
	requested := func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources.Limits = limit("215Mi") }
	cannot := func(seen *pool.Observation) { seen.Resizes = false }
	refused := func(pod *corev1.Pod) { pod.Annotations[objects.RefusedAnnotation] = "215Mi" }
	of002 := func(mc *v1alpha1.Memcached) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Annotations = rendered(t, mc, objects.Renderings[1]).Annotations }
	}
	for name, tc := range map[string]struct {
		was, is        *v1alpha1.Memcached
		pod            []func(*corev1.Pod)
		seen           []seenOption
		kind           v1alpha1.UpgradeKind
		resize, change bool
		waits          string
	}{
		"first it is named":               {was: one(), is: one(connections(many)), kind: v1alpha1.Warm},
		"then its container is resized":   {was: one(), is: named(connections(many)), pod: []func(*corev1.Pod){has("144Mi")}, kind: v1alpha1.Warm, resize: true},
		"that takes a while":              {was: one(), is: named(connections(many)), pod: []func(*corev1.Pod){requested, has("144Mi")}, kind: v1alpha1.Warm, waits: "the container of server cache-0 is getting more memory"},
		"then it is changed":              {was: one(), is: named(connections(many)), pod: []func(*corev1.Pod){requested, has("215Mi")}, kind: v1alpha1.Warm, change: true},
		"the node has no room: cold":      {was: one(), is: named(connections(many)), pod: []func(*corev1.Pod){has("144Mi"), refused}, kind: v1alpha1.Cold},
		"the cluster cannot resize: cold": {was: one(), is: one(connections(many)), seen: []seenOption{cannot}, kind: v1alpha1.Cold},
		"few more need no memory":         {was: one(connections(100)), is: named(connections(1000)), seen: []seenOption{cannot}, kind: v1alpha1.Warm, change: true},
		"fewer keep it":                   {was: one(connections(many)), is: named(), seen: []seenOption{cannot}, kind: v1alpha1.Warm, change: true},
		"it has it from before":           {was: one(), is: named(connections(many)), pod: []func(*corev1.Pod){requested, has("215Mi")}, kind: v1alpha1.Warm, change: true},
		"within a limit of one's own":     {was: one(own("1Gi", "")), is: named(own("1Gi", ""), connections(many)), seen: []seenOption{cannot}, kind: v1alpha1.Warm, change: true},
		"another limit of one's own":      {was: one(own("1Gi", "")), is: one(own("2Gi", "")), kind: v1alpha1.Cold},
		"no limit of one's own any more":  {was: one(own("1Gi", "")), is: one(), kind: v1alpha1.Cold},
	} {
		next, err := decide(tc.is, somethingSeen(append([]seenOption{aStatefulSet(tc.is), aServer(tc.was, 0, tc.pod...)}, tc.seen...)...))
		if err != nil {
			t.Fatal(err)
		}
		resize, change := patchOf(next, "resize"), patchOf(next, "change")
		isAs := (resize != nil) == tc.resize && (change != nil) == tc.change && next.Waits == tc.waits
		if next.Upgrade == nil || next.Upgrade.Kind != tc.kind || !isAs {
			t.Errorf("%s: %+v, resize %v, change %v, waits for %q", name, next.Upgrade, resize, change, next.Waits)
		}
		if resize != nil {
			want := map[string]any{"containers": []any{map[string]any{"name": "memcached", "resources": map[string]any{
				"limits": map[string]any{"memory": "215Mi"}, "requests": map[string]any{"memory": "215Mi"},
			}}}}
			if diff := cmp.Diff(want, resize.Spec); diff != "" {
				t.Errorf("%s: resize (-want +got):\n%s", name, diff)
			}
		}
	}

	was, is := one(), one(connections(many))
	seen := somethingSeen(aServer(was, 0, of002(was)))
	template, err := pool.NextTemplate(is, seen)
	if err != nil || !template.IsOf002 || !pool.CanChangeInPlace(seen, template) || !pool.HasRoom(seen, &seen.Pods[0], template) {
		t.Errorf("a server of 0.0.2 is not changed in place as before (%v)", err)
	}
}

// TestGrowsWithinItsLimit: more memory for items, where a limit of the user's own has room for
// it, needs no container that can be resized.
func TestGrowsWithinItsLimit(t *testing.T) {
	limit := own("1Gi", "")
	one := func(options ...mcOption) *v1alpha1.Memcached {
		return aPool(append([]mcOption{stable, size(1)}, options...)...)
	}
	cannot := func(seen *pool.Observation) { seen.Resizes = false }
	runs := func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
	}
	infeasible := func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible})
	}
	asked := func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("224Mi")}
	}
	for name, tc := range map[string]struct {
		was, is []mcOption
		pod     func(*corev1.Pod)
		seen    []seenOption
		kind    v1alpha1.UpgradeKind
		change  bool
	}{
		"the cluster cannot resize":              {was: []mcOption{limit}, is: []mcOption{limit, memory("128Mi")}, seen: []seenOption{cannot}, kind: v1alpha1.Untouched, change: true},
		"the node's kubelet cannot":              {was: []mcOption{limit}, is: []mcOption{limit, memory("128Mi")}, pod: runs, kind: v1alpha1.Untouched, change: true},
		"the limit of the operator has none":     {is: []mcOption{memory("128Mi")}, seen: []seenOption{cannot}, kind: v1alpha1.Cold},
		"a limit that comes with the memory":     {is: []mcOption{limit, memory("128Mi")}, seen: []seenOption{cannot}, kind: v1alpha1.Cold},
		"less memory":                            {was: []mcOption{limit}, is: []mcOption{limit, memory("32Mi")}, seen: []seenOption{cannot}, kind: v1alpha1.Cold},
		"it was asked for, and there is no room": {is: []mcOption{memory("128Mi")}, pod: func(pod *corev1.Pod) { asked(pod); infeasible(pod) }, kind: v1alpha1.Cold},
	} {
		was, is := one(tc.was...), one(tc.is...)
		if tc.pod == nil {
			tc.pod = func(*corev1.Pod) {}
		}
		seen := func() pool.Observation {
			return somethingSeen(append([]seenOption{aStatefulSet(is), aServer(was, 0, tc.pod)}, tc.seen...)...)
		}
		next, err := decide(is, seen())
		if err != nil || next.Upgrade == nil || next.Upgrade.Kind != tc.kind {
			t.Errorf("%s: %+v (%v), want %s", name, next.Upgrade, err, tc.kind)
			continue
		}
		announced(tc.kind, "cache-0")(is)
		next, err = decide(is, seen())
		resize, change := patchOf(next, "resize"), patchOf(next, "change")
		if err != nil || (change != nil) != tc.change || resize != nil {
			t.Errorf("%s: change %v, resize %v, waits for %q (%v)", name, change, resize, next.Waits, err)
		}
	}
	// A container that keeps more than it needs has room for as many connections again.
	was, is := aPool(warm, size(1)), aPool(warm, size(1), connections(10_000), announced(v1alpha1.Warm, "cache-0"))
	larger := func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("215Mi")}
	}
	next, err := decide(is, somethingSeen(aStatefulSet(is), aServer(was, 0, larger), cannot))
	if err != nil || patchOf(next, "change") == nil {
		t.Errorf("connections: %+v (%v)", next.Upgrade, err)
	}
}
