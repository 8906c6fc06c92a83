package v1

import corev1 "k8s.io/api/core/v1"

// This file has how a WebServer is reached.

// ServiceSpec says how the Service is reached.
//
// +kubebuilder:validation:XValidation:rule="!has(self.nodePort) || !has(self.type) || self.type != 'ClusterIP'",fieldPath=".nodePort",message="a Service of type ClusterIP has no nodePort: leave it out, or choose type NodePort or LoadBalancer"
type ServiceSpec struct {
	// NodePort, ClusterIP or LoadBalancer.
	// +optional
	// +kubebuilder:default=NodePort
	// +kubebuilder:validation:Enum=NodePort;ClusterIP;LoadBalancer
	Type corev1.ServiceType `json:"type,omitempty"`

	// The port of the Service.
	// +optional
	// +kubebuilder:default=80
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// The port on every node, from the cluster's range (usually 30000 to
	// 32767): one outside gives the reason PortOutOfRange, for only the cluster
	// knows its range. Without it the first WebServer gets 30010 while that is free,
	// and the others one that is free and then stays. When the port is taken,
	// the condition Ready says so, and it is tried again until it is free.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	NodePort int32 `json:"nodePort,omitempty"`

	// Annotations of the Service, as load balancers want them.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// IngressSpec is what the Ingress is made of.
type IngressSpec struct {
	// The host name that requests are for.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$') && !self.matches('^[0-9.]+$')",message="must be a host name in lower case, such as www.example.com or *.example.com, and no IP address"
	Host string `json:"host"`

	// The beginning of the paths that requests are for.
	// +optional
	// +kubebuilder:default=/
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/`
	// +kubebuilder:validation:XValidation:rule="!self.matches('//|/[.]{1,2}(/|$)|%2[fF]')",message="must be a path without //, /./, /../ and %2F"
	Path string `json:"path,omitempty"`

	// The IngressClass; by default the cluster's.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an IngressClass: lower-case letters, digits, '-' and '.'"
	ClassName string `json:"className,omitempty"`

	// The Secret with the certificate that the ingress controller serves with.
	// By default it serves plain HTTP.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a Secret: lower-case letters, digits, '-' and '.'"
	TLSSecretName string `json:"tlsSecretName,omitempty"`

	// Annotations of the Ingress, as ingress controllers want them.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// GatewaySpec is what the HTTPRoute is made of.
type GatewaySpec struct {
	// The name of the Gateway.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a Gateway: lower-case letters, digits, '-' and '.'"
	Name string `json:"name"`

	// The namespace of the Gateway; by default the WebServer's.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a namespace: lower-case letters, digits and '-'"
	Namespace string `json:"namespace,omitempty"`

	// The host names that requests are for; by default the Gateway's.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.all(h, h.matches('^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$') && !h.matches('^[0-9.]+$'))",message="must be host names in lower case, such as www.example.com or *.example.com, and no IP addresses"
	Hostnames []string `json:"hostnames,omitempty"`
}

// RouteSpec is what the OpenShift Route is made of.
type RouteSpec struct {
	// The host name that requests are for; by default OpenShift chooses one.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be a host name in lower case, such as www.example.com"
	Host string `json:"host,omitempty"`

	// Serve HTTPS at the router, with its certificate.
	// +optional
	EdgeTLS bool `json:"edgeTLS,omitempty"`
}
