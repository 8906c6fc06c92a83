package at

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

// verb is a command that does the same to each At that it is given.
type verb struct {
	*cli.CLI
	cli.DryRun
	sure cli.Consent
}

// perAt does it to one At, and says what was done.
type perAt func(ctx context.Context, k client.Client, key client.ObjectKey) (string, error)

// command is the cobra command of a verb that says how it went with each At.
func (v *verb) command(use, short, example string, each perAt) *cobra.Command {
	cmd := &cobra.Command{
		Use:               use + " NAME...",
		Short:             short,
		Example:           example,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeAts(v.CLI),
		RunE: func(cmd *cobra.Command, names []string) error {
			if err := v.Check(); err != nil {
				return err
			}
			k, namespace, err := v.Client()
			if err != nil {
				return err
			}
			var errs []error
			for _, name := range names {
				what, err := each(cmd.Context(), k, client.ObjectKey{Namespace: namespace, Name: name})
				if err != nil {
					errs = append(errs, cli.Explain(err))
					continue
				}
				_, _ = fmt.Fprintf(v.Out, "at.at.example.com/%s %s\n", name, v.Done(what))
			}
			return errors.Join(errs...)
		},
	}
	v.AddTo(cmd)
	return cmd
}

func removeCommand(c *cli.CLI) *cobra.Command {
	v := &verb{CLI: c}
	cmd := v.command("rm", "Remove Ats, as atrm does, with their pods and what these printed",
		"  kubectl at rm at-x7k2p\n  kubectl at rm at-x7k2p --yes   # also while it runs", v.remove)
	cmd.Aliases = []string{"delete", "atrm"}
	v.sure.AddTo(cmd)
	return cmd
}

// remove removes what it has seen: an At that has begun to run meanwhile is looked at again.
func (v *verb) remove(ctx context.Context, k client.Client, key client.ObjectKey) (string, error) {
	mayStop := false
	return "removed", retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var at atv1alpha1.At
		if err := k.Get(ctx, key, &at); err != nil {
			return err
		}
		if at.Status.Phase == atv1alpha1.Running && !mayStop {
			if err := v.Confirm(v.sure, key.Name+" is running: to remove it stops its command."); err != nil {
				return err
			}
			mayStop = true
		}
		if v.IsClient() {
			return nil
		}
		return k.Delete(ctx, &at, &client.DeleteOptions{
			DryRun:        v.Dry(),
			Preconditions: &metav1.Preconditions{UID: &at.UID, ResourceVersion: &at.ResourceVersion},
		})
	})
}

func runNowCommand(c *cli.CLI) *cobra.Command {
	v := &verb{CLI: c}
	return v.command("run-now", "Run an At now that waits for its time, or is suspended", "  kubectl at run-now at-x7k2p",
		func(ctx context.Context, k client.Client, key client.ObjectKey) (string, error) {
			now := v.Now().UTC().Format(time.RFC3339)
			return "runs now", v.change(ctx, k, key, map[string]any{"schedule": now, "timeZone": nil, "windowSeconds": nil, "suspend": nil})
		})
}

func suspendCommand(c *cli.CLI) *cobra.Command {
	v := &verb{CLI: c}
	return v.command("suspend", "Keep an At from starting until it is resumed", "  kubectl at suspend at-x7k2p",
		func(ctx context.Context, k client.Client, key client.ObjectKey) (string, error) {
			return "suspended", v.change(ctx, k, key, map[string]any{"suspend": true})
		})
}

func resumeCommand(c *cli.CLI) *cobra.Command {
	v := &verb{CLI: c}
	return v.command("resume", "Let a suspended At run at its time, or at once if that has passed", "  kubectl at resume at-x7k2p",
		func(ctx context.Context, k client.Client, key client.ObjectKey) (string, error) {
			return "resumed", v.change(ctx, k, key, map[string]any{"suspend": nil})
		})
}

// change changes fields of an At that has not started. If it starts meanwhile, the server refuses.
func (v *verb) change(ctx context.Context, k client.Client, key client.ObjectKey, spec map[string]any) error {
	var at atv1alpha1.At
	if err := k.Get(ctx, key, &at); err != nil {
		return err
	}
	if !IsWaiting(&at) {
		return fmt.Errorf("%s is %s: create a new At for another run", key.Name, at.Status.Phase)
	}
	return v.Patch(ctx, k, &at, map[string]any{"spec": spec})
}

// IsWaiting says whether an At has not started.
func IsWaiting(at *atv1alpha1.At) bool {
	return at.Status.Phase == "" || at.Status.Phase == atv1alpha1.Pending
}
