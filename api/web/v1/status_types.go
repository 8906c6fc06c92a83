package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// WebServerStatus is the observed state of a WebServer.
type WebServerStatus struct {
	// observedGeneration is the metadata.generation that this status describes; -1 until the operator has seen the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// desiredReplicas is the number of desired pods.
	// +optional
	DesiredReplicas int32 `json:"desiredReplicas"`

	// readyReplicas is the number of pods that have been ready for at least a
	// second.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// selector is the label selector of the pods, for `kubectl scale` and
	// autoscalers.
	// +optional
	Selector string `json:"selector,omitempty"`

	// revision is the revision that the pods have or are changing to: a hash of
	// their pod template and of the files that it mounts.
	// +optional
	Revision string `json:"revision,omitempty"`

	// image is the image of the pods that serve. During a rollout, it is the
	// previous image.
	// +optional
	Image string `json:"image,omitempty"`

	// lastGoodRevision is the last revision that became healthy.
	// +optional
	LastGoodRevision string `json:"lastGoodRevision,omitempty"`
	// lastGoodImage is the image of lastGoodRevision.
	// +optional
	LastGoodImage string `json:"lastGoodImage,omitempty"`
	// lastGoodTime is when a new revision last became healthy.
	// +optional
	LastGoodTime *metav1.Time `json:"lastGoodTime,omitempty"`

	// failedRollout is the revision that was rolled back. The operator retries
	// when the pod template changes (by the spec, or by a ConfigMap or Secret that
	// it names), when rollout.deadlineSeconds changes, and when the annotation
	// webserver-operator/retry of the WebServer gets a new value; and at retryTime,
	// if there is one. A change of replicas does not cause a retry.
	// +optional
	FailedRollout *FailedRollout `json:"failedRollout,omitempty"`

	// nodePort is the port of the Service on every node.
	// +optional
	NodePort int32 `json:"nodePort,omitempty"`

	// httpsNodePort is the HTTPS port of the Service on every node. It is absent
	// without tls.
	// +optional
	HTTPSNodePort int32 `json:"httpsNodePort,omitempty"`

	// url is the URL of the web server.
	// +optional
	URL string `json:"url,omitempty"`

	// conditions are Ready, Reconciling and Stalled, as defined by kstatus;
	// Available; Adopted; and Overruled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// FailedRollout is a revision that was rolled back, and why.
type FailedRollout struct {
	// revision is the revision that was rolled back.
	// +required
	Revision string `json:"revision"`
	// image is the image of that revision.
	// +required
	Image string `json:"image"`
	// reason is a CamelCase word that says why it was rolled back.
	// +required
	Reason string `json:"reason"`
	// message is what the cluster, or the server itself, reported.
	// +required
	Message string `json:"message"`
	// time is when it was rolled back.
	// +required
	Time metav1.Time `json:"time"`
	// deadlineSeconds is the value of rollout.deadlineSeconds at that time.
	// +optional
	DeadlineSeconds int32 `json:"deadlineSeconds,omitempty"`
	// retry is a hash of the annotation webserver-operator/retry at that time.
	// +optional
	Retry string `json:"retry,omitempty"`
	// retryTime is when the operator retries the revision without a change by the
	// user. It is absent if what failed was the revision's own doing.
	// +optional
	RetryTime *metav1.Time `json:"retryTime,omitempty"`
	// retries is how often the operator has retried the revision in that way.
	// +optional
	Retries int32 `json:"retries,omitempty"`
}
