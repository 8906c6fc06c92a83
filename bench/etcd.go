package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
)

// The versions of etcd that are measured, of which the local cluster can make images.
const etcdVersion, etcdPatch, etcdMinor = "3.6.16", "3.6.15", "3.5.35"

var etcdImages = []string{
	"quay.io/coreos/etcd:v" + etcdVersion, "quay.io/coreos/etcd:v" + etcdPatch, "quay.io/coreos/etcd:v" + etcdMinor,
}

const (
	etcdMembers = 3
	// etcdPatience is how long a cluster is waited for, which is far beyond all bounds.
	etcdPatience = 20 * time.Minute
	// etcdPoll is how often a cluster is looked at, and so how exact the times are.
	etcdPoll = 50 * time.Millisecond
)

// newEtcd is an EtcdCluster that is not created yet.
func newEtcd(namespace, name string, size int32) *v1beta2.EtcdCluster {
	return &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1beta2.EtcdClusterSpec{Size: size, Version: etcdVersion},
	}
}

// etcdPods are the pods of a cluster, by name.
func (b *bench) etcdPods(ctx context.Context, namespace, cluster string) (map[string]*corev1.Pod, error) {
	var list corev1.PodList
	if err := b.client.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"etcd_cluster": cluster}); err != nil {
		return nil, err
	}
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		pods[list.Items[i].Name] = &list.Items[i]
	}
	return pods, nil
}

// etcdWhole waits until a cluster is as its spec requests and returns when that was seen. The
// operator has to report it and the kubelet, too, which asks each member whether it serves:
// only the first would be the operator's word on itself.
func (b *bench) etcdWhole(ctx context.Context, ec *v1beta2.EtcdCluster, wanted func(pods map[string]*corev1.Pod) bool) (time.Time, error) {
	for deadline := time.Now().Add(etcdPatience); ; {
		// The cluster is read before its pods: what it says of them is not older than they are.
		if err := b.client.Get(ctx, client.ObjectKeyFromObject(ec), ec); err != nil {
			return time.Time{}, err
		}
		pods, err := b.etcdPods(ctx, ec.Namespace, ec.Name)
		if err != nil {
			return time.Time{}, err
		}
		now := time.Now()
		if isWhole(ec, pods) && wanted(pods) {
			return now, nil
		}
		if now.After(deadline) {
			return now, fmt.Errorf("not within %s: EtcdCluster %s as requested: %s", etcdPatience, ec.Name, etcdState(ec))
		}
		if err := sleep(ctx, etcdPoll); err != nil {
			return now, err
		}
	}
}

func isWhole(ec *v1beta2.EtcdCluster, pods map[string]*corev1.Pod) bool {
	ready := meta.FindStatusCondition(ec.Status.Conditions, "Ready")
	if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != ec.Generation || len(pods) != int(ec.Spec.Size) {
		return false
	}
	for name, pod := range pods {
		if !isPodReady(pod) || !slices.Contains(ec.Status.Members.Ready, name) {
			return false
		}
	}
	return true
}

func isPodReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// etcdState is what status says, in one line.
func etcdState(ec *v1beta2.EtcdCluster) string {
	var said []string
	if ready := meta.FindStatusCondition(ec.Status.Conditions, "Ready"); ready != nil {
		said = append(said, ready.Reason+": "+ready.Message)
	}
	for _, m := range ec.Status.MemberList {
		said = append(said, fmt.Sprintf("%s %s ready=%t %s", m.Name, m.Version, m.Ready, m.Problem))
	}
	return strings.Join(said, "; ")
}

// asCreated is for a cluster of which nothing is wanted but what its spec says.
func asCreated(map[string]*corev1.Pod) bool { return true }

// etcd creates a cluster and waits until it is whole. It returns how long that took.
func (b *bench) etcd(ctx context.Context, ec *v1beta2.EtcdCluster) (time.Duration, error) {
	began := time.Now()
	if err := b.client.Create(ctx, ec); err != nil {
		return 0, err
	}
	whole, err := b.etcdWhole(ctx, ec, asCreated)
	return whole.Sub(began), err
}

// endEtcd deletes a cluster and waits until its pods are gone.
func (b *bench) endEtcd(ctx context.Context, ec *v1beta2.EtcdCluster) error {
	if err := b.client.Delete(ctx, ec); err != nil {
		return err
	}
	return eventually(ctx, etcdPatience, "the end of the pods of EtcdCluster "+ec.Name, func() (bool, error) {
		pods, err := b.etcdPods(ctx, ec.Namespace, ec.Name)
		return len(pods) == 0, err
	})
}

// etcdFigure is the median of times, of which none may be beyond the bound.
func etcdFigure(measure, what string, took []time.Duration, bound time.Duration, detail string) figure {
	if detail != "" {
		detail = "; " + detail
	}
	return figure{
		measure: measure, what: what, value: inSeconds(median(took)), spread: "each: " + spread(took, inSeconds) + detail,
		bound: "≤ " + inSeconds(bound), missed: percentile(took, 100) > bound,
	}
}
