package memcached

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

// restarts is the part of a kubelet that the testkit's does not play: a container whose
// image or settings change in a running pod is started again there, and a container gets
// the memory that is requested while it runs.
type restarts interface {
	// begin does that for the pods of a run until the context ends.
	begin(ctx context.Context, r *testkit.Run)
	// of are the names of the servers of a run that were restarted so far, and how many
	// of them at most were unavailable at the same time.
	of(r *testkit.Run) (names []string, unavailable int)
}

// stories are those of servers that are restarted like this.
func stories(rs restarts) []testkit.Scenario {
	all := []testkit.Scenario{growsAndChanges(), upgradesWarm(rs), upgradesCold(), getsMemory(rs), changesIdentity(), losesLabelsAndRoom(), rotatesUsers(), takesOver(), takesOverAsItIs()}
	for i := range all {
		arrange := all[i].Arrange
		all[i].Arrange = func(ctx context.Context, r *testkit.Run) error {
			rs.begin(ctx, r)
			return arrange(ctx, r)
		}
	}
	return all
}

// story is a Memcached called "cache" with one server.
func story(r *testkit.Run, options ...mcOption) *v1alpha1.Memcached {
	mc := aPool(append([]mcOption{size(1), version("1.6.18")}, options...)...)
	mc.Namespace, mc.UID, mc.Generation = r.Namespace, "", 0
	return mc
}

func arranged(options ...mcOption) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error { return r.Client.Create(ctx, story(r, options...)) }
}

func current(ctx context.Context, r *testkit.Run) (*v1alpha1.Memcached, error) {
	var mc v1alpha1.Memcached
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: "cache"}, &mc)
	return &mc, err
}

func read[O client.Object](ctx context.Context, r *testkit.Run, name string, obj O) (O, error) {
	return obj, r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, obj)
}

func patched(patch string) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		return r.Client.Patch(ctx, story(r), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
}

// servers are the pods that serve.
func servers(ctx context.Context, r *testkit.Run) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := r.Client.List(ctx, &pods, client.InNamespace(r.Namespace), client.MatchingLabels{objects.AppLabel: "memcached"})
	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }), err
}

// isReadyWith holds when the condition Ready has the reason, for what the spec now is,
// and so many servers have the image and are ready.
func isReadyWith(reason, image string, n int) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		mc, err := current(ctx, r)
		if err != nil {
			return err
		}
		ready := meta.FindStatusCondition(mc.Status.Conditions, status.Ready)
		if ready == nil || ready.Reason != reason || ready.ObservedGeneration != mc.Generation {
			return fmt.Errorf("generation %d: Ready is %+v, want %s", mc.Generation, ready, reason)
		}
		pods, err := servers(ctx, r)
		if err != nil {
			return err
		}
		if len(pods) != n || len(mc.Status.Nodes) != n {
			return fmt.Errorf("%d servers, status has %v, want %d", len(pods), mc.Status.Nodes, n)
		}
		for _, pod := range pods {
			if have := podtemplate.Container(&pod.Spec, objects.ServerContainer).Image; !strings.HasSuffix(have, image) || !pool.IsAvailable(&pod, r.Now()) {
				return fmt.Errorf("server %s has image %s, available %v", pod.Name, have, pool.IsAvailable(&pod, r.Now()))
			}
		}
		return nil
	}
}

// behaves is what becomes of pods: servers run on, pulls end.
func behaves(pod *corev1.Pod) testkit.Outcome {
	if pod.Labels[objects.AppLabel] == objects.PullApp {
		return testkit.Succeeds(0)
	}
	return testkit.Stays()
}

// restartedOnceEach says whether each server was restarted once, one at a time.
func restartedOnceEach(rs restarts, r *testkit.Run, names ...string) error {
	restarted, unavailable := rs.of(r)
	if got := slices.Sorted(slices.Values(restarted)); !slices.Equal(got, names) {
		return fmt.Errorf("restarted were %v, want each of %v once", got, names)
	}
	if unavailable > 1 {
		return fmt.Errorf("%d servers were unavailable at the same time", unavailable)
	}
	return nil
}

// serverStarts is how many pods of servers were started, the pulls apart.
func serverStarts(r *testkit.Run) int {
	pods := map[types.UID]bool{}
	for _, start := range r.Kubelet.Starts() {
		if start.Pod.Labels[objects.AppLabel] != objects.PullApp {
			pods[start.Pod.UID] = true
		}
	}
	return len(slices.Collect(maps.Keys(pods)))
}

const reasonIsReady = "Ready"

// growsAndChanges is the plain story.
func growsAndChanges() testkit.Scenario {
	return testkit.Scenario{
		Name: "grows-and-changes", Pods: behaves, Arrange: arranged(),
		Steps: []testkit.Step{
			{Name: "two", When: isReadyWith(reasonIsReady, "memcached:1.6.18", 1), Do: patched(`{"spec":{"size":2}}`)},
			{Name: "another version", When: isReadyWith(reasonIsReady, "memcached:1.6.18", 2), Do: patched(`{"spec":{"version":"1.6.38","disruption":{"enabled":false}}}`)},
		},
		Settled: isReadyWith(reasonIsReady, "memcached:1.6.38", 2),
		Check:   nothingLeft(1, 0, 0),
		Timeout: time.Minute,
	}
}

// upgradesWarm is the change in place, of an image and of a setting.
func upgradesWarm(rs restarts) testkit.Scenario {
	return testkit.Scenario{
		Name: "upgrades-warm", Pods: behaves, Arrange: arranged(warm, size(2)),
		Steps: []testkit.Step{{
			Name: "another version and more threads", When: isReadyWith(reasonIsReady, "memcached:1.6.18", 2),
			Do: patched(`{"spec":{"version":"1.6.38","threads":2}}`),
		}},
		Settled: isReadyWith(reasonIsReady, "memcached:1.6.38", 2),
		Check: func(ctx context.Context, r *testkit.Run) error {
			if err := restartedOnceEach(rs, r, "cache-0", "cache-1"); err != nil {
				return err
			}
			if starts := serverStarts(r); starts != 2 {
				return fmt.Errorf("%d pods of servers were started, want 2: the pods were to stay", starts)
			}
			s, err := read(ctx, r, "cache", &appsv1.StatefulSet{})
			if err != nil {
				return err
			}
			if s.Status.CurrentRevision != s.Status.UpdateRevision {
				return errors.New("the StatefulSet's new revision was not promoted")
			}
			return nothingLeft(0, 1, 0)(ctx, r)
		},
		Timeout: time.Minute,
	}
}

// goesBackWarm goes back to a version that cannot read what the servers then have, with another setting once one of them
// is back: emptiedAsAnnounced is what must hold. It is for the simulation alone, because Kubernetes holds back servers
// that are restarted this often.
func goesBackWarm() testkit.Scenario {
	oneIsBack := func(ctx context.Context, r *testkit.Run) error {
		pod, err := read(ctx, r, "cache-2", &corev1.Pod{})
		if err != nil {
			return err
		}
		if have := podtemplate.Container(&pod.Spec, objects.ServerContainer).Image; !strings.HasSuffix(have, "memcached:1.6.18") {
			return fmt.Errorf("cache-2 has image %s", have)
		}
		return nil
	}
	return testkit.Scenario{
		Name: "goes-back-warm", Pods: behaves, Arrange: arranged(warm, size(3)),
		Steps: []testkit.Step{
			{Name: "another version", When: isReadyWith(reasonIsReady, "memcached:1.6.18", 3), Do: patched(`{"spec":{"version":"1.6.38"}}`)},
			{Name: "back", When: isReadyWith(reasonIsReady, "memcached:1.6.38", 3), Do: patched(`{"spec":{"version":"1.6.18"}}`)},
			{Name: "more threads", When: oneIsBack, Do: patched(`{"spec":{"threads":8}}`)},
		},
		Settled: isReadyWith(reasonIsReady, "memcached:1.6.18", 3),
		Check:   nothingLeft(0, 1, 0),
	}
}

// upgradesCold changes what cannot be changed in place.
func upgradesCold() testkit.Scenario {
	return testkit.Scenario{
		Name: "upgrades-cold", Pods: behaves, Arrange: arranged(warm, size(2)),
		Steps: []testkit.Step{{
			Name: "more memory", When: isReadyWith(reasonIsReady, "memcached:1.6.18", 2),
			Do: patched(`{"spec":{"memory":"128Mi"}}`),
		}},
		Settled: hasMemory("128Mi", 2),
		Check: func(ctx context.Context, r *testkit.Run) error {
			if starts := serverStarts(r); starts != 4 {
				return fmt.Errorf("%d pods of servers were started, want 2 and then 2", starts)
			}
			return nothingLeft(0, 1, 0)(ctx, r)
		},
		Timeout: time.Minute,
	}
}

// getsMemory gives running servers more memory.
func getsMemory(rs restarts) testkit.Scenario {
	return testkit.Scenario{
		Name: "gets-memory", Pods: behaves, Arrange: arranged(stable, size(2)),
		Steps: []testkit.Step{{
			Name: "more memory", When: canResize(2),
			Do: patched(`{"spec":{"memory":"128Mi"}}`),
		}},
		Settled: hasMemory("128Mi", 2),
		Check: func(ctx context.Context, r *testkit.Run) error {
			pods, err := servers(ctx, r)
			if err != nil {
				return err
			}
			for _, pod := range pods {
				if limit := podtemplate.Container(&pod.Spec, objects.ServerContainer).Resources.Limits.Memory().String(); limit != "224Mi" || pod.Annotations[objects.MemoryAnnotation] != "128" {
					return fmt.Errorf("%s has a limit of %s, and its annotation says %s", pod.Name, limit, pod.Annotations[objects.MemoryAnnotation])
				}
			}
			if starts := serverStarts(r); starts != 2 {
				return fmt.Errorf("%d pods of servers were started, want 2", starts)
			}
			return restartedOnceEach(rs, r)
		},
		Timeout: time.Minute,
	}
}

// canResize is when n servers are ready and the kubelet has reported their resources:
// before, the API server refuses to resize a pod, as of a node that cannot do it.
func canResize(n int) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		pods, err := servers(ctx, r)
		if err != nil {
			return err
		}
		for _, pod := range pods {
			if len(pod.Status.ContainerStatuses) == 0 || slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Resources == nil }) {
				return fmt.Errorf("the resources of %s are not reported", pod.Name)
			}
		}
		return isReadyWith(reasonIsReady, "memcached:1.6.18", n)(ctx, r)
	}
}

func hasMemory(memory string, n int) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		if mc, err := current(ctx, r); err != nil || mc.Status.Memory != memory {
			return fmt.Errorf("status has memory %s (%w)", mc.Status.Memory, errors.Join(err, errNotYet))
		}
		return isReadyWith(reasonIsReady, "memcached:1.6.18", n)(ctx, r)
	}
}

var errNotYet = errors.New("not yet")

// changesIdentity goes from one identity to the other.
func changesIdentity() testkit.Scenario {
	return testkit.Scenario{
		Name: "changes-identity", Pods: behaves, Arrange: arranged(),
		Steps: []testkit.Step{{
			Name: "stable", When: isReadyWith(reasonIsReady, "memcached:1.6.18", 1),
			Do: patched(`{"spec":{"identity":"Stable"}}`),
		}},
		Settled: isReadyWith(reasonIsReady, "memcached:1.6.18", 1),
		Check:   nothingLeft(0, 1, 0),
		Timeout: time.Minute,
	}
}

// losesLabelsAndRoom has a server whose labels somebody removes, then more memory
// than the node has for it, and then another identity.
func losesLabelsAndRoom() testkit.Scenario {
	hasItsLabel := func(ctx context.Context, r *testkit.Run) error {
		pod, err := read(ctx, r, "cache-0", &corev1.Pod{})
		if err == nil && pod.Labels[run.ManagedByLabel] != objects.ManagedBy {
			err = errors.New("cache-0 does not have its label")
		}
		return errors.Join(err, isReadyWith(reasonIsReady, "memcached:1.6.18", 1)(ctx, r))
	}
	return testkit.Scenario{
		Name: "loses-labels-and-room", Pods: behaves, Arrange: arranged(stable),
		Steps: []testkit.Step{
			{Name: "no label", When: hasItsLabel, Do: func(ctx context.Context, r *testkit.Run) error {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: "cache-0"}}
				return r.Client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+run.ManagedByLabel+`":null}}}`)))
			}},
			{Name: "more memory than there is", When: hasItsLabel, Do: patched(`{"spec":{"memory":"2Gi"}}`)},
			{Name: "random", When: hasMemory("2Gi", 1), Do: patched(`{"spec":{"identity":"Random"}}`)},
		},
		Settled: func(ctx context.Context, r *testkit.Run) error {
			return errors.Join(nothingLeft(1, 0, 0)(ctx, r), hasMemory("2Gi", 1)(ctx, r))
		},
		Timeout: time.Minute,
	}
}

// rotatesUsers has a file of users that changes, and is not requested in the end.
func rotatesUsers() testkit.Scenario {
	users := func(r *testkit.Run, text string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: "who"}, Data: map[string][]byte{"users": []byte(text)}}
	}
	holds := func(text string) func(context.Context, *testkit.Run) error {
		return func(ctx context.Context, r *testkit.Run) error {
			secret, err := read(ctx, r, "cache-auth", &corev1.Secret{})
			if err != nil {
				return err
			}
			if string(secret.Data[objects.UsersFile]) != text {
				return errors.New("the copy does not have the users")
			}
			pods, err := servers(ctx, r)
			for _, pod := range pods {
				if pod.Annotations[objects.SecretsAnnotation] == "" {
					return fmt.Errorf("%s has no annotation for the new users", pod.Name)
				}
			}
			return errors.Join(err, isReadyWith(reasonIsReady, "memcached:1.6.18", 1)(ctx, r))
		}
	}
	return testkit.Scenario{
		Name: "rotates-users", Pods: behaves,
		Arrange: func(ctx context.Context, r *testkit.Run) error {
			if err := r.Client.Create(ctx, users(r, "me:secret\n")); err != nil {
				return err
			}
			return arranged(func(mc *v1alpha1.Memcached) { mc.Spec.Auth = &v1alpha1.AuthSpec{SecretName: "who", Key: "users"} })(ctx, r)
		},
		Steps: []testkit.Step{
			{Name: "another password", When: holds("me:secret\n"), Do: func(ctx context.Context, r *testkit.Run) error {
				return r.Client.Update(ctx, users(r, "me:other\n"))
			}},
			{Name: "no users", When: holds("me:other\n"), Do: patched(`{"spec":{"auth":null}}`)},
		},
		Settled: isReadyWith(reasonIsReady, "memcached:1.6.18", 1),
		Check: func(ctx context.Context, r *testkit.Run) error {
			var secrets corev1.SecretList
			if err := r.Client.List(ctx, &secrets, client.InNamespace(r.Namespace), client.HasLabels{objects.PodsOf}); err != nil || len(secrets.Items) > 0 {
				return fmt.Errorf("%d copies of Secrets are left (%w)", len(secrets.Items), errors.Join(err, errNotYet))
			}
			return nil
		},
		Timeout: time.Minute,
	}
}

// takesOver is the story of the tutorial's Deployment and stable servers.
func takesOver() testkit.Scenario {
	return testkit.Scenario{
		Name: "takes-over", Pods: behaves, Arrange: isForeignDeployment(nil, stable),
		Settled: isReadyWith(reasonIsReady, "memcached:1.6.18", 1),
		Check:   nothingLeft(0, 1, 0),
		Timeout: time.Minute,
	}
}

// takesOverAsItIs is the story of the tutorial's Deployment and servers of the identity that it has: it stays, and nothing
// of its pods that is not wanted.
func takesOverAsItIs() testkit.Scenario {
	return testkit.Scenario{
		Name: "takes-over-as-it-is", Pods: behaves, Arrange: isForeignDeployment(nil),
		Settled: isReadyWith(reasonIsReady, "memcached:1.6.18", 1),
		Check: func(ctx context.Context, r *testkit.Run) error {
			d, err := read(ctx, r, "cache", &appsv1.Deployment{})
			if err != nil {
				return err
			}
			if aliases := d.Spec.Template.Spec.HostAliases; len(aliases) > 0 {
				return fmt.Errorf("the pods still have the aliases %v", aliases)
			}
			for _, entry := range d.ManagedFields {
				if entry.Manager != objects.ManagedBy && entry.Subresource == "" && strings.Contains(string(entry.FieldsV1.GetRawBytes()), "f:containers") {
					return fmt.Errorf("containers are still those of %s: %s", entry.Manager, entry.FieldsV1.GetRawBytes())
				}
			}
			return nothingLeft(1, 0, 0)(ctx, r)
		},
		Timeout: time.Minute,
	}
}

// isForeignDeployment arranges for a Memcached with the tutorial's Deployment, of which arrange, if set, makes another
// one. Until there is a Secret, the operator makes no servers of its own.
func isForeignDeployment(arrange func(*appsv1.Deployment), options ...mcOption) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		mc := story(r, append(options, func(mc *v1alpha1.Memcached) { mc.Spec.Auth = &v1alpha1.AuthSpec{SecretName: "who", Key: "users"} })...)
		if err := r.Client.Create(ctx, mc); err != nil {
			return err
		}
		d := tutorialDeployment(mc)
		if arrange != nil {
			arrange(d)
		}
		if err := r.Client.Create(ctx, d); err != nil {
			return err
		}
		return r.Client.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: "who"}, Data: map[string][]byte{"users": []byte("me:secret\n")}})
	}
}

// tutorialDeployment is what the tutorial's operator makes for a Memcached.
func tutorialDeployment(mc *v1alpha1.Memcached) *appsv1.Deployment {
	selects := func() map[string]string {
		return map[string]string{objects.AppLabel: "memcached", objects.PodsOf: "cache"}
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: mc.Namespace, Name: "cache", OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(mc, v1alpha1.GroupVersion.WithKind("Memcached")),
		}},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: selects()},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selects()}, Spec: corev1.PodSpec{
				HostAliases:     []corev1.HostAlias{{IP: "10.0.0.1", Hostnames: []string{"a.example.com"}}},
				SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
				Containers: []corev1.Container{{
					Name: "memcached", Image: "memcached:1.4.36-alpine", Command: []string{"memcached", "-m=64", "-o", "modern", "-v"},
					SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
				}},
			}}},
	}
}

// nothingLeft holds at the end of a story: there is one of each child, and no
// pod that pulls.
func nothingLeft(deployments, statefulSets, pulls int) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		mc, err := current(ctx, r)
		if err != nil {
			return err
		}
		budgets := 0
		if objects.HasBudget(mc) {
			budgets = 1
		}
		for _, kind := range []struct {
			list   client.ObjectList
			labels client.MatchingLabels
			want   int
		}{
			{&appsv1.DeploymentList{}, nil, deployments}, {&appsv1.StatefulSetList{}, nil, statefulSets},
			{&corev1.ServiceList{}, nil, 1}, {&policyv1.PodDisruptionBudgetList{}, nil, budgets},
			{&corev1.PodList{}, client.MatchingLabels{objects.AppLabel: objects.PullApp}, pulls},
		} {
			if err := r.Client.List(ctx, kind.list, client.InNamespace(r.Namespace), client.HasLabels{objects.PodsOf}, kind.labels); err != nil {
				return err
			}
			if n := meta.LenList(kind.list); n != kind.want {
				return fmt.Errorf("%d in %T, want %d", n, kind.list, kind.want)
			}
		}
		return nil
	}
}
