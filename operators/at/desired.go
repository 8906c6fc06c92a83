package at

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/podsecurity"
	"example.com/fairlead/internal/kit/podtemplate"
)

const (
	// commandContainer is the container that runs the command.
	commandContainer = "command"
	// gateName is the gate that keeps a pod from running until it is claimed.
	gateName = "at.example.com/claim"
	// defaultImage has a shell and is small.
	defaultImage = "busybox"
	// nobody is the user that a command runs as, when the pod template does
	// not say: any one but root will do.
	nobody = 65532
)

// desiredPod is the pod of an attempt that starts now: the user's template
// with the command put in, and what keeps it safe put around it. It is sent
// once and never changed, so it is a whole object and no apply configuration.
func desiredPod(at *atv1alpha1.At, gvk schema.GroupVersionKind, podName string, now time.Time) *corev1.Pod {
	template := podtemplate.From(at.Spec.PodTemplate, podtemplate.Labels(name, at.Name))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: podName, Namespace: at.Namespace, Labels: template.Labels, Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(at, gvk)},
		},
		Spec: template.Spec,
	}
	pod.Annotations[generationAnnotation] = strconv.FormatInt(at.Generation, 10)
	pod.Annotations[ownerAnnotation] = ownerMark(at, gvk)
	delete(pod.Annotations, withdrawnAnnotation)
	delete(pod.Annotations, releasedAnnotation)

	spec := &pod.Spec
	if gateIndex(pod) < 0 {
		spec.SchedulingGates = append(spec.SchedulingGates, corev1.PodSchedulingGate{Name: gateName})
	}
	spec.RestartPolicy = corev1.RestartPolicyNever
	if at.Spec.ActiveDeadlineSeconds != nil {
		left := *at.Spec.ActiveDeadlineSeconds
		if at.Status.StartTime != nil { // a further attempt: the rest
			left = max(shortestDeadline, int64(activeDeadline(at).Sub(now)/time.Second))
		}
		// The field is an int32 on the node, although the API says int64.
		left = min(left, 1<<31-1)
		spec.ActiveDeadlineSeconds = &left
	}
	if at.Spec.ServiceAccountName != "" {
		spec.ServiceAccountName = at.Spec.ServiceAccountName
	}
	podtemplate.NameAccount(spec)
	podtemplate.WithoutToken(spec)
	setCommand(spec, &at.Spec)
	runOnce(spec.Containers)
	runOnce(spec.InitContainers)
	podtemplate.KeepLastWords(spec.InitContainers...)
	podtemplate.OnLinux(spec)
	podsecurity.Restrict(spec, nobody)
	return pod
}

// isMadeFrom says whether a pod was made from what the At is now. Of a pod that an
// operator of 0.0.1 has made, that is not known; it may be at work beside this one,
// and about to claim it.
func isMadeFrom(pod *corev1.Pod, at *atv1alpha1.At) bool {
	generation, ok := pod.Annotations[generationAnnotation]
	return !ok || generation == strconv.FormatInt(at.Generation, 10)
}

// literal keeps Kubernetes from putting variables into a command, where it reads
// $(NAME) as one, and $$ as a dollar sign.
var literal = strings.NewReplacer("$$", "$$$$", "$(", "$$(")

// runOnce takes out what would start the command's container again because of
// another one (Kubernetes 1.35).
func runOnce(containers []corev1.Container) {
	for i := range containers {
		containers[i].RestartPolicyRules = slices.DeleteFunc(containers[i].RestartPolicyRules, func(rule corev1.ContainerRestartRule) bool {
			return rule.Action == corev1.ContainerRestartRuleActionRestartAllContainers
		})
	}
}

// setCommand puts the command into its container, which it adds in front when
// the template has none.
func setCommand(spec *corev1.PodSpec, at *atv1alpha1.AtSpec) {
	command := podtemplate.Main(spec, commandContainer)
	command.RestartPolicy, command.RestartPolicyRules = nil, nil // an attempt is one run
	command.Args = nil
	command.Command = []string{"/bin/sh", "-c"}
	if at.Command != nil {
		command.Command = append(command.Command, literal.Replace(*at.Command))
	} else {
		command.Command = nil
		for _, arg := range at.Args {
			command.Command = append(command.Command, literal.Replace(arg))
		}
	}
	if at.Image != "" {
		command.Image = at.Image
	}
	if command.Image == "" {
		command.Image = defaultImage
	}
	if command.TerminationMessagePolicy == "" {
		command.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	}
	podtemplate.SetEnv(command, at.Env...)
	podtemplate.SetResources(command, at.Resources)
}
