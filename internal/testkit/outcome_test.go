package testkit

import (
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodStatus(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "setup"}, {Name: "proxy", RestartPolicy: &always}},
		Containers:     []corev1.Container{{Name: "main"}, {Name: "log"}},
	}}
	cases := map[string]struct {
		outcome Outcome
		at      stage
		phase   corev1.PodPhase
		ready   bool
		states  string // setup, proxy, main, log: w, r, k for killed, or the exit code
	}{
		"waiting":       {Stuck("ImagePullBackOff"), waiting, corev1.PodPending, false, "wwww"},
		"running":       {Stays(), running, corev1.PodRunning, true, "0rrr"},
		"not ready":     {Outcome{Forever: true, NotReady: true}, running, corev1.PodRunning, false, "0rrr"},
		"succeeded":     {Succeeds(0), ended, corev1.PodSucceeded, false, "0000"},
		"failed":        {Fails(0, 3), ended, corev1.PodFailed, false, "0033"},
		"one goes on":   {Outcome{ExitCode: 3, Outlive: []string{"log"}}, ended, corev1.PodRunning, false, "003r"},
		"evicted":       {Outcome{PodReason: "Evicted"}, ended, corev1.PodFailed, false, "0000"},
		"stopped":       {Outcome{ExitCode: 3, Outlive: []string{"log"}}, stopped, corev1.PodFailed, false, "003k"},
		"not yet ended": {Fails(0, 3), running, corev1.PodRunning, true, "0rrr"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := podStatus(pod, tc.outcome, tc.at, past{}, metav1.Now(), metav1.Now())
			reason := tc.outcome.PodReason
			if tc.at == stopped {
				reason = "DeadlineExceeded"
			}
			if s.Phase != tc.phase || s.Reason != reason {
				t.Errorf("phase %s (%s), want %s (%s)", s.Phase, s.Reason, tc.phase, reason)
			}
			states := ""
			for _, c := range append(s.InitContainerStatuses, s.ContainerStatuses...) {
				switch {
				case c.State.Waiting != nil:
					states += "w"
				case c.State.Running != nil:
					states += "r"
				case c.State.Terminated.ExitCode == 137:
					states += "k"
				default:
					states += strconv.Itoa(int(c.State.Terminated.ExitCode))
				}
			}
			if states != tc.states {
				t.Errorf("containers %s, want %s", states, tc.states)
			}
			for _, c := range s.Conditions {
				if c.Type == corev1.PodReady && (c.Status == corev1.ConditionTrue) != tc.ready {
					t.Errorf("Ready is %s, want %t", c.Status, tc.ready)
				}
			}
		})
	}
}

func TestRestarts(t *testing.T) {
	cases := map[string]struct {
		policy  corev1.RestartPolicy
		outcome Outcome
		want    bool
	}{
		"always":                {corev1.RestartPolicyAlways, Succeeds(0), true},
		"on failure, succeeded": {corev1.RestartPolicyOnFailure, Succeeds(0), false},
		"on failure, failed":    {corev1.RestartPolicyOnFailure, Fails(0, 1), true},
		"never":                 {corev1.RestartPolicyNever, Fails(0, 1), false},
		"evicted":               {corev1.RestartPolicyAlways, Outcome{PodReason: "Evicted"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: tc.policy}}
			if got := restarts(pod, tc.outcome); got != tc.want {
				t.Errorf("restarts() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestExceeded(t *testing.T) {
	second := int64(1)
	cases := map[string]struct {
		seconds *int64
		age     time.Duration
		want    bool
	}{
		"no deadline": {nil, time.Hour, false},
		"in time":     {&second, time.Second - 1, false},
		"exceeded":    {&second, time.Second, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			pod := &corev1.Pod{Spec: corev1.PodSpec{ActiveDeadlineSeconds: tc.seconds}}
			if got := exceeded(pod, now.Add(-tc.age), now); got != tc.want {
				t.Errorf("exceeded() = %t, want %t", got, tc.want)
			}
		})
	}
}
