package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	etcdv1beta2 "example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
	"example.com/fairlead/cmd/kubectl-fairlead/status"
)

// replacement is `kubectl fairlead etcd replace`.
type replacement struct {
	*cli.CLI
	cli.Consent
	cli.Waiting
	cli.DryRun
}

func replaceCommand(c *cli.CLI) *cobra.Command {
	o := &replacement{CLI: c}
	cmd := &cobra.Command{
		Use:   "replace CLUSTER MEMBER",
		Short: "Replace a member by a new one: its data is deleted",
		Long: "Replace a member by a new one, which gets the data from the others: for a disk that is\nlost or slow, or a node that does not come back. " +
			"It deletes the member's pod and its\nPersistentVolumeClaim, upon which the operator replaces the member.\n\n" +
			"It is refused unless the other members are a quorum without it.",
		Example:           "  kubectl fairlead etcd replace example example-x7k2m --wait",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: completeMembers(c),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], args[1]) },
	}
	o.Consent.AddTo(cmd)
	o.DryRun.AddTo(cmd)
	o.Waiting.AddTo(cmd, "all members serve, the new one among them")
	return cmd
}

// completeMembers completes the name of an EtcdCluster, and then those of its members.
func completeMembers(c *cli.CLI) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(given) == 0 {
			return c.CompleteNames("etcdcluster")(cmd, given, begun)
		}
		ctx, stop := cli.Patience(cmd)
		defer stop()
		var ec etcdv1beta2.EtcdCluster
		if _, err := c.Get(ctx, given[0], &ec); err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var found []cobra.Completion
		for _, m := range ec.Status.MemberList {
			if strings.HasPrefix(m.Name, begun) && len(given) == 1 {
				found = append(found, m.Name)
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

func (o *replacement) run(ctx context.Context, clusterName, memberName string) error {
	if err := o.Check(); err != nil {
		return err
	}
	if o.IsDry() && o.IsWanted {
		return errors.New("--wait: a dry run changes nothing, so there is nothing to wait for")
	}
	e, err := reach(ctx, o.CLI, clusterName)
	if err != nil {
		return err
	}
	gone, err := e.named(memberName)
	if err != nil {
		return err
	}
	if e.Spec.Paused {
		return fmt.Errorf("etcdcluster/%s is paused, so its operator would not replace the member: set spec.paused to false first", e.Name)
	}
	if err := errors.Join(e.quiet(), e.survivesWithout(gone)); err != nil {
		return err
	}
	data, err := dataOf(ctx, e, memberName)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("Deletes %s: the data of member %s is lost, and a new member gets it from the others.", data, memberName)
	if o.IsDry() {
		_, _ = fmt.Fprintln(o.ErrOut, what)
	} else if err := o.Confirm(o.Consent, what); err != nil {
		return err
	}
	if !o.IsClient() {
		if err := data.delete(ctx, e, o.Dry()); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(o.Out, "etcdcluster.etcd.database.coreos.com/%s %s\n", e.Name, o.Done("replaces "+memberName)); err != nil || !o.IsWanted {
		return err
	}
	before := map[string]bool{}
	for _, m := range e.Status.MemberList {
		before[m.Name] = true
	}
	return o.Until(ctx, o.Waiting, e.EtcdCluster, func() (bool, string, error) {
		var added []string
		isThere := false
		for _, m := range e.Status.MemberList {
			isThere = isThere || m.Name == memberName
			if !before[m.Name] {
				added = append(added, m.Name)
			}
		}
		isDone := !isThere && len(added) > 0 && e.Status.ReadyMembers >= e.Spec.Size && status.Of(cli.Kind{}, e.EtcdCluster).IsWell
		if isDone {
			return true, memberName + " was replaced by " + strings.Join(added, ", "), nil
		}
		return false, readyMessage(e.Status.Conditions), nil
	})
}

// survivesWithout returns an error unless the others are a quorum of the voters, as etcd counts them.
func (e *cluster) survivesWithout(gone member) error {
	voters, others := 0, 0
	var problems []string
	for _, m := range e.members {
		if m.IsLearner {
			continue
		}
		voters++
		if m.name == gone.name {
			continue
		}
		if m.canVote() {
			others++
		} else {
			problems = append(problems, fmt.Sprintf("%s does not serve: %v", m.name, m.problem))
		}
	}
	quorum := voters/2 + 1
	if others >= quorum {
		return nil
	}
	text := fmt.Sprintf("etcdcluster/%s would lose its quorum without %s, so nothing was done: %d of the other members serve, and %d are needed",
		e.Name, gone.name, others, quorum)
	if voters < 3 {
		text += fmt.Sprintf(". Scale it to 3 members first: kubectl scale etcd/%s --replicas=3", e.Name)
	}
	return errors.New(strings.Join(append([]string{text}, problems...), "; "))
}

// memberData is what has the data of a member; a UID is empty where there is no such object.
type memberData struct {
	pod, claim       string
	podUID, claimUID types.UID
}

func (d memberData) String() string {
	var words []string
	if d.claimUID != "" {
		words = append(words, "PersistentVolumeClaim "+d.claim)
	}
	if d.podUID != "" {
		words = append(words, "Pod "+d.pod)
	}
	return strings.Join(words, " and ")
}

// dataOf finds the pod and the claim of a member, both of which have its name.
func dataOf(ctx context.Context, e *cluster, name string) (memberData, error) {
	d := memberData{pod: name, claim: name}
	pod, err := e.pods.Core.Pods(e.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil && !metav1.IsControlledBy(pod, e.EtcdCluster):
		return d, fmt.Errorf("the Pod %s is not owned by etcdcluster/%s", name, e.Name)
	case err == nil:
		d.podUID = pod.UID
	case !apierrors.IsNotFound(err):
		return d, err
	}
	claim, err := e.pods.Core.PersistentVolumeClaims(e.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil && !metav1.IsControlledBy(claim, e.EtcdCluster):
		return d, fmt.Errorf("the PersistentVolumeClaim %s is not owned by etcdcluster/%s", name, e.Name)
	case err == nil:
		d.claimUID = claim.UID
	case !apierrors.IsNotFound(err):
		return d, err
	}
	if d.podUID == "" && d.claimUID == "" {
		return d, fmt.Errorf("member %s has neither a pod nor a volume: the operator replaces it already", name)
	}
	return d, nil
}

// delete deletes what was seen, and nothing that has its name since. The claim is first: it goes when its
// pod is gone, and a pod that comes back meanwhile must not get it.
func (d memberData) delete(ctx context.Context, e *cluster, dry []string) error {
	only := func(uid types.UID) metav1.DeleteOptions {
		return metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(uid)), DryRun: dry}
	}
	if d.claimUID != "" {
		err := e.pods.Core.PersistentVolumeClaims(e.Namespace).Delete(ctx, d.claim, only(d.claimUID))
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	if d.podUID == "" {
		return nil
	}
	err := e.pods.Core.Pods(e.Namespace).Delete(ctx, d.pod, only(d.podUID))
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
