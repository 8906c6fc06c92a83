//go:build apiserver

package testkit

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestKubelet(t *testing.T) {
	s := Server(t)
	ns := s.NewNamespace(t)
	c, err := client.New(s.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	k, err := StartKubelet(t.Context(), s.Config, ns, func(pod *corev1.Pod) Outcome {
		return map[string]Outcome{
			"succeeds": {Log: "hello world\n"},
			"fails":    Fails(50*time.Millisecond, 3),
			"stays":    Stays(),
			"stuck":    Stuck("ImagePullBackOff"),
			"again":    Fails(0, 1),
			"evicted":  {PodReason: "Evicted"},
			"sidecar":  {Outlive: []string{"second"}},
			"stopped":  {Outlive: []string{"second"}},
		}[pod.Name]
	})
	if err != nil {
		t.Fatal(err)
	}

	cases := map[string]struct {
		restart  corev1.RestartPolicy
		deadline *int64
		gated    bool
		starts   int // at least
		want     func(*corev1.Pod) bool
	}{
		"succeeds": {starts: 1, want: func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded }},
		"fails": {starts: 1, want: func(p *corev1.Pod) bool {
			return p.Status.Phase == corev1.PodFailed && p.Status.ContainerStatuses[0].State.Terminated.ExitCode == 3
		}},
		"stays": {starts: 1, want: func(p *corev1.Pod) bool {
			return p.Status.Phase == corev1.PodRunning && p.Spec.NodeName == nodeName
		}},
		"stuck": {starts: 0, want: func(p *corev1.Pod) bool {
			return p.Status.Phase == corev1.PodPending && len(p.Status.ContainerStatuses) > 0 &&
				p.Status.ContainerStatuses[0].State.Waiting.Reason == "ImagePullBackOff"
		}},
		"again": {restart: corev1.RestartPolicyAlways, starts: 3, want: func(p *corev1.Pod) bool {
			return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].RestartCount >= 2
		}},
		"evicted": {starts: 1, want: func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed && p.Status.Reason == "Evicted" }},
		"sidecar": {starts: 1, want: func(p *corev1.Pod) bool {
			return p.Status.Phase == corev1.PodRunning && p.Status.ContainerStatuses[0].State.Terminated != nil
		}},
		"stopped": {starts: 1, deadline: new(int64(1)), want: func(p *corev1.Pod) bool {
			return p.Status.Phase == corev1.PodFailed && p.Status.Reason == "DeadlineExceeded" &&
				p.Status.ContainerStatuses[0].State.Terminated.ExitCode == 0 && p.Status.ContainerStatuses[1].State.Terminated.ExitCode == 137
		}},
		"gated": {gated: true, starts: 0, want: func(p *corev1.Pod) bool { return p.Spec.NodeName == "" }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := podOf(name, ns, tc.restart)
			pod.Spec.ActiveDeadlineSeconds = tc.deadline
			if tc.gated {
				pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
			}
			if err := c.Create(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			err := poll(t.Context(), 10*time.Second, func() error {
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
					return err
				}
				if !tc.want(pod) {
					return fmt.Errorf("status: %+v", pod.Status)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := startsOfPod(k, pod.UID); got < tc.starts || tc.starts == 0 && got > 0 {
				t.Errorf("started %d times, want %d", got, tc.starts)
			}
			if err := c.Delete(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			gone(t, c, pod)
		})
	}
}

func podOf(name, namespace string, restart corev1.RestartPolicy) *corev1.Pod {
	if restart == "" {
		restart = corev1.RestartPolicyNever
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: corev1.PodSpec{
			RestartPolicy: restart,
			Containers:    []corev1.Container{{Name: "first", Image: "a"}, {Name: "second", Image: "b"}},
		},
	}
}

func startsOfPod(k *Kubelet, uid types.UID) (n int) {
	for _, s := range k.Starts() {
		if s.Pod.UID == uid {
			n++
		}
	}
	return n
}

func TestKubeletLogs(t *testing.T) {
	s := Server(t)
	ns := s.NewNamespace(t)
	k, err := StartKubelet(t.Context(), s.Config, ns, func(*corev1.Pod) Outcome { return Outcome{Log: "hello world\n"} })
	if err != nil {
		t.Fatal(err)
	}
	c, err := kubernetes.NewForConfig(k.Logs(s.Config))
	if err != nil {
		t.Fatal(err)
	}
	pods := c.CoreV1().Pods(ns)
	if _, err := pods.Create(t.Context(), podOf("p", ns, ""), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	err = poll(t.Context(), 10*time.Second, func() error {
		text, err := pods.GetLogs("p", &corev1.PodLogOptions{}).DoRaw(t.Context())
		if err == nil && string(text) != "hello world\n" {
			err = fmt.Errorf("log %q", text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
