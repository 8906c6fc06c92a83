package run

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// A manager for some namespaces waits until its caches have all of them, and for ever if it may not list in one: a
// namespace that was deleted took the Role in it along. So managers come one after the other, in one process: each for
// the namespaces that can be read when it begins, until one more can be.

const (
	// leftOutInterval is how often it is looked whether a namespace that is left out can be read by now.
	leftOutInterval = 10 * time.Second
	// Where the API server does not answer whether a namespace can be read, it is asked again so often in all, at this
	// distance: a namespace that is served without its word, and cannot be read, holds the others up.
	askedAgain   = 10
	askedAgainIn = 2 * time.Second
)

// runManagers works for the namespaces of the options that can be read, until ctx ends.
func runManagers(ctx context.Context, log logr.Logger, cfg *rest.Config, options Options, operators ...Operator) error {
	n, err := newNamespaces(log, cfg, operators)
	if err != nil {
		return err
	}
	all := options.Namespaces
	for {
		var leftOut []string
		options.Namespaces, leftOut = n.part(ctx, all)
		mgr, err := New(cfg, options, operators...)
		if err != nil {
			return err
		}
		log.Info("starting", "version", Version, "commit", commit(), "operators", names(operators),
			"namespaces", options.Namespaces, "leaderElection", options.Election)
		life, end := context.WithCancel(ctx)
		if len(leftOut) > 0 {
			go func() {
				n.await(life, leftOut)
				end()
			}()
		}
		err = mgr.Start(life)
		end()
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// namespaces finds out which can be read: where all that the operators work with may be listed.
type namespaces struct {
	log   logr.Logger
	live  client.Client
	kinds []schema.GroupVersionKind
	told  map[string]bool
}

func newNamespaces(log logr.Logger, cfg *rest.Config, operators []Operator) (*namespaces, error) {
	live, err := client.New(cfg, client.Options{})
	if err != nil {
		return nil, err
	}
	scheme, err := schemeOf(operators)
	if err != nil {
		return nil, err
	}
	n := &namespaces{log: log, live: live, told: map[string]bool{}}
	for _, operator := range operators {
		for _, kind := range operator.Kinds {
			for _, object := range slices.Concat([]client.Object{kind.Object}, kind.Watches, kind.Owns, kind.OwnsAmong) {
				gvk, err := apiutil.GVKForObject(object, scheme)
				if err != nil {
					return nil, err
				}
				if !slices.Contains(n.kinds, gvk) {
					n.kinds = append(n.kinds, gvk)
				}
			}
		}
	}
	return n, nil
}

// part has those that are served, and those that are left out. If none can be read, or there is only one, all are served:
// the manager waits for the right, and is not ready. Of several, one may be readable long before the others, or alone: so
// they count as left out, too, and the manager begins anew with the first that can be read.
func (n *namespaces) part(ctx context.Context, all []string) (served, leftOut []string) {
	again := 0
	for _, namespace := range all {
		err := n.refused(ctx, namespace)
		for ; err != nil && !apierrors.IsForbidden(err) && again < askedAgain && sleep(ctx, askedAgainIn); again++ {
			err = n.refused(ctx, namespace)
		}
		// An API server that does not answer says nothing of a namespace: one that was served is, and the other is not.
		if err == nil || !apierrors.IsForbidden(err) && !n.told[namespace] {
			served = append(served, namespace)
		} else {
			leftOut = append(leftOut, namespace)
		}
	}
	switch {
	case len(served) > 0:
	case len(all) == 1:
		return all, nil
	default:
		return all, all
	}
	for _, namespace := range leftOut {
		if !n.told[namespace] {
			n.log.Info("the namespace does not exist, or the manager's service account is not bound to its Role there: the others are served, "+
				"and this one as soon as it can be read", "namespace", namespace)
		}
		n.told[namespace] = true
	}
	return served, leftOut
}

// sleep says whether ctx lasts that long.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// await returns once one of these can be read, or ctx ends.
func (n *namespaces) await(ctx context.Context, leftOut []string) {
	for sleep(ctx, leftOutInterval) {
		for _, namespace := range leftOut {
			if n.refused(ctx, namespace) == nil && ctx.Err() == nil {
				n.told[namespace] = false
				n.log.Info("the namespace can be read: the operators start again, to serve it, too", "namespace", namespace)
				return
			}
		}
	}
}

// refused is the API server's word if something may not be listed in a namespace, or another error if it gives none.
func (n *namespaces) refused(ctx context.Context, namespace string) error {
	for _, kind := range n.kinds {
		mapping, err := n.live.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		switch {
		case meta.IsNoMatchError(err):
			continue // it is not installed
		case err != nil:
			return err
		case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
			continue
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err = n.live.List(ctx, list, client.InNamespace(namespace), client.Limit(1))
		if apierrors.IsForbidden(err) {
			lacked.Store(err.Error(), time.Now())
		}
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
