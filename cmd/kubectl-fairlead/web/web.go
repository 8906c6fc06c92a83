// Package web has the commands of `kubectl fairlead web`.
package web

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

// Command is `kubectl fairlead web`, with the commands below it.
func Command(c *cli.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "web",
		Aliases: []string{"webserver"},
		Short:   "Work with WebServers: their revisions, and a retry of one that was rolled back",
	}
	cmd.AddCommand(historyCommand(c), diffCommand(c), retryCommand(c))
	return cmd
}

func historyCommand(c *cli.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history NAME",
		Short: "List the revisions of a WebServer that the cluster still has",
		Long: "List the revisions of a WebServer, the newest first.\n\nA revision is a pod template with the files that it mounts. " +
			"They are read from the\nReplicaSets, of which the Deployment keeps ten, and from the ControllerRevision with\nthe last good one.",
		Example:           "  kubectl fairlead web history site",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.CompleteNames("webserver"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ws, revisions, missing, err := revisionsOf(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			now := c.Now()
			w := printers.GetNewTabWriter(c.Out)
			row := func(cells ...string) { _, _ = io.WriteString(w, strings.Join(cells, "\t")+"\n") }
			row("REVISION", "IMAGE", "AGE", "PODS", "STATE")
			for _, r := range revisions {
				row(r.name, r.image(), cli.Age(r.created, now), fmt.Sprint(r.pods), r.state(ws))
			}
			return withMissing(w.Flush(), missing)
		},
	}
	return cmd
}

func diffCommand(c *cli.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff NAME [REVISION [REVISION]]",
		Short: "Show what differs between two revisions of a WebServer",
		Long: "Show what differs between two revisions of a WebServer, in their pod templates.\n\nWithout revisions it is what runs and what was rolled back, " +
			"or else the revision\nbefore and what runs; with one, it is that one and what runs. A change of a\n" +
			"ConfigMap or Secret shows as another name of the copy that is mounted.\n\n" +
			"The exit code is 0 if nothing differs, 1 if something does, and 2 for an error, as of diff(1).",
		Example:           "  kubectl fairlead web diff site\n  kubectl fairlead web diff site 4f1c2ab09d 9e107d9d37",
		Args:              func(cmd *cobra.Command, args []string) error { return asDiff(c, cobra.RangeArgs(1, 3)(cmd, args)) },
		ValidArgsFunction: completeRevisions(c),
		RunE: func(cmd *cobra.Command, args []string) error {
			differ, err := diff(cmd.Context(), c, args[0], args[1:])
			switch {
			case err != nil:
				return asDiff(c, err)
			case differ:
				return cli.ExitError(1)
			}
			return nil
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return asDiff(c, err) })
	return cmd
}

// asDiff ends with the exit code that diff(1) has for an error.
func asDiff(c *cli.CLI, err error) error {
	if err == nil {
		return nil
	}
	_, _ = fmt.Fprintln(c.ErrOut, "error:", err)
	return cli.ExitError(2)
}

// diff prints what differs between two revisions, and says whether something does.
func diff(ctx context.Context, c *cli.CLI, name string, revisions []string) (bool, error) {
	ws, all, missing, err := revisionsOf(ctx, c, name)
	if err != nil {
		return false, err
	}
	from, to, err := toCompare(ws, all, revisions)
	if err != nil {
		return false, withMissing(err, missing)
	}
	differ, err := printDiff(c, from, to)
	return differ, withMissing(err, missing)
}

func completeRevisions(c *cli.CLI) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(given) == 0 {
			return c.CompleteNames("webserver")(cmd, given, begun)
		}
		ctx, stop := cli.Patience(cmd)
		defer stop()
		ws, revisions, _, err := revisionsOf(ctx, c, given[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var found []cobra.Completion
		for _, r := range revisions {
			if strings.HasPrefix(r.name, begun) && len(given) < 3 {
				found = append(found, cobra.CompletionWithDesc(r.name, r.image()+" "+r.state(ws)))
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

func retryCommand(c *cli.CLI) *cobra.Command {
	var dry cli.DryRun
	cmd := &cobra.Command{
		Use:   "retry NAME",
		Short: "Roll out once more what was rolled back",
		Long: "Roll out once more what was rolled back, after its cause was corrected elsewhere: a\nregistry that is back, for example. " +
			"It sets the annotation " + webv1.AnnotationRetry + "\nof the WebServer. If it fails again, it is rolled back again.",
		Example:           "  kubectl fairlead web retry site",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.CompleteNames("webserver"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := dry.Check(); err != nil {
				return err
			}
			var ws webv1.WebServer
			k, err := c.Get(cmd.Context(), args[0], &ws)
			if err != nil {
				return err
			}
			failed := ws.Status.FailedRollout
			if failed == nil {
				return fmt.Errorf("webserver/%s: no rollout was rolled back, so there is nothing to retry", ws.Name)
			}
			annotation := map[string]any{webv1.AnnotationRetry: c.Now().UTC().Format(time.RFC3339Nano)}
			if err := dry.Patch(cmd.Context(), k, &ws, map[string]any{"metadata": map[string]any{"annotations": annotation}}); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.Out, "webserver.my.domain/%s %s\nRevision %s, image %s, is rolled out again. It was rolled back %s: %s: %s\n",
				ws.Name, dry.Done("retried"), failed.Revision, failed.Image, cli.Far(failed.Time.Time, c.Now()), failed.Reason, failed.Message)
			return err
		},
	}
	dry.AddTo(cmd)
	return cmd
}
