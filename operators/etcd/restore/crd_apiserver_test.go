//go:build apiserver

package restore

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/testkit"
)

var kind = v1beta2.GroupVersion.WithKind("EtcdRestore")

const (
	inS3      = "etcdCluster: {name: example}, backupStorageType: S3, s3: {path: bucket/key, awsSecret: aws}"
	wrongType = "set exactly the field that belongs to backupStorageType"
)

// TestValidation: bad input is refused at the door, with a message that says what would be right.
func TestValidation(t *testing.T) {
	testkit.CheckSpecs(t, map[string]testkit.SpecCase{
		"the CoreOS operator's": {Spec: inS3},
		"an endpoint":           {Spec: "etcdCluster: {name: example}, backupStorageType: S3, s3: {path: b/k, awsSecret: aws, endpoint: 'http://minio:9000', forcePathStyle: true}"},
		"the pod's identity":    {Spec: "etcdCluster: {name: example}, backupStorageType: S3, s3: {path: b/k}, serviceAccountName: restorer"},
		"GCS":                   {Spec: "etcdCluster: {name: example}, backupStorageType: GCS, gcs: {path: b/k, gcpSecret: gcp}"},
		"ABS":                   {Spec: "etcdCluster: {name: example}, backupStorageType: ABS, abs: {path: b/k, absSecret: azure}"},
		"a volume":              {Spec: "etcdCluster: {name: example}, backupStorageType: PersistentVolumeClaim, persistentVolumeClaim: {claimName: c, path: a/b}"},
		"the newest":            {Spec: inS3 + ", newest: true"},
		"at a revision":         {Spec: inS3 + ", revision: 7"},
		"at a time":             {Spec: inS3 + ", time: '2026-01-02T12:00:00Z'"},
		"the old are kept":      {Spec: inS3 + ", keepOld: true, timeoutInSecond: 600"},

		"no cluster":              {Spec: "backupStorageType: S3, s3: {path: b/k}", Want: "spec.etcdCluster: Required value"},
		"a cluster without name":  {Spec: "etcdCluster: {name: ''}, backupStorageType: S3, s3: {path: b/k}", Want: "should be at least 1 chars long"},
		"no storage":              {Spec: "etcdCluster: {name: example}, s3: {path: b/k}", Want: "spec.backupStorageType: Required value"},
		"storage of no library":   {Spec: "etcdCluster: {name: example}, backupStorageType: OSS", Want: `Unsupported value: "OSS"`},
		"another storage's field": {Spec: "etcdCluster: {name: example}, backupStorageType: S3, gcs: {path: b/k}", Want: wrongType},
		"two places":              {Spec: inS3 + ", gcs: {path: b/k}", Want: wrongType},
		"no place":                {Spec: "etcdCluster: {name: example}, backupStorageType: S3", Want: wrongType},
		"no key":                  {Spec: "etcdCluster: {name: example}, backupStorageType: S3, s3: {path: bucket}", Want: "should match"},
		"out of the volume":       {Spec: "etcdCluster: {name: example}, backupStorageType: PersistentVolumeClaim, persistentVolumeClaim: {claimName: c, path: ../b}", Want: "must be a path without . and .. and //"},
		"revision and time":       {Spec: inS3 + ", revision: 7, time: '2026-01-02T12:00:00Z'", Want: "set either revision or time, or neither"},
		"no revision":             {Spec: inS3 + ", revision: 0", Want: "should be greater than or equal to 1"},
		"no patience":             {Spec: inS3 + ", timeoutInSecond: 0", Want: "should be greater than or equal to 1"},
		"an unknown field":        {Spec: inS3 + ", kepOld: true", Want: `unknown field "spec.kepOld"`},
	}, kind)
}

// TestItIsDoneOnce: a change has no effect, so it is refused.
func TestItIsDoneOnce(t *testing.T) {
	server := testkit.Server(t)
	c, err := client.New(server.Config, client.Options{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("{spec: {"+inS3+"}}"), &obj.Object); err != nil {
		t.Fatal(err)
	}
	obj.SetGroupVersionKind(kind)
	obj.SetNamespace(server.NewNamespace(t))
	obj.SetName("x")
	if err := c.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	if seconds, _, _ := unstructured.NestedInt64(obj.Object, "spec", "timeoutInSecond"); seconds != 60 {
		t.Errorf("timeoutInSecond defaults to %d, want 60", seconds)
	}
	if err := unstructured.SetNestedField(obj.Object, true, "spec", "keepOld"); err != nil {
		t.Fatal(err)
	}
	if err := c.Update(t.Context(), obj); err == nil || !strings.Contains(err.Error(), "an EtcdRestore is done once and cannot be changed") {
		t.Errorf("a change: %v", err)
	}
}
