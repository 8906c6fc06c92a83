package v1

// AdoptSpec has what the WebServer takes over as it is, without a restart of a pod: the Deployment of the WebServer's
// own name, and the Service named here, where they are there, nothing controls them, and their annotation
// webserver-operator/adopt-by has the WebServer's name. The operator changes nothing
// until the spec has all that the Deployment's pods have. The condition Adopted says what is missing, field by
// field, and afterwards what the next change of the spec will also change. It must be set when the WebServer is
// created, and cannot be changed.
type AdoptSpec struct {
	// selector is the Deployment's spec.selector.matchLabels, which Kubernetes never
	// lets change. The pods keep these labels.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="!('app.kubernetes.io/managed-by' in self) && !('webserver_cr' in self)",message="must not have the labels app.kubernetes.io/managed-by and webserver_cr, which the operator sets: such a Deployment cannot be adopted"
	Selector map[string]string `json:"selector"`

	// service is the name of the Service, which the WebServer then has instead of
	// `<name>-service`. If left out, the existing Services stay as they are.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a Service: lower-case letters, digits and '-'"
	Service string `json:"service,omitempty"`
}
