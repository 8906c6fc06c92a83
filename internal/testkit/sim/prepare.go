package sim

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// prepare gives an object of a built-in kind its defaults, and refuses what the API
// server refuses, as far as operators or stories depend on either. old is nil for
// a new object.
func (s *Server) prepare(k *Kind, old, obj client.Object, subresource string) error {
	if old == nil && k.goType != nil && k.status != nil {
		k.takeField(obj, k.empty(), k.status, "status")
	}
	switch obj := obj.(type) {
	case *corev1.Pod:
		return s.preparePod(k, old, obj, subresource)
	default:
		return s.prepareChild(k, old, obj, subresource)
	}
}

func invalid(k *Kind, name string, path *field.Path, why string) error {
	return apierrors.NewInvalid(k.GroupKind(), name, field.ErrorList{field.Forbidden(path, why)})
}

func (s *Server) preparePod(k *Kind, old client.Object, pod *corev1.Pod, subresource string) error {
	if old == nil {
		defaultPod(&pod.Spec)
		eachContainer(&pod.Spec, requestLimits)
		pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBestEffort}
		if len(pod.Spec.SchedulingGates) > 0 {
			pod.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated,
				Message: "Scheduling is blocked due to non-empty scheduling gates",
			}}
		}
		return nil
	}
	before := old.(*corev1.Pod)
	if subresource == "resize" {
		return s.mayResize(k, before, pod)
	}
	if subresource != "" {
		return nil
	}
	for _, gate := range pod.Spec.SchedulingGates {
		if !slices.Contains(before.Spec.SchedulingGates, gate) {
			return invalid(k, pod.Name, field.NewPath("spec", "schedulingGates"), "only deletion is allowed, but found new scheduling gate '"+gate.Name+"'")
		}
	}
	// The same, but for what may be changed.
	allowed := before.Spec
	allowed.SchedulingGates, allowed.ActiveDeadlineSeconds, allowed.Tolerations = pod.Spec.SchedulingGates, pod.Spec.ActiveDeadlineSeconds, pod.Spec.Tolerations
	allowed.Containers, allowed.InitContainers = withImages(allowed.Containers, pod.Spec.Containers), withImages(allowed.InitContainers, pod.Spec.InitContainers)
	if len(before.Spec.SchedulingGates) > 0 {
		allowed.Affinity = withPreferences(allowed.Affinity, pod.Spec.Affinity)
	}
	if !equality.Semantic.DeepEqual(&allowed, &pod.Spec) {
		return invalid(k, pod.Name, field.NewPath("spec"), "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)")
	}
	was, is := before.Spec.ActiveDeadlineSeconds, pod.Spec.ActiveDeadlineSeconds
	if was != nil && (is == nil || *is > *was) {
		return invalid(k, pod.Name, field.NewPath("spec", "activeDeadlineSeconds"), "must be less than or equal to previous value")
	}
	return nil
}

// withPreferences is an affinity with the preferred nodes of another one.
func withPreferences(affinity, of *corev1.Affinity) *corev1.Affinity {
	if of == nil || of.NodeAffinity == nil {
		return affinity
	}
	if affinity = affinity.DeepCopy(); affinity == nil {
		affinity = &corev1.Affinity{}
	}
	if affinity.NodeAffinity == nil {
		affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = of.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	return affinity
}

// withImages are the containers with the images of others.
func withImages(containers, others []corev1.Container) []corev1.Container {
	containers = slices.Clone(containers)
	for i := range containers {
		if i < len(others) {
			containers[i].Image = others[i].Image
		}
	}
	return containers
}

// defaultPod has the defaults of a pod, or of a template of one.
func defaultPod(spec *corev1.PodSpec) {
	or(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	or(&spec.DNSPolicy, corev1.DNSClusterFirst)
	or(&spec.SchedulerName, corev1.DefaultSchedulerName)
	if spec.TerminationGracePeriodSeconds == nil {
		spec.TerminationGracePeriodSeconds = new(int64(corev1.DefaultTerminationGracePeriodSeconds))
	}
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			c := &containers[i]
			or(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
			or(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
			or(&c.ImagePullPolicy, corev1.PullIfNotPresent)
			for j := range c.Ports {
				or(&c.Ports[j].Protocol, corev1.ProtocolTCP)
			}
		}
	}
}

// requestLimits has a container of a pod request what it is limited to. Templates of pods do not get this default.
func requestLimits(c *corev1.Container) {
	for name, limit := range c.Resources.Limits {
		if _, is := c.Resources.Requests[name]; !is {
			c.Resources.Requests = with(c.Resources.Requests, name, limit)
		}
	}
}

// or sets what is not set.
func or[V comparable](value *V, usual V) {
	var zero V
	if *value == zero {
		*value = usual
	}
}

// Bind puts a pod on a node, as a scheduler does.
func (s *Server) Bind(key types.NamespacedName, node, by string) error {
	k, err := s.API.kindOf(&corev1.Pod{})
	if err != nil {
		return err
	}
	old, err := s.find(k, key)
	if err != nil {
		return err
	}
	before := old.(*corev1.Pod)
	switch {
	case before.Spec.NodeName != "":
		return s.conflict(k, key.Name, "pod "+key.Name+" is already assigned to node "+before.Spec.NodeName)
	case len(before.Spec.SchedulingGates) > 0 || before.DeletionTimestamp != nil:
		return s.conflict(k, key.Name, fmt.Sprintf("pod %s has non-empty .spec.schedulingGates, or is being deleted", key.Name))
	}
	pod := before.DeepCopy()
	pod.Spec.NodeName = node
	s.SetPodCondition(&pod.Status, corev1.PodScheduled, corev1.ConditionTrue, "")
	s.put(k, Change{Kind: k, Type: watch.Modified, Old: old, New: pod, By: by})
	return nil
}

// SetPodCondition sets a condition of a pod, with the time of a transition.
func (s *Server) SetPodCondition(status *corev1.PodStatus, kind corev1.PodConditionType, value corev1.ConditionStatus, reason string) {
	condition := corev1.PodCondition{Type: kind, Status: value, Reason: reason, LastTransitionTime: metav1.NewTime(s.now().Truncate(time.Second))}
	for i := range status.Conditions {
		if status.Conditions[i].Type == kind {
			if status.Conditions[i].Status == value {
				condition.LastTransitionTime = status.Conditions[i].LastTransitionTime
			}
			status.Conditions[i] = condition
			return
		}
	}
	status.Conditions = append(status.Conditions, condition)
}

// Replace stores a new version of an object for a controller of the simulation, which
// passes what it made of a copy of the stored one. It changes whatever differs, and no
// managed fields.
func (s *Server) Replace(obj client.Object, by string) error {
	k, err := s.API.kindOf(obj)
	if err != nil {
		return err
	}
	old, err := s.find(k, client.ObjectKeyFromObject(obj))
	if err != nil {
		return err
	}
	isSame := k.sameSpec(old, obj)
	if isSame && k.isSame(old, obj, "status") {
		return nil
	}
	if !isSame {
		nextGeneration(old, obj)
	}
	s.put(k, Change{Kind: k, Type: watch.Modified, Old: old, New: obj, By: by})
	return nil
}

// Report stores a new status of an object for a controller of the simulation, which
// passes a copy of the stored one.
func (s *Server) Report(obj client.Object, by string) error {
	k, err := s.API.kindOf(obj)
	if err != nil {
		return err
	}
	old, err := s.find(k, client.ObjectKeyFromObject(obj))
	if err == nil {
		s.put(k, Change{Kind: k, Type: watch.Modified, Old: old, New: obj, By: by})
	}
	return err
}

// Add stores a new object for a controller of the simulation.
func (s *Server) Add(obj client.Object, by string) (client.Object, error) {
	k, err := s.API.kindOf(obj)
	if err != nil {
		return nil, err
	}
	return s.add(k, obj, write{by: by}, false)
}

// Remove removes an object at once, for a controller of the simulation.
func (s *Server) Remove(obj client.Object, by string) error {
	k, err := s.API.kindOf(obj)
	if err != nil {
		return err
	}
	old, err := s.find(k, client.ObjectKeyFromObject(obj))
	if err == nil {
		s.remove(k, old, write{by: by})
	}
	return err
}

// Delete deletes an object as a controller does: a pod on a node is left to its kubelet.
func (s *Server) Delete(obj client.Object, by string) error {
	k, err := s.API.kindOf(obj)
	if err != nil {
		return err
	}
	return s.delete(k, client.ObjectKeyFromObject(obj), &client.DeleteOptions{}, write{by: by})
}

// Each calls f for the stored objects of a Go type, by their names. They must not be changed.
func Each[T client.Object](s *Server, f func(T)) {
	var zero T
	k, err := s.API.kindOf(zero)
	if err != nil {
		return
	}
	s.each(k, "", func(obj client.Object) bool {
		f(obj.(T))
		return true
	})
}

// Find is the stored object of a Go type, which must not be changed; false if there is none.
func Find[T client.Object](s *Server, key types.NamespacedName) (T, bool) {
	var zero T
	k, err := s.API.kindOf(zero)
	if err != nil {
		return zero, false
	}
	obj, err := s.find(k, key)
	if err != nil {
		return zero, false
	}
	return obj.(T), true
}
