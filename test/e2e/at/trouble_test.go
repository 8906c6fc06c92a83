//go:build e2e

package at

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// newAt is an At that is due at once.
func newAt(namespace, name string, change func(*atv1alpha1.AtSpec)) *atv1alpha1.At {
	at := &atv1alpha1.At{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       atv1alpha1.AtSpec{Schedule: "2021-09-09T07:05:59Z"},
	}
	change(&at.Spec)
	if at.Spec.Command == nil && at.Spec.Args == nil {
		at.Spec.Command = new("true")
	}
	return at
}

func create(t *testing.T, obj client.Object) {
	t.Helper()
	if err := c.Create(context.Background(), obj); err != nil {
		t.Fatal(err)
	}
}

// waitFor waits until an At is in a phase for a reason, and returns it.
func waitFor(t *testing.T, at *atv1alpha1.At, phase atv1alpha1.Phase, reason string, within time.Duration) *atv1alpha1.At {
	t.Helper()
	got := &atv1alpha1.At{}
	pace.Eventually(t, within, func() error {
		if err := c.Get(context.Background(), client.ObjectKeyFromObject(at), got); err != nil {
			return err
		}
		if got.Status.Phase != phase || reason != "" && got.Status.Reason != reason {
			return fmt.Errorf("%s is %s %s (%v), want %s %s", at.Name, got.Status.Phase, got.Status.Reason, got.Status.Conditions, phase, reason)
		}
		return nil
	})
	return got
}

func podOf(t *testing.T, at *atv1alpha1.At) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := c.Get(context.Background(), client.ObjectKey{Namespace: at.Namespace, Name: at.Status.PodName}, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// Every case runs in a namespace that enforces the restricted Pod Security
// Standard, all at the same time: trouble with one may not delay another.
func TestAtThroughTrouble(t *testing.T) {
	ns := e2e.NewNamespace(t, "pod-security.kubernetes.io/enforce=restricted")
	long := strings.Repeat("a-very.long-name.", 15)[:252] + "x"

	cases := map[string]struct {
		name   string
		spec   func(*atv1alpha1.AtSpec)
		phase  atv1alpha1.Phase
		reason string
		within time.Duration
		check  func(*testing.T, *atv1alpha1.At)
	}{
		"name of 253 characters with dots": {
			name: long, spec: func(s *atv1alpha1.AtSpec) { s.OutputBytes = 10; s.Command = new("echo long") },
			phase: atv1alpha1.Done, check: wantOutput("long\n"),
		},
		"same first 63 characters, one": {name: strings.Repeat("n", 63) + "1", spec: func(*atv1alpha1.AtSpec) {}, phase: atv1alpha1.Done},
		"same first 63 characters, two": {name: strings.Repeat("n", 63) + "2", spec: func(*atv1alpha1.AtSpec) {}, phase: atv1alpha1.Done},
		"quotes, pipes, variables": {
			name: "shell", spec: func(s *atv1alpha1.AtSpec) {
				s.Command = new(`printf '%s|%s\n' "a  b" "$WHO" | tr a-z A-Z`)
				s.Env = []corev1.EnvVar{{Name: "WHO", Value: "it's me"}}
				s.OutputBytes = 100
			},
			phase: atv1alpha1.Done, check: wantOutput("A  B|IT'S ME\n"),
		},
		"args without a shell": {
			name: "args", spec: func(s *atv1alpha1.AtSpec) { s.Args = []string{"echo", "$HOME", "a  b"}; s.OutputBytes = 100 },
			phase: atv1alpha1.Done, check: wantOutput("$HOME a  b\n"),
		},
		"only the last bytes of the output": {
			name: "output", spec: func(s *atv1alpha1.AtSpec) {
				// The sleep is for containerd 1.6, which drops what a program
				// wrote just before it ended: kubectl logs misses it, too.
				s.Command, s.OutputBytes = new("seq 1 100000; sleep 2"), 14
			},
			phase: atv1alpha1.Done, check: wantOutput("\n99999\n100000\n"),
		},
		"output that is not asked for": {
			name: "secret", spec: func(s *atv1alpha1.AtSpec) { s.Command = new("echo secret") },
			phase: atv1alpha1.Done, check: wantOutput(""),
		},
		"a command of 100 KiB": {
			name: "large", spec: func(s *atv1alpha1.AtSpec) {
				s.Command = new("echo ok #" + strings.Repeat("x", 100<<10-9))
				s.OutputBytes = 10
			},
			phase: atv1alpha1.Done, check: wantOutput("ok\n"),
		},
		"exit code": {
			name: "exit-code", spec: func(s *atv1alpha1.AtSpec) { s.Command = new("exit 7") },
			phase: atv1alpha1.Failed, reason: "CommandFailed", check: wantExitCode(7),
		},
		"program that does not exist": {
			name: "no-program", spec: func(s *atv1alpha1.AtSpec) { s.Args = []string{"no-such-program"} },
			phase: atv1alpha1.Failed, reason: "StartError", check: wantExitCode(128),
		},
		"tried again": {
			name: "retried", within: 60 * time.Second, spec: func(s *atv1alpha1.AtSpec) { s.Command = new("exit 3"); s.BackoffLimit = 1 },
			phase: atv1alpha1.Failed, reason: "CommandFailed", check: func(t *testing.T, at *atv1alpha1.At) {
				wantExitCode(3)(t, at)
				pods := &corev1.PodList{}
				if err := c.List(context.Background(), pods, client.InNamespace(ns), client.MatchingLabels{"app.kubernetes.io/instance": at.Name}); err != nil {
					t.Fatal(err)
				}
				if at.Status.Attempts != 2 || len(pods.Items) != 2 {
					t.Errorf("%d attempts and %d pods, want 2 of each", at.Status.Attempts, len(pods.Items))
				}
			},
		},
		"out of memory": {
			name: "oom", spec: func(s *atv1alpha1.AtSpec) {
				s.Command = new("x=$(yes | head -c 100000000); echo ${#x}")
				s.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("16Mi")}
			},
			phase: atv1alpha1.Failed, reason: "OOMKilled",
		},
		"image that does not exist": {
			name: "no-image", within: 40 * time.Second, spec: func(s *atv1alpha1.AtSpec) { s.Image = "does-not-exist:1"; s.PendingDeadlineSeconds = new(int64(20)) },
			phase: atv1alpha1.Failed, reason: "PendingDeadlineExceeded", check: func(t *testing.T, _ *atv1alpha1.At) {
				pace.Eventually(t, 10*time.Second, func() error {
					if _, err := e2e.TryKubectl("", "get", "pod", "no-image", "-n", ns); err == nil {
						return fmt.Errorf("the pod that never started is still there")
					}
					return nil
				})
			},
		},
		"too long": {
			name: "too-long", spec: func(s *atv1alpha1.AtSpec) {
				s.Command = new("sleep 1000")
				s.ActiveDeadlineSeconds = new(int64(3))
				s.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(1))}}
			},
			phase: atv1alpha1.Failed, reason: "DeadlineExceeded",
		},
		"too long, and says that it succeeded": {
			name: "too-long-0", spec: func(s *atv1alpha1.AtSpec) {
				s.Command = new("trap 'exit 0' TERM; sleep 1000 & wait")
				s.ActiveDeadlineSeconds, s.BackoffLimit = new(int64(3)), 2
			},
			phase: atv1alpha1.Failed, reason: "DeadlineExceeded",
		},
		"last words": {
			name: "last-words", spec: func(s *atv1alpha1.AtSpec) { s.Command = new("echo no such backup >&2; sleep 2; exit 4") },
			phase: atv1alpha1.Failed, reason: "CommandFailed", check: func(t *testing.T, at *atv1alpha1.At) {
				if message := at.Status.Conditions[0].Message; message != "The command ended with exit code 4: no such backup" {
					t.Errorf("message %q", message)
				}
			},
		},
		"sidecar that does not end": {
			name: "sidecar", spec: func(s *atv1alpha1.AtSpec) {
				s.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(1)),
					Containers:                    []corev1.Container{{Name: "proxy", Image: "busybox", ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sleep", "1000"}}},
				}}
			},
			phase: atv1alpha1.Done, check: func(t *testing.T, at *atv1alpha1.At) {
				pace.Eventually(t, 20*time.Second, func() error {
					if phase := podOf(t, at).Status.Phase; phase == corev1.PodRunning {
						return fmt.Errorf("the sidecar still runs")
					}
					return nil
				})
				waitFor(t, at, atv1alpha1.Done, "Completed", time.Second)
			},
		},
		"pod that Pod Security refuses": {
			name: "privileged", spec: func(s *atv1alpha1.AtSpec) {
				s.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{HostNetwork: true}}
			},
			phase: atv1alpha1.Pending, reason: "PodRefused",
		},
		"refused until its deadline": {
			name: "refused-missed", spec: func(s *atv1alpha1.AtSpec) {
				s.Schedule = in(2 * time.Second)
				s.StartingDeadlineSeconds = new(int64(4))
				s.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{HostPID: true}}
			},
			phase: atv1alpha1.Missed, reason: "StartingDeadlineExceeded",
		},
		"too late": {
			name: "late", spec: func(s *atv1alpha1.AtSpec) { s.StartingDeadlineSeconds = new(int64(60)) },
			phase: atv1alpha1.Missed, reason: "StartingDeadlineExceeded",
		},
		"the last year": {
			name: "last-year", spec: func(s *atv1alpha1.AtSpec) { s.Schedule = "9999-12-31T23:59:59Z" },
			phase: atv1alpha1.Pending, reason: "Scheduled",
		},
		"suspended": {
			name: "suspended", spec: func(s *atv1alpha1.AtSpec) { s.Suspend = true },
			phase: atv1alpha1.Pending, reason: "Suspended", check: func(t *testing.T, at *atv1alpha1.At) {
				e2e.Kubectl(t, "patch", "at", "suspended", "-n", ns, "--type=merge", "-p", `{"spec":{"suspend":false}}`)
				waitFor(t, at, atv1alpha1.Done, "Completed", 20*time.Second)
			},
		},
		"removed after its time": {
			name: "ttl", spec: func(s *atv1alpha1.AtSpec) { s.TTLSecondsAfterFinished = new(int64(3)) },
			phase: atv1alpha1.Done, check: func(t *testing.T, _ *atv1alpha1.At) {
				pace.Eventually(t, 20*time.Second, func() error {
					for _, kind := range []string{"at", "pod"} {
						if out, err := e2e.TryKubectl("", "get", kind, "ttl", "-n", ns); err == nil {
							return fmt.Errorf("still there: %s", out)
						}
					}
					return nil
				})
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := newAt(ns, tc.name, tc.spec)
			create(t, at)
			if tc.within == 0 {
				tc.within = 30 * time.Second
			}
			got := waitFor(t, at, tc.phase, tc.reason, tc.within)
			if tc.check != nil {
				tc.check(t, got)
			}
		})
	}
}

func wantOutput(want string) func(*testing.T, *atv1alpha1.At) {
	return func(t *testing.T, at *atv1alpha1.At) {
		if at.Status.Output != want {
			t.Errorf("output %q, want %q", at.Status.Output, want)
		}
	}
}

func wantExitCode(want int32) func(*testing.T, *atv1alpha1.At) {
	return func(t *testing.T, at *atv1alpha1.At) {
		if at.Status.ExitCode == nil || *at.Status.ExitCode != want {
			t.Errorf("exit code %v, want %d", at.Status.ExitCode, want)
		}
	}
}

func TestAtLeavesAForeignPodAlone(t *testing.T) {
	ns := e2e.NewNamespace(t)
	e2e.Kubectl(t, "run", "taken", "-n", ns, "--image=busybox", "--image-pull-policy=IfNotPresent", "--restart=Never", "--", "sleep", "1000")
	at := newAt(ns, "taken", func(*atv1alpha1.AtSpec) {})
	create(t, at)
	got := waitFor(t, at, atv1alpha1.Pending, "PodConflict", 10*time.Second)
	if message := got.Status.Conditions[len(got.Status.Conditions)-1].Message; !strings.Contains(message, `Pod "taken" exists and is not owned by this object`) {
		t.Errorf("message: %s", message)
	}
	if out := e2e.Kubectl(t, "get", "pod", "taken", "-n", ns, "-o", "jsonpath={.metadata.ownerReferences}{.metadata.deletionTimestamp}"); out != "" {
		t.Errorf("the foreign pod was touched: %s", out)
	}
	e2e.Kubectl(t, "delete", "pod", "taken", "-n", ns, "--grace-period=1")
	waitFor(t, at, atv1alpha1.Done, "Completed", 30*time.Second)
}

func TestAtWaitsForQuota(t *testing.T) {
	ns := e2e.NewNamespace(t)
	e2e.Kubectl(t, "create", "quota", "none", "-n", ns, "--hard=pods=0")
	// Until the controller has counted, it limits nothing.
	e2e.Kubectl(t, "wait", "-n", ns, "--for=jsonpath={.status.hard.pods}=0", "resourcequota/none", e2e.Patience)
	at := newAt(ns, "at", func(*atv1alpha1.AtSpec) {})
	create(t, at)
	waitFor(t, at, atv1alpha1.Pending, "PodRefused", 10*time.Second)
	e2e.Kubectl(t, "delete", "quota", "none", "-n", ns)
	waitFor(t, at, atv1alpha1.Done, "Completed", 30*time.Second)
}

// TestAtTakesACommandLiterally: what Kubernetes would replace in a pod's command is
// the shell's, and what no shell reads stays as it is.
func TestAtTakesACommandLiterally(t *testing.T) {
	ns := e2e.NewNamespace(t)
	variable := []corev1.EnvVar{{Name: "NAME", Value: "variable"}}
	line := newAt(ns, "line", func(s *atv1alpha1.AtSpec) {
		s.Command = new(`NAME() { echo executed; }; test $$ -gt 0 && echo "$(NAME) $NAME"`)
		s.Env, s.OutputBytes = variable, 100
	})
	args := newAt(ns, "args", func(s *atv1alpha1.AtSpec) {
		s.Args = []string{"echo", "$(NAME)", "$$"}
		s.Env, s.OutputBytes = variable, 100
	})
	create(t, line)
	create(t, args)
	for at, want := range map[*atv1alpha1.At]string{line: "executed variable\n", args: "$(NAME) $$\n"} {
		if got := waitFor(t, at, atv1alpha1.Done, "Completed", 30*time.Second).Status.Output; got != want {
			t.Errorf("%s: output %q, want %q", at.Name, got, want)
		}
	}
}

// TestAtEndsTheFirstPodBeforeTheSecond: a pod that found no node in time does not
// run beside the next attempt's, when there is a node after all.
func TestAtEndsTheFirstPodBeforeTheSecond(t *testing.T) {
	ns := e2e.NewNamespace(t)
	deadline := pace.Seconds(5) // the second pod has to start in it
	at := newAt(ns, "twice", func(s *atv1alpha1.AtSpec) {
		s.PendingDeadlineSeconds, s.BackoffLimit = &deadline, 1
		s.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeSelector: map[string]string{"fairlead": "here"}}}
	})
	create(t, at)
	waitFor(t, at, atv1alpha1.Running, "PendingDeadlineExceeded", 30*time.Second+time.Duration(deadline)*time.Second)
	pace.Eventually(t, 5*time.Second, func() error {
		if out, _ := e2e.TryKubectl("", "get", "pods", "-n", ns); !strings.HasPrefix(out, "No resources found") {
			return fmt.Errorf("the first attempt's pod is there:\n%s", out)
		}
		return nil
	})
	e2e.Kubectl(t, "label", "nodes", "--all", "fairlead=here")
	t.Cleanup(func() { e2e.Kubectl(t, "label", "nodes", "--all", "fairlead-") })
	got := waitFor(t, at, atv1alpha1.Done, "Completed", 30*time.Second)
	if out := e2e.Kubectl(t, "get", "pods", "-n", ns, "-o", "name"); got.Status.Attempts != 2 || out != "pod/"+got.Status.PodName+"\n" {
		t.Errorf("attempts %d, pods:\n%s", got.Status.Attempts, out)
	}
}

func TestAtOfTheSameNameIsANewRun(t *testing.T) {
	ns := e2e.NewNamespace(t)
	for range 3 {
		at := newAt(ns, "again", func(s *atv1alpha1.AtSpec) { s.Command = new("echo $$") })
		create(t, at)
		got := waitFor(t, at, atv1alpha1.Done, "Completed", 30*time.Second)
		if pod := podOf(t, got); pod.UID != got.Status.PodUID || !metav1.IsControlledBy(pod, got) {
			t.Errorf("pod %s is not the one of this At", pod.UID)
		}
		e2e.Kubectl(t, "delete", "at", "again", "-n", ns)
	}
}

func TestFinishedAtNeverRunsAgain(t *testing.T) {
	ns := e2e.NewNamespace(t)
	at := newAt(ns, "once", func(*atv1alpha1.AtSpec) {})
	create(t, at)
	waitFor(t, at, atv1alpha1.Done, "Completed", 30*time.Second)
	e2e.Kubectl(t, "delete", "pod", "once", "-n", ns)
	e2e.Kubectl(t, "rollout", "restart", "deployment/at-operator-controller-manager", "-n", "at-operator-system")
	e2e.Kubectl(t, "rollout", "status", "deployment/at-operator-controller-manager", "-n", "at-operator-system")
	time.Sleep(3 * time.Second)
	if out, _ := e2e.TryKubectl("", "get", "pods", "-n", ns); !strings.HasPrefix(out, "No resources found") {
		t.Errorf("it ran again:\n%s", out)
	}
}
