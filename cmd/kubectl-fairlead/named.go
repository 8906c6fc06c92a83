package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// completeNames completes the name of an object of a kind, as the first argument.
func (c *cli) completeNames(kindName string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(given) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		ctx, stop := patience(cmd)
		defer stop()
		kind, kindErr := kindCalled(kindName)
		k, namespace, err := c.client()
		if kindErr != nil || err != nil || k.List(ctx, kind.list, client.InNamespace(namespace)) != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []cobra.Completion
		_ = meta.EachListItem(kind.list, func(o runtime.Object) error {
			if name := o.(client.Object).GetName(); strings.HasPrefix(name, begun) {
				names = append(names, name)
			}
			return nil
		})
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// get reads one object of Fairlead's by its name.
func (c *cli) get(ctx context.Context, name string, into client.Object) (client.WithWatch, error) {
	k, namespace, err := c.client()
	if err != nil {
		return nil, err
	}
	return k, explain(k.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into))
}
