package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
)

const (
	// silentEtcds is how many EtcdClusters there are whose only member does not answer.
	silentEtcds = 1000
	// silentRounds is how many others are created meanwhile, silentPause one after the other.
	silentRounds = 20
	silentPause  = time.Second
)

// besideSilentEtcds takes how long the operator takes to create the first pod of an EtcdCluster, beside a thousand whose
// member does not answer. Their pods are not on a node: what they have is the address of one etcd that stands still.
func besideSilentEtcds(ctx context.Context, b *bench) ([]figure, error) {
	const namespace, others = "bench-etcd-silent", "bench-etcd-beside"
	remove, err := b.scratch(ctx, namespace)
	if err != nil {
		return nil, err
	}
	removeOthers, err := b.scratch(ctx, others)
	if err != nil {
		return nil, err
	}
	address, err := b.silentEtcd(ctx, others)
	if err != nil {
		return nil, err
	}
	if err := parallel(ctx, silentEtcds, func(i int) error {
		return b.client.Create(ctx, withoutNode(newEtcd(namespace, fmt.Sprintf("etcd-%04d", i), 1)))
	}); err != nil {
		return nil, err
	}
	var pods corev1.PodList
	if err := eventually(ctx, 10*time.Minute, "the pods of all clusters", func() (bool, error) {
		err := b.client.List(ctx, &pods, client.InNamespace(namespace))
		return len(pods.Items) >= silentEtcds, err
	}); err != nil {
		return nil, err
	}
	beside := func(what string) (figure, error) {
		var took []time.Duration
		for i := range silentRounds {
			one, err := b.firstPod(ctx, withoutNode(newEtcd(others, fmt.Sprintf("beside-%s-%02d", what, i), 1)))
			if err != nil {
				return figure{}, err
			}
			took = append(took, one)
			if err := sleep(ctx, silentPause); err != nil {
				return figure{}, err
			}
		}
		return figure{
			measure: "etcd silent", value: inMillis(median(took)), spread: spread(took, inMillis),
			what: fmt.Sprintf("first pod of a cluster, beside %d whose member is %s", silentEtcds, what),
		}, nil
	}
	if err := b.quiet(ctx); err != nil {
		return nil, err
	}
	absent, err := beside("absent")
	if err != nil {
		return nil, err
	}
	if err := parallel(ctx, len(pods.Items), func(i int) error {
		pod := pods.Items[i].DeepCopy()
		pod.Status.PodIP, pod.Status.PodIPs = address, []corev1.PodIP{{IP: address}}
		return b.client.Status().Patch(ctx, pod, client.MergeFrom(&pods.Items[i]))
	}); err != nil {
		return nil, err
	}
	silent, err := beside("silent")
	if err != nil {
		return nil, err
	}
	return []figure{absent, silent}, errors.Join(removeOthers(ctx), remove(ctx))
}

// withoutNode has the pods of a cluster fit no node.
func withoutNode(ec *v1beta2.EtcdCluster) *v1beta2.EtcdCluster {
	ec.Spec.Pod = &v1beta2.PodPolicy{NodeSelector: map[string]string{"bench": "no-such-node"}}
	return ec
}

// firstPod creates a cluster, and takes the time until it has a pod.
func (b *bench) firstPod(ctx context.Context, ec *v1beta2.EtcdCluster) (time.Duration, error) {
	began := time.Now()
	if err := b.client.Create(ctx, ec); err != nil {
		return 0, err
	}
	for {
		pods, err := b.etcdPods(ctx, ec.Namespace, ec.Name)
		if took := time.Since(began); err != nil || len(pods) > 0 || took > etcdPatience {
			return took, err
		}
		if err := sleep(ctx, etcdPoll/5); err != nil {
			return 0, err
		}
	}
}

// silentEtcd is the address of an etcd that takes connections, and stands still.
func (b *bench) silentEtcd(ctx context.Context, namespace string) (string, error) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "silent"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "etcd", Image: etcdImages[0],
			Env: []corev1.EnvVar{
				{Name: "ETCD_DATA_DIR", Value: "/tmp/etcd"},
				{Name: "ETCD_LISTEN_CLIENT_URLS", Value: "http://0.0.0.0:2379"}, {Name: "ETCD_ADVERTISE_CLIENT_URLS", Value: "http://127.0.0.1:2379"},
			},
		}}},
	}
	if err := b.client.Create(ctx, pod); err != nil {
		return "", err
	}
	if err := eventually(ctx, etcdPatience, "the pod of the etcd that is to stand still", func() (bool, error) {
		err := b.client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return isPodReady(pod), err
	}); err != nil {
		return "", err
	}
	if err := sleep(ctx, 5*time.Second); err != nil { // until it listens
		return "", err
	}
	return pod.Status.PodIP, signalProcess(pod, "etcd", syscall.SIGSTOP)
}
