//go:build e2e

package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// The versions that the tests use; localcluster/README.md says which images there are.
const (
	current = "3.6.16"
	patch   = "3.6.15"
	older   = "3.5.35"
	newer   = "3.7.3"
)

// An etcd is an EtcdCluster called "example" in a namespace of its own.
type etcd struct {
	t         testing.TB
	namespace string
}

// create applies an EtcdCluster with these lines of spec, and waits until it is ready.
func create(t testing.TB, spec ...string) etcd {
	t.Helper()
	e := etcd{t, e2e.NewNamespace(t, restricted)}
	e.apply(spec...)
	e.ready()
	return e
}

func (e etcd) apply(spec ...string) {
	e.t.Helper()
	e2e.Apply(e.t, e.namespace, "apiVersion: etcd.database.coreos.com/v1beta2\nkind: EtcdCluster\nmetadata: {name: example}\nspec:\n  "+strings.Join(spec, "\n  ")+"\n")
}

func (e etcd) kubectl(args ...string) string {
	e.t.Helper()
	return e2e.Kubectl(e.t, append([]string{"-n", e.namespace}, args...)...)
}

// patch changes the spec.
func (e etcd) patch(spec string) {
	e.t.Helper()
	e.kubectl("patch", "etcd", "example", "--type=merge", "-p", `{"spec":`+spec+`}`)
}

// ready waits until the cluster is as its spec requests.
func (e etcd) ready() {
	e.t.Helper()
	pace.Eventually(e.t, 3*time.Minute, func() error {
		ec, err := e.get()
		if err != nil {
			return err
		}
		return isReady(ec)
	})
}

func isReady(ec *v1beta2.EtcdCluster) error {
	for _, c := range ec.Status.Conditions {
		if c.Type == "Ready" && c.Status == "True" && c.ObservedGeneration == ec.Generation && ec.Status.ReadyMembers == ec.Spec.Size {
			return nil
		}
	}
	return fmt.Errorf("not ready: %s", status(ec))
}

// status is what there is to know in one line.
func status(ec *v1beta2.EtcdCluster) string {
	var said []string
	for _, c := range ec.Status.Conditions {
		if c.Type == "Ready" {
			said = append(said, c.Reason+": "+c.Message)
		}
	}
	for _, m := range ec.Status.MemberList {
		said = append(said, fmt.Sprintf("%s %s ready=%t %s", m.Name, m.Version, m.Ready, m.Problem))
	}
	return strings.Join(said, "; ")
}

func (e etcd) get() (*v1beta2.EtcdCluster, error) {
	var ec v1beta2.EtcdCluster
	err := cluster.Get(context.Background(), client.ObjectKey{Namespace: e.namespace, Name: "example"}, &ec)
	return &ec, err
}

// members are the names of the members' pods.
func (e etcd) members() []string {
	e.t.Helper()
	ec, err := e.get()
	if err != nil {
		e.t.Fatal(err)
	}
	all := slices.Concat(ec.Status.Members.Ready, ec.Status.Members.Unready)
	slices.Sort(all)
	return all
}

// pods are the pods of the cluster, by name.
func (e etcd) pods() map[string]corev1.Pod {
	e.t.Helper()
	var list corev1.PodList
	if err := cluster.List(context.Background(), &list, client.InNamespace(e.namespace), client.MatchingLabels{"etcd_cluster": "example"}); err != nil {
		e.t.Fatal(err)
	}
	byName := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		byName[pod.Name] = pod
	}
	return byName
}

// etcdctl runs etcdctl in a member's pod.
func (e etcd) etcdctl(args ...string) (string, error) {
	err := errors.New("there is no pod")
	for name := range e.pods() {
		var out string
		out, err = e2e.TryKubectl("", append([]string{"exec", "-n", e.namespace, name, "-c", "etcd", "--", "etcdctl", "--command-timeout=3s"}, args...)...)
		if err == nil {
			return out, nil
		}
	}
	return "", err
}

func (e etcd) put(key, value string) {
	e.t.Helper()
	pace.Eventually(e.t, time.Minute, func() error {
		_, err := e.etcdctl("put", key, value)
		return err
	})
}

func (e etcd) wantValue(key, want string) {
	e.t.Helper()
	pace.Eventually(e.t, time.Minute, func() error {
		out, err := e.etcdctl("get", key, "--print-value-only")
		if err != nil {
			return err
		}
		if got := strings.TrimSpace(out); got != want {
			e.t.Fatalf("%s is %q, want %q", key, got, want)
		}
		return nil
	})
}

const volumes = "pod: {persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 64Mi}}}}"
