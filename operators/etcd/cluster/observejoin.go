package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/contents"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/view"
)

// observeJoin makes the client for the etcd that is taken over. Its Secret is read each time: a take-over is short.
func (o *observer) observeJoin(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster, as members.User, seen *view.Observation) error {
	if len(objects.Elsewhere(ec)) == 0 {
		return nil
	}
	var certificate map[string][]byte
	if name := ec.Spec.JoinFrom.ClientTLSSecret; name != "" {
		read, _, err := contents.Read(ctx, r.Live, contents.Source{Kind: contents.Secret, NamespacedName: types.NamespacedName{Namespace: ec.Namespace, Name: name}})
		if apierrors.IsNotFound(err) {
			seen.ElsewhereProblem = &status.Problem{Reason: reason.NoSecret, Message: fmt.Sprintf("Secret %q does not exist: create it, or correct spec.joinFrom.clientTLSSecret", name)}
			return nil
		} else if err != nil {
			return err
		}
		certificate = read
	}
	if err := o.asker.RenewElsewhere(ec, certificate, as); err != nil {
		seen.ElsewhereProblem = &status.Problem{Reason: reason.BadSecret, Message: fmt.Sprintf("Secret %q: %v", ec.Spec.JoinFrom.ClientTLSSecret, err)}
	}
	return nil
}

// observeGone finds out which pods are gone of the members elsewhere that do not answer: only those have certainly ended. One
// that does not answer may be paused, its node may start again, and the name of a pod that is not ready leads nowhere.
func (o *observer) observeGone(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster, seen *view.Observation) error {
	j := ec.Status.Join
	if ec.Spec.JoinFrom == nil || j == nil || j.Phase == v1beta2.JoinJoining {
		return nil
	}
	before, _ := o.gone.Get(objects.Key(ec))
	seen.Gone = map[string]time.Time{}
	for url, at := range objects.Elsewhere(ec) {
		name, isPods := objects.PodOfHost(at.ServerName)
		if !isPods || seen.Answers[url].Err == nil {
			continue
		}
		isGone, err := isPodGone(ctx, r.Live, name)
		if err != nil {
			return err
		}
		if isGone {
			seen.Gone[url] = seen.Now
		}
		if since, was := before[url]; isGone && was {
			seen.Gone[url] = since
		}
	}
	o.gone.Set(objects.Key(ec), seen.Gone)
	return nil
}

// isPodGone says whether no pod has that host name. Where the operator may not look, it is not known to be so.
func isPodGone(ctx context.Context, from client.Reader, host types.NamespacedName) (bool, error) {
	var there corev1.PodList
	if err := from.List(ctx, &there, client.InNamespace(host.Namespace)); apierrors.IsForbidden(err) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(there.Items, func(pod corev1.Pod) bool {
		return pod.Name == host.Name || pod.Spec.Hostname == host.Name
	}), nil
}
