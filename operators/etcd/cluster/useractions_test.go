package cluster

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/pki"
	"example.com/fairlead/operators/etcd/reason"
)

// This file has what users, and others, do to the clusters of stories.

// podsOf are the pods of the story, in an order that does not follow their names.
func podsOf(ctx context.Context, r *testkit.Run) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := r.Client.List(ctx, &list, client.InNamespace(r.Namespace), client.MatchingLabels{objects.ClusterLabel: "example"})
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return list.Items, err
}

func aMember(r *testkit.Run) string {
	ec, err := currently(context.Background(), r)
	if err != nil || len(ec.Status.MemberList) == 0 {
		return ""
	}
	return ec.Status.MemberList[len(ec.Status.MemberList)-1].Name
}

func deletePods(n int) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		all, err := podsOf(ctx, r)
		if err != nil {
			return err
		}
		for i := range min(n, len(all)) {
			err = errors.Join(err, client.IgnoreNotFound(r.Client.Delete(ctx, &all[i])))
		}
		return err
	}
}

// deleteVolumes deletes volumes, and the pods that use them.
func deleteVolumes(n int) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		all, err := podsOf(ctx, r)
		if err != nil {
			return err
		}
		for i := range min(n, len(all)) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: all[i].Name}}
			err = errors.Join(err, client.IgnoreNotFound(r.Client.Delete(ctx, claim)), client.IgnoreNotFound(r.Client.Delete(ctx, &all[i])))
		}
		return err
	}
}

// again accepts a loss of quorum that is another one than the user has accepted.
func again(ctx context.Context, r *testkit.Run) error {
	ec, err := currently(ctx, r)
	if err != nil || ec.Status.QuorumLoss == nil || ec.Status.QuorumLoss.ID == ec.Spec.AcceptDataLoss || lossEnds(ctx, r) != nil {
		return err
	}
	return accept(ctx, r)
}

func accept(ctx context.Context, r *testkit.Run) error {
	ec, err := currently(ctx, r)
	if err != nil {
		return err
	}
	if ec.Status.QuorumLoss == nil {
		return nil
	}
	return patched(`{"acceptDataLoss":"`+ec.Status.QuorumLoss.ID+`"}`)(ctx, r)
}

// fills fills the database of a simulated cluster.
func fills(before func(*modelNodes)) testkit.Step {
	return testkit.Step{Name: "fills the database", When: ready, Do: func(_ context.Context, r *testkit.Run) error {
		if n, isModel := r.Own.(*modelNodes); isModel && before != nil {
			before(n)
		}
		return own(r).fill(r)
	}}
}

// isDefragmenting is nil while status has the defragmentation of a member.
func isDefragmenting(ctx context.Context, r *testkit.Run) error {
	ec, err := currently(ctx, r)
	if is := ec.Status.Maintenance; err == nil && (is == nil || is.Type != v1beta2.MaintenanceDefragmentation) {
		err = errors.New("no member is being defragmented")
	}
	return err
}

func deleteDefragmenting(ctx context.Context, r *testkit.Run) error {
	ec, err := currently(ctx, r)
	if err != nil || ec.Status.Maintenance == nil {
		return err
	}
	return client.IgnoreNotFound(r.Client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: ec.Status.Maintenance.Member}}))
}

func deleteCA(ctx context.Context, r *testkit.Run) error {
	return r.Client.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: "example-ca-tls"}})
}

// replacedCA is nil when there is another CA, which has signed the certificates, and all members have
// started with it.
func replacedCA(ctx context.Context, r *testkit.Run) error {
	data := map[string]map[string][]byte{}
	for _, name := range []string{"ca", "peer", "server", "client"} {
		var secret corev1.Secret
		if err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: "example-" + name + "-tls"}, &secret); err != nil {
			return err
		}
		data[name] = secret.Data
	}
	ca := pki.KeyPair{Cert: data["ca"][corev1.TLSCertKey]}
	for name, role := range map[string]pki.Role{"peer": pki.Peer, "server": pki.Server, "client": pki.Client} {
		cert, err := pki.Parse(data[name][role.Files.Cert])
		if err != nil {
			return err
		}
		if !ca.Signed(cert) {
			return fmt.Errorf("the certificate of the %s is not of the CA", name)
		}
	}
	return ready(ctx, r)
}

// emptyStatus is what happens to the status of an EtcdCluster that is restored without it. The
// generation stays: that it goes back is what the simulation takes for a flaw of an operator.
func emptyStatus(ctx context.Context, r *testkit.Run) error {
	return r.Client.Status().Patch(ctx, story(r), client.RawPatch(types.MergePatchType,
		[]byte(`{"status":{"clusterID":null,"founders":null,"memberNamesUsed":null,"memberList":null,"members":null,"phase":null}}`)))
}

// disown takes the owner references of pods and volumes, and with a manager all that says who wrote them.
func disown(manager string) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		all, err := podsOf(ctx, r)
		for _, pod := range all {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
			for _, obj := range []client.Object{&pod, claim} {
				change := `{"metadata":{"ownerReferences":null}}`
				if manager != "" {
					change = `{"metadata":{"ownerReferences":null,"managedFields":[{}]}}`
				}
				patch := client.RawPatch(types.MergePatchType, []byte(change))
				err = errors.Join(err, client.IgnoreNotFound(r.Client.Patch(ctx, obj, patch, client.FieldOwner(manager))))
			}
		}
		return err
	}
}

// comeBackBare is what a backup of the Kubernetes cluster makes of an EtcdCluster that is paused meanwhile:
// no status, no owners, fields of nobody's, and some of the pods are not there.
func comeBackBare(lostPods int) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		return errors.Join(disown("velero")(ctx, r), emptyStatus(ctx, r), deletePods(lostPods)(ctx, r))
	}
}

// owned is nil when the cluster is as it should be, and owns its pods and volumes.
func owned(ctx context.Context, r *testkit.Run) error {
	ec, err := currently(ctx, r)
	if err != nil {
		return err
	}
	all, err := podsOf(ctx, r)
	for _, pod := range all {
		claim := &corev1.PersistentVolumeClaim{}
		err = errors.Join(err, r.Client.Get(ctx, client.ObjectKeyFromObject(&pod), claim))
		for _, obj := range []client.Object{&pod, claim} {
			if !metav1.IsControlledBy(obj, ec) {
				err = errors.Join(err, fmt.Errorf("%s %s is not owned", loop.KindOf(obj), obj.GetName()))
			}
		}
	}
	return errors.Join(err, ready(ctx, r))
}

// editImage changes a pod to an image that there is not.
func editImage(ctx context.Context, r *testkit.Run) error {
	all, err := podsOf(ctx, r)
	if err != nil || len(all) == 0 {
		return err
	}
	change := `{"spec":{"containers":[{"name":"etcd","image":"quay.io/coreos/etcd:v0.0.0"}]}}`
	return client.IgnoreNotFound(r.Client.Patch(ctx, &all[0], client.RawPatch(types.StrategicMergePatchType, []byte(change))))
}

func removeByHand(ctx context.Context, r *testkit.Run) error {
	c, at, err := own(r).byHand(r)
	if err != nil {
		return err
	}
	list, err := c.List(ctx, at)
	if err != nil {
		return err
	}
	for _, m := range list.Members {
		if m.ID != list.By {
			return unlessRefused(c.Send(ctx, members.Request{What: members.Remove, At: at, ID: m.ID}))
		}
	}
	return nil
}

func addByHand(ctx context.Context, r *testkit.Run) error {
	c, at, err := own(r).byHand(r)
	if err != nil {
		return err
	}
	ec, err := currently(ctx, r)
	if err != nil {
		return err
	}
	err = c.Send(ctx, members.Request{What: members.Add, At: at, PeerURLs: []string{objects.PeerURLOf(ec, "example-mine")}, Learner: true})
	return unlessRefused(err)
}

// writable is nil once a write is acknowledged, which is before anything says so.
func writable(_ context.Context, r *testkit.Run) error { return own(r).put(r) }

// reportedOrKept is nil when the loss of all that was written is reported, or nothing is lost.
func reportedOrKept(ctx context.Context, r *testkit.Run) error {
	if stalled(reason.QuorumLost)(ctx, r) == nil {
		return nil
	}
	return errors.Join(own(r).lost(r), ready(ctx, r))
}

// unlessRefused has a user give up when etcd refuses a change for now.
func unlessRefused(err error) error {
	if errors.Is(err, members.ErrUnhealthy) {
		return nil
	}
	return err
}

// meddling is what others do to the objects of a cluster at any time.
func meddling() []testkit.Step {
	const noLabel = `{"metadata":{"labels":{"` + run.ManagedByLabel + `":null}}}`
	first := func(obj client.Object, change func(r *testkit.Run) string) func(ctx context.Context, r *testkit.Run) error {
		return func(ctx context.Context, r *testkit.Run) error {
			all, err := podsOf(ctx, r)
			if err != nil || len(all) == 0 {
				return err
			}
			its := obj.DeepCopyObject().(client.Object)
			its.SetNamespace(r.Namespace)
			its.SetName(all[0].Name)
			return client.IgnoreNotFound(r.Client.Patch(ctx, its, client.RawPatch(types.MergePatchType, []byte(change(r)))))
		}
	}
	return []testkit.Step{
		{Name: "touches a pod", Do: first(&corev1.Pod{}, func(r *testkit.Run) string {
			return `{"metadata":{"annotations":{"touched":"` + r.Now().Format(time.RFC3339Nano) + `"}}}`
		})},
		{Name: "takes the label of a pod", Do: first(&corev1.Pod{}, func(*testkit.Run) string { return noLabel })},
		{Name: "takes the label of a volume", Do: first(&corev1.PersistentVolumeClaim{}, func(*testkit.Run) string { return noLabel })},
	}
}

// makeRoot makes the Secret with root's password, or changes it.
func makeRoot(password string) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: "root"}}
		if err := client.IgnoreAlreadyExists(r.Client.Create(ctx, secret)); err != nil {
			return err
		}
		return r.Client.Patch(ctx, secret, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"password":%q}}`, base64.StdEncoding.EncodeToString([]byte(password)))))
	}
}

// enableByHand is `etcdctl auth enable`.
func enableByHand(ctx context.Context, r *testkit.Run) error {
	c, at, err := own(r).byHand(r)
	if err != nil {
		return err
	}
	return c.Send(ctx, members.Request{What: members.EnableAuth, At: at})
}

// needsPassword is nil when the cluster is as its spec requests, and etcd knows root by the password, and nobody else.
func needsPassword(ctx context.Context, r *testkit.Run) error {
	if err := ready(ctx, r); err != nil {
		return err
	}
	c, at, err := own(r).byHand(r)
	if err != nil {
		return err
	}
	return c.LogIn(ctx, at)
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// cordon has a node take no more pods, or take some again.
func cordon(i int, is bool) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)}}
		return r.Client.Patch(ctx, node, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, is)))
	}
}

// moved is nil when the cluster is as its spec requests, with no pod on a node that is cordoned.
func moved(ctx context.Context, r *testkit.Run) error {
	var all corev1.NodeList
	if err := r.Client.List(ctx, &all); err != nil {
		return err
	}
	pods, err := podsOf(ctx, r)
	for _, node := range all.Items {
		for _, pod := range pods {
			if node.Spec.Unschedulable && pod.Spec.NodeName == node.Name {
				err = errors.Join(err, fmt.Errorf("%s is on %s", pod.Name, node.Name))
			}
		}
	}
	return errors.Join(err, ready(ctx, r))
}

// replaceByHand wants a member replaced.
func replaceByHand(ctx context.Context, r *testkit.Run) error { return replace(ctx, r, aMember(r)) }

// replace is the user's word that a member is to be replaced.
func replace(ctx context.Context, r *testkit.Run, member string) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: member}}
	return r.Client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+annotation.Replace+`":"true"}}}`)))
}

// replacedByHand is nil when the cluster is as its spec requests, with a member that was not one of the first.
func replacedByHand(ctx context.Context, r *testkit.Run) error {
	ec, err := currently(ctx, r)
	if err == nil && ec.Status.MemberNamesUsed < 4 {
		err = errors.New("no member was replaced")
	}
	return errors.Join(err, ready(ctx, r))
}
