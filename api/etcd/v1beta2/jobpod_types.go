package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
)

// JobPod is about pods that read or write backups.
type JobPod struct {
	// serviceAccountName is the name of a ServiceAccount with an identity in the cloud, such as by
	// IRSA on AWS or workload identity on Google Cloud and Azure. Its token is not mounted unless
	// one of those does it. Defaults to default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// labels are added to the pods, for example those that Azure's workload identity asks for.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != 'app' && !k.startsWith('etcd_') && !k.startsWith('app.kubernetes.io/'))",message="app, and labels that begin with etcd_ or app.kubernetes.io/, are the operator's: choose other labels"
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`

	// annotations are added to the pods, for example those that keep a mesh's sidecar out.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`

	// nodeSelector has the labels of the nodes that the pods may be scheduled to.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations are the pods' tolerations.
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// priorityClassName is the name of the pods' PriorityClass. Defaults to the Kubernetes cluster's default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// imagePullSecrets are the Secrets that images are pulled with.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// dnsConfig is added to the DNS settings of the Kubernetes cluster that the pods have.
	// +optional
	DNSConfig *corev1.PodDNSConfig `json:"dnsConfig,omitempty"`

	// securityContext is that of the pods. By default they run as user and group 65532, and meet the restricted
	// Pod Security Standard. With one of its own, a pod has what is said here, and nothing else.
	// +optional
	SecurityContext *corev1.PodSecurityContext `json:"securityContext,omitempty"`

	// resources are those of the pods' containers.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
}
