package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// WebServerStatus is what has become of a WebServer.
type WebServerStatus struct {
	// The generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// How many pods there should be.
	// +optional
	DesiredReplicas int32 `json:"desiredReplicas"`

	// How many pods are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// Selects the pods, for `kubectl scale` and autoscalers.
	// +optional
	Selector string `json:"selector,omitempty"`

	// The revision that the pods have or are getting: a hash of all that they
	// are made of.
	// +optional
	Revision string `json:"revision,omitempty"`

	// The image of the pods that serve. While another one is rolled out, it is
	// the one before.
	// +optional
	Image string `json:"image,omitempty"`

	// The last revision that became healthy, its image, and when.
	// +optional
	LastGoodRevision string `json:"lastGoodRevision,omitempty"`
	// +optional
	LastGoodImage string `json:"lastGoodImage,omitempty"`
	// +optional
	LastGoodTime *metav1.Time `json:"lastGoodTime,omitempty"`

	// The revision that was rolled back. It is tried again when what the pods are
	// made of changes (the spec, or a ConfigMap or Secret that it names), when
	// rollout.deadlineSeconds changes, and when the annotation
	// webserver-operator/retry of the WebServer gets a new value. A change of
	// replicas does not try it again.
	// +optional
	FailedRollout *FailedRollout `json:"failedRollout,omitempty"`

	// The port of the Service on every node.
	// +optional
	NodePort int32 `json:"nodePort,omitempty"`

	// The same for HTTPS; left out without tls.
	// +optional
	HTTPSNodePort int32 `json:"httpsNodePort,omitempty"`

	// Where to look at it.
	// +optional
	URL string `json:"url,omitempty"`

	// Ready, Reconciling and Stalled as kstatus has them; Available; Adopted.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// FailedRollout is a revision that was rolled back, and why.
type FailedRollout struct {
	Revision string `json:"revision"`
	Image    string `json:"image"`
	Reason   string `json:"reason"`
	// What the cluster, or the server itself, said.
	Message string `json:"message"`
	// When it was rolled back.
	Time metav1.Time `json:"time"`
	// The rollout.deadlineSeconds that it had.
	// +optional
	DeadlineSeconds int32 `json:"deadlineSeconds,omitempty"`
	// A hash of the annotation webserver-operator/retry at that time.
	// +optional
	Retry string `json:"retry,omitempty"`
}
