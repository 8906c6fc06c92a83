package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/internal/kit/status"
)

func TestMayBeOf(t *testing.T) {
	ec := anEtcd()
	job := []metav1.OwnerReference{{Kind: "Job", Name: "example", UID: "job", Controller: new(true)}}
	for name, tc := range map[string]struct {
		pod  metav1.ObjectMeta
		want bool
	}{
		"a member by its label":            {metav1.ObjectMeta{Name: "mine", Labels: map[string]string{clusterLabel: "example"}}, true},
		"one of another cluster":           {metav1.ObjectMeta{Name: memberName(ec, 1), Labels: map[string]string{clusterLabel: "other"}}, false},
		"a member by its name":             {metav1.ObjectMeta{Name: memberName(ec, 1)}, true},
		"a Job's pod has such a name":      {metav1.ObjectMeta{Name: memberName(ec, 1), OwnerReferences: job}, false},
		"no name of a member":              {metav1.ObjectMeta{Name: "example-debug"}, false},
		"the label, whoever owns it":       {metav1.ObjectMeta{Name: "x", OwnerReferences: job, Labels: map[string]string{clusterLabel: "example"}}, true},
		"a member of example-b, by letter": {metav1.ObjectMeta{Name: "example-b-bcdfg"}, false},
	} {
		if got := mayBeOf(ec, &corev1.Pod{ObjectMeta: tc.pod}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestExistingIsAwaited: the longer nobody decides about what is there, the more seldom the namespace is listed.
func TestExistingIsAwaited(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		since  time.Duration
		want   time.Duration
	}{
		"seen just now":     {want: waitingWake},
		"of another reason": {reason: reasonPaused, since: time.Hour, want: waitingWake},
		"a moment":          {reason: reasonExisting, since: time.Second, want: waitingWake},
		"for a while":       {reason: reasonExisting, since: 8 * time.Second, want: 8 * time.Second},
		"for long":          {reason: reasonExisting, since: time.Hour, want: restingWake},
	} {
		w := healthy(anEtcd(), 1).finds().forgets()
		if tc.reason != "" {
			w.ec.Status.Conditions = []metav1.Condition{{Type: status.Ready, Status: metav1.ConditionFalse, Reason: tc.reason, LastTransitionTime: metav1.NewTime(w.seen.now.Add(-tc.since))}}
		}
		p := decide(w.ec, w.seen)
		if got := p.WakeAt.Sub(w.seen.now); got != tc.want {
			t.Errorf("%s: looks again after %s, want %s", name, got, tc.want)
		}
	}
}
