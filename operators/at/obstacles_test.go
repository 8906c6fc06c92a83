package at

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/testkit/obstacles"
)

// TestObstacles: whatever keeps a pod from starting is in Ready as long as it does, and in the result when the
// attempt is given up for it, whatever attempt it is.
func TestObstacles(t *testing.T) {
	later := noon.Add(problem)
	limited := spec(func(s *atv1alpha1.AtSpec) { s.PendingDeadlineSeconds = new(int64(5)) })
	second := func(at *atv1alpha1.At) { at.Status.Attempts = 2 }
	for phase, tc := range map[string]struct {
		claimed, before *atv1alpha1.At // before is the same attempt, without a pod
		want            atv1alpha1.Phase
	}{
		"first attempt":           {anAt(claimedAt(noon)), anAt(), atv1alpha1.Running},
		"retry":                   {anAt(backingOff(noon), isClaimedAgain, second), anAt(backingOff(noon)), atv1alpha1.Running},
		"first attempt, given up": {anAt(claimedAt(noon), limited), nil, atv1alpha1.Failed},
		"retry, given up":         {anAt(backingOff(noon), isClaimedAgain, second, limited), nil, atv1alpha1.Running},
	} {
		cell := func(what string, at *atv1alpha1.At, seen observation, failure error, says []string) {
			next := decide(at, seen)
			st := summarize(at, seen, next, failure)
			for _, words := range says {
				if c := meta.FindStatusCondition(st.Conditions, status.Ready); c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, words) || c.Reason != st.Reason {
					t.Errorf("%s, %s: %s %s, Ready is %+v; want %q", phase, what, st.Phase, st.Reason, c, words)
				}
			}
		}
		for what, put := range obstacles.Of {
			if what == obstacles.Crashes {
				continue // the command is started once: how it ends is the result
			}
			pod := aPod(onNode)
			says, now := put(pod, commandContainer), later
			if what == obstacles.Unprepared {
				now = noon.Add(slowStart) // a node takes its time
			}
			cell(what, tc.claimed, observation{now: now, pod: pod}, nil, says)
		}
		if tc.before != nil {
			cell("a quota", tc.before, observation{now: later}, obstacles.ErrQuota, []string{obstacles.QuotaSays})
		}
	}
}

// TestObstaclesBeforeTheInstant: what keeps a process from waiting is in Ready before it is due.
func TestObstaclesBeforeTheInstant(t *testing.T) {
	for what, put := range obstacles.Of {
		if what == obstacles.Crashes || what == obstacles.Unprepared { // a node may take its time for longer than there is
			continue
		}
		at, pod := anAt(process, preparedPod), aProcess(onNode)
		says, seen := put(pod, commandContainer), observation{now: noon.Add(-lead + problem), pod: pod}
		st := summarize(at, seen, decide(at, seen), nil)
		c := meta.FindStatusCondition(st.Conditions, status.Ready)
		for _, words := range says {
			if st.Phase != atv1alpha1.Pending || c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, words) {
				t.Errorf("%s: %s %s, Ready is %+v; want %q", what, st.Phase, st.Reason, c, words)
			}
		}
	}
}

// isClaimedAgain is the status when a retry is claimed.
func isClaimedAgain(at *atv1alpha1.At) { at.Status.NextAttemptTime = nil }
