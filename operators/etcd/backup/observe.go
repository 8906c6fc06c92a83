package backup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/contents"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/names"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/objects"
)

// observation is all that decide reads, besides the EtcdBackup.
type observation struct {
	now time.Time
	// cluster is the EtcdCluster that the spec names; nil if it names none, or there is none.
	cluster *v1beta2.EtcdCluster
	// absent are the Secrets that are needed, and do not exist.
	absent []string
	// secrets tells the versions of those apart that do; empty if there is none.
	secrets string
	// pods are those of the EtcdBackup by their names, also those that are ending.
	pods []*corev1.Pod
	// claimed is the pod that status.running names; nil if it is gone.
	claimed *corev1.Pod
	// stripped says that claimed has lost marks by which it is found: it may have no events.
	stripped bool
}

// observer reads what the next step depends on.
type observer struct {
	now func() time.Time
}

func (o *observer) observe(ctx context.Context, r *loop.Reader, b *v1beta2.EtcdBackup) (observation, error) {
	seen := observation{now: o.now().Round(0)}
	if b.Spec.EtcdCluster != "" {
		ec := &v1beta2.EtcdCluster{}
		err := r.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: b.Spec.EtcdCluster}, ec)
		if client.IgnoreNotFound(err) != nil {
			return seen, err
		}
		if err == nil {
			seen.cluster = ec
		}
	}
	if err := observeSecrets(ctx, r, b, &seen); err != nil {
		return seen, err
	}
	return seen, observePods(ctx, r, b, &seen)
}

// observeSecrets looks for the Secrets. What is in them only the pods read.
func observeSecrets(ctx context.Context, r *loop.Reader, b *v1beta2.EtcdBackup, seen *observation) error {
	versions := ""
	for _, name := range append(secretsOf(b), clusterSecret(seen.cluster), rootSecret(seen.cluster)) {
		if name == "" {
			continue
		}
		secret := contents.Metadata(contents.Secret)
		err := r.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: name}, secret)
		switch {
		case apierrors.IsNotFound(err):
			seen.absent = append(seen.absent, name)
		case err != nil:
			return err
		default:
			versions += fmt.Sprintf("%s/%s/%s ", name, secret.GetUID(), secret.GetResourceVersion())
		}
	}
	if versions != "" {
		seen.secrets = names.Hash(versions)
	}
	return nil
}

// observePods reads the pods. One that was just created may be without the label by which the
// cache shows it.
func observePods(ctx context.Context, r *loop.Reader, b *v1beta2.EtcdBackup, seen *observation) error {
	var list corev1.PodList
	err := r.List(ctx, &list, client.InNamespace(b.Namespace), client.MatchingLabels{apply.InstanceLabel: names.LabelValue(b.Name)})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if pod := &list.Items[i]; isOwned(b, pod) {
			seen.pods = append(seen.pods, pod)
		}
	}
	expected := []string{}
	if running := b.Status.Running; running != nil {
		expected = append(expected, running.Pod)
	} else {
		for _, step := range []v1beta2.BackupStep{v1beta2.BackupSave, v1beta2.BackupProve, v1beta2.BackupPrune} {
			expected = append(expected, podName(b, b.Status.Tries+1, step))
		}
	}
	for _, name := range expected {
		if slices.ContainsFunc(seen.pods, func(p *corev1.Pod) bool { return p.Name == name }) {
			continue
		}
		pod := &corev1.Pod{}
		err := r.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: name}, pod)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil && isOwned(b, pod) {
			seen.pods = append(seen.pods, pod)
		}
	}
	slices.SortFunc(seen.pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return observeClaimed(ctx, r, b, seen)
}

// observeClaimed finds the pod that status names. If it seems to be gone, its try has failed, so a
// cache that is merely late must not decide that.
func observeClaimed(ctx context.Context, r *loop.Reader, b *v1beta2.EtcdBackup, seen *observation) error {
	running := b.Status.Running
	if running == nil {
		return nil
	}
	for _, pod := range seen.pods {
		if pod.UID == running.PodUID {
			seen.claimed = pod
		}
	}
	if seen.claimed == nil {
		pod := &corev1.Pod{}
		err := r.Live.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: running.Pod}, pod)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil && pod.UID == running.PodUID {
			seen.claimed = pod
			seen.pods = append(seen.pods, pod)
		}
	}
	if pod := seen.claimed; pod != nil && pod.DeletionTimestamp == nil {
		seen.stripped = metav1.GetControllerOf(pod) == nil || pod.Labels[apply.ManagedByLabel] != managedBy || pod.Labels[apply.InstanceLabel] != names.LabelValue(b.Name)
	}
	return nil
}

// isOwned says whether a pod is the EtcdBackup's. That which it has claimed is, whatever marks it has
// lost.
func isOwned(b *v1beta2.EtcdBackup, obj client.Object) bool {
	if running := b.Status.Running; running != nil && running.PodUID != "" && obj.GetUID() == running.PodUID {
		return true
	}
	if metav1.GetControllerOf(obj) == nil && b.UID != "" && obj.GetAnnotations()[annotation.BackupUID] == string(b.UID) {
		return true
	}
	return apply.Owns(managedBy, b, obj)
}

// secretsOf are the Secrets that the spec names.
func secretsOf(b *v1beta2.EtcdBackup) []string {
	var all []string
	if name, _ := storageSecret(b); name != "" {
		all = append(all, name)
	}
	for _, name := range []string{b.Spec.ClientTLSSecret, b.Spec.ClientUserSecret} {
		if name != "" {
			all = append(all, name)
		}
	}
	return all
}

// storageSecret is the Secret with the storage's credentials, and the field that names it.
func storageSecret(b *v1beta2.EtcdBackup) (name, field string) {
	switch s := b.Spec.BackupSource; {
	case s.S3 != nil:
		return s.S3.AWSSecret, "spec.s3.awsSecret"
	case s.GCS != nil:
		return s.GCS.GCPSecret, "spec.gcs.gcpSecret"
	case s.ABS != nil:
		return s.ABS.ABSSecret, "spec.abs.absSecret"
	}
	return "", ""
}

// clusterSecret is the Secret with the certificate of the EtcdCluster's clients; empty if it has none.
func clusterSecret(ec *v1beta2.EtcdCluster) string {
	if ec == nil {
		return ""
	}
	return objects.ClientSecret(ec)
}

// rootSecret is the Secret with the EtcdCluster's root; empty if it has none.
func rootSecret(ec *v1beta2.EtcdCluster) string {
	if ec == nil || ec.Spec.Auth == nil {
		return ""
	}
	return ec.Spec.Auth.RootSecret
}
