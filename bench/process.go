package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

const (
	// processImage is what the commands run in.
	processImage = "busybox"
	// stampUptime has a command store when it began, by the clock that has no jumps, as its termination message.
	stampUptime = "read up rest </proc/uptime; echo $up >/dev/termination-log"
	// processHeadroom is from the creation of the Ats until they are due: they are prepared for all of it.
	processHeadroom = 35 * time.Second
	processSeconds  = 30 // of the commands that are due one after the other
	processRate     = 2  // a second
	processPatience = 2 * time.Minute
)

// processes measures how late commands begin, by their own clock: many that are due in the same second, and a few one
// after the other. Bare pods, created when they are due, are what the node needs in any case.
func processes(ctx context.Context, b *bench) ([]figure, error) {
	if err := b.namespace(ctx, workload, nil); err != nil {
		return nil, err
	}
	together := func(due time.Time, _ int) time.Time { return due }
	spaced := func(due time.Time, i int) time.Time { return due.Add(time.Duration(i) * time.Second / processRate) }
	var figures []figure
	for _, load := range []struct {
		what string
		n    int
		due  func(first time.Time, i int) time.Time
	}{
		{fmt.Sprintf("process, %d at once", b.processes), b.processes, together},
		{fmt.Sprintf("process, %d/s", processRate), min(b.processes, processRate*processSeconds), spaced},
	} {
		for _, way := range []struct {
			what         string
			create       func(ctx context.Context, dues []time.Time) error
			median, most time.Duration // bounds of p50 and p99, if there are
		}{
			{"a bare pod", b.barePodsAt, 0, 0},
			{"prepare: Pod", b.atsAt(atv1alpha1.PreparePod), 0, 0},
			{"prepare: Process", b.atsAt(atv1alpha1.PrepareProcess), 100 * time.Millisecond, 300 * time.Millisecond},
		} {
			var all []time.Duration
			for range b.rounds {
				late, err := b.lateStarts(ctx, load.n, time.Now().Add(processHeadroom), load.due, way.create)
				if err != nil {
					return nil, err
				}
				b.say("%s, %s: p50 %s, p99 %s", load.what, way.what, inMillis(percentile(late, 50)), inMillis(percentile(late, 99)))
				all = append(all, late...)
			}
			figures = append(figures, latenessFigures(load.what, way.what, all, way.median, way.most)...)
		}
	}
	return figures, b.clear(ctx, workload)
}

// latenessFigures are the lines of one way to start commands.
func latenessFigures(measure, what string, late []time.Duration, p50, p99 time.Duration) []figure {
	line := func(p float64, bound time.Duration) figure {
		value := percentile(late, p)
		f := figure{measure: measure, what: fmt.Sprintf("%s: due until its command's own stamp, p%g", what, p), value: inMillis(value)}
		if bound > 0 {
			f.bound, f.missed = "≤ "+inMillis(bound), value > bound
		}
		return f
	}
	early := 0
	for _, d := range late {
		if d < 0 {
			early++
		}
	}
	return []figure{line(50, p50), line(99, p99), {
		measure: measure, what: what + ": early", value: strconv.Itoa(early), spread: fmt.Sprintf("of %d", len(late)), bound: "0", missed: early > 0,
	}}
}

// lateStarts is how late n commands began.
func (b *bench) lateStarts(ctx context.Context, n int, first time.Time, due func(time.Time, int) time.Time, create func(context.Context, []time.Time) error) ([]time.Duration, error) {
	if err := b.clear(ctx, workload); err != nil {
		return nil, err
	}
	first = first.Truncate(time.Second)
	dues := make([]time.Time, n)
	for i := range dues {
		dues[i] = due(first, i)
	}
	if err := create(ctx, dues); err != nil {
		return nil, err
	}
	var names []string
	for i := range dues {
		names = append(names, atName(i))
	}
	var late []time.Duration
	err := eventually(ctx, time.Until(dues[n-1])+processPatience, fmt.Sprintf("%d commands have ended", n), func() (bool, error) {
		var pods corev1.PodList
		if err := b.client.List(ctx, &pods, client.InNamespace(workload)); err != nil {
			return false, err
		}
		stamps := map[string]string{}
		for _, pod := range pods.Items {
			if !slices.Contains(names, pod.Name) { // a placeholder
				continue
			}
			for _, c := range pod.Status.ContainerStatuses {
				if end := c.State.Terminated; end != nil && end.ExitCode == 0 {
					stamps[pod.Name] = end.Message
				}
			}
		}
		if len(stamps) < n {
			return false, sleep(ctx, 3*time.Second) // what is measured is not to be disturbed
		}
		var err error
		late, err = lateBy(stamps, dues)
		return true, err
	})
	return late, err
}

// lateBy is how late commands began that were due then, by their stamps.
func lateBy(stamps map[string]string, dues []time.Time) ([]time.Duration, error) {
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return nil, err
	}
	now := time.Now()
	up, err := uptime(string(text))
	if err != nil {
		return nil, err
	}
	var late []time.Duration
	for i, due := range dues {
		began, err := uptime(stamps[atName(i)])
		if err != nil {
			return nil, err
		}
		// Both have hundredths of a second, rounded down: none counts as early that was not, and the lateness is at most
		// 20 ms too much.
		late = append(late, now.Add(began-up).Sub(due)+10*time.Millisecond)
	}
	return late, nil
}

// uptime is the first number of /proc/uptime.
func uptime(text string) (time.Duration, error) {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return 0, errors.New("a command has no stamp")
	}
	return time.ParseDuration(fields[0] + "s")
}

// atsAt creates Ats that are prepared in a way.
func (b *bench) atsAt(prepare atv1alpha1.Preparation) func(context.Context, []time.Time) error {
	return func(ctx context.Context, dues []time.Time) error {
		return parallel(ctx, len(dues), func(i int) error {
			return b.client.Create(ctx, newAt(atName(i), dues[i], func(at *atv1alpha1.At) {
				at.Spec.Prepare, at.Spec.Image, at.Spec.Command = prepare, processImage, new(stampUptime)
			}))
		})
	}
}

// barePodsAt creates pods when they are due.
func (b *bench) barePodsAt(ctx context.Context, dues []time.Time) error {
	return parallel(ctx, len(dues), func(i int) error {
		if err := sleep(ctx, time.Until(dues[i])); err != nil {
			return err
		}
		return b.client.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: workload, Name: atName(i)},
			Spec: corev1.PodSpec{
				RestartPolicy:                corev1.RestartPolicyNever,
				AutomountServiceAccountToken: new(false),
				Containers: []corev1.Container{{
					Name: "command", Image: processImage, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"/bin/sh", "-c", stampUptime},
				}},
			},
		})
	})
}
