package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DryRun is the flag --dry-run.
type DryRun struct{ strategy string }

// AddTo adds the flag to a command.
func (d *DryRun) AddTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&d.strategy, "dry-run", "none",
		`Must be "none", "client" (only say what would be done) or "server" (have the server check it, and not keep it)`)
	_ = cmd.RegisterFlagCompletionFunc("dry-run",
		cobra.FixedCompletions([]string{"none", "client", "server"}, cobra.ShellCompDirectiveNoFileComp))
}

// Check returns an error if the flag has another value than there are.
func (d *DryRun) Check() error {
	switch d.strategy {
	case "none", "client", "server":
		return nil
	}
	return fmt.Errorf("--dry-run=%s: must be none, client or server", d.strategy)
}

// IsDry says whether nothing is kept, in either way.
func (d *DryRun) IsDry() bool { return d.strategy != "none" }

// IsClient says whether the server is not asked to do it either.
func (d *DryRun) IsClient() bool { return d.strategy == "client" }

// Dry is what a request says for the server to keep nothing.
func (d *DryRun) Dry() []string {
	if d.strategy == "server" {
		return []string{"All"}
	}
	return nil
}

// Patch changes the very object that was read, and not one of its name that was made since.
func (d *DryRun) Patch(ctx context.Context, k client.Client, o client.Object, changes map[string]any) error {
	if d.IsClient() {
		return nil
	}
	if err := unstructured.SetNestedField(changes, string(o.GetUID()), "metadata", "uid"); err != nil {
		return err
	}
	data, err := json.Marshal(changes)
	if err != nil {
		return err
	}
	return k.Patch(ctx, o, client.RawPatch(types.MergePatchType, data), &client.PatchOptions{DryRun: d.Dry()})
}

// Done is what is said of what was done, as kubectl does.
func (d *DryRun) Done(what string) string {
	switch d.strategy {
	case "client":
		return what + " (dry run)"
	case "server":
		return what + " (server dry run)"
	default:
		return what
	}
}
