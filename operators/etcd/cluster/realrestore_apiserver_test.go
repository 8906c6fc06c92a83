//go:build apiserver

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/operators/etcd/job"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/task"
)

// This file has the backups of members that really run, and the init container that makes data of
// them: with etcd's own library, as package agent does, which has its own tests.

// stored is a backup.
type storedBackup struct {
	file     string
	revision int64
	keys     []string
}

func (n *realNodes) backup(_ *testkit.Run, key string) error {
	n.mu.Lock()
	made := storedBackup{file: filepath.Join(n.folder, "backup-"+key), keys: slices.Clone(n.keys)}
	n.mu.Unlock()
	err := n.each(10*time.Second, func(ctx context.Context, _ string, conn grpc.ClientConnInterface) error {
		status, err := pb.NewMaintenanceClient(conn).Status(ctx, &pb.StatusRequest{})
		if err != nil {
			return err
		}
		made.revision = status.GetHeader().GetRevision()
		stream, err := pb.NewMaintenanceClient(conn).Snapshot(ctx, &pb.SnapshotRequest{})
		if err != nil {
			return err
		}
		var all []byte
		for {
			part, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return os.WriteFile(made.file, all, 0o600)
			} else if err != nil {
				return err
			}
			all = append(all, part.GetBlob()...)
		}
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil {
		n.backups[key] = made
	}
	return err
}

func (n *realNodes) spoilBackup(key string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return os.Truncate(n.backups[key].file, 4096)
}

func (n *realNodes) failToFetch(times int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fails = times
}

func (n *realNodes) hasBackup(_ *testkit.Run, key string) error {
	n.mu.Lock()
	want := n.backups[key].keys
	n.mu.Unlock()
	there, _, err := n.read()
	for _, k := range want {
		if err == nil && !there[k] {
			return fmt.Errorf("%s is in the backup, and not in the cluster that was restored from it", k)
		}
	}
	return err
}

// fetch runs the init container of a seed.
func (n *realNodes) fetch(ctx context.Context, pod *corev1.Pod, p *realPod) {
	began := second(time.Now())
	result, code := n.fetched(pod, p), int32(0)
	if result.Problem != nil {
		code, p.retry = 1, time.Now().Add(time.Second)
	}
	text, _ := json.Marshal(result) // of plain data
	p.fetched = result.Problem == nil
	p.init = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: string(text), StartedAt: began, FinishedAt: second(time.Now())}}
	p.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
	n.report(ctx, pod, p)
}

func (n *realNodes) fetched(pod *corev1.Pod, p *realPod) task.Result {
	failed := func(reason string, retriable bool, err error) task.Result {
		return task.Result{Problem: &task.Problem{Reason: reason, Message: err.Error(), Retriable: retriable}}
	}
	var todo task.Task
	if err := json.Unmarshal([]byte(pod.Spec.InitContainers[0].Args[0]), &todo); err != nil {
		return failed(task.ReasonTaskInvalid, false, err)
	}
	n.mu.Lock()
	b, isThere := n.backups[todo.Place.Key]
	fails := n.fails > 0
	n.fails = max(n.fails-1, 0)
	n.mu.Unlock()
	switch {
	case fails:
		return failed(task.ReasonStorageUnreachable, true, errors.New("the storage cannot be reached"))
	case !isThere:
		return failed(task.ReasonObjectNotFound, false, errors.New("there is no such object"))
	}
	m := todo.Member
	data := filepath.Join(p.data, "data")
	offset := m.Begins(b.revision) - b.revision
	if _, err := os.Stat(data); errors.Is(err, os.ErrNotExist) {
		if pod.Labels[objects.NodeLabel] != "" {
			return task.Result{}
		}
		err := errors.Join(os.MkdirAll(p.data, 0o700), snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
			SnapshotPath: b.file, OutputDataDir: data, Name: m.Name, PeerURLs: []string{m.PeerURL},
			InitialCluster: m.Name + "=" + m.PeerURL, InitialClusterToken: m.Token,
			RevisionBump: uint64(offset), MarkCompacted: true,
		}))
		if err != nil {
			_ = os.RemoveAll(data) // it is deleted with the pod otherwise
			return failed(task.ReasonObjectDamaged, false, err)
		}
	}
	urls, err := types.NewURLsMap(m.Name + "=" + m.PeerURL)
	if err != nil {
		return failed(task.ReasonAgentFailed, false, err)
	}
	cluster, err := membership.NewClusterFromURLsMap(zap.NewNop(), m.Token, urls)
	if err != nil {
		return failed(task.ReasonAgentFailed, false, err)
	}
	return task.Result{Fetched: &task.Fetched{Key: todo.Place.Key, Revision: b.revision, Offset: offset, ClusterID: members.ID(cluster.ID()).String()}}
}

// initStatus is the status of the init container, if there is one.
func (p *realPod) initStatus(pod *corev1.Pod) []corev1.ContainerStatus {
	if len(pod.Spec.InitContainers) == 0 {
		return nil
	}
	return []corev1.ContainerStatus{{Name: job.FetchContainer, State: p.init, Ready: p.fetched}}
}

// isServed says whether a Service leads to a pod.
func (n *realNodes) isServed(name string) bool {
	for _, pod := range n.pods {
		if pod.Name == name && pod.Labels[objects.ClusterLabel] != "" {
			return true
		}
	}
	return false
}

// read is the keys of the cluster, as a quorum has them, and which cluster it is.
func (n *realNodes) read() (there map[string]bool, cluster uint64, err error) {
	there = map[string]bool{}
	list := func(ctx context.Context, conn grpc.ClientConnInterface) error {
		got, err := pb.NewKVClient(conn).Range(ctx, &pb.RangeRequest{Key: []byte(keyPrefix), RangeEnd: []byte(keyPrefix + "~"), KeysOnly: true})
		cluster = got.GetHeader().GetClusterId()
		for _, kv := range got.GetKvs() {
			there[string(kv.GetKey())] = true
		}
		return err
	}
	err = n.each(5*time.Second, func(ctx context.Context, _ string, conn grpc.ClientConnInterface) error { return list(ctx, conn) })
	if elsewhere := n.atElsewhere(5*time.Second, list); elsewhere == nil {
		err = nil
	}
	return there, cluster, err
}
