package v1

import corev1 "k8s.io/api/core/v1"

// This file has how a WebServer is reached.

// ServiceSpec says how the Service is exposed.
//
// +kubebuilder:validation:XValidation:rule="!has(self.nodePort) || !has(self.type) || self.type != 'ClusterIP'",fieldPath=".nodePort",message="a Service of type ClusterIP has no nodePort: leave it out, or choose type NodePort or LoadBalancer"
type ServiceSpec struct {
	// type is NodePort, ClusterIP or LoadBalancer. Defaults to NodePort.
	// +optional
	// +kubebuilder:default=NodePort
	// +kubebuilder:validation:Enum=NodePort;ClusterIP;LoadBalancer
	Type corev1.ServiceType `json:"type,omitempty"`

	// port is the port of the Service. Defaults to 80.
	// +optional
	// +kubebuilder:default=80
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// nodePort is the port on every node, from the cluster's range (usually 30000
	// to 32767). A port outside that range gives the condition Ready the reason
	// PortOutOfRange, because only the cluster knows its range. By default, the
	// first WebServer gets 30010 if that is free. The others get a free port. Each
	// keeps its port. If the port is taken, the condition Ready says so, and the
	// operator retries until the port is free.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	NodePort int32 `json:"nodePort,omitempty"`

	// annotations are annotations of the Service, for example for load balancers.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// IngressSpec describes the Ingress.
type IngressSpec struct {
	// host is the host name that the Ingress serves.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$') && !self.matches('^[0-9.]+$')",message="must be a host name in lower case, such as www.example.com or *.example.com, and no IP address"
	Host string `json:"host"`

	// path is the prefix of the paths that the Ingress serves. Defaults to /.
	// +optional
	// +kubebuilder:default=/
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/`
	// +kubebuilder:validation:XValidation:rule="!self.matches('//|/[.]{1,2}(/|$)|%2[fF]')",message="must be a path without //, /./, /../ and %2F"
	Path string `json:"path,omitempty"`

	// className is the name of the IngressClass. Defaults to the cluster's default
	// one.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an IngressClass: lower-case letters, digits, '-' and '.'"
	ClassName string `json:"className,omitempty"`

	// tlsSecretName is the name of the Secret with the certificate that the
	// ingress controller serves. By default it serves plain HTTP.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a Secret: lower-case letters, digits, '-' and '.'"
	TLSSecretName string `json:"tlsSecretName,omitempty"`

	// annotations are annotations of the Ingress, for the ingress controller.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// GatewaySpec describes the HTTPRoute.
type GatewaySpec struct {
	// name is the name of the Gateway.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a Gateway: lower-case letters, digits, '-' and '.'"
	Name string `json:"name"`

	// namespace is the namespace of the Gateway. Defaults to the WebServer's.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a namespace: lower-case letters, digits and '-'"
	Namespace string `json:"namespace,omitempty"`

	// sectionName is the name of the one listener of the Gateway that the HTTPRoute
	// is for. Defaults to all of them.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a listener: lower-case letters, digits, '-' and '.'"
	SectionName string `json:"sectionName,omitempty"`

	// hostnames are the host names that the HTTPRoute serves. Defaults to the
	// Gateway's.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.all(h, h.matches('^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$') && !h.matches('^[0-9.]+$'))",message="must be host names in lower case, such as www.example.com or *.example.com, and no IP addresses"
	Hostnames []string `json:"hostnames,omitempty"`
}

// RouteSpec describes the OpenShift Route.
type RouteSpec struct {
	// host is the host name that the Route serves. By default, OpenShift chooses
	// one.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be a host name in lower case, such as www.example.com"
	Host string `json:"host,omitempty"`

	// edgeTLS makes the router serve HTTPS, with the router's certificate, and
	// redirect HTTP to HTTPS.
	// +optional
	EdgeTLS bool `json:"edgeTLS,omitempty"`
}
