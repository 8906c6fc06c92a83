package at

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/memo"
)

// podLogs reads the output of commands, through the API server.
type podLogs func(ctx context.Context, pod types.NamespacedName, options *corev1.PodLogOptions) (io.ReadCloser, error)

// tail is the last n bytes of what the command of pod has written.
func tail(ctx context.Context, logs podLogs, pod *corev1.Pod, n int64) (string, error) {
	// The API counts lines from the end, and bytes only from the start: n
	// lines are at least n bytes, if there are so many.
	stream, err := logs(ctx, client.ObjectKeyFromObject(pod), &corev1.PodLogOptions{Container: commandContainer, TailLines: &n})
	if err != nil {
		return "", fmt.Errorf("read the output of pod %s: %w", pod.Name, err)
	}
	defer func() { _ = stream.Close() }()

	last := make([]byte, 0, 2*n)
	chunk := make([]byte, 32<<10)
	for {
		read, err := stream.Read(chunk)
		last = append(last, chunk[:read]...)
		if excess := len(last) - int(n); excess > 0 {
			last = last[:copy(last, last[excess:])]
		}
		if err == io.EOF {
			return string(last), nil
		}
		if err != nil {
			return "", fmt.Errorf("read the output of pod %s: %w", pod.Name, err)
		}
	}
}

// outputPatience is how long the output of a command is requested again, when the node
// does not return it. The result then goes without.
const outputPatience = 30 * time.Second

// sightings are when this process first saw something of the pod of an At.
type sightings struct {
	memo.Map[types.NamespacedName, sighting]
}

type sighting struct {
	pod  types.UID
	time time.Time
}

// since is when it first saw of a pod what it sees now.
func (s *sightings) since(at *atv1alpha1.At, pod *corev1.Pod, now time.Time) time.Time {
	first, ok := s.Get(key(at))
	if !ok || first.pod != pod.UID {
		first = sighting{pod.UID, now}
		s.Set(key(at), first)
	}
	return first.time
}
