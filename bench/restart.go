package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// restart ends or starts the manager, creates an object that there is something to do for
// while none works, and returns how long it took until that is done. Of an At that is due,
// its pod may run; any other object has a status.
func (s scale) restart(ctx context.Context, b *bench, how string, do func(context.Context) error) (time.Duration, error) {
	name := "due-" + how
	state, obj, follow := isObserved, s.object(name), s.follow
	if s.operator == atOperator {
		state, obj = mayRun, newAt(name, time.Now())
		follow = func(ctx context.Context, b *bench, name string) (*sightings, error) {
			return b.followPods(ctx, s.namespace, name)
		}
	}
	seen, err := follow(ctx, b, name)
	if err != nil {
		return 0, err
	}
	defer seen.stop()
	began := time.Now()
	if err := do(ctx); err != nil {
		return 0, err
	}
	if err := s.create(ctx, b, obj); err != nil {
		return 0, err
	}
	times, err := seen.wait(ctx, 5*time.Minute, state, 1)
	if err != nil {
		return 0, err
	}
	took := times[name].Sub(began)
	b.say("manager %s: at work after %s", how, inSeconds(took))
	return took, b.ready(ctx, s.operator)
}

// deleteManager deletes the manager's pod by force: the kubelet ends the
// process within a second, with or without its agreement.
func (b *bench) deleteManager(ctx context.Context) error {
	pod, err := b.managerPod(ctx, atOperator)
	if err != nil {
		return err
	}
	return b.client.Delete(ctx, pod, client.GracePeriodSeconds(0))
}

// killManager kills the manager's process, which can then not give up its
// lease. The node's processes are this machine's.
func (b *bench) killManager(ctx context.Context) error {
	pod, err := b.managerPod(ctx, atOperator)
	if err != nil {
		return err
	}
	return signalProcess(pod, "fairlead", syscall.SIGKILL)
}

// signalProcess sends a signal to the one process of a pod that has that name.
func signalProcess(pod *corev1.Pod, name string, signal syscall.Signal) error {
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return err
	}
	var failures []error
	killed := 0
	for _, file := range groups {
		content, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(content), string(pod.UID)) {
			continue // gone, or not of the pod
		}
		command, err := os.ReadFile(filepath.Join(filepath.Dir(file), "comm"))
		if err != nil || strings.TrimSpace(string(command)) != name {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return err
		}
		failures = append(failures, syscall.Kill(pid, signal))
		killed++
	}
	if killed != 1 {
		return fmt.Errorf("%d processes of pod %s were found, where one was expected", killed, pod.Name)
	}
	return errors.Join(failures...)
}
