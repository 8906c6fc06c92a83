package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1beta2 "example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

// backup is `kubectl fairlead etcd backup`.
type backup struct {
	*cli.CLI
	cli.DryRun
	cli.Waiting
	name, like, to, secret, endpoint string
	verify                           string
}

func backupCommand(c *cli.CLI) *cobra.Command {
	o := &backup{CLI: c}
	cmd := &cobra.Command{
		Use:   "backup CLUSTER (--like BACKUP | --to URL)",
		Short: "Make one backup now",
		Long: "Make one backup now: an EtcdBackup without a schedule. Where to is that of another\nEtcdBackup, with its Secret and pod, or a URL:\n\n" +
			"  s3://BUCKET/KEY, gs://BUCKET/KEY, abs://CONTAINER/KEY, pvc://CLAIM/PATH\n\n" +
			"With --like, the object is called like the other's, followed by the name of this one, so\nthat it is not counted as one of those, and never removed with them.",
		Example: "  kubectl fairlead etcd backup example --like nightly --wait\n" +
			"  kubectl fairlead etcd backup example --to pvc://backups/before-upgrade.db --verify Restore --wait\n" +
			"  kubectl fairlead etcd backup example --to s3://my-bucket/before-upgrade.db --secret aws",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.CompleteNames("etcdcluster"),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.name, "name", "", "The name of the EtcdBackup (default that of the cluster, and the time)")
	flags.StringVar(&o.like, "like", "", "The name of an EtcdBackup, whose storage is used")
	flags.StringVar(&o.to, "to", "", "The URL of the object or file that is written")
	flags.StringVar(&o.secret, "secret", "", "With --to: the Secret for the storage (default the identity of the pod)")
	flags.StringVar(&o.endpoint, "endpoint", "", "With --to: the URL of a server that has the storage's API")
	flags.StringVar(&o.verify, "verify", "", "Hash, or Restore, which starts an etcd from what was stored (default that of --like, or Hash)")
	cmd.MarkFlagsOneRequired("like", "to")
	cmd.MarkFlagsMutuallyExclusive("like", "to")
	cmd.MarkFlagsMutuallyExclusive("like", "secret")
	cmd.MarkFlagsMutuallyExclusive("like", "endpoint")
	_ = cmd.RegisterFlagCompletionFunc("like", func(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return c.CompleteNames("etcdbackup")(cmd, nil, begun)
	})
	_ = cmd.RegisterFlagCompletionFunc("verify", cobra.FixedCompletions([]string{"Hash", "Restore"}, cobra.ShellCompDirectiveNoFileComp))
	o.DryRun.AddTo(cmd)
	o.Waiting.AddTo(cmd, "the backup is made and checked")
	return cmd
}

func (o *backup) run(ctx context.Context, clusterName string) error {
	if err := o.Check(); err != nil {
		return err
	}
	if o.IsWanted && o.IsDry() {
		return errors.New("--wait and --dry-run: there is nothing to wait for")
	}
	b := &etcdv1beta2.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: o.name}}
	if b.Name == "" {
		b.Name = clusterName + "-" + o.Now().UTC().Format("20060102-150405")
	}
	k, namespace, err := o.Client()
	if err != nil {
		return err
	}
	b.Namespace = namespace
	// A cluster that is not there is a mistake, and not worth waiting for.
	if err := k.Get(ctx, client.ObjectKey{Namespace: namespace, Name: clusterName}, &etcdv1beta2.EtcdCluster{}); err != nil {
		return cli.Explain(err)
	}
	if b.Spec, err = o.spec(ctx, k, b); err != nil {
		return err
	}
	b.Spec.EtcdCluster = clusterName
	if !o.IsClient() {
		if err := k.Create(ctx, b, &client.CreateOptions{DryRun: o.Dry()}); err != nil {
			return cli.Explain(err)
		}
	}
	if _, err := fmt.Fprintf(o.Out, "etcdbackup.etcd.database.coreos.com/%s %s\n", b.Name, o.Done("created")); err != nil {
		return err
	}
	if !o.IsWanted {
		_, err := fmt.Fprintf(o.ErrOut, "Backs up etcdcluster/%s to %s.\n", clusterName, placeOf(b.Spec.StorageType, b.Spec.BackupSource))
		return err
	}
	return o.wait(ctx, b)
}

// spec is that of the new backup, but for its cluster.
func (o *backup) spec(ctx context.Context, k client.Client, b *etcdv1beta2.EtcdBackup) (etcdv1beta2.BackupSpec, error) {
	var spec etcdv1beta2.BackupSpec
	if o.like == "" {
		err := o.storage(&spec)
		spec.Verify = etcdv1beta2.Verification(cmp.Or(o.verify, string(etcdv1beta2.VerifyHash)))
		return spec, err
	}
	var like etcdv1beta2.EtcdBackup
	if err := k.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: o.like}, &like); err != nil {
		return spec, cli.Explain(err)
	}
	spec = etcdv1beta2.BackupSpec{
		StorageType: like.Spec.StorageType, BackupSource: *like.Spec.BackupSource.DeepCopy(), Pod: like.Spec.Pod,
		Verify: etcdv1beta2.Verification(cmp.Or(o.verify, string(like.Spec.Verify))),
	}
	if policy := like.Spec.BackupPolicy; policy != nil {
		spec.BackupPolicy = &etcdv1beta2.BackupPolicy{TimeoutInSecond: policy.TimeoutInSecond}
	}
	*pathIn(&spec.BackupSource) += "-" + b.Name
	return spec, nil
}

// storage reads --to, --secret and --endpoint.
func (o *backup) storage(spec *etcdv1beta2.BackupSpec) error {
	wrong := func(why string) error {
		return fmt.Errorf("--to=%s: %s: write s3://BUCKET/KEY, gs://BUCKET/KEY, abs://CONTAINER/KEY or pvc://CLAIM/PATH", o.to, why)
	}
	scheme, path, isURL := strings.Cut(o.to, "://")
	first, rest, hasBoth := strings.Cut(path, "/")
	if !isURL || !hasBoth || first == "" || rest == "" {
		return wrong("it has not a storage, a bucket or claim, and a path")
	}
	if o.endpoint != "" {
		if at, err := url.Parse(o.endpoint); err != nil || at.Host == "" {
			return fmt.Errorf("--endpoint=%s: it is no URL, such as https://minio.example.com:9000", o.endpoint)
		}
	}
	switch scheme {
	case "s3":
		spec.StorageType = etcdv1beta2.StorageS3
		spec.S3 = &etcdv1beta2.S3Source{Path: path, AWSSecret: o.secret, Endpoint: o.endpoint, ForcePathStyle: o.endpoint != ""}
	case "gs", "gcs":
		spec.StorageType = etcdv1beta2.StorageGCS
		spec.GCS = &etcdv1beta2.GCSSource{Path: path, GCPSecret: o.secret, Endpoint: o.endpoint}
	case "abs":
		if o.secret == "" {
			return fmt.Errorf("--to=%s: --secret is missing: the name of a Secret that has at least the key storage-account", o.to)
		}
		spec.StorageType = etcdv1beta2.StorageABS
		spec.ABS = &etcdv1beta2.ABSSource{Path: path, ABSSecret: o.secret, Endpoint: o.endpoint}
	case "pvc":
		if o.secret != "" || o.endpoint != "" {
			return fmt.Errorf("--to=%s: a PersistentVolumeClaim has no --secret and no --endpoint", o.to)
		}
		spec.StorageType = etcdv1beta2.StorageClaim
		spec.PersistentVolumeClaim = &etcdv1beta2.ClaimSource{ClaimName: first, Path: rest}
	default:
		return wrong(fmt.Sprintf("there is no storage %q", scheme))
	}
	return nil
}

// pathIn is the path of the storage that is set.
func pathIn(s *etcdv1beta2.BackupSource) *string {
	switch {
	case s.S3 != nil:
		return &s.S3.Path
	case s.GCS != nil:
		return &s.GCS.Path
	case s.ABS != nil:
		return &s.ABS.Path
	case s.PersistentVolumeClaim != nil:
		return &s.PersistentVolumeClaim.Path
	}
	return new(string)
}

// placeOf is where a backup is, in words.
func placeOf(t etcdv1beta2.StorageType, s etcdv1beta2.BackupSource) string {
	if s.PersistentVolumeClaim != nil {
		return fmt.Sprintf("%s %s, %s", t, s.PersistentVolumeClaim.ClaimName, s.PersistentVolumeClaim.Path)
	}
	return fmt.Sprintf("%s %s", t, *pathIn(&s))
}

// wait waits until the backup is made, or only the user can help.
func (o *backup) wait(ctx context.Context, b *etcdv1beta2.EtcdBackup) error {
	return o.Until(ctx, o.Waiting, b, func() (bool, string, error) {
		ready := meta.FindStatusCondition(b.Status.Conditions, "Ready")
		switch s := b.Status; {
		case ready == nil:
			return false, "", nil
		case ready.Status == metav1.ConditionTrue && s.LastBackup != nil:
			text := fmt.Sprintf("Saved revision %d, %s, as %s", s.LastBackup.Revision, cli.Size(float64(s.LastBackup.Size)), s.LastBackup.Key)
			if s.LastProof != nil {
				text += fmt.Sprintf("; an etcd that was started from it has revision %d", s.LastProof.Revision)
			}
			return true, text, nil
		case meta.IsStatusConditionTrue(b.Status.Conditions, "Stalled"):
			return true, "", fmt.Errorf("etcdbackup/%s: %s: %s", b.Name, ready.Reason, ready.Message)
		default:
			return false, ready.Message, nil
		}
	})
}
