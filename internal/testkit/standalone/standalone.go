// Package standalone starts one operator by itself, for tests. It is apart from
// testkit because the tests of run use that, too.
package standalone

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"example.com/fairlead/internal/kit/run"
)

// Start runs an operator for one namespace until the context ends, as
// testkit.Sweep wants it: as its service account, which the admission policy lets
// write only objects of its own.
func Start(operator run.Operator) func(ctx context.Context, cfg *rest.Config, namespace string) error {
	return func(ctx context.Context, cfg *rest.Config, namespace string) error {
		base := context.WithoutCancel(ctx) // what comes by the context, such as the calls outside
		cfg, err := AsAccount(base, cfg, operator, namespace)
		if err != nil {
			return err
		}
		mgr, err := run.New(cfg, run.Options{
			Namespaces:  []string{namespace},
			BaseContext: func() context.Context { return base },
		}, operator)
		if err != nil {
			return err
		}
		return mgr.Start(ctx)
	}
}

// Scheme has the built-in types and those of an operator. It panics if they
// cannot go together.
func Scheme(operator run.Operator) *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), operator.AddToScheme(scheme)); err != nil {
		panic(err)
	}
	return scheme
}
