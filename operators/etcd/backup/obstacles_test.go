package backup

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/testkit/obstacles"
	"example.com/fairlead/operators/etcd/job"
)

// TestObstacles: whatever keeps a pod from starting is in Ready, whatever it is for.
func TestObstacles(t *testing.T) {
	ago := noon.Add(-time.Hour)
	for phase, tc := range map[string]struct {
		step    v1beta2.BackupStep
		options []option
	}{
		"once":                      {save, nil},
		"once, tried again":         {save, []option{hasFailed(save, 1, ago)}},
		"periodic, the first":       {save, []option{every(60)}},
		"periodic, a later one":     {save, []option{every(60), made(1, ago)}},
		"proof":                     {prove, []option{byRestore, made(1, ago)}},
		"proof, of a later one":     {prove, []option{every(7200), byRestore, made(1, ago), succeeded(ago)}},
		"removing what is not kept": {prune, []option{every(7200), keeps(1), made(2, ago)}},
	} {
		cell := func(what string, b *v1beta2.EtcdBackup, seen observation, failure error, says []string) {
			next, err := (&decider{image: "fairlead:dev"}).decide(b, seen)
			if err != nil {
				t.Fatal(err)
			}
			st := summarize(b, seen, next, failure)
			for _, words := range says {
				if c := meta.FindStatusCondition(st.Conditions, status.Ready); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, words) {
					t.Errorf("%s, %s: Ready is %s %s: %s; want %q", phase, what, c.Status, c.Reason, c.Message, words)
				}
			}
		}
		idle := aBackup(tc.options...)
		tries := aBackup(append(tc.options, runs(tc.step))...)
		for what, put := range obstacles.Of {
			if what == obstacles.Crashes {
				continue // the agent is started once: how it ends is the result
			}
			pod := podFor(tries, tc.step, ungated)
			says := put(pod, job.AgentContainer)
			cell(what, tries, observation{now: noon, pods: []*corev1.Pod{pod}, claimed: pod}, nil, says)
		}
		cell("a quota", idle, observation{now: noon}, obstacles.ErrQuota, []string{obstacles.QuotaSays})
	}
}
