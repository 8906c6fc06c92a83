package webserver

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/internal/kit/run"
)

func ownedBy(ws *webv1.WebServer) *metav1ac.OwnerReferenceApplyConfiguration {
	return apply.OwnerReference(ws, webv1.GroupVersion.WithKind(webServerKind))
}

// deployment is the Deployment with the chosen pod template. One that was
// taken over keeps its own.
func deployment(ws *webv1.WebServer, chosen choice, replicas *int32) (*appsv1ac.DeploymentApplyConfiguration, error) {
	surge := int32(1)
	if s := ws.Spec.Rollout.MaxSurge; s != nil {
		surge = *s
	}
	spec := appsv1ac.DeploymentSpec().
		WithMinReadySeconds(1).
		WithPaused(false).
		WithProgressDeadlineSeconds(ws.Spec.Rollout.DeadlineSeconds).
		WithStrategy(appsv1ac.DeploymentStrategy().
			WithType("RollingUpdate").
			WithRollingUpdate(appsv1ac.RollingUpdateDeployment().
				WithMaxSurge(intstr.FromInt32(surge)).
				WithMaxUnavailable(intstr.FromInt32(ws.Spec.Rollout.MaxUnavailable))))
	if replicas != nil {
		spec.WithReplicas(*replicas)
	}
	d := appsv1ac.Deployment(childName(ws), ws.Namespace).
		WithLabels(labels(ws)).
		WithOwnerReferences(ownedBy(ws)).
		WithSpec(spec)
	if chosen.adopted {
		return d.WithAnnotations(map[string]string{adoptedAnnotation: chosen.adoptedFor}), nil
	}

	template, err := podtemplate.Applied(chosen.template.json)
	if err != nil {
		return nil, err
	}
	template.WithAnnotations(map[string]string{revisionAnnotation: chosen.template.revision})
	spec.WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector(ws))).WithTemplate(template)
	d.WithAnnotations(map[string]string{templateAnnotation: chosen.template.json})
	if !chosen.lastGood.isNone() {
		d.WithAnnotations(map[string]string{goodAnnotation: chosen.lastGood.revision})
	}
	return d, nil
}

// kept is what keeps a template for a rollback: it outlives the Deployment.
func kept(ws *webv1.WebServer, seen observation, good podTemplate) *appsv1ac.ControllerRevisionApplyConfiguration {
	var last int64
	for _, r := range seen.revisions {
		last = max(last, r.Revision)
	}
	return appsv1ac.ControllerRevision(fmt.Sprintf("%s-%s", childName(ws), good.revision), ws.Namespace).
		WithLabels(labels(ws)).
		WithAnnotations(map[string]string{revisionAnnotation: good.revision}).
		WithOwnerReferences(ownedBy(ws)).
		WithData(runtime.RawExtension{Raw: []byte(good.json)}).
		WithRevision(last + 1)
}

// service is the Service. A node port of 0 leaves the choice to the API server;
// byName is whether it finds the pods' ports by their names, and unnamed whether its only
// port is to stay without one.
func service(ws *webv1.WebServer, nodePort, httpsNodePort int32, byName, unnamed bool) *corev1ac.ServiceApplyConfiguration {
	target := func(name string, number int32) intstr.IntOrString {
		if byName {
			return intstr.FromString(name)
		}
		return intstr.FromInt32(number)
	}
	http := corev1ac.ServicePort().
		WithProtocol(corev1.ProtocolTCP).
		WithPort(serviceSpec(ws).Port).
		WithTargetPort(target(httpName, ws.Spec.Port))
	if !unnamed {
		http.WithName(httpName)
	}
	if nodePort != 0 {
		http.WithNodePort(nodePort)
	}
	spec := corev1ac.ServiceSpec().
		WithType(serviceSpec(ws).Type).
		WithSelector(selector(ws)).
		WithPorts(http)
	if ws.Spec.TLS != nil {
		https := corev1ac.ServicePort().
			WithName(httpsName).
			WithProtocol(corev1.ProtocolTCP).
			WithPort(httpsPort).
			WithTargetPort(target(httpsName, httpsPort))
		if httpsNodePort != 0 {
			https.WithNodePort(httpsNodePort)
		}
		spec.WithPorts(https)
	}
	s := corev1ac.Service(serviceName(ws), ws.Namespace).
		WithLabels(labels(ws)).
		WithOwnerReferences(ownedBy(ws)).
		WithSpec(spec)
	if len(serviceSpec(ws).Annotations) > 0 {
		s.WithAnnotations(serviceSpec(ws).Annotations)
	}
	return s
}

// serviceSpec is the service of the spec, with its defaults.
func serviceSpec(ws *webv1.WebServer) webv1.ServiceSpec {
	s := webv1.ServiceSpec{}
	if ws.Spec.Service != nil {
		s = *ws.Spec.Service
	}
	if s.Type == "" {
		s.Type = corev1.ServiceTypeNodePort
	}
	if s.Port == 0 {
		s.Port = 80
	}
	return s
}

// hasBudget says whether there is to be a PodDisruptionBudget of the operator's.
func hasBudget(ws *webv1.WebServer) bool {
	d := ws.Spec.Disruption
	return d == nil || d.Enabled == nil || *d.Enabled
}

// disruptionBudget lets pods go one at a time, or as the user says. A pod that is not ready serves nobody, and may always
// be evicted, also where none is ready.
func disruptionBudget(ws *webv1.WebServer) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	spec := policyv1ac.PodDisruptionBudgetSpec().
		WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector(ws)))
	switch d := ws.Spec.Disruption; {
	case d == nil, d.MinAvailable == nil && d.MaxUnavailable == nil:
		spec.WithMaxUnavailable(intstr.FromInt32(1))
	case d.MinAvailable != nil:
		spec.WithMinAvailable(*d.MinAvailable)
	default:
		spec.WithMaxUnavailable(*d.MaxUnavailable)
	}
	return policyv1ac.PodDisruptionBudget(childName(ws), ws.Namespace).
		WithLabels(labels(ws)).
		WithOwnerReferences(ownedBy(ws)).
		WithSpec(spec)
}

func autoscaler(ws *webv1.WebServer) *autoscalingv2ac.HorizontalPodAutoscalerApplyConfiguration {
	return autoscalingv2ac.HorizontalPodAutoscaler(childName(ws), ws.Namespace).
		WithLabels(labels(ws)).
		WithOwnerReferences(ownedBy(ws)).
		WithSpec(autoscalingv2ac.HorizontalPodAutoscalerSpec().
			WithScaleTargetRef(autoscalingv2ac.CrossVersionObjectReference().
				WithAPIVersion("apps/v1").WithKind("Deployment").WithName(childName(ws))).
			WithMinReplicas(ws.Spec.Autoscaling.MinReplicas).
			WithMaxReplicas(ws.Spec.Autoscaling.MaxReplicas).
			WithMetrics(autoscalingv2ac.MetricSpec().
				WithType("Resource").
				WithResource(autoscalingv2ac.ResourceMetricSource().
					WithName(corev1.ResourceCPU).
					WithTarget(autoscalingv2ac.MetricTarget().
						WithType("Utilization").
						WithAverageUtilization(ws.Spec.Autoscaling.TargetCPUUtilizationPercentage)))))
}

func ingress(ws *webv1.WebServer) *networkingv1ac.IngressApplyConfiguration {
	requested := ws.Spec.Ingress
	port := networkingv1ac.ServiceBackendPort().WithName(httpName)
	if adoptsService(ws) { // whose port may have no name
		port = networkingv1ac.ServiceBackendPort().WithNumber(serviceSpec(ws).Port)
	}
	spec := networkingv1ac.IngressSpec().
		WithRules(networkingv1ac.IngressRule().
			WithHost(requested.Host).
			WithHTTP(networkingv1ac.HTTPIngressRuleValue().
				WithPaths(networkingv1ac.HTTPIngressPath().
					WithPath(requested.Path).
					WithPathType(networkingv1.PathTypePrefix).
					WithBackend(networkingv1ac.IngressBackend().
						WithService(networkingv1ac.IngressServiceBackend().
							WithName(serviceName(ws)).
							WithPort(port))))))
	if requested.ClassName != "" {
		spec.WithIngressClassName(requested.ClassName)
	}
	if requested.TLSSecretName != "" {
		spec.WithTLS(networkingv1ac.IngressTLS().WithHosts(requested.Host).WithSecretName(requested.TLSSecretName))
	}
	i := networkingv1ac.Ingress(childName(ws), ws.Namespace).
		WithLabels(labels(ws)).
		WithOwnerReferences(ownedBy(ws)).
		WithSpec(spec)
	if len(requested.Annotations) > 0 {
		i.WithAnnotations(requested.Annotations)
	}
	return i
}

// httpRoute is an HTTPRoute of the Gateway API, whose Go types are not needed
// for so little.
func httpRoute(ws *webv1.WebServer) runtime.ApplyConfiguration {
	requested := ws.Spec.Gateway
	parent := map[string]any{"name": requested.Name}
	if requested.Namespace != "" {
		parent["namespace"] = requested.Namespace
	}
	if requested.SectionName != "" {
		parent["sectionName"] = requested.SectionName
	}
	spec := map[string]any{
		"parentRefs": []any{parent},
		"rules": []any{map[string]any{
			"backendRefs": []any{map[string]any{"name": serviceName(ws), "port": int64(serviceSpec(ws).Port)}},
		}},
	}
	if len(requested.Hostnames) > 0 {
		var hostnames []any
		for _, hostname := range requested.Hostnames {
			hostnames = append(hostnames, hostname)
		}
		spec["hostnames"] = hostnames
	}
	return foreign(ws, unstructuredOf(httpRouteKind), spec)
}

// openShiftRoute is a Route of OpenShift's router.
func openShiftRoute(ws *webv1.WebServer) runtime.ApplyConfiguration {
	spec := map[string]any{
		"to":   map[string]any{"kind": "Service", "name": serviceName(ws), "weight": int64(100)},
		"port": map[string]any{"targetPort": httpName},
	}
	if adoptsService(ws) { // whose port may have no name
		spec["port"] = map[string]any{"targetPort": int64(ws.Spec.Port)}
	}
	if ws.Spec.Route.Host != "" {
		spec["host"] = ws.Spec.Route.Host
	}
	if ws.Spec.Route.EdgeTLS {
		spec["tls"] = map[string]any{"termination": "edge", "insecureEdgeTerminationPolicy": "Redirect"}
	}
	return foreign(ws, unstructuredOf(routeKind), spec)
}

// foreign is a child of a kind without Go types here.
func foreign(ws *webv1.WebServer, u *unstructured.Unstructured, spec map[string]any) runtime.ApplyConfiguration {
	u.SetNamespace(ws.Namespace)
	u.SetName(childName(ws))
	u.SetLabels(labels(ws))
	owner, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ownedBy(ws))
	if err != nil {
		panic(err) // of strings and booleans
	}
	u.Object["metadata"].(map[string]any)["ownerReferences"] = []any{owner}
	u.Object["spec"] = spec
	return client.ApplyConfigurationFromUnstructured(u)
}

// copyOf is the object that keeps an input as it was, for as long as pods may
// start with it.
func copyOf(ws *webv1.WebServer, s *snapshot) runtime.ApplyConfiguration {
	all := maps.Clone(labels(ws))
	if s.kind == secretKind {
		return corev1ac.Secret(s.name, ws.Namespace).
			WithLabels(all).WithOwnerReferences(ownedBy(ws)).
			WithType(corev1.SecretTypeTLS).WithImmutable(true).WithData(s.data)
	}
	return corev1ac.ConfigMap(s.name, ws.Namespace).
		WithLabels(all).WithOwnerReferences(ownedBy(ws)).
		WithImmutable(true).WithBinaryData(s.data)
}

var managedBy = run.ManagedBy(name)
