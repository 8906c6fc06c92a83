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

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// restart ends the manager, creates an At that is due already while it is down,
// and returns how long it took from the end until that At's pod may run.
func (b *bench) restart(ctx context.Context, how string, end func(context.Context) error) (time.Duration, error) {
	name := "due-" + how
	pods, err := b.followPods(ctx, workload, name)
	if err != nil {
		return 0, err
	}
	defer pods.stop()
	ended := time.Now()
	if err := end(ctx); err != nil {
		return 0, err
	}
	if err := b.client.Create(ctx, newAt(name, ended)); err != nil {
		return 0, err
	}
	times, err := pods.wait(ctx, 5*time.Minute, mayRun, 1)
	if err != nil {
		return 0, err
	}
	took := times[name].Sub(ended)
	b.say("manager %s: an At that was due could run after %s", how, inSeconds(took))
	return took, b.ready(ctx, atOperator)
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
		if err != nil || strings.TrimSpace(string(command)) != "fairlead" {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return err
		}
		failures = append(failures, syscall.Kill(pid, syscall.SIGKILL))
		killed++
	}
	if killed != 1 {
		return fmt.Errorf("%d processes of pod %s were found, where one was expected", killed, pod.Name)
	}
	return errors.Join(failures...)
}
