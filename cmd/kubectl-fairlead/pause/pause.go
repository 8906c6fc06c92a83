// Package pause has `kubectl fairlead pause` and resume.
package pause

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	etcdv1beta2 "example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/cmd/kubectl-fairlead/at"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
	"example.com/fairlead/operators/etcd/objects"
)

const pauseLong = `Have the operator keep its hands off objects, until they are resumed.

What runs goes on, and nobody looks after it:

  etcdcluster  nothing of the cluster is changed: a lost member is not replaced, certificates are
               not renewed, and changes of the spec, EtcdRestores and a deleted child wait
  etcdbackup   no backup is begun, proved or removed; a step under way is finished
  at           it does not start (spec.suspend, as of "kubectl at suspend")

The other kinds cannot be paused. It does nothing to an object that is paused already.`

const resumeLong = `Have the operator take care of objects again that were paused.

What waits is done then: an etcdcluster gets its repairs and changes, an etcdbackup the backup
that was due, and an at whose time has passed starts at once, if its startingDeadlineSeconds
allows that. It does nothing to an object that is not paused.`

// pausing is how a kind is paused: by which field, and what is said then.
type pausing struct {
	field           string
	paused, resumed string
}

var pausings = map[string]pausing{
	"etcdcluster": {"paused",
		"Nothing of the cluster is changed until it is resumed: a lost member is not replaced, certificates are not renewed, " +
			"changes and restores wait.",
		"The operator repairs what has changed, and carries on with what waited."},
	"etcdbackup": {"paused",
		"No backup is begun, proved or removed until it is resumed. A step under way is finished.",
		"A backup that was due meanwhile is begun now."},
	"at": {"suspend",
		"It does not start until it is resumed.",
		"It starts at its time, or at once if that has passed and startingDeadlineSeconds allows it."},
}

// pause is `kubectl fairlead pause`, and resume.
type pause struct {
	*cli.CLI
	cli.DryRun
	isResume bool
}

// Command is `kubectl fairlead pause`.
func Command(c *cli.CLI) *cobra.Command {
	o := &pause{CLI: c}
	return o.command("pause", "Have the operator keep its hands off objects", pauseLong)
}

// ResumeCommand is `kubectl fairlead resume`.
func ResumeCommand(c *cli.CLI) *cobra.Command {
	o := &pause{CLI: c, isResume: true}
	return o.command("resume", "Have the operator take care of objects again that were paused", resumeLong)
}

func (o *pause) command(use, short, long string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use + " KIND/NAME...",
		Short: short,
		Long:  long,
		Example: fmt.Sprintf("  kubectl fairlead %[1]s etcdcluster/db\n"+
			"  kubectl fairlead %[1]s etcdbackup/nightly at/report --dry-run=server", use),
		Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: func(cmd *cobra.Command, given []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return o.CompleteKinds(cmd, slices.DeleteFunc(cli.Kinds(), func(k cli.Kind) bool { return pausings[k.Name()].field == "" }), given, begun)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.AddTo(cmd)
	return cmd
}

func (o *pause) run(ctx context.Context, args []string) error {
	if err := o.Check(); err != nil {
		return err
	}
	k, namespace, err := o.Client()
	if err != nil {
		return err
	}
	var errs []error
	for _, arg := range args {
		errs = append(errs, o.one(ctx, k, namespace, arg))
	}
	return errors.Join(errs...)
}

// one pauses or resumes an object, and says what that means.
func (o *pause) one(ctx context.Context, k client.Client, namespace, arg string) error {
	kind, name, err := cli.ObjectCalled(arg)
	if err != nil {
		return err
	}
	how, can := pausings[kind.Name()]
	if !can {
		return fmt.Errorf("%s: a %s cannot be paused: only an etcdcluster, an etcdbackup and an at can", arg, kind.Kind)
	}
	object, err := kind.Get(ctx, k, client.ObjectKey{Namespace: namespace, Name: name})
	if err != nil {
		return err
	}
	verb, note := "paused", how.paused
	if o.isResume {
		verb, note = "resumed", how.resumed
	}
	named := fmt.Sprintf("%s.%s/%s", kind.Name(), kind.Group, name)
	if isPaused(object) != o.isResume {
		_, err := fmt.Fprintf(o.Out, "%s %s\n", named, map[bool]string{true: "is not paused", false: "is paused already"}[o.isResume])
		return err
	}
	if one, isAt := object.(*atv1alpha1.At); isAt && !at.IsWaiting(one) {
		return fmt.Errorf("%s is %s: only an At that waits for its time can be paused or resumed", arg, one.Status.Phase)
	}
	if err := o.Patch(ctx, k, object, map[string]any{"spec": map[string]any{how.field: !o.isResume}}); err != nil {
		return err
	}
	if ec, isEtcd := object.(*etcdv1beta2.EtcdCluster); isEtcd && !o.isResume && objects.StopsMembers(ec.Status.Restoring) {
		note += " Its restore is under way, for which members are stopped: it may serve nothing until it is resumed."
	}
	_, err = fmt.Fprintln(o.Out, named, o.Done(verb))
	_, _ = fmt.Fprintln(o.ErrOut, note)
	return err
}

func isPaused(object client.Object) bool {
	as, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	isPaused, _, _ := unstructured.NestedBool(as, "spec", "paused")
	isSuspended, _, _ := unstructured.NestedBool(as, "spec", "suspend")
	return isPaused || isSuspended
}
