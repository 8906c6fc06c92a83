package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
)

var midday = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// TestProgress: how far the maintenance is that status has.
func TestProgress(t *testing.T) {
	late := fmt.Errorf("no answer: %w", context.DeadlineExceeded)
	unreachable := fmt.Errorf("%w: %w", members.ErrUnreachable, late)
	begun, over := func(*Maintenance) {}, func(err error) func(*Maintenance) {
		return func(own *Maintenance) { own.IsOver, own.Err, own.At = true, err, midday }
	}
	for name, tc := range map[string]struct {
		kind v1beta2.MaintenanceType
		ago  time.Duration
		// own is what the operator knows that has begun it; nil if it has not, and isOthers if another one decided it.
		own      func(*Maintenance)
		isOthers bool
		pod      func(*corev1.Pod)
		isGone   bool
		want     progress
	}{
		"decided":                              {want: ToBegin},
		"decided, and its pod is gone":         {isGone: true, want: NotDone},
		"decided, and its pod ends":            {pod: ends, want: UnderWay},         // its etcd may still run
		"decided a while ago":                  {ago: BeginsWithin, want: UnderWay}, // another one may think that it is
		"decided long ago":                     {ago: time.Hour, want: NotDone},
		"begun":                                {own: begun, want: UnderWay},
		"begun, and past the deadline":         {own: begun, ago: time.Hour, want: UnderWay},
		"begun, and its clock is ahead":        {own: begun, pod: startsAt(time.Hour), want: UnderWay},
		"done":                                 {own: over(nil), want: Done},
		"done, and its pod is gone":            {own: over(nil), isGone: true, want: Done},
		"no connection":                        {own: over(unreachable), want: NotDone},
		"no connection, past the deadline":     {own: over(unreachable), ago: time.Hour, want: NotDone},
		"refused":                              {own: over(members.ErrAuth), want: NotDone},
		"no answer":                            {own: over(late), want: UnderWay},
		"no answer until the deadline":         {own: over(late), ago: time.Hour, want: Done},
		"cut off":                              {own: over(errors.New("cut")), want: UnderWay},
		"cut off, at the deadline":             {own: over(errors.New("cut")), ago: time.Hour, want: NotDone},
		"cut off, and etcd has started":        {own: over(errors.New("cut")), pod: startsAt(time.Minute), want: NotDone},
		"cut off, and etcd does not run":       {own: over(errors.New("cut")), pod: waits, want: NotDone},
		"another operator's":                   {isOthers: true, want: UnderWay},
		"another operator's, at the deadline":  {isOthers: true, ago: members.DefragmentPatience(0), want: NotDone},
		"another operator's, etcd has started": {isOthers: true, pod: startsAt(time.Minute), want: NotDone},
		"another operator's, etcd runs":        {isOthers: true, pod: startsAt(-time.Hour), want: UnderWay},
		"another operator's, its pod is gone":  {isOthers: true, isGone: true, want: NotDone},
		"another operator's, its pod is new":   {isOthers: true, pod: isNew, want: NotDone},
		"a compaction that fails":              {kind: v1beta2.MaintenanceCompaction, own: over(members.ErrNoLeader), want: NotDone},
		"a compaction that takes long":         {kind: v1beta2.MaintenanceCompaction, own: over(late), want: UnderWay},
	} {
		t.Run(name, func(t *testing.T) {
			claim := v1beta2.Maintenance{
				Type: cmp.Or(tc.kind, v1beta2.MaintenanceDefragmentation), Member: "example-bcdfg", StartTime: metav1.NewTime(midday.Add(-tc.ago)),
				Deadline: metav1.NewTime(midday.Add(-tc.ago).Add(members.DefragmentPatience(0))),
			}
			own := Maintenance{Maintenance: claim}
			switch {
			case tc.isOthers:
				own = Maintenance{}
			case tc.own != nil:
				own.IsBegun = true
				tc.own(&own)
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "example-bcdfg"}}
			if tc.pod != nil {
				tc.pod(pod)
			}
			if tc.isGone {
				pod = nil
			}
			if got := own.ProgressOf(claim, pod, midday); got != tc.want {
				t.Errorf("it is %d, want %d", got, tc.want)
			}
		})
	}
}

func ends(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: midday} }

func isNew(pod *corev1.Pod) { pod.CreationTimestamp = metav1.NewTime(midday.Add(time.Second)) }

func waits(pod *corev1.Pod) {
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: objects.ContainerName, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}}
}

func startsAt(after time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		running := &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(midday.Add(after))}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: objects.ContainerName, State: corev1.ContainerState{Running: running}}}
	}
}
