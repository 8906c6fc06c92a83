package cluster

import (
	"cmp"
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/view"
)

// This file reads what a restore depends on: the EtcdRestores that name the cluster, and the seed.

// observeRestores finds the EtcdRestores, and which of them is next.
func observeRestores(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster, seen *view.Observation) error {
	if ec.Spec.Paused {
		return nil
	}
	st := ec.Status
	var from client.Reader = r
	if st.ClusterID == "" && len(st.Founders) == 0 && st.Restoring == nil {
		from = r.Live // it may have been created together with the EtcdCluster
	}
	var list v1beta2.EtcdRestoreList
	if err := from.List(ctx, &list, client.InNamespace(ec.Namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		if er := &list.Items[i]; er.Spec.EtcdCluster.Name == ec.Name && !objects.IsEnding(er) {
			seen.Restores = append(seen.Restores, er)
		}
	}
	slices.SortFunc(seen.Restores, func(a, b *v1beta2.EtcdRestore) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	switch under := st.Restoring; {
	case under == nil:
		return observeNext(ctx, r, ec, seen)
	case under.Name != "":
		return observeRestore(ctx, r, ec, under.Name, under.ID, seen)
	}
	return nil
}

// observeNext finds the EtcdRestore that is next. It is read from the API server: a late cache might
// show one that is done as one that is not.
func observeNext(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster, seen *view.Observation) error {
	for _, er := range seen.Restores {
		if isRestoreDone(er) || isOfAnother(er, ec) || ec.Status.Restored != nil && string(er.UID) == ec.Status.Restored.ID {
			continue
		}
		now := &v1beta2.EtcdRestore{}
		err := r.Live.Get(ctx, client.ObjectKeyFromObject(er), now)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err != nil || now.UID != er.UID || objects.IsEnding(now) || isRestoreDone(now) || isOfAnother(now, ec) {
			continue
		}
		if now.Status.EtcdClusterUID == "" {
			seen.Undecided = now
			return nil
		}
		if isReported, err := isEndReported(ctx, r, ec); err != nil || !isReported {
			return err
		}
		seen.Restore = now
		return nil
	}
	return nil
}

// isOfAnother says whether an EtcdRestore is of another EtcdCluster that had the name before.
func isOfAnother(er *v1beta2.EtcdRestore, ec *v1beta2.EtcdCluster) bool {
	return er.Status.EtcdClusterUID != "" && er.Status.EtcdClusterUID != ec.UID
}

// isEndReported says whether the EtcdRestore that was last done says what became of it. Status remembers
// but one.
func isEndReported(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster) (bool, error) {
	done := ec.Status.Restored
	if done == nil || done.Name == "" {
		return true, nil
	}
	last := &v1beta2.EtcdRestore{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: ec.Namespace, Name: done.Name}, last)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return string(last.UID) != done.ID || objects.IsEnding(last) || isRestoreDone(last), err
}

// observeRestore makes sure that an EtcdRestore is gone if the cache does not show it.
func observeRestore(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster, name, id string, seen *view.Observation) error {
	if seen.HasRestore(id) {
		return nil
	}
	er := &v1beta2.EtcdRestore{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: ec.Namespace, Name: name}, er)
	if err == nil && string(er.UID) == id && !objects.IsEnding(er) {
		seen.Restores = append(seen.Restores, er)
	}
	return client.IgnoreNotFound(err)
}

// isRestoreDone says whether an EtcdRestore says that it has come to its end.
func isRestoreDone(er *v1beta2.EtcdRestore) bool {
	return er.Status.Phase == v1beta2.RestoreComplete || er.Status.Phase == v1beta2.RestoreFailed
}

// observeSeed finds the seed, and those that are left of others.
func observeSeed(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster, seen *view.Observation) error {
	seeds, err := podsAndClaims(ctx, r, client.InNamespace(ec.Namespace), client.MatchingLabels(objects.SeedSelector(ec)))
	if err != nil {
		return err
	}
	for _, obj := range seeds {
		if objects.IsOwned(ec, obj) {
			seen.Seeds = append(seen.Seeds, obj)
		}
	}
	under := ec.Status.Restoring
	if under == nil || under.Phase == v1beta2.RestoreCompleting {
		return nil // there is none, or it is a member
	}
	for _, obj := range missing(ec, seen, under.Seed) {
		found, err := observeNamed(ctx, r, ec, under.Seed, under.SeedDataUID != "", obj, seen)
		if err != nil {
			return err
		} else if found {
			take(seen, obj)
		}
	}
	return nil
}
