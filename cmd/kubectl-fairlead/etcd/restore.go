package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1beta2 "example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

// restore is `kubectl fairlead etcd restore`.
type restore struct {
	*cli.CLI
	cli.DryRun
	cli.Consent
	cli.Waiting
	name, into, at string
	revision       int64
	keepOld        bool
}

func restoreCommand(c *cli.CLI) *cobra.Command {
	o := &restore{CLI: c}
	cmd := &cobra.Command{
		Use:   "restore BACKUP --into CLUSTER",
		Short: "Restore what an EtcdBackup has stored, as a new cluster or in place of one that runs",
		Long: "Restore what an EtcdBackup has stored: its newest backup or, with --revision or --at, the\nnewest one at or before that. " +
			"It makes an EtcdRestore.\n\n" +
			"If there is no EtcdCluster of the name yet, it begins with the backup when you create it.\nIf there is one, what it has is replaced, which is asked for. " +
			"Its members are stopped only\nwhen a new member serves what is in the backup, and its clients see a pause of some ten\nseconds.",
		Example: "  kubectl fairlead etcd restore nightly --into example-copy\n" +
			"  kubectl fairlead etcd restore nightly --into example --at 2026-11-26T08:00:00+01:00 --keep-old --wait",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.CompleteNames("etcdbackup"),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.into, "into", "", "The name of the EtcdCluster that is restored")
	flags.StringVar(&o.name, "name", "", "The name of the EtcdRestore (default that of the cluster, and the time)")
	flags.Int64Var(&o.revision, "revision", 0, "Restore the newest backup at or before this revision, of a periodic EtcdBackup")
	flags.StringVar(&o.at, "at", "", "Restore the newest backup at or before this time (RFC 3339), of a periodic EtcdBackup")
	flags.BoolVar(&o.keepOld, "keep-old", false, "Keep the volumes of the members that are replaced")
	_ = cmd.MarkFlagRequired("into")
	cmd.MarkFlagsMutuallyExclusive("revision", "at")
	_ = cmd.RegisterFlagCompletionFunc("into", func(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return c.CompleteNames("etcdcluster")(cmd, nil, begun)
	})
	o.DryRun.AddTo(cmd)
	o.Consent.AddTo(cmd)
	o.Waiting.AddTo(cmd, "the restored cluster is complete")
	return cmd
}

func (o *restore) run(ctx context.Context, backupName string) error {
	if err := o.Check(); err != nil {
		return err
	}
	if o.IsWanted && o.IsDry() {
		return errors.New("--wait and --dry-run: there is nothing to wait for")
	}
	var b etcdv1beta2.EtcdBackup
	k, err := o.Get(ctx, backupName, &b)
	if err != nil {
		return err
	}
	r := &etcdv1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: o.name, Namespace: b.Namespace}}
	if r.Name == "" {
		r.Name = o.into + "-" + o.Now().UTC().Format("20060102-150405")
	}
	r.Spec.EtcdCluster.Name, r.Spec.KeepOld = o.into, o.keepOld
	if err := o.source(&b, &r.Spec.RestoreSource); err != nil {
		return err
	}
	var ec etcdv1beta2.EtcdCluster
	err = k.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: o.into}, &ec)
	isThere := err == nil
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if isThere {
		if err := o.replaces(&ec, &b, r); err != nil {
			return err
		}
	}
	if !o.IsClient() {
		if err := k.Create(ctx, r, &client.CreateOptions{DryRun: o.Dry()}); err != nil {
			return cli.Explain(err)
		}
	}
	if _, err := fmt.Fprintf(o.Out, "etcdrestore.etcd.database.coreos.com/%s %s\n", r.Name, o.Done("created")); err != nil {
		return err
	}
	if !isThere {
		text := "There is no EtcdCluster %s yet: it begins with this backup when you create it. Until then the EtcdRestore waits.\n"
		if _, err := fmt.Fprintf(o.ErrOut, text, o.into); err != nil {
			return err
		}
	}
	if !o.IsWanted {
		return nil
	}
	return o.wait(ctx, r)
}

// replaces asks whether the data of a cluster that is there may be replaced.
func (o *restore) replaces(ec *etcdv1beta2.EtcdCluster, b *etcdv1beta2.EtcdBackup, r *etcdv1beta2.EtcdRestore) error {
	switch {
	case ec.Status.Restoring != nil:
		return fmt.Errorf("etcdcluster/%s is being restored: wait until that is done", ec.Name)
	case ec.Spec.Paused:
		return fmt.Errorf("etcdcluster/%s is paused, so nothing would happen: set spec.paused to false first", ec.Name)
	case o.IsDry():
		return nil
	}
	which := "its newest backup"
	switch {
	case r.Spec.Revision != nil:
		which = fmt.Sprintf("its newest backup at or before revision %d", *r.Spec.Revision)
	case r.Spec.Time != nil:
		which = "its newest backup at or before " + r.Spec.Time.Format(time.RFC3339)
	case b.Status.LastBackup != nil:
		which += fmt.Sprintf(", revision %d", b.Status.LastBackup.Revision)
	}
	if last := b.Status.LastSuccessDate; last != nil {
		which += fmt.Sprintf(" (the last was made %s)", cli.Far(last.Time, o.Now()))
	}
	old := "Its present volumes are deleted when that is complete; --keep-old keeps them."
	if o.keepOld {
		old = "Its present volumes are kept."
	}
	return o.Confirm(o.Consent, fmt.Sprintf("Replaces all data of etcdcluster/%s, which runs, by that of etcdbackup/%s: %s. What was written since is lost. %s",
		ec.Name, b.Name, which, old))
}

// source is where the EtcdBackup has stored what is restored.
func (o *restore) source(b *etcdv1beta2.EtcdBackup, s *etcdv1beta2.RestoreSource) error {
	s.BackupStorageType, s.BackupSource = b.Spec.StorageType, *b.Spec.BackupSource.DeepCopy()
	if pod := b.Spec.Pod; pod != nil {
		s.ServiceAccountName = pod.ServiceAccountName
	}
	policy := b.Spec.BackupPolicy
	if policy != nil {
		s.TimeoutInSecond = policy.TimeoutInSecond
	}
	isPeriodic := policy != nil && (policy.BackupIntervalInSecond > 0 || policy.Schedule != "")
	isChosen := o.revision != 0 || o.at != ""
	switch last := b.Status.LastBackup; {
	case o.revision < 0:
		return fmt.Errorf("--revision=%d: a revision is 1 or more", o.revision)
	case isChosen && !isPeriodic:
		return fmt.Errorf("etcdbackup/%s makes one backup: leave out --revision and --at", b.Name)
	case last == nil:
		return fmt.Errorf("etcdbackup/%s has made no backup yet: %s", b.Name, readyMessage(b.Status.Conditions))
	case !isChosen && last.Problem != "":
		return fmt.Errorf("the last backup of etcdbackup/%s is not to be relied on: %s: choose an earlier one by --at or --revision", b.Name, last.Problem)
	case o.revision != 0:
		s.Revision = &o.revision
	case o.at != "":
		at, err := time.Parse(time.RFC3339, o.at)
		if err != nil {
			return fmt.Errorf("--at=%s: it is no time, such as 2026-11-26T08:00:00+01:00", o.at)
		}
		s.Time = &metav1.Time{Time: at}
	case isPeriodic:
		s.Newest = true
	}
	return nil
}

// wait waits until the restore is complete or has failed.
func (o *restore) wait(ctx context.Context, r *etcdv1beta2.EtcdRestore) error {
	err := o.Until(ctx, o.Waiting, r, func() (bool, string, error) {
		switch s := r.Status; s.Phase {
		case etcdv1beta2.RestoreComplete:
			text := fmt.Sprintf("Restored revision %d from %s", s.Revision, s.Key)
			if s.LostRevision > s.Revision {
				text += fmt.Sprintf("; what was written up to revision %d is lost", s.LostRevision)
			}
			return true, text, nil
		case etcdv1beta2.RestoreFailed:
			what := "failed, and the cluster is as it was"
			if s.Reason == "QuorumLost" || s.Reason == "ClusterGone" { // after the old members had been stopped, or by somebody else
				what = "failed"
			}
			return true, "", fmt.Errorf("etcdrestore/%s %s: %s", r.Name, what, s.Reason)
		default:
			return false, readyMessage(r.Status.Conditions), nil
		}
	})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("etcdrestore/%s was deleted", r.Name)
	}
	return err
}
