package cli

import (
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
)

// LogFlags are those of kubectl logs.
type LogFlags struct {
	corev1.PodLogOptions
	tail  int64
	since time.Duration
}

// AddTo adds the flags to a command.
func (f *LogFlags) AddTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVarP(&f.Follow, "follow", "f", false, "Go on until the container ends")
	flags.BoolVarP(&f.Previous, "previous", "p", false, "The log of the container before its restart")
	flags.BoolVar(&f.Timestamps, "timestamps", false, "Begin each line with its time")
	flags.Int64Var(&f.tail, "tail", -1, "So many lines from the end of each log")
	flags.DurationVar(&f.since, "since", 0, "What is younger than this, such as 10m")
}

// Options are what is asked of a container's log.
func (f *LogFlags) Options(container string) *corev1.PodLogOptions {
	o := f.PodLogOptions
	o.Container = container
	if f.tail >= 0 {
		o.TailLines = &f.tail
	}
	if f.since > 0 {
		o.SinceSeconds = new(int64(max(f.since.Seconds(), 1)))
	}
	return &o
}
