package backup

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/operators/etcd/task"
)

const (
	save  = v1beta2.BackupSave
	prove = v1beta2.BackupProve
	prune = v1beta2.BackupPrune
)

// told is a plan in a line: its writes, its claim, the status after it, and when it wakes.
func told(b *v1beta2.EtcdBackup, seen observation) string {
	next, err := (&decider{image: "fairlead:dev"}).decide(b, seen)
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, w := range next.Writes {
		all = append(all, fmt.Sprintf("%s %s", loop.Name(w), strings.Split(strings.TrimPrefix(loop.ObjectOf(w).GetName(), "example-"), "-")[0]))
	}
	if next.Claim != "" {
		all = append(all, next.Claim)
	}
	st := summarize(b, seen, next, nil)
	if r := st.Running; r != nil && next.Claim == "claim" {
		all = append(all, fmt.Sprintf("%s %d", r.Step, r.Number))
	}
	if !next.WakeAt.IsZero() {
		all = append(all, "wake in "+next.WakeAt.Sub(seen.now).String())
	}
	is := meta.FindStatusCondition(st.Conditions, status.Ready)
	all = append(all, fmt.Sprintf("%s %s", is.Status, is.Reason))
	return strings.Join(all, ", ")
}

func TestDecide(t *testing.T) {
	saved := task.Result{Saved: &v1beta2.StoredBackup{Key: "etcd.backup", Revision: 7, Size: 4096, EtcdVersion: "3.6.16"}}
	provedIt := task.Result{Proved: &v1beta2.BackupProof{Key: "k", Revision: 101}}
	problemOf := func(reason string, retriable bool) task.Result {
		return task.Result{Problem: &task.Problem{Reason: reason, Message: "Because.", Retriable: retriable}}
	}
	once := aBackup()
	for name, tc := range map[string]struct {
		b     *v1beta2.EtcdBackup
		pods  []*corev1.Pod
		seen  observation
		after string
	}{
		"new: its pod, gated":                      {b: once, after: "create Pod save, False Saving"},
		"new, with its pod: claim it":              {b: once, pods: []*corev1.Pod{podFor(once, save)}, after: "claim, Save 1, False Saving"},
		"its pod is of another spec":               {b: aBackup(changed), pods: []*corev1.Pod{podFor(once, save)}, after: "delete Pod save, False Saving"},
		"its pod is no longer gated: it may do it": {b: once, pods: []*corev1.Pod{podFor(once, save, ungated)}, after: "delete Pod save, False Saving"},
		"its pod is ending":                        {b: once, pods: []*corev1.Pod{podFor(once, save, deletedAt(noon))}, after: "wake in 1m0s, False PodEnding"},
		"a pod of a lost node is not waited for": {
			b: aBackup(hasFailed(save, 1, noon.Add(-time.Hour))), pods: []*corev1.Pod{podFor(once, save, ungated, deletedAt(noon.Add(-time.Minute)))},
			after: "create Pod save, False BucketNotFound",
		},
		"paused":                {b: aBackup(isPaused), after: "False Paused"},
		"paused, with its pod":  {b: aBackup(isPaused), pods: []*corev1.Pod{podFor(once, save)}, after: "delete Pod save, False Paused"},
		"paused during a try":   {b: aBackup(runs(save), isPaused), pods: []*corev1.Pod{podFor(once, save, running)}, after: "False Paused"},
		"no Secret":             {b: aBackup(withSecret), seen: observation{absent: []string{"aws"}}, after: "wake in 1m0s, False SecretNotFound"},
		"no Secret any more":    {b: aBackup(withSecret), seen: observation{absent: []string{"aws"}}, pods: []*corev1.Pod{podFor(aBackup(withSecret), save)}, after: "delete Pod save, wake in 1m0s, False SecretNotFound"},
		"no cluster":            {b: aBackup(ofCluster), after: "wake in 1m0s, False ClusterNotFound"},
		"a cluster without ID":  {b: aBackup(ofCluster), seen: observation{cluster: aCluster(func(ec *v1beta2.EtcdCluster) { ec.Status.ClusterID = "" })}, after: "wake in 1m0s, False ClusterNotReady"},
		"a cluster":             {b: aBackup(ofCluster), seen: observation{cluster: aCluster()}, after: "create Pod save, False Saving"},
		"an impossible place":   {b: aBackup(func(b *v1beta2.EtcdBackup) { b.Spec.S3.Path = "bucket" }), after: "False PlaceInvalid"},
		"an impossible time":    {b: aBackup(scheduled("0 0 30 2 *", "")), after: "False InvalidSchedule"},
		"no schedule":           {b: aBackup(scheduled("noon", "")), after: "False InvalidSchedule"},
		"no time zone":          {b: aBackup(scheduled("0 0 * * *", "Middle/Earth")), after: "False InvalidSchedule"},
		"the first has to wait": {b: aBackup(scheduled("0 13 * * *", "")), after: "wake in 1h0m0s, False Waiting"},

		"claimed: remove the gate":        {b: aBackup(runs(save)), pods: []*corev1.Pod{podFor(once, save)}, after: "patch Pod/gate save, False Saving"},
		"under way":                       {b: aBackup(runs(save)), pods: []*corev1.Pod{podFor(once, save, running)}, after: "False Saving"},
		"under way, changed":              {b: aBackup(runs(save), changed), pods: []*corev1.Pod{podFor(once, save, running)}, after: "False Saving"},
		"pending, changed":                {b: aBackup(runs(save), changed), pods: []*corev1.Pod{podFor(once, save, pending)}, after: "delete Pod save, False Saving"},
		"gated, changed":                  {b: aBackup(runs(save), changed), pods: []*corev1.Pod{podFor(once, save)}, after: "delete Pod save, False Saving"},
		"its pod is gone, changed":        {b: aBackup(runs(save), changed), after: "result, False Saving"},
		"its pod is gone":                 {b: aBackup(runs(save)), after: "result, False AgentDied"},
		"its pod is being deleted":        {b: aBackup(runs(save)), pods: []*corev1.Pod{podFor(once, save, running, deletedAt(noon))}, after: "wake in 1m0s, False PodEnding"},
		"of an older operator, new":       {b: once, pods: []*corev1.Pod{podFor(once, save, ofOlder)}, after: "claim, Save 1, False Saving"},
		"of an older operator, gated":     {b: aBackup(runs(save)), pods: []*corev1.Pod{podFor(once, save, ofOlder)}, after: "patch Pod/gate save, False Saving"},
		"of an older operator, under way": {b: aBackup(runs(save)), pods: []*corev1.Pod{podFor(once, save, ofOlder, running)}, after: "False Saving"},
		"of an older operator, saved":     {b: aBackup(runs(save)), pods: []*corev1.Pod{podFor(once, save, ofOlder, ended(saved))}, after: "result, True Complete"},
		"its node is lost":                {b: aBackup(runs(save)), pods: []*corev1.Pod{podFor(once, save, running, deletedAt(noon.Add(-time.Minute)))}, after: "result, False AgentDied"},
		"evicted":                         {b: aBackup(runs(save)), pods: []*corev1.Pod{podFor(once, save, evicted)}, after: "result, False AgentDied"},
		"unschedulable":                   {b: aBackup(runs(save)), pods: []*corev1.Pod{podFor(once, save, unschedulable)}, after: "False Unschedulable"},
		"unschedulable for a moment": {b: aBackup(runs(save)), pods: []*corev1.Pod{podFor(once, save, unschedulable, func(p *corev1.Pod) {
			p.CreationTimestamp.Time = noon.Add(-time.Second)
		})}, after: "wake in 9s, False Saving"},
		"it says nothing":           {b: aBackup(runs(save)), pods: []*corev1.Pod{podFor(once, save, saying("", 0))}, after: "result, False AgentDied"},
		"it says no JSON":           {b: aBackup(runs(save)), pods: []*corev1.Pod{podFor(once, save, saying("panic: {", 2))}, after: "result, False AgentDied"},
		"it says of something else": {b: aBackup(runs(save)), pods: []*corev1.Pod{podFor(once, save, ended(provedIt))}, after: "result, False AgentDied"},
		"it has no events":          {b: aBackup(runs(save)), seen: observation{stripped: true}, pods: []*corev1.Pod{podFor(once, save, running)}, after: "patch Pod/marks save, wake in 10s, False Saving"},
		"saved":                     {b: aBackup(runs(save)), pods: []*corev1.Pod{podFor(once, save, ended(saved))}, after: "result, True Complete"},
		"saved, not proved":         {b: aBackup(byRestore, runs(save)), pods: []*corev1.Pod{podFor(once, save, ended(saved))}, after: "result, False Proving"},
		"refused for ever":          {b: aBackup(runs(save)), pods: []*corev1.Pod{podFor(once, save, ended(problemOf(task.ReasonAccessDenied, false)))}, after: "result, False AccessDenied"},

		"complete":                         {b: aBackup(made(1, noon)), after: "True Complete"},
		"complete, the pod is over":        {b: aBackup(made(1, noon)), pods: []*corev1.Pod{podFor(once, save, ended(saved))}, after: "delete Pod save, True Complete"},
		"complete, its Secret is gone":     {b: aBackup(withSecret, made(1, noon)), seen: observation{absent: []string{"aws"}}, after: "True Complete"},
		"complete, to be proved":           {b: aBackup(byRestore, made(1, noon), succeeded(noon)), after: "create Pod prove, False Proving"},
		"to be proved":                     {b: aBackup(byRestore, made(1, noon)), after: "create Pod prove, False Proving"},
		"to be proved, without the Secret": {b: aBackup(withSecret, byRestore, made(1, noon)), seen: observation{absent: []string{"aws"}}, after: "wake in 1m0s, False SecretNotFound"},
		"to be proved, no certificate":     {b: aBackup(byRestore, made(1, noon)), seen: observation{absent: []string{"tls"}}, after: "create Pod prove, False Proving"},
		"to be proved, its cluster gone":   {b: aBackup(ofCluster, byRestore, made(1, noon)), after: "create Pod prove, False Proving"},
		"proved":                           {b: aBackup(byRestore, made(1, noon), runs(prove)), pods: []*corev1.Pod{podFor(aBackup(made(1, noon)), prove, ended(provedIt))}, after: "result, True Complete"},
		"the proof has failed":             {b: aBackup(byRestore, made(1, noon), hasFailed(prove, 1, noon.Add(-10*time.Second))), after: "create Pod prove, False BucketNotFound"},
		"the proof waits":                  {b: aBackup(byRestore, made(1, noon), hasFailed(prove, 1, noon)), after: "wake in 10s, False BucketNotFound"},
		"refuted":                          {b: aBackup(byRestore, made(1, noon), refuted, hasFailed(prove, 1, noon)), after: "wake in 10s, False BucketNotFound"},
		"refuted, made anew":               {b: aBackup(byRestore, made(1, noon), refuted, hasFailed(prove, 1, noon.Add(-time.Minute))), after: "create Pod save, False BucketNotFound"},

		"failed: it waits":               {b: aBackup(hasFailed(save, 1, noon)), after: "wake in 10s, False BucketNotFound"},
		"failed three times":             {b: aBackup(hasFailed(save, 3, noon)), after: "wake in 40s, False BucketNotFound"},
		"failed very often":              {b: aBackup(hasFailed(save, 1000, noon)), after: "wake in 10m0s, False BucketNotFound"},
		"failed, and changed":            {b: aBackup(hasFailed(save, 1000, noon), changed), after: "create Pod save, False BucketNotFound"},
		"failed, and its Secret changed": {b: aBackup(withSecret, hasFailed(save, 1000, noon)), seen: observation{secrets: "another"}, after: "create Pod save, False BucketNotFound"},
		"failed in the future":           {b: aBackup(hasFailed(save, 1000, noon.Add(time.Hour))), after: "create Pod save, False BucketNotFound"},
		"failed, more often than it is":  {b: aBackup(every(60), hasFailed(save, 1000, noon)), after: "create Pod save, False BucketNotFound"},
		"failed, and due before it":      {b: aBackup(every(60), made(1, noon.Add(-50*time.Second)), hasFailed(save, 9, noon)), after: "wake in 10s, False BucketNotFound"},
		"the interval is not over":       {b: aBackup(every(3600), made(1, noon.Add(-time.Minute))), after: "wake in 59m0s, True Scheduled"},
		"the interval is over":           {b: aBackup(every(3600), made(1, noon.Add(-time.Hour))), after: "create Pod save, True Scheduled"},
		"many intervals are over":        {b: aBackup(every(60), made(1, noon.Add(-time.Hour))), after: "create Pod save, True Scheduled"},
		"it takes longer than that":      {b: aBackup(every(1), made(1, noon.Add(-time.Hour)), runs(save)), pods: []*corev1.Pod{podFor(aBackup(made(1, noon)), save, running)}, after: "True Scheduled"},
		"the last was in the future":     {b: aBackup(every(3600), made(1, noon.Add(time.Hour))), after: "create Pod save, True Scheduled"},
		"scheduled":                      {b: aBackup(scheduled("30 12 * * *", "Europe/Berlin"), made(1, noon.Add(-30*time.Minute))), after: "wake in 23h30m0s, True Scheduled"},
		"the schedule was missed":        {b: aBackup(scheduled("30 12 * * *", "Europe/Berlin"), made(1, noon.Add(-72*time.Hour))), after: "create Pod save, True Scheduled"},
		"the last schedule is to come":   {b: aBackup(scheduled("0 13 * * *", ""), made(1, noon.Add(72*time.Hour))), after: "wake in 1h0m0s, True Scheduled"},
		"to be pruned":                   {b: aBackup(every(3600), keeps(3), made(1, noon)), after: "create Pod prune, True Scheduled"},
		"not before the proof":           {b: aBackup(every(3600), keeps(3), byRestore, made(1, noon)), after: "create Pod prove, False Proving"},
		"after the proof":                {b: aBackup(every(3600), keeps(3), byRestore, made(1, noon), proved), after: "create Pod prune, True Scheduled"},
		"not of one that is refuted":     {b: aBackup(every(3600), keeps(3), byRestore, made(1, noon), refuted, hasFailed(prove, 1, noon)), after: "wake in 10s, False BucketNotFound"},
		"pruning waits for the next":     {b: aBackup(every(3600), keeps(3), made(1, noon), hasFailed(save, 1, noon)), after: "wake in 10s, False BucketNotFound"},
		"proving waits for the next":     {b: aBackup(every(3600), byRestore, made(1, noon), hasFailed(save, 1, noon)), after: "wake in 10s, False BucketNotFound"},
		"pruned":                         {b: aBackup(every(3600), keeps(3), made(1, noon), pruned), after: "wake in 1h0m0s, True Scheduled"},
		"one is kept for ever, once":     {b: aBackup(keeps(3), made(1, noon)), after: "True Complete"},
		"pruning has failed":             {b: aBackup(every(3600), keeps(3), made(1, noon), hasFailed(prune, 1, noon)), after: "wake in 10s, False BucketNotFound"},
		"pruning fails, and one is due":  {b: aBackup(every(60), keeps(3), made(1, noon.Add(-time.Minute)), hasFailed(prune, 9, noon)), after: "create Pod save, False BucketNotFound"},
		"proving fails, and one is due":  {b: aBackup(every(60), byRestore, made(1, noon.Add(-time.Minute)), hasFailed(prove, 9, noon)), after: "create Pod save, False BucketNotFound"},
		"proving is due, so is the next": {b: aBackup(every(60), byRestore, made(1, noon.Add(-time.Hour))), after: "create Pod prove, False Proving"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := tc.seen
			seen.now, seen.pods = noon, tc.pods
			if running := tc.b.Status.Running; running != nil {
				i := slices.IndexFunc(tc.pods, func(p *corev1.Pod) bool { return p.Name == running.Pod || tc.b.Generation > 1 })
				if i >= 0 {
					seen.claimed = tc.pods[i]
				}
			}
			if got := told(tc.b, seen); got != tc.after {
				t.Errorf("decide() = %s\nwant       %s", got, tc.after)
			}
		})
	}
}

// after is the status after a step.
func after(t *testing.T, b *v1beta2.EtcdBackup, claimed *corev1.Pod) v1beta2.BackupStatus {
	t.Helper()
	seen := observation{now: noon.Add(time.Second / 2), claimed: claimed}
	next, err := (&decider{}).decide(b, seen)
	if err != nil {
		t.Fatal(err)
	}
	st := summarize(b, seen, next, nil)
	with := b.DeepCopy()
	with.Status = st
	if err := testkit.CheckConditions(with); err != nil {
		t.Error(err)
	}
	return st
}

// TestResults: what becomes of the status when a try ends.
func TestResults(t *testing.T) {
	b := aBackup(every(3600), byRestore, made(1, noon.Add(-2*time.Hour)), proved, runs(save))
	st := after(t, b, podFor(b, save, ended(task.Result{Saved: &v1beta2.StoredBackup{Key: "k", Revision: 10, EtcdVersion: "3.7.3", Number: 77, Problem: "x"}})))
	if st.LastBackup.Number != 2 || st.LastBackup.Problem != "" || st.EtcdRevision != 10 || st.EtcdVersion != "3.7.3" || st.Running != nil {
		t.Errorf("after Save: %+v", st)
	}
	if !st.LastTryTime.Time.Equal(b.Status.Running.StartTime.Time) || !st.LastSuccessDate.Equal(b.Status.LastSuccessDate) || st.LastProof.Number != 1 {
		t.Errorf("after Save, before the proof: %+v", st)
	}

	b.Status = st
	runs(prove)(b)
	st = after(t, b, podFor(b, prove, ended(task.Result{Proved: &v1beta2.BackupProof{Key: "k", Revision: 10}})))
	if !st.Succeeded || st.LastProof.Number != 2 || !st.LastSuccessDate.Time.Equal(noon) || st.Failures != 0 {
		t.Errorf("after Prove: %+v", st)
	}

	runs(prove)(b)
	for reason, isRefuted := range map[string]bool{task.ReasonProofDiffers: true, task.ReasonObjectDamaged: true, task.ReasonStorageUnreachable: false, task.ReasonCredentialsInvalid: false} {
		failed := after(t, b, podFor(b, prove, ended(task.Result{Problem: &task.Problem{Reason: reason, Message: "Because."}})))
		if (failed.LastBackup.Problem != "") != isRefuted || failed.Succeeded || failed.Reason != reason || failed.LastProof.Number != 1 || failed.NextTime == nil {
			t.Errorf("after %s: %+v", reason, failed)
		}
	}

	b = aBackup(every(3600), keeps(2), made(1, noon.Add(-2*time.Hour)), runs(prune))
	st = after(t, b, podFor(b, prune, ended(task.Result{Pruned: 3, Left: 4, Retained: 2})))
	if st.PrunedAfter != 1 || *st.StoredBackups != 4 || st.RetainedBackups != 2 || st.Failures != 0 {
		t.Errorf("after Prune: %+v", st)
	}
	st = after(t, b, podFor(b, prune, ended(task.Result{Problem: &task.Problem{Reason: task.ReasonAccessDenied, Message: "Because."}})))
	if !st.Succeeded || st.Reason != "" || st.Failures != 1 || st.LastFailure.Step != prune {
		t.Errorf("after a Prune that failed: %+v", st)
	}

	b = aBackup(every(3600), made(1, noon.Add(-2*time.Hour)), runs(save))
	st = after(t, b, podFor(b, save, evicted))
	if st.LastBackup == nil || st.LastBackup.Number != 1 || st.Succeeded || st.Reason != "AgentDied" || st.EtcdRevision != 101 || st.LastSuccessDate == nil {
		t.Errorf("a Save that failed has ended a good history: %+v", st)
	}
}

// TestMessages: what users read.
func TestMessages(t *testing.T) {
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New("exceeded quota"))
	for name, tc := range map[string]struct {
		b       *v1beta2.EtcdBackup
		seen    observation
		failure error
		want    string
	}{
		"complete":           {b: aBackup(made(1, noon)), want: "Complete: Backup etcd.backup_v000001 has revision 101"},
		"complete, proved":   {b: aBackup(byRestore, made(1, noon), proved), want: "Complete: Backup etcd.backup_v000001 has revision 101, and was proved"},
		"periodic":           {b: aBackup(every(3600), made(1, noon)), want: "Scheduled: Backup etcd.backup_v000001 has revision 101; the next is due at 2026-01-02T13:00:00Z"},
		"a zone":             {b: aBackup(scheduled("0 14 * * *", "Europe/Berlin")), want: "Waiting: The first backup is due at 2026-01-02T13:00:00Z"},
		"failed":             {b: aBackup(hasFailed(save, 1, noon)), want: `BucketNotFound: There is no bucket "mybucket": create it. It is tried again at 2026-01-02T12:00:10Z`},
		"proving":            {b: aBackup(byRestore, made(1, noon)), want: "Proving: Proving the backup etcd.backup_v000001 by restoring it"},
		"no Secret":          {b: aBackup(withSecret), seen: observation{absent: []string{"aws"}}, want: `SecretNotFound: Secret "aws", which spec.s3.awsSecret names, does not exist: create it in namespace "default"`},
		"no client's Secret": {b: aBackup(func(b *v1beta2.EtcdBackup) { b.Spec.ClientTLSSecret = "tls" }), seen: observation{absent: []string{"tls"}}, want: `SecretNotFound: Secret "tls", which spec.clientTLSSecret names, does not exist: create it in namespace "default"`},
		"no user's Secret":   {b: aBackup(func(b *v1beta2.EtcdBackup) { b.Spec.ClientUserSecret = "root" }), seen: observation{absent: []string{"root"}}, want: `SecretNotFound: Secret "root", which spec.clientUserSecret names, does not exist: create it in namespace "default"`},
		"a cluster's Secret": {b: aBackup(ofCluster), seen: observation{cluster: aCluster(), absent: []string{"example-client-tls"}}, want: `SecretNotFound: Waiting for Secret "example-client-tls" of EtcdCluster "example"`},
		"no cluster":         {b: aBackup(ofCluster), want: `ClusterNotFound: There is no EtcdCluster "example" in namespace "default": create it, or name another one in spec.etcdCluster`},
		"a quota":            {b: aBackup(), failure: refusal, want: `Refused: The API server refuses what this EtcdBackup needs: pods "p" is forbidden: exceeded quota`},
		"a cut":              {b: aBackup(), failure: errors.New("EOF"), want: "Retrying: A request to the API server failed and is retried: EOF"},
		"never":              {b: aBackup(scheduled("0 0 30 2 *", "")), want: `InvalidSchedule: spec.backupPolicy.schedule: "0 0 30 2 *" is never`},
	} {
		t.Run(name, func(t *testing.T) {
			tc.seen.now = noon
			next, err := (&decider{}).decide(tc.b, tc.seen)
			if err != nil {
				t.Fatal(err)
			}
			st := summarize(tc.b, tc.seen, next, tc.failure)
			is := meta.FindStatusCondition(st.Conditions, status.Ready)
			if got := is.Reason + ": " + is.Message; got != tc.want {
				t.Errorf("Ready is %s\nwant     %s", got, tc.want)
			}
		})
	}
}
