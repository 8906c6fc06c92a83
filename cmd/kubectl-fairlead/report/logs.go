package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// How much of logs a report has.
const (
	mostLines   = 2000
	mostBytes   = 1 << 20
	mostLogged  = 200 // pods
	logPatience = 20 * time.Second
)

// logs adds the logs of a pod's containers: the present one, and the one before a restart.
func (g *gathering) logs(ctx context.Context, pod found, add func(name, content string) error) error {
	where := fmt.Sprintf("namespaces/%s/logs/%s/", pod.GetNamespace(), pod.GetName())
	for _, statuses := range []string{"initContainerStatuses", "containerStatuses"} {
		list, _, _ := unstructured.NestedSlice(pod.Object, "status", statuses)
		for _, item := range list {
			container, _ := item.(map[string]any)
			name, _ := container["name"].(string)
			restarts, _ := container["restartCount"].(int64)
			for _, isPrevious := range []bool{false, true} {
				file := where + name + ".log"
				if isPrevious {
					file = where + name + ".previous.log"
				}
				if isPrevious && restarts == 0 || !hasRun(container, isPrevious) {
					continue
				}
				text, err := g.log(ctx, pod, &corev1.PodLogOptions{Container: name, Previous: isPrevious})
				if err != nil {
					g.without(file, err)
					continue
				}
				if err := add(file, g.text(withoutLastWords(text))); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// hasRun is whether there can be a log.
func hasRun(container map[string]any, isPrevious bool) bool {
	state, _, _ := unstructured.NestedMap(container, "state")
	return isPrevious || state["running"] != nil || state["terminated"] != nil
}

// log is the end of a log, and says so if there is more.
func (g *gathering) log(ctx context.Context, pod found, o *corev1.PodLogOptions) (text string, err error) {
	ctx, stop := context.WithTimeout(ctx, logPatience)
	defer stop()
	o.TailLines = new(int64(mostLines + 1))
	stream, err := g.core.Pods(pod.GetNamespace()).GetLogs(pod.GetName(), o).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	return endOfLog(stream)
}

// endOfLog is no more than the last lines and bytes of a log.
func endOfLog(from io.Reader) (string, error) {
	var end []byte
	isCut := false
	chunk := make([]byte, 64<<10)
	for {
		n, err := from.Read(chunk)
		end = append(end, chunk[:n]...)
		if len(end) > 2*mostBytes {
			end, isCut = append([]byte(nil), end[len(end)-mostBytes:]...), true
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
	}
	if len(end) > mostBytes {
		end, isCut = end[len(end)-mostBytes:], true
	}
	if isCut { // in the middle of a line, most likely
		if _, rest, found := bytes.Cut(end, []byte("\n")); found {
			end = rest
		}
	}
	for surplus := bytes.Count(bytes.TrimSuffix(end, []byte("\n")), []byte("\n")) + 1 - mostLines; surplus > 0; surplus-- {
		_, end, _ = bytes.Cut(end, []byte("\n"))
		isCut = true
	}
	text := string(end)
	if isCut {
		text = fmt.Sprintf("[cut: no more than the last %d lines and %d KiB of a log are taken]\n", mostLines, mostBytes>>10) + text
	}
	return text, nil
}
