package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

// At runs a command once, at a given time: never early, at most once per
// attempt, and never dropped silently.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=ats,singular=at,categories=fairlead
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Time zone",type=string,JSONPath=`.spec.timeZone`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Exit code",type=integer,JSONPath=`.status.exitCode`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Scheduled",type=string,priority=1,JSONPath=`.status.scheduledTime`
// +kubebuilder:printcolumn:name="Lateness",type=string,priority=1,JSONPath=`.status.lateness`
// +kubebuilder:printcolumn:name="Attempts",type=integer,priority=1,JSONPath=`.status.attempts`
// +kubebuilder:printcolumn:name="Pod",type=string,priority=1,JSONPath=`.status.podName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.phase) || oldSelf.status.phase == 'PENDING' || self.spec == oldSelf.spec",reason=FieldValueForbidden,fieldPath=".spec",message="the run has started or is over, so the spec cannot be changed any more: create a new At for another run"
type At struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state: what to run, and when. It can be changed until
	// the run starts.
	// +required
	Spec atv1alpha1.AtSpec `json:"spec"`

	// status is the observed state. Written by the operator.
	// +optional
	// +structType=atomic
	// +kubebuilder:default:={"observedGeneration":-1,"phase":"PENDING"}
	Status atv1alpha1.AtStatus `json:"status,omitempty"`
}

// AtList is a list of Ats.
//
// +kubebuilder:object:root=true
type AtList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []At `json:"items"`
}
