//go:build apiserver

package backup

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/internal/testkit/standalone"
	"example.com/fairlead/operators/etcd/cluster"
	"example.com/fairlead/operators/etcd/restore"
)

// TestEarlierNames: what is stored by the names that fields of status had in commits before 0.1.0 has those of today once
// an operator has seen it, and no others. All else is as it was.
func TestEarlierNames(t *testing.T) {
	server := testkit.Server(t)
	namespace := server.NewNamespace(t)
	c, err := client.New(server.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const inS3 = "s3: {path: bucket/key, awsSecret: aws}"
	stored := map[string]struct{ spec, earlier, now string }{
		"EtcdCluster": {
			"paused: true",
			"size: 0, readyMembers: 0, members: {}, made: 4, adding: x-4, changing: x-2, prepared: '3.7', clusterID: c1, " +
				"restoring: {id: i, seed: s, seedData: d, phase: Switching, replaced: [x-1], source: {backupStorageType: S3, " + inS3 + "}}, " +
				"restored: {id: o, failed: 'Why: because', kept: [x-1]}",
			"size: 0, readyMembers: 0, members: {}, memberNamesUsed: 4, memberBeingAdded: x-4, memberBeingUpdated: x-2, dataPreparedFor: '3.7', clusterID: c1, " +
				"restoring: {id: i, seed: s, seedDataUID: d, phase: Switching, replaced: [x-1], source: {backupStorageType: S3, timeoutInSecond: 60, " + inS3 + "}}, " +
				"restored: {id: o, failureMessage: 'Why: because', keptPersistentVolumeClaims: [x-1]}",
		},
		"EtcdBackup": {
			"paused: true, storageType: S3, etcdEndpoints: ['http://x:2379'], " + inS3,
			"succeeded: true, last: {key: k, revision: 7, size: 4096, number: 3}, lastTry: '2026-01-02T12:00:00Z', pruned: 3, stored: 5, retained: 1, tries: 4, " +
				"lastFailure: {step: Save, time: '2026-01-02T12:00:00Z', reason: Why, secrets: h, passes: true}",
			"succeeded: true, lastBackup: {key: k, revision: 7, size: 4096, number: 3}, lastTryTime: '2026-01-02T12:00:00Z', prunedAfter: 3, storedBackups: 5, retainedBackups: 1, tries: 4, " +
				"lastFailure: {step: Save, time: '2026-01-02T12:00:00Z', reason: Why, secretsHash: h, retriable: true}",
		},
		"EtcdRestore": {
			"etcdCluster: {name: x}, backupStorageType: S3, " + inS3,
			"phase: Complete, succeeded: true, key: k, kept: [x-1]",
			"phase: Complete, succeeded: true, key: k, keptPersistentVolumeClaims: [x-1]",
		},
	}
	for kind, is := range stored {
		obj := named(namespace, kind)
		obj.Object["spec"] = inBraces(t, is.spec)
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		obj.Object["status"] = inBraces(t, is.earlier)
		if err := c.Status().Update(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}

	operator := run.Operator{Name: name, AddToScheme: v1beta2.AddToScheme, Kinds: []run.Kind{cluster.Kind, Kind, restore.Kind}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- standalone.Start(operator)(ctx, server.Config, namespace) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	requireRenamed := func() {
		t.Helper()
		for kind, is := range stored {
			pace.Eventually(t, time.Minute, func() error { return isRenamed(t, c, named(namespace, kind), is.earlier, is.now) })
		}
	}
	requireRenamed()
	for kind, is := range stored { // nothing but the names is to be written now
		obj := named(namespace, kind)
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			t.Fatal(err)
		}
		status := obj.Object["status"].(map[string]any)
		for field := range inBraces(t, is.now) {
			delete(status, field)
		}
		maps.Copy(status, inBraces(t, is.earlier))
		if err := c.Status().Update(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	requireRenamed()
}

// named is the object of a kind.
func named(namespace, kind string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(v1beta2.GroupVersion.WithKind(kind))
	obj.SetNamespace(namespace)
	obj.SetName("x")
	return obj
}

// isRenamed returns an error if the status of an object does not have the fields now, or has one of earlier.
func isRenamed(t *testing.T, c client.Client, obj *unstructured.Unstructured, earlier, now string) error {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		return err
	}
	status, want := obj.Object["status"].(map[string]any), inBraces(t, now)
	for field := range inBraces(t, earlier) {
		if _, isToday := want[field]; !isToday && status[field] != nil {
			return fmt.Errorf("the %s still has the field %s", obj.GetKind(), field)
		}
	}
	for field := range want {
		if diff := cmp.Diff(want[field], status[field]); diff != "" {
			return fmt.Errorf("%s of the %s (-want +got):\n%s", field, obj.GetKind(), diff)
		}
	}
	return nil
}

// inBraces is YAML without the braces around it.
func inBraces(t *testing.T, content string) map[string]any {
	t.Helper()
	obj := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte("{kind: x, " + content + "}"))
	if err == nil {
		err = obj.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	delete(obj.Object, "kind")
	return obj.Object
}
