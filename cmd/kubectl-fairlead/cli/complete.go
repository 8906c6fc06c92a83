package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

// CompleteNames completes the name of an object of a kind, as the first argument.
func (c *CLI) CompleteNames(kindName string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(given) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return c.CompleteEach(cmd, kindName, "", nil, begun)
	}
}

// CompleteKinds completes KIND/, and then names of that kind, each once.
func (c *CLI) CompleteKinds(cmd *cobra.Command, of []Kind, given []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	kindName, _, hasKind := strings.Cut(begun, "/")
	if hasKind {
		return c.CompleteEach(cmd, kindName, kindName+"/", given, begun)
	}
	var found []cobra.Completion
	for _, k := range of {
		if strings.HasPrefix(k.Name(), begun) {
			found = append(found, k.Name()+"/")
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// CompleteObject completes one object, as KIND/NAME or KIND NAME.
func (c *CLI) CompleteObject(cmd *cobra.Command, given []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch {
	case len(given) == 0:
		return c.CompleteKinds(cmd, Kinds(), nil, begun)
	case len(given) == 1 && !strings.Contains(given[0], "/"):
		return c.CompleteEach(cmd, given[0], "", nil, begun)
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// CompleteEach completes what objects of a kind are called, each once, with the same before each name.
func (c *CLI) CompleteEach(cmd *cobra.Command, kindName, before string, given []string, begun string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
	ctx, stop := Patience(cmd)
	defer stop()
	kind, kindErr := KindCalled(kindName)
	k, namespace, err := c.Client()
	if kindErr != nil || err != nil || k.List(ctx, kind.List, client.InNamespace(namespace)) != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	_ = meta.EachListItem(kind.List, func(o runtime.Object) error {
		if name := before + o.(client.Object).GetName(); strings.HasPrefix(name, begun) && !slices.Contains(given, name) {
			if at, isAt := o.(*atv1alpha1.At); isAt && before == "" {
				name = cobra.CompletionWithDesc(name, string(at.Status.Phase)+" "+at.Spec.Schedule)
			}
			found = append(found, name)
		}
		return nil
	})
	return found, cobra.ShellCompDirectiveNoFileComp
}

func (c *CLI) completeNamespaces(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, stop := Patience(cmd)
	defer stop()
	var namespaces corev1.NamespaceList
	k, _, err := c.Client()
	if err != nil || k.List(ctx, &namespaces) != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []cobra.Completion
	for _, namespace := range namespaces.Items {
		names = append(names, namespace.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (c *CLI) completeContexts(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	config, err := c.Config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []cobra.Completion
	for name := range config.Contexts {
		names = append(names, name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// Patience is as long as somebody waits for a completion.
func Patience(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	return context.WithTimeout(cmd.Context(), 5*time.Second)
}
