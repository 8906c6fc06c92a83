package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/sim"
	"example.com/fairlead/operators/etcd/job"
	"example.com/fairlead/operators/etcd/members/model"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/task"
)

// This file has the backups of a simulated cluster, and the init container that fetches them.

// isServed says whether a Service leads to a pod.
func isServed(pod *corev1.Pod) bool {
	return pod.Labels[objects.ClusterLabel] == "example" && pod.Labels[objects.AppLabel] == objects.Operator
}

// backup stores what a member has under a key.
func (n *modelNodes) backup(_ *testkit.Run, key string) error {
	err := errors.New("no pod runs")
	sim.Each(n.world.Server, func(pod *corev1.Pod) {
		if p := n.pods[pod.UID]; err != nil && p != nil && p.runs && isServed(pod) {
			n.backups[key], err = n.model.Snapshot(p.ip + ":2379")
		}
	})
	return err
}

func (n *modelNodes) spoilBackup(key string) error {
	n.backups[key] = nil
	return nil
}

// failToFetch has the storage fail some times.
func (n *modelNodes) failToFetch(times int) { n.fails = times }

// hasBackup returns an error if the cluster that the Services lead to does not have what a backup has.
func (n *modelNodes) hasBackup(_ *testkit.Run, key string) error {
	snapshot := n.backups[key]
	if snapshot == nil {
		return fmt.Errorf("there is no backup %s", key)
	}
	leading := n.leading()
	if leading == nil {
		return errors.New("nobody leads")
	}
	for _, write := range n.model.Acknowledged() {
		if snapshot.Has(write) && !leading.Has(write) {
			return fmt.Errorf("write %d is in the backup, and not in the cluster that was restored from it", write)
		}
	}
	return nil
}

// leading is the data of the member that leads and that a Service leads to.
func (n *modelNodes) leading() *model.Disk {
	var found *model.Disk
	for _, disk := range n.model.Leading() {
		sim.Each(n.world.Server, func(pod *corev1.Pod) {
			if p := n.pods[pod.UID]; p != nil && p.disk == disk && p.runs && isServed(pod) {
				found = disk
			}
		})
	}
	return found
}

// fetch runs the init container of a seed. What it says, it says again when it is run again.
func (n *modelNodes) fetch(pod *corev1.Pod, p *modelPod) {
	var todo task.Task
	if err := json.Unmarshal([]byte(pod.Spec.InitContainers[0].Args[0]), &todo); err != nil {
		n.world.Fail(err)
		return
	}
	result, code := task.Result{}, int32(0)
	snapshot, isThere := n.backups[todo.Place.Key]
	switch {
	case pod.Labels[objects.NodeLabel] != "" && p.disk.IsEmpty():
		p.fetched = true
	case n.fails > 0:
		n.fails--
		result.Problem = &task.Problem{Reason: task.ReasonStorageUnreachable, Message: "The storage cannot be reached", Retriable: true}
	case !isThere:
		result.Problem = &task.Problem{Reason: task.ReasonObjectNotFound, Message: "There is no such object: check the path"}
	case snapshot == nil:
		result.Problem = &task.Problem{Reason: task.ReasonObjectDamaged, Message: "The object is damaged. Restore an earlier backup"}
	case !snapshot.IsFor(todo.Member.Version):
		result.Problem = &task.Problem{Reason: task.ReasonObjectTooNew, Message: "The object has data in the format of a later version"}
	default:
		if p.disk.IsEmpty() {
			p.disk.Restore(snapshot, todo.Member.Name, todo.Member.PeerURL, todo.Member.Token, todo.Member.Begins(snapshot.Revision()))
		}
		p.fetched = true
		result.Fetched = &task.Fetched{Key: todo.Place.Key, Revision: snapshot.Revision(), Offset: todo.Member.Begins(snapshot.Revision()) - snapshot.Revision(), ClusterID: p.disk.Cluster().String(), MemberID: p.disk.Member().String()}
	}
	if result.Problem != nil {
		code = 1
		p.retry = n.world.Now().Add(10 * time.Second)
	}
	text, err := json.Marshal(result)
	n.world.Fail(err)
	is := corev1.ContainerStatus{Name: job.FetchContainer, RestartCount: int32(p.crashes), State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Message: string(text), StartedAt: second(n.world.Now()), FinishedAt: second(n.world.Now()),
	}}}
	told := pod.DeepCopy()
	told.Status.Phase, told.Status.PodIP = corev1.PodPending, p.ip
	told.Status.InitContainerStatuses = []corev1.ContainerStatus{is}
	told.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: objects.ContainerName, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}}}
	n.world.Fail(n.world.Server.Report(told, n.Name()))
}

// statusOf is what the EtcdCluster of a story says.
func (n *modelNodes) statusOf() v1beta2.EtcdClusterStatus {
	var st v1beta2.EtcdClusterStatus
	sim.Each(n.world.Server, func(ec *v1beta2.EtcdCluster) { st = ec.Status })
	return st
}
