package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// WebServer is a web server: a Deployment <name>, a Service <name>-service, a
// PodDisruptionBudget, and what else its spec asks for.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.readyReplicas,selectorpath=.status.selector
// +kubebuilder:resource:path=webservers,singular=webserver
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
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What to serve, and how.
	// +required
	Spec WebServerSpec `json:"spec"`

	// What has become of it. Written by the operator.
	// +optional
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

// WebServerSpec says what to serve, and how.
//
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || !has(self.port) || self.port != 443",fieldPath=".port",message="with tls, port 443 is the one for HTTPS: choose another one for HTTP, such as 80"
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || !has(self.service) || !has(self.service.port) || self.service.port != 443",fieldPath=".service.port",message="with tls, the Service's port 443 is the one for HTTPS: choose another one for HTTP, such as 80"
// +kubebuilder:validation:XValidation:rule="!has(self.content) || !has(self.config) || self.content.path != self.config.path",fieldPath=".content.path",message="must not be config.path: one folder cannot have both"
// +kubebuilder:validation:XValidation:rule="!has(self.content) || !has(self.tls) || has(self.config) || self.content.path != '/etc/nginx/conf.d'",fieldPath=".content.path",message="with tls and no config, /etc/nginx/conf.d is for the configuration that the operator writes"
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || !has(self.content) || self.tls.path != self.content.path",fieldPath=".tls.path",message="must not be content.path: one folder cannot have both"
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || (has(self.config) ? self.tls.path != self.config.path : self.tls.path != '/etc/nginx/conf.d')",fieldPath=".tls.path",message="must not be the folder of the configuration: one folder cannot have both"
// +kubebuilder:validation:XValidation:rule="!has(self.podTemplate) || !has(self.podTemplate.spec) || !has(self.podTemplate.spec.terminationGracePeriodSeconds) || self.podTemplate.spec.terminationGracePeriodSeconds >= self.rollout.drainSeconds",fieldPath=".podTemplate.spec.terminationGracePeriodSeconds",message="must not be less than rollout.drainSeconds, for which a pod goes on serving"
type WebServerSpec struct {
	// The image of the web server, such as nginx:1.26.3. A change of it is
	// rolled out one pod after the other, with no failed request, and rolled
	// back if the new pods do not become healthy.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^[:space:]]+$')",message="must be the name of an image, without spaces, such as nginx:1.26.3"
	Image string `json:"image"`

	// How many pods serve, 10000 at most. 0 stops them all. Ignored while
	// autoscaling is set, and while there is an autoscaler for the Deployment that
	// is not the operator's.
	// `kubectl scale` changes it.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Replicas *int32 `json:"replicas,omitempty"`

	// The port that the server in the container listens on, 1 to 65535.
	// +optional
	// +kubebuilder:default=80
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// How the Service <name>-service is reached. By default it has type
	// NodePort and port 80.
	// +optional
	Service *ServiceSpec `json:"service,omitempty"`

	// CPU and memory of the server's container.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// Environment variables of the server's container.
	// +optional
	// +listType=map
	// +listMapKey=name
	Env []corev1.EnvVar `json:"env,omitempty"`

	// When a pod is ready, and when it is to be restarted. By default a pod is
	// ready as long as its port takes connections, asked every second.
	// +optional
	Probes *ProbesSpec `json:"probes,omitempty"`

	// The files to serve. By default those in the image.
	// +optional
	Content *ContentSpec `json:"content,omitempty"`

	// The configuration of the server. By default the one in the image.
	// +optional
	Config *ConfigSpec `json:"config,omitempty"`

	// HTTPS by the server itself, on container port 443 and Service port 443,
	// beside HTTP. Without a config the operator writes the configuration, for
	// nginx; with one, that configuration has to use the files.
	// +optional
	TLS *TLSSpec `json:"tls,omitempty"`

	// Lets a HorizontalPodAutoscaler choose the number of pods.
	// +optional
	Autoscaling *AutoscalingSpec `json:"autoscaling,omitempty"`

	// Makes an Ingress <name>.
	// +optional
	Ingress *IngressSpec `json:"ingress,omitempty"`

	// Makes an HTTPRoute <name> of the Gateway API, which has to be installed.
	// +optional
	Gateway *GatewaySpec `json:"gateway,omitempty"`

	// Makes an OpenShift Route <name>. Only on OpenShift.
	// +optional
	Route *RouteSpec `json:"route,omitempty"`

	// How many pods may be missing while nodes are drained: the
	// PodDisruptionBudget <name>. By default one at a time.
	// +optional
	Disruption *DisruptionSpec `json:"disruption,omitempty"`

	// How a change reaches the pods.
	// +optional
	// +kubebuilder:default={}
	Rollout RolloutSpec `json:"rollout,omitempty"`

	// Anything else about the pods. The container named webserver is the
	// server's; a security context that is given replaces the operator's.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.restartPolicy) || self.spec.restartPolicy == 'Always'",fieldPath=".spec.restartPolicy",message="must be Always or left out: a web server is to run on"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.activeDeadlineSeconds)",fieldPath=".spec.activeDeadlineSeconds",message="must be left out: a web server is to run on"
	PodTemplate *corev1.PodTemplateSpec `json:"podTemplate,omitempty"`
}

// ProbesSpec has Kubernetes' own probes.
type ProbesSpec struct {
	// When a pod may get requests.
	// +optional
	Readiness *corev1.Probe `json:"readiness,omitempty"`
	// When the container is to be restarted. By default never.
	// +optional
	Liveness *corev1.Probe `json:"liveness,omitempty"`
	// When the container has started: the other probes wait for it.
	// +optional
	Startup *corev1.Probe `json:"startup,omitempty"`
}

// ContentSpec says which files to serve. A change rolls the pods.
//
// +kubebuilder:validation:XValidation:rule="has(self.configMap) != has(self.inline)",message="give exactly one of configMap (the name of a ConfigMap with the files) and inline (one page)"
type ContentSpec struct {
	// The name of a ConfigMap, whose keys are the files.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a ConfigMap: lower-case letters, digits, '-' and '.'"
	ConfigMap string `json:"configMap,omitempty"`

	// The page index.html itself. At most 256 KiB.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=262144
	Inline string `json:"inline,omitempty"`

	// Where the server looks for its files.
	// +optional
	// +kubebuilder:default=/usr/share/nginx/html
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/.+`
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[^[:space:]:;{}$]*$')",message="must be an absolute path without spaces and without any of : ; { } $"
	Path string `json:"path,omitempty"`
}

// ConfigSpec says how the server is configured. A change rolls the pods; one
// that the check refuses is rolled back, while the old pods serve.
type ConfigSpec struct {
	// The name of a ConfigMap, whose keys are the files.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a ConfigMap: lower-case letters, digits, '-' and '.'"
	ConfigMap string `json:"configMap"`

	// The folder of the server that the files take the place of.
	// +optional
	// +kubebuilder:default=/etc/nginx/conf.d
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/.+`
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[^[:space:]:;{}$]*$')",message="must be an absolute path without spaces and without any of : ; { } $"
	Path string `json:"path,omitempty"`

	// The command that checks the configuration in every new pod before the
	// server starts. What it prints when it fails is in the condition Ready.
	// +optional
	// +kubebuilder:default={nginx,"-t"}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	Check []string `json:"check,omitempty"`
}

// TLSSpec says which certificate to serve with.
type TLSSpec struct {
	// The name of a Secret with the keys tls.crt and tls.key, such as
	// cert-manager writes. A change rolls the pods; a pair that does not fit
	// together never reaches them.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a Secret: lower-case letters, digits, '-' and '.'"
	SecretName string `json:"secretName"`

	// The folder of the two files in the container.
	// +optional
	// +kubebuilder:default=/etc/nginx/tls
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/.+`
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[^[:space:]:;{}$]*$')",message="must be an absolute path without spaces and without any of : ; { } $"
	Path string `json:"path,omitempty"`
}

// AutoscalingSpec makes a HorizontalPodAutoscaler <name>, which goes by the
// use of CPU and so needs resources.requests.cpu.
//
// +kubebuilder:validation:XValidation:rule="self.minReplicas <= self.maxReplicas",fieldPath=".maxReplicas",message="must not be less than minReplicas"
type AutoscalingSpec struct {
	// The least number of pods.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MinReplicas int32 `json:"minReplicas,omitempty"`

	// The largest number of pods.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxReplicas int32 `json:"maxReplicas"`

	// The use of CPU to aim at, in percent of what the pods request.
	// +optional
	// +kubebuilder:default=80
	// +kubebuilder:validation:Minimum=1
	TargetCPUUtilizationPercentage int32 `json:"targetCPUUtilizationPercentage,omitempty"`
}

// DisruptionSpec is what the PodDisruptionBudget is made of.
//
// +kubebuilder:validation:XValidation:rule="has(self.minAvailable) != has(self.maxUnavailable)",message="give exactly one of minAvailable and maxUnavailable"
type DisruptionSpec struct {
	// How many pods must stay: a number, or a percentage such as "50%".
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[0-9]{1,2})%$')",message="must be a number of pods, 0 or more, or a percentage from 0% to 100%"
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`

	// How many pods may go: a number, or a percentage such as "50%".
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[0-9]{1,2})%$')",message="must be a number of pods, 0 or more, or a percentage from 0% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// RolloutSpec says how a change reaches the pods.
type RolloutSpec struct {
	// How many seconds a rollout may go without progress, until it is rolled
	// back to the last good revision. A revision that became healthy is rolled
	// back, too, if it crash-loops within that time after. A new value has a
	// revision that was rolled back tried again.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=86400
	DeadlineSeconds int32 `json:"deadlineSeconds,omitempty"`

	// How many pods more than replicas there may be during a rollout.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxSurge int32 `json:"maxSurge,omitempty"`

	// How many seconds a pod that is to stop goes on serving, so that nobody
	// sends it requests any more when it stops.
	// +optional
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	DrainSeconds int64 `json:"drainSeconds,omitempty"`
}

// The condition types, beside Ready, Reconciling and Stalled.
const (
	// ConditionAvailable says whether requests are answered, be it by the
	// revision that the spec requests or by another one.
	ConditionAvailable = "Available"
	// ConditionAdopted is there while the pods are those of another operator,
	// and tells what the next change of the spec will change besides.
	ConditionAdopted = "Adopted"
)

// AnnotationRetry is an annotation of a WebServer. A new value of it, whatever it
// is, has a revision that was rolled back tried again.
const AnnotationRetry = "webserver-operator/retry"
