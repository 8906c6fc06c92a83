package backup

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/operators/etcd/job"
	"example.com/fairlead/operators/etcd/task"
)

// noon is when the EtcdBackups of the unit tests are looked at.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

type option func(*v1beta2.EtcdBackup)

// aBackup is made once, to S3.
func aBackup(options ...option) *v1beta2.EtcdBackup {
	b := &v1beta2.EtcdBackup{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta2.GroupVersion.String(), Kind: "EtcdBackup"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "example", UID: "uid", Generation: 1, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))},
		Spec: v1beta2.BackupSpec{
			EtcdEndpoints: []string{"http://example-client:2379"},
			StorageType:   v1beta2.StorageS3,
			BackupSource:  v1beta2.BackupSource{S3: &v1beta2.S3Source{Path: "mybucket/etcd.backup"}},
			Verify:        v1beta2.VerifyHash,
		},
	}
	for _, option := range options {
		option(b)
	}
	return b
}

func policy(change func(*v1beta2.BackupPolicy)) option {
	return func(b *v1beta2.EtcdBackup) {
		if b.Spec.BackupPolicy == nil {
			b.Spec.BackupPolicy = &v1beta2.BackupPolicy{TimeoutInSecond: 60}
		}
		change(b.Spec.BackupPolicy)
	}
}

func every(seconds int64) option {
	return policy(func(p *v1beta2.BackupPolicy) { p.BackupIntervalInSecond = seconds })
}

func scheduled(schedule, zone string) option {
	return policy(func(p *v1beta2.BackupPolicy) { p.Schedule, p.TimeZone = schedule, zone })
}

func keeps(n int32) option { return policy(func(p *v1beta2.BackupPolicy) { p.MaxBackups = n }) }

func byRestore(b *v1beta2.EtcdBackup) { b.Spec.Verify = v1beta2.VerifyRestore }

func isPaused(b *v1beta2.EtcdBackup) { b.Spec.Paused = true }

func changed(b *v1beta2.EtcdBackup) { b.Generation++ }

func withSecret(b *v1beta2.EtcdBackup) { b.Spec.S3.AWSSecret = "aws" }

func ofCluster(b *v1beta2.EtcdBackup) { b.Spec.EtcdEndpoints, b.Spec.EtcdCluster = nil, "example" }

// made is the status after the backup of that number, which was begun then.
func made(number int64, began time.Time) option {
	return func(b *v1beta2.EtcdBackup) {
		b.Status.LastBackup = &v1beta2.StoredBackup{Key: keyOf(number), Revision: 100 + number, Size: 4096, EtcdVersion: "3.6.16", Number: number}
		b.Status.EtcdRevision, b.Status.EtcdVersion = 100+number, "3.6.16"
		b.Status.LastTryTime, b.Status.Tries = &metav1.Time{Time: began}, max(b.Status.Tries, number)
		if !isProved(b) {
			succeeded(began.Add(time.Minute))(b)
		}
	}
}

func succeeded(at time.Time) option {
	return func(b *v1beta2.EtcdBackup) {
		b.Status.Succeeded, b.Status.LastSuccessDate = true, &metav1.Time{Time: at}
	}
}

func proved(b *v1beta2.EtcdBackup) {
	b.Status.LastProof = &v1beta2.BackupProof{Key: b.Status.LastBackup.Key, Revision: b.Status.LastBackup.Revision, Number: b.Status.LastBackup.Number, Time: metav1.NewTime(noon)}
	succeeded(noon)(b)
}

func pruned(b *v1beta2.EtcdBackup) { b.Status.PrunedAfter = b.Status.LastBackup.Number }

// hasFailed is the status after so many failures, of which the last was then.
func hasFailed(step v1beta2.BackupStep, times int32, at time.Time) option {
	return func(b *v1beta2.EtcdBackup) {
		b.Status.Failures, b.Status.Tries = times, b.Status.Tries+int64(times)
		b.Status.LastFailure = &v1beta2.BackupFailure{Step: step, Generation: b.Generation, Time: metav1.NewTime(at), Reason: task.ReasonBucketNotFound, Message: "There is no bucket \"mybucket\": create it."}
		if step != v1beta2.BackupPrune {
			b.Status.Succeeded, b.Status.Reason = false, task.ReasonBucketNotFound
		}
	}
}

// refuted is of a last backup that a proof has found something wrong with.
func refuted(b *v1beta2.EtcdBackup) { b.Status.LastBackup.Problem = "It has another hash" }

// runs is the status while a try is under way.
func runs(step v1beta2.BackupStep) option {
	return func(b *v1beta2.EtcdBackup) {
		b.Status.Tries++
		b.Status.Running = &v1beta2.BackupTry{
			Step: step, Number: b.Status.Tries, Generation: b.Generation,
			Pod: podName(b, b.Status.Tries, step), PodUID: "pod-uid", StartTime: metav1.NewTime(noon.Add(-time.Minute)),
		}
	}
}

func keyOf(number int64) string {
	return "etcd.backup_v" + time.Unix(number, 0).UTC().Format("150405")
}

type podOption func(*corev1.Pod)

// podFor is the pod of the next try, or of the one that is under way.
func podFor(b *v1beta2.EtcdBackup, step v1beta2.BackupStep, options ...podOption) *corev1.Pod {
	number := b.Status.Tries + 1
	if b.Status.Running != nil {
		number = b.Status.Running.Number
	}
	place, _ := task.PlaceOf(b.Spec.StorageType, b.Spec.BackupSource)
	of := b.DeepCopy()
	if step == v1beta2.BackupPrune && of.Spec.BackupPolicy == nil {
		keeps(1)(of)
	}
	p := pod(of, observation{now: noon}, number, step, place, "fairlead:dev")
	p.UID, p.CreationTimestamp = "pod-uid", metav1.NewTime(noon.Add(-time.Minute))
	for _, option := range options {
		option(p)
	}
	return p
}

// ofOlder is a pod from before the agent was a program of its own.
func ofOlder(p *corev1.Pod) {
	c := &p.Spec.Containers[0]
	c.Image, c.Command, c.Args = "fairlead:older", nil, append([]string{"etcd-agent"}, c.Args...)
}

func ungated(p *corev1.Pod) {
	p.Spec.SchedulingGates = nil
	p.Spec.NodeName = "node"
}

func running(p *corev1.Pod) {
	ungated(p)
	p.Status.Phase = corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: job.AgentContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
}

func pending(p *corev1.Pod) {
	ungated(p)
	p.Status.Phase = corev1.PodPending
}

func unschedulable(p *corev1.Pod) {
	pending(p)
	p.Spec.NodeName = ""
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available"}}
}

func deletedAt(at time.Time) podOption {
	return func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: at} }
}

// ended is a pod whose agent has reported that.
func ended(r task.Result) podOption {
	text, _ := json.Marshal(r)
	code := int32(0)
	if r.Problem != nil {
		code = 1
	}
	return saying(string(text), code)
}

func saying(message string, code int32) podOption {
	return func(p *corev1.Pod) {
		ungated(p)
		p.Status.Phase = corev1.PodSucceeded
		if code != 0 {
			p.Status.Phase = corev1.PodFailed
		}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: job.AgentContainer, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message},
		}}}
	}
}

func evicted(p *corev1.Pod) {
	ungated(p)
	p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory."
}

// aCluster is one that serves.
func aCluster(options ...func(*v1beta2.EtcdCluster)) *v1beta2.EtcdCluster {
	ec := &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "example", UID: "cluster"},
		Spec:       v1beta2.EtcdClusterSpec{Size: 3, Repository: "registry.example.com/etcd", Version: "3.6.16"},
		Status: v1beta2.EtcdClusterStatus{ClusterID: "abc", MemberList: []v1beta2.MemberStatus{
			{Name: "example-aaaaa"}, {Name: "example-bbbbb"}, {Name: "by-hand"},
		}},
	}
	for _, option := range options {
		option(ec)
	}
	return ec
}

var operator = run.Operator{Name: name, AddToScheme: v1beta2.AddToScheme, Kinds: []run.Kind{Kind}}
