package memcached

import (
	"encoding/json"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
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
	// partitionClosed is a partition above every ordinal: the StatefulSet's controller
	// then replaces no pod, and the operator changes them in place.
	partitionClosed = 1_000_000
)

func ownedBy(mc *v1alpha1.Memcached) *metav1ac.OwnerReferenceApplyConfiguration {
	return apply.OwnerReference(mc, v1alpha1.GroupVersion.WithKind(memcachedKind))
}

// deployment is the Deployment of a pool without stable identities.
func deployment(mc *v1alpha1.Memcached, t podTemplate) (*appsv1ac.DeploymentApplyConfiguration, error) {
	template, err := applied(t)
	if err != nil {
		return nil, err
	}
	return appsv1ac.Deployment(childName(mc), mc.Namespace).
		WithLabels(labels(mc)).
		WithAnnotations(workloadAnnotations(mc, t)).
		WithOwnerReferences(ownedBy(mc)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(*mc.Spec.Size).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector(mc))).
			WithPaused(false).
			WithStrategy(appsv1ac.DeploymentStrategy().
				WithType("RollingUpdate").
				WithRollingUpdate(appsv1ac.RollingUpdateDeployment().
					WithMaxSurge(intstr.FromInt32(1)).
					WithMaxUnavailable(intstr.FromInt32(0)))).
			WithTemplate(template)), nil
}

// isForeign says whether a Deployment has the template of another operator, which made it under this very Memcached.
func isForeign(d *appsv1.Deployment, mc *v1alpha1.Memcached) bool {
	return isOwned(d, mc) && d.Annotations[revisionAnnotation] == "" && d.Spec.Template.Annotations[revisionAnnotation] == ""
}

// statefulSet is the StatefulSet of a pool with stable identities. Pods are
// made all at once: no server waits for another.
func statefulSet(mc *v1alpha1.Memcached, t podTemplate, partition int32) (*appsv1ac.StatefulSetApplyConfiguration, error) {
	template, err := applied(t)
	if err != nil {
		return nil, err
	}
	annotations := workloadAnnotations(mc, t)
	if partition != partitionClosed {
		annotations[openAnnotation] = t.revision
	}
	return appsv1ac.StatefulSet(poolName(mc), mc.Namespace).
		WithLabels(labels(mc)).
		WithAnnotations(annotations).
		WithOwnerReferences(ownedBy(mc)).
		WithSpec(appsv1ac.StatefulSetSpec().
			WithReplicas(*mc.Spec.Size).
			WithServiceName(poolName(mc)).
			WithPodManagementPolicy("Parallel").
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector(mc))).
			WithUpdateStrategy(appsv1ac.StatefulSetUpdateStrategy().
				WithType("RollingUpdate").
				WithRollingUpdate(appsv1ac.RollingUpdateStatefulSetStrategy().WithPartition(partition))).
			WithTemplate(template)), nil
}

func workloadAnnotations(mc *v1alpha1.Memcached, t podTemplate) map[string]string {
	return map[string]string{
		revisionAnnotation: t.revision, generationAnnotation: strconv.FormatInt(mc.Generation, 10),
	}
}

func applied(t podTemplate) (*corev1ac.PodTemplateSpecApplyConfiguration, error) {
	data, err := json.Marshal(t.PodTemplateSpec)
	if err != nil {
		return nil, fmt.Errorf("encode the pod template: %w", err)
	}
	return podtemplate.Applied(string(data))
}

// service is headless: clients are to see the servers, because it is they who place the
// keys. The names of stable servers stay in DNS while one is unavailable, so that no
// client's ring moves for the second that a restart takes.
func service(mc *v1alpha1.Memcached, serving v1alpha1.Identity) *corev1ac.ServiceApplyConfiguration {
	pods := selector(mc)
	pods[identityLabel] = string(serving)
	spec := corev1ac.ServiceSpec().
		WithType(corev1.ServiceTypeClusterIP).
		WithClusterIP(corev1.ClusterIPNone).
		WithPublishNotReadyAddresses(serving == v1alpha1.StableIdentity).
		WithSelector(pods).
		WithPorts(corev1ac.ServicePort().
			WithName(portName).
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
	return corev1ac.Service(poolName(mc), mc.Namespace).
		WithLabels(labels(mc)).
		WithOwnerReferences(ownedBy(mc)).
		WithSpec(spec)
}

// hasBudget says whether there is to be a PodDisruptionBudget of the operator's.
func hasBudget(mc *v1alpha1.Memcached) bool {
	d := mc.Spec.Disruption
	return d == nil || d.Enabled == nil || *d.Enabled
}

// disruptionBudget lets nodes be drained one server at a time. One may be evicted from
// any pool, so that a pool of one does not block a drain. A server that is not ready
// serves nobody, and may always be evicted. From shortly before a server is restarted in
// place until it is available again, no other one may be evicted.
func disruptionBudget(mc *v1alpha1.Memcached, evictable int32) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	return policyv1ac.PodDisruptionBudget(childName(mc), mc.Namespace).
		WithLabels(labels(mc)).
		WithOwnerReferences(ownedBy(mc)).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(evictable)).
			WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector(mc))))
}

// secretCopy is what the pods mount in place of the user's Secret.
func secretCopy(mc *v1alpha1.Memcached, role string, data map[string][]byte) *corev1ac.SecretApplyConfiguration {
	return corev1ac.Secret(copyName(mc, role), mc.Namespace).
		WithLabels(labels(mc)).
		WithOwnerReferences(ownedBy(mc)).
		WithType(corev1.SecretTypeOpaque).
		WithData(data)
}

// pullPod pulls an image to a node, so that no server waits for it, and shows
// that it can be started there.
func pullPod(mc *v1alpha1.Memcached, node string, t podTemplate) *corev1.Pod {
	// What users have set on their pods, to keep a mesh's sidecar out for example, is for this one, too.
	own := podtemplate.From(mc.Spec.PodTemplate, labels(mc)).ObjectMeta
	own.Labels[appLabel] = pullApp
	own.Annotations[revisionAnnotation], own.Annotations[imageAnnotation+pullContainer] = t.revision, t.server().Image
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: mc.Namespace, Name: pullName(mc, node, t.server().Image), Labels: own.Labels, Annotations: own.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(mc, v1alpha1.GroupVersion.WithKind(memcachedKind))},
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
				Name: pullContainer, Image: t.server().Image, ImagePullPolicy: t.server().ImagePullPolicy,
				SecurityContext: t.server().SecurityContext,
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

func pullName(mc *v1alpha1.Memcached, node, image string) string {
	return poolName(mc) + "-pull-" + names.Hash(node+" "+image)
}
