package memcached

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/contents"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/names"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

// This file reads the Secrets that a Memcached names. Pods never mount those: they mount
// copies, which change only to what memcached can read. So a bad file reaches neither a
// running server nor one that starts.

// observeInputs reads the Secrets that the spec names, and their copies.
func (o *observer) observeInputs(ctx context.Context, r *loop.Reader, mc *v1alpha1.Memcached) (pool.Inputs, error) {
	var in pool.Inputs
	for _, role := range objects.Roles(mc) {
		copied, err := o.digestOfCopy(ctx, r, mc, role)
		if err != nil {
			return in, err
		}
		use := role.Name
		if mc.Spec.Auth != nil {
			use += "/" + mc.Spec.Auth.Key
		}
		source, data, err := o.digests.Of(ctx, r, key(mc), secret(mc, role.Secret, use), role.Check)
		if err != nil {
			return in, err
		}
		hash := source.Hash
		switch problem := problemWith(role, source); {
		case problem != nil && copied.Version == "":
			in.Missing, in.Problem = append(in.Missing, role.Name), cmp.Or(in.Problem, problem)
			continue
		case problem != nil:
			hash, in.Problem = copied.Hash, cmp.Or(in.Problem, problem)
		case copied.Hash != source.Hash:
			stale, err := newCopy(ctx, r.Live, mc, role, data)
			if err != nil {
				return in, err
			}
			in.Stale = append(in.Stale, stale)
		}
		in.Hash = names.Hash(in.Hash + hash)
	}
	return in, nil
}

func problemWith(role objects.Role, source contents.Digest) *status.Problem {
	switch {
	case source.Version == "":
		return &status.Problem{Reason: reasonNoSecret, Message: fmt.Sprintf("Secret %q does not exist: create it, or correct spec.%s.secretName", role.Secret, role.Name)}
	case source.Wrong != "":
		return &status.Problem{Reason: reasonBadSecret, Message: fmt.Sprintf("Secret %q %s. The servers keep the previous version", role.Secret, source.Wrong)}
	}
	return nil
}

// newCopy prepares the writing of a copy. Its content is not kept in memory,
// so the source may have to be read again.
func newCopy(ctx context.Context, live client.Reader, mc *v1alpha1.Memcached, role objects.Role, data map[string][]byte) (pool.StaleCopy, error) {
	if data == nil {
		read, _, err := contents.Read(ctx, live, secret(mc, role.Secret, ""))
		if err != nil {
			return pool.StaleCopy{}, err
		}
		var wrong string
		if data, wrong = role.Check(read); wrong != "" {
			return pool.StaleCopy{}, apierrors.NewConflict(corev1.Resource("secrets"), role.Secret, errors.New("it has just changed"))
		}
	}
	seen := &corev1.Secret{}
	err := live.Get(ctx, types.NamespacedName{Namespace: mc.Namespace, Name: objects.CopyName(mc, role.Name)}, seen)
	if apierrors.IsNotFound(err) {
		seen, err = &corev1.Secret{}, nil
	}
	return pool.StaleCopy{Role: role.Name, Seen: seen, Data: data}, err
}

// secret is a Secret that is read for some use.
func secret(mc *v1alpha1.Memcached, name, use string) contents.Source {
	return contents.Source{Kind: contents.Secret, NamespacedName: types.NamespacedName{Namespace: mc.Namespace, Name: name}, Use: use}
}

// digestOfCopy is that of the copy for a role, if it is the Memcached's: to write one
// that is not shows the conflict.
func (o *observer) digestOfCopy(ctx context.Context, r *loop.Reader, mc *v1alpha1.Memcached, role objects.Role) (contents.Digest, error) {
	from := secret(mc, objects.CopyName(mc, role.Name), "copy")
	meta := contents.Metadata(contents.Secret)
	if err := r.Get(ctx, from.NamespacedName, meta); apierrors.IsNotFound(err) || err == nil && !objects.IsOwned(meta, mc) {
		return contents.Digest{}, nil
	} else if err != nil {
		return contents.Digest{}, err
	}
	found, _, err := o.digests.Of(ctx, r, key(mc), from, contents.AsIs)
	return found, err
}
