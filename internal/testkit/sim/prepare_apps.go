package sim

import (
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file has the defaults and the validation of what operators make besides pods; that
// of Services is in prepare_service.go.

// prepareChild is [Server.prepare] for those kinds.
func (s *Server) prepareChild(k *Kind, old, obj client.Object, subresource string) error {
	if subresource != "" {
		return nil
	}
	var errs field.ErrorList
	spec := field.NewPath("spec")
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		defaultDeployment(&obj.Spec)
		errs = checkTemplate(obj.Spec.Selector, &obj.Spec.Template)
		if before, ok := old.(*appsv1.Deployment); ok && !equality.Semantic.DeepEqual(before.Spec.Selector, obj.Spec.Selector) {
			errs = append(errs, field.Invalid(spec.Child("selector"), obj.Spec.Selector, "field is immutable"))
		}
	case *appsv1.StatefulSet:
		defaultStatefulSet(&obj.Spec)
		errs = checkTemplate(obj.Spec.Selector, &obj.Spec.Template)
		if before, ok := old.(*appsv1.StatefulSet); ok && !sameBut(before.Spec, obj.Spec) {
			errs = append(errs, field.Forbidden(spec, "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"))
		}
	case *appsv1.ControllerRevision:
		if before, ok := old.(*appsv1.ControllerRevision); ok && !equality.Semantic.DeepEqual(before.Data, obj.Data) {
			errs = append(errs, field.Invalid(field.NewPath("data"), string(obj.Data.Raw), "field is immutable"))
		}
	case *corev1.Service:
		before, _ := old.(*corev1.Service)
		errs = s.prepareService(before, obj)
	case *corev1.ConfigMap:
		if before, ok := old.(*corev1.ConfigMap); ok {
			same := maps.Equal(before.Data, obj.Data) && equality.Semantic.DeepEqual(before.BinaryData, obj.BinaryData)
			errs = checkImmutable(before.Immutable, obj.Immutable, same)
		}
	case *corev1.Secret:
		or(&obj.Type, corev1.SecretTypeOpaque)
		for name, text := range obj.StringData {
			if obj.Data == nil {
				obj.Data = map[string][]byte{}
			}
			obj.Data[name] = []byte(text)
		}
		obj.StringData = nil
		if before, ok := old.(*corev1.Secret); ok {
			errs = checkImmutable(before.Immutable, obj.Immutable, equality.Semantic.DeepEqual(before.Data, obj.Data))
			if before.Type != obj.Type {
				errs = append(errs, field.Invalid(field.NewPath("type"), obj.Type, "field is immutable"))
			}
		}
	case *policyv1.PodDisruptionBudget:
		if obj.Spec.MinAvailable != nil && obj.Spec.MaxUnavailable != nil {
			errs = append(errs, field.Invalid(spec, obj.Spec, "minAvailable and maxUnavailable cannot be both set"))
		}
	case *autoscalingv2.HorizontalPodAutoscaler:
		errs = prepareAutoscaler(&obj.Spec)
	case *networkingv1.Ingress:
		for i, rule := range obj.Spec.Rules {
			if rule.HTTP == nil {
				continue
			}
			for j, path := range rule.HTTP.Paths {
				if path.PathType == nil {
					errs = append(errs, field.Required(spec.Child("rules").Index(i).Child("http", "paths").Index(j).Child("pathType"), "pathType must be specified"))
				}
			}
		}
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(k.GroupKind(), obj.GetName(), errs)
	}
	return nil
}

func defaultDeployment(spec *appsv1.DeploymentSpec) {
	if spec.Replicas == nil {
		spec.Replicas = new(int32(1))
	}
	if spec.RevisionHistoryLimit == nil {
		spec.RevisionHistoryLimit = new(int32(10))
	}
	if spec.ProgressDeadlineSeconds == nil {
		spec.ProgressDeadlineSeconds = new(int32(600))
	}
	or(&spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		if spec.Strategy.RollingUpdate == nil {
			spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{}
		}
		for _, part := range []**intstr.IntOrString{&spec.Strategy.RollingUpdate.MaxSurge, &spec.Strategy.RollingUpdate.MaxUnavailable} {
			if *part == nil {
				*part = new(intstr.FromString("25%"))
			}
		}
	}
	defaultTemplate(&spec.Template)
}

func defaultStatefulSet(spec *appsv1.StatefulSetSpec) {
	if spec.Replicas == nil {
		spec.Replicas = new(int32(1))
	}
	if spec.RevisionHistoryLimit == nil {
		spec.RevisionHistoryLimit = new(int32(10))
	}
	or(&spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	or(&spec.UpdateStrategy.Type, appsv1.RollingUpdateStatefulSetStrategyType)
	if spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		if spec.UpdateStrategy.RollingUpdate == nil {
			spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{}
		}
		if spec.UpdateStrategy.RollingUpdate.Partition == nil {
			spec.UpdateStrategy.RollingUpdate.Partition = new(int32(0))
		}
	}
	if spec.PersistentVolumeClaimRetentionPolicy == nil {
		spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{}
	}
	or(&spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	or(&spec.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	defaultTemplate(&spec.Template)
}

// sameBut says whether the specs of StatefulSets differ only in what may be changed.
func sameBut(a, b appsv1.StatefulSetSpec) bool {
	a.Replicas, a.Ordinals, a.Template, a.UpdateStrategy, a.RevisionHistoryLimit = b.Replicas, b.Ordinals, b.Template, b.UpdateStrategy, b.RevisionHistoryLimit
	a.PersistentVolumeClaimRetentionPolicy, a.MinReadySeconds = b.PersistentVolumeClaimRetentionPolicy, b.MinReadySeconds
	return equality.Semantic.DeepEqual(a, b)
}

// checkTemplate is what the validation of a workload says about its pods.
func checkTemplate(selector *metav1.LabelSelector, template *corev1.PodTemplateSpec) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	switch {
	case selector == nil:
		errs = append(errs, field.Required(spec.Child("selector"), ""))
	case !hasLabels(template.Labels, selector.MatchLabels):
		errs = append(errs, field.Invalid(spec.Child("template", "metadata", "labels"), template.Labels, "`selector` does not match template `labels`"))
	}
	if len(template.Spec.Containers) == 0 {
		errs = append(errs, field.Required(spec.Child("template", "spec", "containers"), ""))
	}
	return errs
}

// defaultTemplate has the defaults of a template of pods.
func defaultTemplate(template *corev1.PodTemplateSpec) {
	defaultPod(&template.Spec)
	or(&template.Spec.ServiceAccountName, template.Spec.DeprecatedServiceAccount)
	template.Spec.DeprecatedServiceAccount = template.Spec.ServiceAccountName
	for i := range template.Spec.Volumes {
		v := &template.Spec.Volumes[i]
		for _, mode := range modes(v) {
			if *mode == nil {
				*mode = new(int32(0o644))
			}
		}
	}
	for _, containers := range [][]corev1.Container{template.Spec.InitContainers, template.Spec.Containers} {
		for i := range containers {
			c := &containers[i]
			for _, probe := range []*corev1.Probe{c.ReadinessProbe, c.LivenessProbe, c.StartupProbe} {
				if probe != nil {
					defaultProbe(probe)
				}
			}
			for j := range c.Env {
				if from := c.Env[j].ValueFrom; from != nil && from.FieldRef != nil {
					or(&from.FieldRef.APIVersion, "v1")
				}
			}
			if image := c.Image[strings.LastIndex(c.Image, "/")+1:]; !strings.Contains(image, ":") || strings.HasSuffix(image, ":latest") {
				c.ImagePullPolicy = corev1.PullAlways
			}
		}
	}
}

// modes are those of the files of a volume.
func modes(v *corev1.Volume) (all []**int32) {
	if v.ConfigMap != nil {
		all = append(all, &v.ConfigMap.DefaultMode)
	}
	if v.Secret != nil {
		all = append(all, &v.Secret.DefaultMode)
	}
	if v.Projected != nil {
		all = append(all, &v.Projected.DefaultMode)
	}
	return all
}

func defaultProbe(probe *corev1.Probe) {
	or(&probe.TimeoutSeconds, 1)
	or(&probe.PeriodSeconds, 10)
	or(&probe.SuccessThreshold, 1)
	or(&probe.FailureThreshold, 3)
	if probe.HTTPGet != nil {
		or(&probe.HTTPGet.Path, "/")
		or(&probe.HTTPGet.Scheme, corev1.URISchemeHTTP)
	}
}

// checkImmutable is for the contents that may be declared to be for ever.
func checkImmutable(was, is *bool, same bool) field.ErrorList {
	const why = "field is immutable when `immutable` is set"
	switch {
	case was == nil || !*was:
	case is == nil || !*is:
		return field.ErrorList{field.Forbidden(field.NewPath("immutable"), why)}
	case !same:
		return field.ErrorList{field.Forbidden(field.NewPath("data"), why)}
	}
	return nil
}

func prepareAutoscaler(spec *autoscalingv2.HorizontalPodAutoscalerSpec) (errs field.ErrorList) {
	if spec.MinReplicas == nil {
		spec.MinReplicas = new(int32(1))
	}
	if len(spec.Metrics) == 0 {
		spec.Metrics = []autoscalingv2.MetricSpec{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(80))}},
		}}
	}
	if spec.MaxReplicas < *spec.MinReplicas {
		errs = append(errs, field.Invalid(field.NewPath("spec", "maxReplicas"), spec.MaxReplicas, "must be greater than or equal to `minReplicas`"))
	}
	return errs
}
