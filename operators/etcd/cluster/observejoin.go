package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

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
