package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
)

const (
	bootstrapBound     = 5 * time.Second
	bootstrapNamespace = "bench-etcd-bootstrap"
	bareEtcdNamespace  = "bench-etcd-bare"
)

// bootstrap creates clusters of three, and for comparison the same pods without an operator.
func bootstrap(ctx context.Context, b *bench) ([]figure, error) {
	remove, err := b.scratch(ctx, bootstrapNamespace)
	if err != nil {
		return nil, err
	}
	removeBare, err := b.scratch(ctx, bareEtcdNamespace)
	if err != nil {
		return nil, err
	}
	var ours, bare []time.Duration
	for round := range b.rounds + 1 {
		if err := b.quiet(ctx); err != nil {
			return nil, err
		}
		ec := newEtcd(bootstrapNamespace, "etcd", etcdMembers)
		took, err := b.etcd(ctx, ec)
		if err != nil {
			return nil, err
		}
		pods, err := b.barePodsOf(ctx, ec)
		if err != nil {
			return nil, err
		}
		if err := b.endEtcd(ctx, ec); err != nil {
			return nil, err
		}
		tookBare, err := b.bareEtcd(ctx, ec, pods)
		if err != nil {
			return nil, err
		}
		if round == 0 {
			b.say("a warm-up, not counted: %s, bare pods %s", inSeconds(took), inSeconds(tookBare))
			continue
		}
		b.say("round %d: %s, bare pods %s", round, inSeconds(took), inSeconds(tookBare))
		ours, bare = append(ours, took), append(bare, tookBare)
	}
	if err := removeBare(ctx); err != nil {
		return nil, err
	}
	return []figure{
		{measure: "etcd bootstrap", what: "the same three pods without an operator, until all serve", value: inSeconds(median(bare)), spread: "each: " + spread(bare, inSeconds)},
		etcdFigure("etcd bootstrap", "three members, until all serve and the cluster is Ready", ours, bootstrapBound, ""),
	}, remove(ctx)
}

// barePodsOf are the pods of a cluster as they would be created without an operator, in a namespace
// of their own: with the list of members that they start with, and without an owner and a gate.
func (b *bench) barePodsOf(ctx context.Context, ec *v1beta2.EtcdCluster) ([]*corev1.Pod, error) {
	made, err := b.etcdPods(ctx, ec.Namespace, ec.Name)
	if err != nil {
		return nil, err
	}
	var initial []string
	for name := range made {
		initial = append(initial, name+"=http://"+name+"."+ec.Name+"."+bareEtcdNamespace+".svc:2380")
	}
	var pods []*corev1.Pod
	for _, pod := range made {
		pod = asSent(pod)
		// The operator has replaced the list since the member has started.
		pod.Annotations["etcd.database.coreos.com/initial-cluster"] = strings.Join(initial, ",")
		pod.OwnerReferences, pod.Spec.NodeName = nil, ""
		body, err := json.Marshal(pod)
		if err != nil {
			return nil, err
		}
		bare := &corev1.Pod{}
		if err := json.Unmarshal([]byte(strings.ReplaceAll(string(body), ec.Namespace, bareEtcdNamespace)), bare); err != nil {
			return nil, err
		}
		pods = append(pods, bare)
	}
	return pods, nil
}

// bareEtcd creates the pods and the Service that gives them their names, and takes the time until
// the kubelet says that all serve.
func (b *bench) bareEtcd(ctx context.Context, ec *v1beta2.EtcdCluster, pods []*corev1.Pod) (time.Duration, error) {
	if err := b.quiet(ctx); err != nil {
		return 0, err
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: bareEtcdNamespace, Name: ec.Name},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: map[string]string{"etcd_cluster": ec.Name},
			Ports: []corev1.ServicePort{{Name: "client", Port: 2379}, {Name: "peer", Port: 2380}},
		},
	}
	began := time.Now()
	if err := b.client.Create(ctx, service); err != nil {
		return 0, err
	}
	for _, pod := range pods {
		if err := b.client.Create(ctx, pod); err != nil {
			return 0, err
		}
	}
	took, err := b.barePodsServe(ctx, ec.Name, len(pods), began)
	if err != nil {
		return 0, err
	}
	if err := b.client.Delete(ctx, service); err != nil {
		return 0, err
	}
	for _, pod := range pods {
		if err := b.client.Delete(ctx, pod); err != nil {
			return 0, err
		}
	}
	return took, eventually(ctx, etcdPatience, "the end of the bare pods", func() (bool, error) {
		left, err := b.etcdPods(ctx, bareEtcdNamespace, ec.Name)
		return len(left) == 0, err
	})
}

func (b *bench) barePodsServe(ctx context.Context, cluster string, want int, began time.Time) (time.Duration, error) {
	for {
		pods, err := b.etcdPods(ctx, bareEtcdNamespace, cluster)
		if err != nil {
			return 0, err
		}
		now, ready := time.Now(), 0
		for _, pod := range pods {
			if isPodReady(pod) {
				ready++
			}
		}
		if ready == want {
			return now.Sub(began), nil
		}
		if now.Sub(began) > etcdPatience {
			return 0, fmt.Errorf("not within %s: %d bare pods ready (%d are)", etcdPatience, want, ready)
		}
		if err := sleep(ctx, etcdPoll); err != nil {
			return 0, err
		}
	}
}
