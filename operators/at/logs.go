package at

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
