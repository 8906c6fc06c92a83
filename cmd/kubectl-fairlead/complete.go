package main

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

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

// completeAts completes names of Ats, each once. That what is returned begins as
// what is typed is left to it, by some shells.
func (c *cli) completeAts(cmd *cobra.Command, given []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, stop := patience(cmd)
	defer stop()
	k, namespace, err := c.client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var ats atv1alpha1.AtList
	if err := k.List(ctx, &ats, client.InNamespace(namespace)); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []cobra.Completion
	for i := range ats.Items {
		if at := &ats.Items[i]; strings.HasPrefix(at.Name, begun) && !slices.Contains(given, at.Name) {
			names = append(names, cobra.CompletionWithDesc(at.Name, string(at.Status.Phase)+" "+at.Spec.Schedule))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeObjects completes the one object that a command takes.
func (c *cli) completeObjects(cmd *cobra.Command, given []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(given) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.completeKinds(cmd, kinds(), nil, begun)
}

// completeKinds completes KIND/, and then names of that kind, each once.
func (c *cli) completeKinds(cmd *cobra.Command, of []kind, given []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	kindName, _, hasKind := strings.Cut(begun, "/")
	var found []cobra.Completion
	if !hasKind {
		for _, k := range of {
			if strings.HasPrefix(k.name(), begun) {
				found = append(found, k.name()+"/")
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	ctx, stop := patience(cmd)
	defer stop()
	kind, kindErr := kindCalled(kindName)
	k, namespace, err := c.client()
	if kindErr != nil || err != nil || k.List(ctx, kind.list, client.InNamespace(namespace)) != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	_ = meta.EachListItem(kind.list, func(o runtime.Object) error {
		if name := kindName + "/" + o.(client.Object).GetName(); strings.HasPrefix(name, begun) && !slices.Contains(given, name) {
			found = append(found, name)
		}
		return nil
	})
	return found, cobra.ShellCompDirectiveNoFileComp
}

func (c *cli) completeNamespaces(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, stop := patience(cmd)
	defer stop()
	config, _, err := c.connect()
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

func (c *cli) completeContexts(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	config, err := c.config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []cobra.Completion
	for name := range config.Contexts {
		names = append(names, name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// patience is as long as somebody waits for a completion.
func patience(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	return context.WithTimeout(cmd.Context(), 5*time.Second)
}
