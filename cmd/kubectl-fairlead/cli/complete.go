package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CompleteNames completes the name of an object of a kind, as the first argument.
func (c *CLI) CompleteNames(kindName string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(given) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		ctx, stop := Patience(cmd)
		defer stop()
		kind, kindErr := KindCalled(kindName)
		k, namespace, err := c.Client()
		if kindErr != nil || err != nil || k.List(ctx, kind.List, client.InNamespace(namespace)) != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []cobra.Completion
		_ = meta.EachListItem(kind.List, func(o runtime.Object) error {
			if name := o.(client.Object).GetName(); strings.HasPrefix(name, begun) {
				names = append(names, name)
			}
			return nil
		})
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteKinds completes KIND/, and then names of that kind, each once.
func (c *CLI) CompleteKinds(cmd *cobra.Command, of []Kind, given []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	kindName, _, hasKind := strings.Cut(begun, "/")
	var found []cobra.Completion
	if !hasKind {
		for _, k := range of {
			if strings.HasPrefix(k.Name(), begun) {
				found = append(found, k.Name()+"/")
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	ctx, stop := Patience(cmd)
	defer stop()
	kind, kindErr := KindCalled(kindName)
	k, namespace, err := c.Client()
	if kindErr != nil || err != nil || k.List(ctx, kind.List, client.InNamespace(namespace)) != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	_ = meta.EachListItem(kind.List, func(o runtime.Object) error {
		if name := kindName + "/" + o.(client.Object).GetName(); strings.HasPrefix(name, begun) && !slices.Contains(given, name) {
			found = append(found, name)
		}
		return nil
	})
	return found, cobra.ShellCompDirectiveNoFileComp
}

func (c *CLI) completeNamespaces(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, stop := Patience(cmd)
	defer stop()
	config, _, err := c.Connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	k, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	namespaces, err := k.Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
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
