//go:build apiserver

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/view"
)

// start starts the container, with the environment that the pod says now.
func (n *realNodes) start(ctx context.Context, pod *corev1.Pod, p *realPod) {
	p.image = objects.ImageOfContainer(pod)
	_, version, _ := strings.Cut(p.image, ":v")
	if program := n.programs[version]; program != "" {
		err := errors.Join(p.failure, os.MkdirAll(p.data, 0o700))
		if err == nil {
			p.process, err = startProcess(program, n.hostsFile(), n.environment(pod, p), healthOf(pod, p.ip))
		}
		if err != nil {
			p.process = failedProcess(err)
		}
		p.starts++
		p.state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: second(p.process.started)}}
		n.publish(pod.Name, n.namespace, p.ip)
		n.mu.Lock()
		n.serving[pod.Name], n.started = p.ip, p.process.started
		n.mu.Unlock()
	} else {
		p.waits = true
		reason := "ErrImagePull"
		if strings.HasSuffix(p.image, objects.NoImage) {
			reason = "InvalidImageName"
		}
		p.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	n.report(ctx, pod, p)
}

// environment is the environment of a container, for a process that shares the machine with others.
func (n *realNodes) environment(pod *corev1.Pod, p *realPod) []string {
	all := []string{
		"PATH=" + os.Getenv("PATH"),
		"HTTP_PROXY=" + n.proxy,
		// A process that is killed loses nothing that it wrote; only a machine does.
		"ETCD_UNSAFE_NO_FSYNC=true",
		"GOMAXPROCS=1",
	}
	for _, c := range pod.Spec.Containers {
		if c.Name != objects.ContainerName {
			continue
		}
		for _, v := range c.Env {
			value := v.Value
			if v.ValueFrom != nil {
				annotation := strings.TrimSuffix(strings.TrimPrefix(v.ValueFrom.FieldRef.FieldPath, "metadata.annotations['"), "']")
				value = pod.Annotations[annotation]
			}
			switch {
			case v.Name == "ETCD_DATA_DIR":
				value = filepath.Join(p.data, strings.TrimPrefix(value, objects.DataPath))
			case strings.HasPrefix(v.Name, "ETCD_LISTEN_"):
				value = strings.ReplaceAll(value, "0.0.0.0", p.ip)
			}
			all = append(all, v.Name+"="+value)
		}
	}
	if n.quota != "" { // in place of a story's, which is for models: that much cannot be written here
		all = append(all, "ETCD_QUOTA_BACKEND_BYTES="+n.quota)
	}
	return all
}

// healthOf is what the kubelet asks a pod for.
func healthOf(pod *corev1.Pod, ip string) string {
	for _, c := range pod.Spec.Containers {
		if c.Name == objects.ContainerName && c.StartupProbe != nil && c.StartupProbe.HTTPGet != nil {
			return fmt.Sprintf("http://%s:%d%s", ip, c.StartupProbe.HTTPGet.Port.IntValue(), c.StartupProbe.HTTPGet.Path)
		}
	}
	return ""
}

// hasEnded says whether the process of a pod has ended, which it is told to.
func (n *realNodes) hasEnded(pod *corev1.Pod, p *realPod) bool {
	switch {
	case p.process == nil:
		return true
	case p.process.hasEnded():
		n.ended(p)
		return true
	case p.stopping.IsZero():
		p.stopping = time.Now()
		p.process.signal(syscall.SIGTERM)
	case time.Since(p.stopping) > time.Duration(*pod.Spec.TerminationGracePeriodSeconds)*time.Second:
		p.process.signal(syscall.SIGKILL)
	}
	return false
}

// ended notes that a process has ended.
func (n *realNodes) ended(p *realPod) {
	n.publish(p.name, n.namespace, "")
	p.last = corev1.ContainerState{Terminated: p.process.end()}
	n.mu.Lock()
	delete(n.serving, p.name)
	if t := p.last.Terminated; t.ExitCode != 0 {
		n.words[p.name] = fmt.Sprintf("exit code %d at %s: %s", t.ExitCode, t.FinishedAt.Format(time.TimeOnly), view.LastWords(corev1.ContainerStatus{LastTerminationState: p.last}))
	}
	n.mu.Unlock()
	p.process, p.stopping, p.isReady = nil, time.Time{}, false
}

// crash is for a container that has ended by itself. It is started again, later each time.
func (n *realNodes) crash(ctx context.Context, pod *corev1.Pod, p *realPod) {
	n.ended(p)
	p.backOff = min(max(2*p.backOff, firstBackOff), longestBackOff)
	p.retry = time.Now().Add(p.backOff)
	p.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	n.report(ctx, pod, p)
}

// kill ends a process whose pod is gone.
func (n *realNodes) kill(p *realPod) {
	if p.process != nil {
		p.process.signal(syscall.SIGKILL)
		<-p.process.done
		n.ended(p)
	}
}

// report stores the status of a pod.
func (n *realNodes) report(ctx context.Context, pod *corev1.Pod, p *realPod) {
	is := func(t corev1.PodConditionType, ok bool) corev1.PodCondition {
		if ok {
			return corev1.PodCondition{Type: t, Status: corev1.ConditionTrue}
		}
		return corev1.PodCondition{Type: t, Status: corev1.ConditionFalse}
	}
	status := corev1.PodStatus{
		Phase: corev1.PodPending, PodIP: p.ip, PodIPs: []corev1.PodIP{{IP: p.ip}},
		Conditions: []corev1.PodCondition{
			is(corev1.PodScheduled, true), is(corev1.PodInitialized, true), is(corev1.ContainersReady, p.isReady), is(corev1.PodReady, p.isReady),
		},
		InitContainerStatuses: p.initStatus(pod),
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: objects.ContainerName, Image: p.image, ImageID: "", State: p.state, LastTerminationState: p.last,
			RestartCount: max(p.starts-1, 0), Ready: p.isReady, Started: new(p.isReady),
		}},
	}
	if p.starts > 0 {
		status.Phase = corev1.PodRunning
	}
	n.patchStatus(ctx, pod, status)
}

// patchStatus stores a status. The UID keeps it off a new object of the same name.
func (n *realNodes) patchStatus(ctx context.Context, obj client.Object, status any) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": obj.GetUID()}, "status": status})
	n.insist(ctx, func() error {
		if err != nil {
			return err
		}
		return n.client.Status().Patch(ctx, obj.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, patch))
	})
}

func (n *realNodes) remove(ctx context.Context, pod *corev1.Pod) {
	n.insist(ctx, func() error {
		return n.client.Delete(ctx, pod.DeepCopy(), client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	})
}

// insist repeats a request until it is done, or the object is gone or another one.
func (n *realNodes) insist(ctx context.Context, send func() error) {
	for ctx.Err() == nil {
		err := send()
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return
		}
		n.mu.Lock()
		n.words["API server"] = err.Error()
		n.mu.Unlock()
		time.Sleep(lookEvery)
	}
}

// state is how the nodes are, for the message of a run that fails.
func (n *realNodes) state() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	text := fmt.Sprintf("running: %v", slices.Sorted(maps.Keys(n.serving)))
	for _, pod := range slices.Sorted(maps.Keys(n.words)) {
		text += fmt.Sprintf("; %s last: %.300s", pod, n.words[pod])
	}
	return text
}

func (n *realNodes) isSteady() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Since(n.started) > 6*time.Second
}
