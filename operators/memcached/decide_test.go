package memcached

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/memcached/change"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

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
			if objects.IsStable(tc.was) {
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
			if next.Upgrade != nil {
				got = next.Upgrade.Kind
			}
			if got != tc.want {
				t.Errorf("%+v is %q, want %q", next.Upgrade, got, tc.want)
			}
		})
	}
}

// TestColdIsToldFirst: nothing is replaced before status has announced it.
func TestColdIsToldFirst(t *testing.T) {
	was := aPool(warm)
	more := []mcOption{warm, memory("128Mi")}
	servers := []seenOption{aStatefulSet(was), aServer(was, 0), aServer(was, 1), aServer(was, 2)}
	for name, tc := range map[string]struct {
		mc   *v1alpha1.Memcached
		want int32
	}{
		"not told":               {aPool(more...), objects.PartitionClosed},
		"told of something else": {aPool(warm, memory("256Mi"), announced(v1alpha1.Cold, ""), memory("128Mi")), objects.PartitionClosed},
		"told":                   {aPool(append(more, announced(v1alpha1.Cold, ""))...), 0},
	} {
		next, err := decide(tc.mc, somethingSeen(servers...))
		if err != nil {
			t.Fatal(err)
		}
		if got := partitionOf(t, next); got != tc.want {
			t.Errorf("%s: partition %d, want %d", name, got, tc.want)
		}
		if name != "told" && !strings.HasPrefix(next.Upgrade.Message, "memory from 64Mi to 128Mi: the servers are replaced") {
			t.Errorf("%s: message %q", name, next.Upgrade.Message)
		}
	}

	random, changed := aPool(), aPool(version("1.6.18"))
	pods := []seenOption{aDeployment(random, 3), aServer(random, 0)}
	if next, _ := decide(changed, somethingSeen(pods...)); wants(next, objects.DeploymentKind) {
		t.Error("a Deployment is changed before status has announced it")
	}
	announced(v1alpha1.Cold, "")(changed)
	if next, _ := decide(changed, somethingSeen(pods...)); !wants(next, objects.DeploymentKind) {
		t.Error("a Deployment is not changed after status has announced it")
	}
}

// TestCountsWhatWasChanged: a server that was changed before another writer changed the template, as kubectl rollout
// restart does, has the label of the template before: the StatefulSet's controller would wait for it for ever.
func TestCountsWhatWasChanged(t *testing.T) {
	mc := aPool(warm, announced(v1alpha1.Warm, ""))
	for label, want := range map[string]int{"cache-new": 0, "cache-mid": 1} {
		pods := []seenOption{aServer(mc, 0), aServer(mc, 1), aServer(mc, 2)}
		seen := somethingSeen(append(pods, aStatefulSet(mc))...)
		for i := range seen.Pods {
			seen.Pods[i].Labels[objects.RevisionLabel] = "cache-new"
		}
		seen.Pods[2].Labels[objects.RevisionLabel] = label
		next, err := decide(mc, seen)
		if err != nil {
			t.Fatal(err)
		}
		var counted []loop.Write
		for _, w := range next.Then {
			if p, is := w.(loop.Patch); is && p.Part == "change" {
				counted = append(counted, w)
			}
		}
		if len(counted) != want || want == 1 && loop.ObjectOf(counted[0]).GetName() != seen.Pods[2].Name {
			t.Errorf("%s: %d servers are counted, want %d", label, len(counted), want)
		}
	}
}

// TestColdGoesOnUntilPromoted: the partition stays open until no pod can be made of the
// old template.
func TestColdGoesOnUntilPromoted(t *testing.T) {
	mc := aPool(warm, announced(v1alpha1.Cold, ""))
	pods := []seenOption{aServer(mc, 0), aServer(mc, 1), aServer(mc, 2)}
	unpromoted := somethingSeen(append(pods, aStatefulSet(mc, func(s *appsv1.StatefulSet) { *s.Spec.UpdateStrategy.RollingUpdate.Partition = 0 }))...)
	promoted := somethingSeen(append(pods, aStatefulSet(mc, func(s *appsv1.StatefulSet) { s.Status.CurrentRevision = s.Status.UpdateRevision }))...)
	if next, _ := decide(mc, unpromoted); next.Upgrade == nil || next.Upgrade.Kind != v1alpha1.Cold || partitionOf(t, next) != 0 {
		t.Errorf("before it is promoted: %+v", next.Upgrade)
	}
	late := aPool(warm)
	if next, _ := decide(late, unpromoted); partitionOf(t, next) != 0 {
		t.Error("an operator that does not see the announcement yet closes the partition before the last pod is there")
	}
	old := aPool(warm, memory("32Mi"))
	if next, _ := decide(late, somethingSeen(append(pods[:1:1], aServer(old, 1), aStatefulSet(late, func(s *appsv1.StatefulSet) { *s.Spec.UpdateStrategy.RollingUpdate.Partition = 0 }))...)); partitionOf(t, next) != 0 {
		t.Error("an operator that does not see the announcement yet closes the partition under way")
	}
	grown := aPool(stable, memory("128Mi"))
	servers := []seenOption{aServer(aPool(stable), 0), aServer(aPool(stable), 1), aServer(grown, 2)} // the last one was refused, and replaced
	open := func(s *appsv1.StatefulSet) { *s.Spec.UpdateStrategy.RollingUpdate.Partition = 0 }
	opened := func(s *appsv1.StatefulSet) { s.Annotations[objects.OpenAnnotation] = mustTemplate(grown).Revision }
	if next, _ := decide(grown, somethingSeen(append(servers, aStatefulSet(grown, open, opened))...)); next.Upgrade.Kind != v1alpha1.Untouched || partitionOf(t, next) != 0 {
		t.Error("an operator that does not see the announcement yet closes the partition, because the rest could grow")
	}
	if next, _ := decide(grown, somethingSeen(append(servers, aStatefulSet(grown, open))...)); partitionOf(t, next) != objects.PartitionClosed {
		t.Error("a partition that another writer opened stays open")
	}
	mc.Status.Upgrade.Message = "what was announced"
	if next, _ := decide(mc, unpromoted); next.Upgrade.Message != "what was announced" {
		t.Errorf("the message is %q now", next.Upgrade.Message)
	}
	if next, _ := decide(mc, promoted); next.Upgrade != nil || partitionOf(t, next) != objects.PartitionClosed {
		t.Errorf("after it is promoted: %+v", next.Upgrade)
	}
}

// TestNoServersYet: where there is no pod, none is made of the old template.
func TestNoServersYet(t *testing.T) {
	was, is := aPool(warm, version("1.6.18")), aPool(warm)
	promoted := func(s *appsv1.StatefulSet) { s.Status.CurrentRevision = s.Status.UpdateRevision }
	counted := func(s *appsv1.StatefulSet) { s.Status.Replicas = 3 }
	open := func(s *appsv1.StatefulSet) { *s.Spec.UpdateStrategy.RollingUpdate.Partition = 0 }
	unseen := func(s *appsv1.StatefulSet) { s.Status.ObservedGeneration = 1 }
	for name, tc := range map[string]struct {
		seen []seenOption
		want int32
	}{
		"nothing is there":               {nil, objects.PartitionClosed},
		"the old template, refused":      {[]seenOption{aStatefulSet(was, promoted)}, 0},
		"… and the other shape is there": {[]seenOption{aStatefulSet(was, promoted), aDeployment(aPool(), 3), aServer(aPool(), 7)}, 0},
		"closed by an earlier operator":  {[]seenOption{aStatefulSet(is)}, 0},
		"its pods are not in the cache":  {[]seenOption{aStatefulSet(was, counted)}, objects.PartitionClosed},
		"as it is to be":                 {[]seenOption{aStatefulSet(is, promoted)}, objects.PartitionClosed},
		"the first ones are made":        {[]seenOption{aStatefulSet(is, open), aServer(is, 0)}, 0},
		"its controller has not seen it": {[]seenOption{aStatefulSet(is, open, promoted, unseen), aServer(is, 0)}, 0},
		"all is over":                    {[]seenOption{aStatefulSet(is, open, promoted), aServer(is, 0)}, objects.PartitionClosed},
	} {
		next, err := decide(is, somethingSeen(tc.seen...))
		if err != nil {
			t.Fatal(err)
		}
		if got := partitionOf(t, next); got != tc.want {
			t.Errorf("%s: partition %d, want %d", name, got, tc.want)
		}
	}
}

// TestCopiesOfTheirName: a Secret of the user's that has the copy's name is not
// mounted, but by pods of 0.0.1, which are not replaced for that alone.
func TestCopiesOfTheirName(t *testing.T) {
	tls := func(secret string) mcOption {
		return func(mc *v1alpha1.Memcached) { mc.Spec.TLS = &v1alpha1.TLSSpec{SecretName: secret} }
	}
	for secret, want := range map[string]string{"certificate": "cache-tls", "cache-tls": "cache-tls-copy"} {
		if got := mustTemplate(aPool(tls(secret))).Spec.Volumes[0].Secret.SecretName; got != want {
			t.Errorf("with %s: %s is mounted, want %s", secret, got, want)
		}
	}
	both := aPool(tls("cache-auth"), func(mc *v1alpha1.Memcached) { mc.Spec.Auth = &v1alpha1.AuthSpec{SecretName: "cache-tls"} })
	if auth, tls := objects.CopyName(both, "auth"), objects.CopyName(both, "tls"); auth != "cache-auth-copy" || tls != "cache-tls-copy" {
		t.Errorf("copies %s and %s", auth, tls)
	}

	mc := aPool(stable, tls("cache-tls"))
	earlier, err := objects.TemplateWith(mc, objects.Renderings[2])
	if err != nil {
		t.Fatal(err)
	}
	of001 := func(s *appsv1.StatefulSet) {
		s.Annotations, s.Spec.Template.Annotations = objects.WorkloadAnnotations(mc, earlier), earlier.Annotations
	}
	got, err := pool.NextTemplate(mc, somethingSeen(aStatefulSet(mc, of001)))
	if err != nil || got.Revision != earlier.Revision {
		t.Errorf("pods of 0.0.1 are replaced (%v)", err)
	}
	mc.Spec.MaxConnections++
	got, err = pool.NextTemplate(mc, somethingSeen(aStatefulSet(mc, of001)))
	if err != nil || got.Revision != mustTemplate(mc).Revision {
		t.Errorf("pods that are replaced mount the user's own Secret (%v)", err)
	}
}

// TestShapes: clients see the old servers until the new ones are ready.
func TestShapes(t *testing.T) {
	random, want := aPool(size(1)), aPool(stable, size(1))
	announced(v1alpha1.Cold, "")(want)
	starting := somethingSeen(aDeployment(random, 1), aServer(random, 7), aStatefulSet(want))
	ready := somethingSeen(aDeployment(random, 1), aServer(random, 7), aStatefulSet(want, func(s *appsv1.StatefulSet) { s.Status.ReadyReplicas = 1 }))
	next, err := decide(want, starting)
	if err != nil || pool.ServingIdentity(want, starting, mustTemplate(want)) != v1alpha1.RandomIdentity || count[loop.Delete](next) > 0 {
		t.Errorf("while they start: %d objects are removed (%v)", count[loop.Delete](next), err)
	}
	next, err = decide(want, ready)
	if err != nil || pool.ServingIdentity(want, ready, mustTemplate(want)) != v1alpha1.StableIdentity || count[loop.Delete](next) != 1 {
		t.Errorf("when they are ready: %d objects are removed (%v)", count[loop.Delete](next), err)
	}
}

func connections(n int32) mcOption {
	return func(mc *v1alpha1.Memcached) { mc.Spec.MaxConnections = n }
}

func image(name string) mcOption { return func(mc *v1alpha1.Memcached) { mc.Spec.Image = name } }

func wants(next *change.Plan, kind string) bool {
	return slices.ContainsFunc(next.Writes, func(w loop.Write) bool { return loop.Name(w) == "apply "+kind })
}

func partitionOf(t *testing.T, next *change.Plan) int32 {
	t.Helper()
	for _, w := range next.Writes {
		if write, is := w.(loop.Apply); is && loop.KindOf(write.Object) == objects.StatefulSetKind {
			seen := somethingSeen()
			set := seen.StatefulSet()
			decodeInto(t, write.Want, set)
			return *set.Spec.UpdateStrategy.RollingUpdate.Partition
		}
	}
	t.Fatal("no StatefulSet is wanted")
	return 0
}
