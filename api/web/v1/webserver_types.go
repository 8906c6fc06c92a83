package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// WebServer is a web server: a Deployment `<name>`, a Service
// `<name>-service`, a PodDisruptionBudget, and the other objects that its spec
// requests.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.readyReplicas,selectorpath=.status.selector
// +kubebuilder:resource:path=webservers,singular=webserver,shortName=web,categories=fairlead
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.status.image`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desiredReplicas`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].reason`
// +kubebuilder:printcolumn:name="Spec image",type=string,priority=1,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Last good image",type=string,priority=1,JSONPath=`.status.lastGoodImage`
// +kubebuilder:printcolumn:name="Revision",type=string,priority=1,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Ready')].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type WebServer struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state: what to serve, and how.
	// +required
	Spec WebServerSpec `json:"spec"`

	// status is the observed state. Written by the operator.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status WebServerStatus `json:"status,omitempty"`
}

// WebServerList is a list of WebServers.
//
// +kubebuilder:object:root=true
type WebServerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WebServer `json:"items"`
}

// WebServerSpec is the desired state of a WebServer: what to serve, and how.
//
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || !has(self.port) || self.port != 443",fieldPath=".port",message="with tls, port 443 is the one for HTTPS: choose another one for HTTP, such as 80"
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || !has(self.service) || !has(self.service.port) || self.service.port != 443",fieldPath=".service.port",message="with tls, the Service's port 443 is the one for HTTPS: choose another one for HTTP, such as 80"
// +kubebuilder:validation:XValidation:rule="!has(self.content) || !has(self.config) || self.content.path != self.config.path",fieldPath=".content.path",message="must not be config.path: one folder cannot have both"
// +kubebuilder:validation:XValidation:rule="!has(self.content) || !has(self.tls) || has(self.config) || self.content.path != '/etc/nginx/conf.d'",fieldPath=".content.path",message="with tls and no config, /etc/nginx/conf.d is for the configuration that the operator writes"
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || !has(self.content) || self.tls.path != self.content.path",fieldPath=".tls.path",message="must not be content.path: one folder cannot have both"
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || (has(self.config) ? self.tls.path != self.config.path : self.tls.path != '/etc/nginx/conf.d')",fieldPath=".tls.path",message="must not be the folder of the configuration: one folder cannot have both"
// +kubebuilder:validation:XValidation:rule="!has(self.podTemplate) || !has(self.podTemplate.spec) || !has(self.podTemplate.spec.terminationGracePeriodSeconds) || self.podTemplate.spec.terminationGracePeriodSeconds >= self.rollout.drainSeconds",fieldPath=".podTemplate.spec.terminationGracePeriodSeconds",message="must not be less than rollout.drainSeconds, for which a pod goes on serving"
// +kubebuilder:validation:XValidation:rule="has(self.adopt) == has(oldSelf.adopt) && (!has(self.adopt) || self.adopt == oldSelf.adopt)",fieldPath=".adopt",message="must be set when the WebServer is created, and cannot be changed: delete the WebServer with --cascade=orphan, and create it again"
type WebServerSpec struct {
	// image is the container image of the web server, such as nginx:1.26.3. A
	// change is rolled out rollout.maxSurge pods at a time, without a failed
	// request, and rolled back if the new pods do not become healthy.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^[:space:]]+$')",message="must be the name of an image, without spaces, such as nginx:1.26.3"
	Image string `json:"image"`

	// replicas is the number of desired pods, at most 10000. 0 stops all pods.
	// Ignored while autoscaling is set, and while an autoscaler that the operator
	// did not create targets the Deployment. `kubectl scale` changes it. Defaults
	// to 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Replicas *int32 `json:"replicas,omitempty"`

	// port is the port that the server in the container listens on for HTTP, from
	// 1 to 65535. Defaults to 80.
	// +optional
	// +kubebuilder:default=80
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// service says how the Service `<name>-service` is exposed. By default it has
	// type NodePort and port 80.
	// +optional
	Service *ServiceSpec `json:"service,omitempty"`

	// resources are the compute resources of the server's container, such as CPU
	// and memory.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// env is the list of environment variables of the server's container.
	// +optional
	// +listType=map
	// +listMapKey=name
	Env []corev1.EnvVar `json:"env,omitempty"`

	// probes say when a pod is ready, and when its container is restarted. By
	// default a pod is ready while its port accepts connections, checked every
	// second.
	// +optional
	Probes *ProbesSpec `json:"probes,omitempty"`

	// content says which files to serve. By default, those in the image. A change
	// rolls out new pods.
	// +optional
	Content *ContentSpec `json:"content,omitempty"`

	// config says how the server is configured. By default, as in the image. A
	// change rolls out new pods.
	// +optional
	Config *ConfigSpec `json:"config,omitempty"`

	// tls makes the server itself serve HTTPS, on container port 443 and Service
	// port 443, in addition to HTTP. Without config, the operator writes the
	// configuration, for nginx. With config, that configuration must use the files
	// in tls.path.
	// +optional
	TLS *TLSSpec `json:"tls,omitempty"`

	// autoscaling creates a HorizontalPodAutoscaler `<name>`, which sets the
	// number of pods. It scales by CPU usage, so resources.requests.cpu must be
	// set.
	// +optional
	Autoscaling *AutoscalingSpec `json:"autoscaling,omitempty"`

	// ingress creates an Ingress `<name>`.
	// +optional
	Ingress *IngressSpec `json:"ingress,omitempty"`

	// gateway creates an HTTPRoute `<name>` of the Gateway API, which must be
	// installed.
	// +optional
	Gateway *GatewaySpec `json:"gateway,omitempty"`

	// route creates an OpenShift Route `<name>`. It works only on OpenShift.
	// +optional
	Route *RouteSpec `json:"route,omitempty"`

	// disruption says how many pods can be unavailable while nodes are drained,
	// through the PodDisruptionBudget `<name>`, or that there is none. By default,
	// one at a time.
	// +optional
	Disruption *DisruptionSpec `json:"disruption,omitempty"`

	// rollout says how a change reaches the pods.
	// +optional
	// +kubebuilder:default={}
	Rollout RolloutSpec `json:"rollout,omitempty"`

	// adopt takes over an existing Deployment, and a Service, without a restart of
	// a pod. It must be set when the WebServer is created.
	// +optional
	Adopt *AdoptSpec `json:"adopt,omitempty"`

	// podTemplate sets everything else about the pods. The container named
	// webserver is the server. A security context set here replaces the
	// operator's.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.restartPolicy) || self.spec.restartPolicy == 'Always'",fieldPath=".spec.restartPolicy",message="must be Always or left out: a web server is to run on"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.activeDeadlineSeconds)",fieldPath=".spec.activeDeadlineSeconds",message="must be left out: a web server is to run on"
	PodTemplate *corev1.PodTemplateSpec `json:"podTemplate,omitempty"`
}

// ProbesSpec sets the Kubernetes probes of the server's container.
type ProbesSpec struct {
	// readiness is the probe that says when a pod can receive requests.
	// +optional
	Readiness *corev1.Probe `json:"readiness,omitempty"`
	// liveness is the probe that says when to restart the container. By default
	// there is none.
	// +optional
	Liveness *corev1.Probe `json:"liveness,omitempty"`
	// startup is the probe that says when the container has started. The other
	// probes wait for it.
	// +optional
	Startup *corev1.Probe `json:"startup,omitempty"`
}

// ContentSpec says which files to serve. A change rolls out new pods.
//
// +kubebuilder:validation:XValidation:rule="has(self.configMap) != has(self.inline)",message="give exactly one of configMap (the name of a ConfigMap with the files) and inline (one page)"
type ContentSpec struct {
	// configMap is the name of a ConfigMap, whose keys are the files. Exactly one
	// of configMap and inline must be set.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a ConfigMap: lower-case letters, digits, '-' and '.'"
	ConfigMap string `json:"configMap,omitempty"`

	// inline is the content of the page index.html, at most 262,144 characters.
	// Exactly one of configMap and inline must be set.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=262144
	Inline string `json:"inline,omitempty"`

	// path is the directory that the server reads its files from. Defaults to
	// /usr/share/nginx/html.
	// +optional
	// +kubebuilder:default=/usr/share/nginx/html
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/.+`
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[^[:space:]:;{}$]*$')",message="must be an absolute path without spaces and without any of : ; { } $"
	Path string `json:"path,omitempty"`
}

// ConfigSpec says how the server is configured. A change rolls out new pods.
// If the check rejects it, it is rolled back while the old pods serve.
type ConfigSpec struct {
	// configMap is the name of a ConfigMap, whose keys are the files.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a ConfigMap: lower-case letters, digits, '-' and '.'"
	ConfigMap string `json:"configMap"`

	// path is the directory in the container that the files replace. Defaults to
	// /etc/nginx/conf.d.
	// +optional
	// +kubebuilder:default=/etc/nginx/conf.d
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/.+`
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[^[:space:]:;{}$]*$')",message="must be an absolute path without spaces and without any of : ; { } $"
	Path string `json:"path,omitempty"`

	// check is the command that checks the configuration in every new pod before
	// the server starts. If it fails, the change is rolled back while the old pods
	// serve, and the condition Ready shows what it printed. Defaults to
	// `nginx -t`.
	// +optional
	// +kubebuilder:default={nginx,"-t"}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	Check []string `json:"check,omitempty"`
}

// TLSSpec says which certificate to serve with.
type TLSSpec struct {
	// secretName is the name of a Secret with the keys tls.crt and tls.key, such
	// as cert-manager writes. A change rolls out new pods. A certificate and a key
	// that do not match never reach the pods.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a Secret: lower-case letters, digits, '-' and '.'"
	SecretName string `json:"secretName"`

	// path is the directory of the two files in the container. Defaults to
	// /etc/nginx/tls.
	// +optional
	// +kubebuilder:default=/etc/nginx/tls
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/.+`
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[^[:space:]:;{}$]*$')",message="must be an absolute path without spaces and without any of : ; { } $"
	Path string `json:"path,omitempty"`
}

// AutoscalingSpec describes the HorizontalPodAutoscaler `<name>`. It scales by
// CPU usage, so resources.requests.cpu must be set.
//
// +kubebuilder:validation:XValidation:rule="self.minReplicas <= self.maxReplicas",fieldPath=".maxReplicas",message="must not be less than minReplicas"
type AutoscalingSpec struct {
	// minReplicas is the minimum number of pods. Defaults to 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MinReplicas int32 `json:"minReplicas,omitempty"`

	// maxReplicas is the maximum number of pods. It must not be less than
	// minReplicas.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxReplicas int32 `json:"maxReplicas"`

	// targetCPUUtilizationPercentage is the target CPU usage, in percent of what
	// the pods request. Defaults to 80.
	// +optional
	// +kubebuilder:default=80
	// +kubebuilder:validation:Minimum=1
	TargetCPUUtilizationPercentage int32 `json:"targetCPUUtilizationPercentage,omitempty"`
}

// DisruptionSpec describes the PodDisruptionBudget.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minAvailable) || !has(self.maxUnavailable)",message="give one of minAvailable and maxUnavailable, not both"
type DisruptionSpec struct {
	// enabled says whether there is a PodDisruptionBudget of the operator's. false
	// is for a budget of your own: Kubernetes refuses every eviction of a pod that
	// has two. Without any, a drain can evict all pods at once. Defaults to true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// minAvailable is how many pods must stay available: a number, or a percentage
	// such as "50%". At most one of minAvailable and maxUnavailable can be set.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[0-9]{1,2})%$')",message="must be a number of pods, 0 or more, or a percentage from 0% to 100%"
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`

	// maxUnavailable is how many pods can be unavailable: a number, or a
	// percentage such as "50%". At most one of minAvailable and maxUnavailable can
	// be set. Defaults to 1 if neither is.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[0-9]{1,2})%$')",message="must be a number of pods, 0 or more, or a percentage from 0% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// RolloutSpec says how a change reaches the pods.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxSurge) || self.maxSurge > 0 || (has(self.maxUnavailable) && self.maxUnavailable > 0)",fieldPath=".maxUnavailable",message="must not be 0 while maxSurge is 0: no pod could be replaced"
type RolloutSpec struct {
	// deadlineSeconds is how long a rollout can go without progress, in seconds,
	// from 5 to 86400. After that, it is rolled back to the last good revision.
	// The time in which a pod has no node, or waits for its volumes or images,
	// does not count: see pendingDeadlineSeconds. A revision that became healthy
	// is also rolled back if it crash-loops within that time afterwards. A new
	// value makes the operator retry a revision that was rolled back. Defaults to
	// 60.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=86400
	DeadlineSeconds int32 `json:"deadlineSeconds,omitempty"`

	// pendingDeadlineSeconds is how long a rollout can wait for pods that cannot
	// start because there is no node with room, or because their volumes or images
	// are not there yet, in seconds, from 1 to 86400. After that, it is rolled back
	// to the last good revision, and retried after the same time, then after twice
	// that time, and so on, up to an hour. An image that cannot be pulled counts
	// for deadlineSeconds. Left out, it is 600.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	PendingDeadlineSeconds int32 `json:"pendingDeadlineSeconds,omitempty"`

	// maxSurge is how many pods above replicas can exist during a rollout, from 0
	// to 10000. It can be 0 only if maxUnavailable is not. Defaults to 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	MaxSurge *int32 `json:"maxSurge,omitempty"`

	// maxUnavailable is how many pods can be missing during a rollout, from 0 to
	// 10000. It makes room for new pods where no node has any: an old pod stops
	// first. No request fails as long as another pod serves, so it is not for
	// replicas: 1. Left out, it is 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	MaxUnavailable int32 `json:"maxUnavailable,omitempty"`

	// drainSeconds is how long a pod that is about to stop continues to serve, in
	// seconds from 1 to 3600, so that it no longer receives requests when it
	// stops. Defaults to 5.
	// +optional
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	DrainSeconds int64 `json:"drainSeconds,omitempty"`
}

// The condition types, beside Ready, Reconciling and Stalled.
const (
	// ConditionAvailable says whether requests are answered, by the revision that
	// the spec requests or by another one.
	ConditionAvailable = "Available"
	// ConditionAdopted is true while the pods are those of a Deployment that was
	// taken over: it says what the next change of the spec will also change. After
	// that, it is true while an adopted Service keeps what its former owner has set.
	// It is false while spec.adopt cannot be carried out: it says what would be right.
	ConditionAdopted = "Adopted"
)

// AnnotationRetry is an annotation of a WebServer. Any new value makes the
// operator retry a revision that was rolled back.
const AnnotationRetry = "webserver-operator/retry"

// AnnotationAdoptBy is an annotation of a Deployment or a Service: the name of the WebServer
// that may take it over by spec.adopt. Who may create WebServers may not write every Deployment.
const AnnotationAdoptBy = "webserver-operator/adopt-by"
