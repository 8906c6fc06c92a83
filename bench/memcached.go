package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
)

// The two versions that the local cluster can make.
const oldVersion, newVersion = "1.6.18", "1.6.38"

var memcachedImages = []string{"memcached:" + oldVersion, "memcached:" + newVersion}

// scratch is a namespace of its own for one measure, and what removes it with
// all that is in it.
func (b *bench) scratch(ctx context.Context, name string) (remove func(context.Context) error, err error) {
	if err := b.namespace(ctx, name, nil); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := client.IgnoreNotFound(b.client.Delete(ctx, ns)); err != nil {
			return err
		}
		return eventually(ctx, 5*time.Minute, "the end of namespace "+name, func() (bool, error) {
			err := b.client.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
			return err != nil, client.IgnoreNotFound(err)
		})
	}, nil
}

// pool makes a Memcached and waits until it is ready.
func (b *bench) pool(ctx context.Context, mc *v1alpha1.Memcached) error {
	if err := b.client.Create(ctx, mc); err != nil {
		return err
	}
	return b.poolReady(ctx, mc, func(*v1alpha1.Memcached) bool { return true })
}

// patchPool changes a Memcached, and waits until it is ready and as wanted.
func (b *bench) patchPool(ctx context.Context, mc *v1alpha1.Memcached, patch string, wanted func(*v1alpha1.Memcached) bool) error {
	if err := b.client.Patch(ctx, mc, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return err
	}
	return b.poolReady(ctx, mc, wanted)
}

func (b *bench) poolReady(ctx context.Context, mc *v1alpha1.Memcached, wanted func(*v1alpha1.Memcached) bool) error {
	return eventually(ctx, 5*time.Minute, "Memcached "+mc.Name+" ready", func() (bool, error) {
		err := b.client.Get(ctx, client.ObjectKeyFromObject(mc), mc)
		ready := meta.FindStatusCondition(mc.Status.Conditions, "Ready")
		return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == mc.Generation && wanted(mc), err
	})
}

// exposed makes a server of a pool reachable from here, also while it is not
// ready, and returns where.
func (b *bench) exposed(ctx context.Context, namespace, pod string) (string, error) {
	return b.nodePort(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod + "-outside"},
		Spec: corev1.ServiceSpec{
			PublishNotReadyAddresses: true,
			Selector:                 map[string]string{"statefulset.kubernetes.io/pod-name": pod},
			Ports:                    []corev1.ServicePort{{Port: 11211}},
		},
	})
}

// nodePort creates a Service with a port of the node, and returns its address.
func (b *bench) nodePort(ctx context.Context, s *corev1.Service) (string, error) {
	s.Spec.Type = corev1.ServiceTypeNodePort
	if err := b.client.Create(ctx, s); err != nil {
		return "", err
	}
	var node corev1.Node
	if err := b.client.Get(ctx, client.ObjectKey{Name: b.node}, &node); err != nil {
		return "", err
	}
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			return net.JoinHostPort(address.Address, strconv.Itoa(int(s.Spec.Ports[0].NodePort))), nil
		}
	}
	return "", fmt.Errorf("node %s has no address", b.node)
}
