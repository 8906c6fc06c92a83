package objects

import (
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/names"
	"example.com/fairlead/internal/kit/podtemplate"
)

const (
	// PartitionClosed is a partition above every ordinal: the StatefulSet's controller
	// then replaces no pod, and the operator changes them in place.
	PartitionClosed = 1_000_000
)

func ownedBy(mc *v1alpha1.Memcached) *metav1ac.OwnerReferenceApplyConfiguration {
	return apply.OwnerReference(mc, v1alpha1.GroupVersion.WithKind(MemcachedKind))
}

// Deployment is the Deployment of a pool without stable identities.
func Deployment(mc *v1alpha1.Memcached, t PodTemplate) (*appsv1ac.DeploymentApplyConfiguration, error) {
	template, err := applied(t)
	if err != nil {
		return nil, err
	}
	return appsv1ac.Deployment(ChildName(mc), mc.Namespace).
		WithLabels(Labels(mc)).
		WithAnnotations(WorkloadAnnotations(mc, t)).
		WithOwnerReferences(ownedBy(mc)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(*mc.Spec.Size).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(Selector(mc))).
			WithPaused(false).
			WithStrategy(appsv1ac.DeploymentStrategy().
				WithType("RollingUpdate").
				WithRollingUpdate(appsv1ac.RollingUpdateDeployment().
					WithMaxSurge(intstr.FromInt32(1)).
					WithMaxUnavailable(intstr.FromInt32(0)))).
			WithTemplate(template)), nil
}

// StatefulSet is the StatefulSet of a pool with stable identities. Pods are
// made all at once: no server waits for another.
func StatefulSet(mc *v1alpha1.Memcached, t PodTemplate, partition int32) (*appsv1ac.StatefulSetApplyConfiguration, error) {
	template, err := applied(t)
	if err != nil {
		return nil, err
	}
	annotations := WorkloadAnnotations(mc, t)
	if partition != PartitionClosed {
		annotations[OpenAnnotation] = t.Revision
	}
	return appsv1ac.StatefulSet(PoolName(mc), mc.Namespace).
		WithLabels(Labels(mc)).
		WithAnnotations(annotations).
		WithOwnerReferences(ownedBy(mc)).
		WithSpec(appsv1ac.StatefulSetSpec().
			WithReplicas(*mc.Spec.Size).
			WithServiceName(PoolName(mc)).
			WithPodManagementPolicy("Parallel").
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(Selector(mc))).
			WithUpdateStrategy(appsv1ac.StatefulSetUpdateStrategy().
				WithType("RollingUpdate").
				WithRollingUpdate(appsv1ac.RollingUpdateStatefulSetStrategy().WithPartition(partition))).
			WithTemplate(template)), nil
}

// WorkloadAnnotations are those of the Deployment or StatefulSet.
func WorkloadAnnotations(mc *v1alpha1.Memcached, t PodTemplate) map[string]string {
	return map[string]string{
		RevisionAnnotation: t.Revision, GenerationAnnotation: strconv.FormatInt(mc.Generation, 10),
	}
}

func applied(t PodTemplate) (*corev1ac.PodTemplateSpecApplyConfiguration, error) {
	data, err := json.Marshal(t.PodTemplateSpec)
	if err != nil {
		return nil, fmt.Errorf("encode the pod template: %w", err)
	}
	return podtemplate.Applied(string(data))
}

// Service is headless: clients are to see the servers, because it is they who place the
// keys. The names of stable servers stay in DNS while one is unavailable, so that no
// client's ring moves for the second that a restart takes.
func Service(mc *v1alpha1.Memcached, serving v1alpha1.Identity) *corev1ac.ServiceApplyConfiguration {
	pods := Selector(mc)
	pods[IdentityLabel] = string(serving)
	spec := corev1ac.ServiceSpec().
		WithType(corev1.ServiceTypeClusterIP).
		WithClusterIP(corev1.ClusterIPNone).
		WithPublishNotReadyAddresses(serving == v1alpha1.StableIdentity).
		WithSelector(pods).
		WithPorts(corev1ac.ServicePort().
			WithName(PortName).
			WithProtocol(corev1.ProtocolTCP).
			WithPort(mc.Spec.Port).
			WithTargetPort(intstr.FromInt32(mc.Spec.Port)))
	if mc.Spec.Metrics != nil {
		spec.WithPorts(corev1ac.ServicePort().
			WithName(metricsPortName).
			WithProtocol(corev1.ProtocolTCP).
			WithPort(mc.Spec.Metrics.Port).
			WithTargetPort(intstr.FromInt32(mc.Spec.Metrics.Port)))
	}
	return corev1ac.Service(PoolName(mc), mc.Namespace).
		WithLabels(Labels(mc)).
		WithOwnerReferences(ownedBy(mc)).
		WithSpec(spec)
}

// HasBudget says whether there is to be a PodDisruptionBudget of the operator's.
func HasBudget(mc *v1alpha1.Memcached) bool {
	d := mc.Spec.Disruption
	return d == nil || d.Enabled == nil || *d.Enabled
}

// DisruptionBudget lets nodes be drained one server at a time. One may be evicted from
// any pool, so that a pool of one does not block a drain. A server that is not ready
// serves nobody, and may always be evicted. From shortly before a server is restarted in
// place until it is available again, no other one may be evicted.
func DisruptionBudget(mc *v1alpha1.Memcached, evictable int32) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	return policyv1ac.PodDisruptionBudget(ChildName(mc), mc.Namespace).
		WithLabels(Labels(mc)).
		WithOwnerReferences(ownedBy(mc)).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(evictable)).
			WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(Selector(mc))))
}

// SecretCopy is what the pods mount in place of the user's Secret.
func SecretCopy(mc *v1alpha1.Memcached, role string, data map[string][]byte) *corev1ac.SecretApplyConfiguration {
	return corev1ac.Secret(CopyName(mc, role), mc.Namespace).
		WithLabels(Labels(mc)).
		WithOwnerReferences(ownedBy(mc)).
		WithType(corev1.SecretTypeOpaque).
		WithData(data)
}

// PullPod pulls an image to a node, so that no server waits for it, and shows
// that it can be started there.
func PullPod(mc *v1alpha1.Memcached, node string, t PodTemplate) *corev1.Pod {
	// What users have set on their pods, to keep a mesh's sidecar out for example, is for this one, too.
	own := podtemplate.From(mc.Spec.PodTemplate, Labels(mc)).ObjectMeta
	own.Labels[AppLabel] = PullApp
	own.Annotations[RevisionAnnotation], own.Annotations[ImageAnnotation+PullContainer] = t.Revision, t.Server().Image
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: mc.Namespace, Name: PullName(mc, node, t.Server().Image), Labels: own.Labels, Annotations: own.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(mc, v1alpha1.GroupVersion.WithKind(MemcachedKind))},
		},
		Spec: corev1.PodSpec{
			// Not by the scheduler: the pod belongs to the node with the server,
			// also when that takes no new ones.
			NodeName:                      node,
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: new(int64(1)),
			AutomountServiceAccountToken:  new(false),
			ServiceAccountName:            t.Spec.ServiceAccountName,
			ImagePullSecrets:              t.Spec.ImagePullSecrets,
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			SecurityContext:               t.Spec.SecurityContext,
			Containers: []corev1.Container{{
				Name: PullContainer, Image: t.Server().Image, ImagePullPolicy: t.Server().ImagePullPolicy,
				SecurityContext: t.Server().SecurityContext,
				Command:         []string{"/bin/sh", "-c", "memcached -V >/dev/termination-log"},

				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
				// A quota may require them. Nothing is requested: the pod is bound to its node,
				// and one that is full would reject it for the least that it requests.
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.Quantity{}, corev1.ResourceMemory: resource.Quantity{}},
					Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
				},
			}},
		},
	}
	if mc.Spec.Pull != nil {
		podtemplate.SetResources(&pod.Spec.Containers[0], mc.Spec.Pull.Resources)
	}
	return pod
}

// PullName is the name of the pod that pulls an image to a node.
func PullName(mc *v1alpha1.Memcached, node, image string) string {
	return PoolName(mc) + "-pull-" + names.Hash(node+" "+image)
}

// PullContainer is the container of such a pod.
const PullContainer = "pull"
