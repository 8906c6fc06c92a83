package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cronJobsDue is how many CronJobs are due in the same minute.
const cronJobsDue = 300

// cronJobs measures CronJobs, which are what people use in place of Ats, and
// as many Ats.
func cronJobs(ctx context.Context, b *bench) ([]figure, error) {
	if err := b.prepareBurst(ctx); err != nil {
		return nil, err
	}
	defer func() { _ = b.cordon(context.WithoutCancel(ctx), false) }()

	// Due at the second minute from now: the next one may be too close.
	due := time.Now().Truncate(time.Minute).Add(2 * time.Minute)
	const prefix = "cron-"
	// By a watch: the audit log has no names of pods that the API server names.
	pods, err := b.followPods(ctx, workload, prefix)
	if err != nil {
		return nil, err
	}
	defer pods.stop()
	if err := parallel(ctx, cronJobsDue, func(i int) error {
		return b.client.Create(ctx, newCronJob(fmt.Sprintf(prefix+"%06d", i), due))
	}); err != nil {
		return nil, err
	}
	created, err := pods.wait(ctx, 10*time.Minute, exists, cronJobsDue)
	if err != nil {
		return nil, err
	}
	took := slices.MaxFunc(slices.Collect(maps.Values(created)), time.Time.Compare).Sub(due)
	for _, kind := range []client.Object{&batchv1.CronJob{}, &batchv1.Job{}} {
		if err := b.client.DeleteAllOf(ctx, kind, client.InNamespace(workload), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			return nil, err
		}
	}

	ats, err := b.burstOfAts(ctx, cronJobsDue, 0)
	if err != nil {
		return nil, err
	}
	if err := b.clear(ctx, burstNamespaces...); err != nil {
		return nil, err
	}
	return []figure{
		{measure: "CronJob", what: fmt.Sprintf("%d due in a minute", cronJobsDue), value: fmt.Sprintf("%.1f pods/s", rate(cronJobsDue, took)), spread: "the last pod exists after " + inSeconds(took)},
		{measure: "CronJob", what: fmt.Sprintf("%d Ats in its place", cronJobsDue), value: fmt.Sprintf("%.0f pods/s", rate(cronJobsDue, ats)), spread: "the last pod may run after " + inSeconds(ats)},
		{measure: "CronJob", what: "Ats, against CronJobs", value: fmt.Sprintf("%.0f × as fast", took.Seconds()/ats.Seconds())},
	}, nil
}

func newCronJob(name string, due time.Time) *batchv1.CronJob {
	due = due.UTC()
	job := &batchv1.CronJob{}
	job.Namespace, job.Name = workload, name
	job.Spec.Schedule = fmt.Sprintf("%d %d * * *", due.Minute(), due.Hour())
	job.Spec.TimeZone = new("Etc/UTC")
	job.Spec.JobTemplate.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{
			Name: "command", Image: "busybox", ImagePullPolicy: corev1.PullIfNotPresent,
			Command: []string{"/bin/sh", "-c", "echo hello"},
		}},
	}
	return job
}
