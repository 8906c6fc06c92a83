package at

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

func restricted() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

func TestDesiredPod(t *testing.T) {
	got := desiredPod(anAt(), atExample.gvk, "sample", noon)
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "sample",
			Labels: map[string]string{
				"app.kubernetes.io/managed-by": "at-operator",
				"app.kubernetes.io/name":       "at",
				"app.kubernetes.io/instance":   "sample",
			},
			Annotations: map[string]string{"at.example.com/generation": "1", "at.example.com/owner": "at.example.com/sample/at-uid"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "at.example.com/v1alpha1", Kind: "At", Name: "sample", UID: "at-uid",
				Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: corev1.PodSpec{
			SchedulingGates:              []corev1.PodSchedulingGate{{Name: "at.example.com/claim"}},
			RestartPolicy:                corev1.RestartPolicyNever,
			AutomountServiceAccountToken: new(false),
			NodeSelector:                 map[string]string{"kubernetes.io/os": "linux"},
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(65532)), RunAsGroup: new(int64(65532)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "command", Image: "busybox", ImagePullPolicy: corev1.PullIfNotPresent,
				Command: []string{"/bin/sh", "-c", "true"},

				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
				SecurityContext:          restricted(),
			}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("desiredPod() (-want +got):\n%s", diff)
	}
}

func TestDesiredPodKeepsTheTemplate(t *testing.T) {
	template := &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{"team": "a", "app.kubernetes.io/managed-by": "me"},
			Annotations: map[string]string{"note": "b"},
		},
		Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: gateName}, {Name: "theirs"}},
			SecurityContext: &corev1.PodSecurityContext{RunAsUser: new(int64(7))},
			InitContainers:  []corev1.Container{{Name: "init", Image: "i"}},
			Containers: []corev1.Container{
				{Name: "sidecar", Image: "s", SecurityContext: &corev1.SecurityContext{Privileged: new(true)}},
				{Name: "command", Image: "template", Command: []string{"no"}, Args: []string{"no"}, ImagePullPolicy: corev1.PullAlways, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
					Env: []corev1.EnvVar{{Name: "KEEP", Value: "1"}, {Name: "SET", Value: "template"}}},
			},
			ServiceAccountName: "robot",
		},
	}
	at := anAt(spec(func(s *atv1alpha1.AtSpec) {
		s.Command, s.Args = nil, []string{"/bin/prog", "a b"}
		s.Env = []corev1.EnvVar{{Name: "SET", Value: "spec"}}
		s.PodTemplate = template
	}))
	before := template.DeepCopy()
	pod := desiredPod(at, atExample.gvk, "sample", noon)

	if diff := cmp.Diff(before, template); diff != "" {
		t.Fatalf("the At's own template was changed (-want +got):\n%s", diff)
	}
	wantLabels := map[string]string{"team": "a", "app.kubernetes.io/managed-by": "at-operator", "app.kubernetes.io/name": "at", "app.kubernetes.io/instance": "sample"}
	if diff := cmp.Diff(wantLabels, pod.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	wantSpec := before.Spec.DeepCopy()
	wantSpec.RestartPolicy = corev1.RestartPolicyNever
	wantSpec.NodeSelector = map[string]string{"kubernetes.io/os": "linux"}
	wantSpec.InitContainers[0].SecurityContext = restricted()
	wantSpec.InitContainers[0].TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	wantSpec.Containers[1].Command, wantSpec.Containers[1].Args = []string{"/bin/prog", "a b"}, nil
	wantSpec.Containers[1].Env = []corev1.EnvVar{{Name: "KEEP", Value: "1"}, {Name: "SET", Value: "spec"}}
	wantSpec.Containers[1].SecurityContext = restricted()
	if diff := cmp.Diff(*wantSpec, pod.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

// TestCommandIsTakenLiterally: Kubernetes replaces $(NAME) and $$ in a command, so
// what is sent is what becomes the command by that.
func TestCommandIsTakenLiterally(t *testing.T) {
	for command, want := range map[string]string{
		"echo $HOME ${x} $?": "echo $HOME ${x} $?",
		"echo $$":            "echo $$$$",
		"echo $(date)":       "echo $$(date)",
		"$$$":                "$$$$$",
		"$$$(date)":          "$$$$$$(date)",
		"$($(x))":            "$$($$(x))",
	} {
		line := desiredPod(anAt(spec(func(s *atv1alpha1.AtSpec) { s.Command = &command })), atExample.gvk, "p", noon)
		args := desiredPod(anAt(spec(func(s *atv1alpha1.AtSpec) { s.Command, s.Args = nil, []string{"echo", command} })), atExample.gvk, "p", noon)
		for _, got := range []string{line.Spec.Containers[0].Command[2], args.Spec.Containers[0].Command[1]} {
			if got != want {
				t.Errorf("%q is sent as %q, want %q", command, got, want)
			}
		}
	}
}

// TestNothingStartsTheCommandAgain: no rule of a container does.
func TestNothingStartsTheCommandAgain(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	all := corev1.ContainerRestartRule{Action: corev1.ContainerRestartRuleActionRestartAllContainers}
	itself := corev1.ContainerRestartRule{Action: corev1.ContainerRestartRuleActionRestart}
	pod := desiredPod(anAt(spec(func(s *atv1alpha1.AtSpec) {
		s.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "helper", RestartPolicy: &always, RestartPolicyRules: []corev1.ContainerRestartRule{all}}},
			Containers: []corev1.Container{
				{Name: "command", RestartPolicy: &always, RestartPolicyRules: []corev1.ContainerRestartRule{itself}},
				{Name: "sidecar", RestartPolicyRules: []corev1.ContainerRestartRule{all, itself}},
			},
		}}
	})), atExample.gvk, "p", noon)
	helper, command, sidecar := pod.Spec.InitContainers[0], pod.Spec.Containers[0], pod.Spec.Containers[1]
	if command.RestartPolicy != nil || command.RestartPolicyRules != nil {
		t.Errorf("the command's container restarts: %v, %v", command.RestartPolicy, command.RestartPolicyRules)
	}
	if len(helper.RestartPolicyRules) > 0 || len(sidecar.RestartPolicyRules) != 1 || sidecar.RestartPolicyRules[0].Action != itself.Action {
		t.Errorf("rules of the helper %v, of the sidecar %v", helper.RestartPolicyRules, sidecar.RestartPolicyRules)
	}
	if helper.RestartPolicy == nil {
		t.Error("the helper is a sidecar no more")
	}
}

func TestDesiredPodOfAFurtherAttemptHasWhatIsLeftOfTheDeadline(t *testing.T) {
	active := spec(func(s *atv1alpha1.AtSpec) { s.ActiveDeadlineSeconds = new(int64(60)) })
	for name, tc := range map[string]struct {
		at   *atv1alpha1.At
		want int64
	}{
		"first attempt": {anAt(active), 60},
		"second":        {anAt(backingOff(noon), active), 40},
		"hardly any":    {anAt(backingOff(noon), spec(func(s *atv1alpha1.AtSpec) { s.ActiveDeadlineSeconds = new(int64(20)) })), 1},
		"beyond int32":  {anAt(spec(func(s *atv1alpha1.AtSpec) { s.ActiveDeadlineSeconds = new(int64(1 << 40)) })), 1<<31 - 1},
	} {
		pod := desiredPod(tc.at, atExample.gvk, "p", noon.Add(20*time.Second))
		if got := *pod.Spec.ActiveDeadlineSeconds; got != tc.want {
			t.Errorf("%s: activeDeadlineSeconds = %d, want %d", name, got, tc.want)
		}
	}
}
