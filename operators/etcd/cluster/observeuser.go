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
)

// user is the user of a cluster as it was read last, and the UID and version of the Secret that it is from.
type user struct {
	members.User
	version string
}

// user is who the operator is, by the Secret that spec.auth names: nobody without it. What is wrong with the Secret is a
// problem to report, and the operator goes on as who it was. The Secret is read when it has changed.
func (o *observer) user(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster) (members.User, *status.Problem, error) {
	if ec.Spec.Auth == nil {
		o.users.Forget(objects.Key(ec))
		return members.User{}, nil, nil
	}
	before, _ := o.users.Get(objects.Key(ec))
	from := types.NamespacedName{Namespace: ec.Namespace, Name: ec.Spec.Auth.RootSecret}
	meta := contents.Metadata(contents.Secret)
	if err := r.Get(ctx, from, meta); err != nil && !apierrors.IsNotFound(err) {
		return members.User{}, nil, err
	} else if version := string(meta.UID) + "/" + meta.ResourceVersion; err == nil && before.version == version {
		return before.User, nil, nil
	}
	data, _, err := contents.Read(ctx, r.Live, contents.Source{Kind: contents.Secret, NamespacedName: from})
	if apierrors.IsNotFound(err) {
		return before.User, &status.Problem{Reason: reason.NoSecret, Message: fmt.Sprintf("Secret %q does not exist: create it with the key password, or correct spec.auth.rootSecret", from.Name)}, nil
	} else if err != nil {
		return members.User{}, nil, err
	}
	as, wrong := members.UserOf(data)
	if wrong == nil && as.Name != members.Root {
		wrong = fmt.Errorf("its username is %q, and must be root", as.Name)
	}
	if wrong != nil {
		return before.User, &status.Problem{Reason: reason.BadSecret, Message: fmt.Sprintf("Secret %q, which spec.auth.rootSecret names: %v", from.Name, wrong)}, nil
	}
	o.users.Set(objects.Key(ec), user{as, string(meta.UID) + "/" + meta.ResourceVersion})
	return as, nil, nil
}
