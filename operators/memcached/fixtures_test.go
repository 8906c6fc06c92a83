package memcached

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/services"
	"example.com/fairlead/operators/memcached/change"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

type mcOption func(*v1alpha1.Memcached)

// aPool is a Memcached as the API server stores it, with its defaults.
func aPool(options ...mcOption) *v1alpha1.Memcached {
	mc := &v1alpha1.Memcached{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Memcached"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cache", UID: "cache-uid", Generation: 1},
		Spec: v1alpha1.MemcachedSpec{
			Size: new(int32(3)), Identity: v1alpha1.RandomIdentity, Upgrade: v1alpha1.ColdUpgrade, Version: "1.6.38",
			Memory: resource.MustParse("64Mi"), MaxItemSize: resource.MustParse("1Mi"),
			MaxConnections: 1024, Threads: 4, Port: 11211,
		},
	}
	for _, option := range options {
		option(mc)
	}
	return mc
}

func stable(mc *v1alpha1.Memcached) { mc.Spec.Identity = v1alpha1.StableIdentity }

func warm(mc *v1alpha1.Memcached) {
	mc.Spec.Identity, mc.Spec.Upgrade = v1alpha1.StableIdentity, v1alpha1.WarmUpgrade
}

func version(v string) mcOption { return func(mc *v1alpha1.Memcached) { mc.Spec.Version = v } }

func size(n int32) mcOption { return func(mc *v1alpha1.Memcached) { mc.Spec.Size = &n } }

func memory(m string) mcOption {
	return func(mc *v1alpha1.Memcached) { mc.Spec.Memory = resource.MustParse(m) }
}

func threads(n int32) mcOption { return func(mc *v1alpha1.Memcached) { mc.Spec.Threads = n } }

func exporting(image string) mcOption {
	return func(mc *v1alpha1.Memcached) { mc.Spec.Metrics = &v1alpha1.MetricsSpec{Image: image, Port: 9150} }
}

// announced has a status that announces the change to what it requests now.
func announced(kind v1alpha1.UpgradeKind, server string) mcOption {
	return func(mc *v1alpha1.Memcached) {
		mc.Status.Upgrade = &v1alpha1.UpgradeStatus{Revision: mustTemplate(mc).Revision, Kind: kind, Server: server}
	}
}

func mustTemplate(mc *v1alpha1.Memcached) objects.PodTemplate {
	t, err := objects.DesiredTemplate(mc)
	if err != nil {
		panic(err)
	}
	return t
}

type seenOption func(*pool.Observation)

// somethingSeen is a cluster without children, but for the options and a budget
// that lets nobody be evicted.
func somethingSeen(options ...seenOption) pool.Observation {
	seen := pool.Observation{Now: noon, Resizes: true, Children: loop.NoChildren(children)}
	seen.Budget().Name, seen.Budget().Spec.MaxUnavailable = "cache", new(intstr.FromInt32(0))
	for _, option := range options {
		option(&seen)
	}
	if seen.Reached == nil {
		seen.Reached = services.Targets{}
		for _, pod := range seen.Pods {
			seen.Reached[pod.UID] = true
		}
	}
	return seen
}

var owned = []metav1.OwnerReference{*metav1.NewControllerRef(aPool(), v1alpha1.GroupVersion.WithKind("Memcached"))}

// aStatefulSet is owned, was applied as mc requests, and its controller has seen it.
func aStatefulSet(mc *v1alpha1.Memcached, options ...func(*appsv1.StatefulSet)) seenOption {
	return func(seen *pool.Observation) {
		config, err := objects.StatefulSet(mc, mustTemplate(mc), objects.PartitionClosed)
		if err != nil {
			panic(err)
		}
		s := &appsv1.StatefulSet{}
		data, err := json.Marshal(config)
		if err == nil {
			err = json.Unmarshal(data, s)
		}
		if err != nil {
			panic(err)
		}
		s.UID, s.Generation, s.OwnerReferences = "set-uid", 2, owned
		s.Status = appsv1.StatefulSetStatus{ObservedGeneration: 2, CurrentRevision: "cache-old", UpdateRevision: "cache-new"}
		for _, option := range options {
			option(s)
		}
		seen.Children[objects.StatefulSetKind] = s
	}
}

func aDeployment(mc *v1alpha1.Memcached, ready int32) seenOption {
	return func(seen *pool.Observation) {
		seen.Children[objects.DeploymentKind] = &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "cache", UID: "deployment-uid", OwnerReferences: owned, Labels: objects.Labels(mc),
				Annotations: objects.WorkloadAnnotations(mc, mustTemplate(mc)),
			},
			Status: appsv1.DeploymentStatus{ReadyReplicas: ready},
		}
	}
}

// aServer is the pod with an ordinal, as mc requests it, on node n, and ready.
func aServer(mc *v1alpha1.Memcached, ordinal int, options ...func(*corev1.Pod)) seenOption {
	return func(seen *pool.Observation) {
		t := mustTemplate(mc)
		pod := corev1.Pod{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
		pod.Namespace, pod.Name, pod.Spec.NodeName = "shop", fmt.Sprintf("cache-%d", ordinal), "n"
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		for _, c := range pod.Spec.Containers {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, ContainerID: fmt.Sprintf("%s-%d-1", c.Name, ordinal)})
		}
		for _, option := range options {
			option(&pod)
		}
		seen.Pods = append(seen.Pods, pod)
	}
}

func unready(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse }

func ending(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: noon} }

// restarting has been changed, and its kubelet has not got to it.
func restarting(pod *corev1.Pod) {
	pod.Annotations[objects.ReplacedAnnotation] = pod.Status.ContainerStatuses[0].ContainerID
}

// aPull is the pod that pulls the image that mc requests.
func aPull(mc *v1alpha1.Memcached, options ...func(*corev1.Pod)) seenOption {
	return func(seen *pool.Observation) {
		pod := objects.PullPod(mc, "n", mustTemplate(mc))
		pod.CreationTimestamp.Time = noon.Add(-10 * time.Second)
		for _, option := range options {
			option(pod)
		}
		seen.Pulls = append(seen.Pulls, *pod)
	}
}

func pulled(message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodSucceeded
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: objects.PullContainer, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: message}}}}
	}
}

func cannotPull(pod *corev1.Pod) {
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: objects.PullContainer, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
}

// decodeInto reads what is to be applied as the object that it makes.
func decodeInto(t *testing.T, config any, into any) {
	t.Helper()
	data, err := json.Marshal(config)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// count is how many writes of a type a plan has.
func count[W loop.Write](next *change.Plan) (n int) {
	for _, w := range next.Writes {
		if _, is := w.(W); is {
			n++
		}
	}
	return n
}

// patchOf is the patch that changes a part of a server; nil if there is none. That only counts a server as
// changed is not meant.
func patchOf(next *change.Plan, part string) *loop.Patch {
	for _, w := range next.Then {
		if p, is := w.(loop.Patch); is && p.Part == part && (p.Spec != nil || p.Metadata["annotations"] != nil) {
			return &p
		}
	}
	return nil
}
