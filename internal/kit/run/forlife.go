package run

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// lifePollInterval is how often a replica that is not the leader looks whether
// the leader's pod is gone.
const lifePollInterval = 2 * time.Second

// lifeLock is leader-for-life: a ConfigMap that the leader's pod owns. The first replica
// to create it leads. It is never renewed and never times out: it ends when the leader's
// pod is gone, because the garbage collector then deletes it. So two leaders at once
// cannot be, at the price of waiting for a pod on a lost node until that node's pods are
// removed.
type lifeLock struct {
	waiting atomic.Bool
}

// pod identifies the pod of this process.
type pod struct {
	namespace, name string
}

func thisPod() (self pod, ok bool, err error) {
	namespace, ok := inCluster()
	if !ok {
		return pod{}, false, nil
	}
	name := os.Getenv("POD_NAME")
	if name == "" {
		if name, err = os.Hostname(); err != nil {
			return pod{}, false, err
		}
	}
	return pod{namespace: namespace, name: name}, true, nil
}

// acquire returns once this process leads. Outside a cluster, where there is
// no pod to own the lock, it returns at once and says so in the log.
func (l *lifeLock) acquire(ctx context.Context, mgr manager.Manager, name string) error {
	log := mgr.GetLogger().WithName("leader-for-life")
	self, ok, err := thisPod()
	if err != nil {
		return err
	}
	if !ok {
		log.Info("not running in a cluster: leader election for life is skipped")
		return nil
	}
	l.waiting.Store(true)
	defer l.waiting.Store(false)
	return acquireForLife(ctx, log, mgr.GetClient(), mgr.GetAPIReader(), self, name)
}

func acquireForLife(ctx context.Context, log logr.Logger, c client.Client, live client.Reader, self pod, name string) error {
	log = log.WithValues("lock", self.namespace+"/"+name, "pod", self.name)
	log.Info("attempting to become the leader for life")
	logged := ""
	for {
		holder, err := tryForLife(ctx, c, live, self, name)
		switch {
		case err != nil && ctx.Err() == nil:
			log.Error(err, "cannot take the lock, trying again")
		case err == nil && holder == self.name:
			log.Info("became the leader for life")
			return nil
		case err == nil && holder != logged:
			log.Info("another pod is the leader: waiting until it is gone", "leader", holder)
			logged = holder
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lifePollInterval):
		}
	}
}

// tryForLife makes one attempt and says who holds the lock after it.
func tryForLife(ctx context.Context, c client.Client, live client.Reader, self pod, name string) (holder string, err error) {
	var me corev1.Pod
	if err := live.Get(ctx, client.ObjectKey{Namespace: self.namespace, Name: self.name}, &me); err != nil {
		return "", fmt.Errorf("read this process's own pod: %w", err)
	}
	lock := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: self.namespace,
		Name:      name,
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "Pod", Name: me.Name, UID: me.UID,
		}},
	}}
	if err := c.Create(ctx, lock); err == nil {
		return self.name, nil
	} else if !apierrors.IsAlreadyExists(err) {
		return "", err
	}
	if err := live.Get(ctx, client.ObjectKeyFromObject(lock), lock); err != nil {
		return "", err // gone in between: the next attempt creates it
	}
	if len(lock.OwnerReferences) != 1 || lock.OwnerReferences[0].Kind != "Pod" {
		return "", fmt.Errorf("ConfigMap %s is not a lock: its owner must be the leader's pod", name)
	}
	owner := lock.OwnerReferences[0]
	if owner.UID == me.UID {
		return self.name, nil // this pod's container restarted: it still leads
	}

	// The garbage collector removes the lock of a pod that is gone. A pod that
	// has ended for good, by eviction say, is still there, so the lock is
	// removed for it.
	var leader corev1.Pod
	err = live.Get(ctx, client.ObjectKey{Namespace: self.namespace, Name: owner.Name}, &leader)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", err
	}
	gone := apierrors.IsNotFound(err) || leader.UID != owner.UID
	if gone || leader.Status.Phase == corev1.PodFailed || leader.Status.Phase == corev1.PodSucceeded {
		err := c.Delete(ctx, lock, client.Preconditions{UID: &lock.UID})
		return owner.Name, client.IgnoreNotFound(err)
	}
	return owner.Name, nil
}
