//go:build apiserver

package backup

import (
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/testkit"
)

// TestValidation: bad input is refused at the door, with a message that says what would be right.
func TestValidation(t *testing.T) {
	const (
		from    = "etcdEndpoints: ['http://example-client:2379'], "
		place   = "storageType: S3, s3: {path: mybucket/etcd.backup, awsSecret: aws}"
		one     = from + place
		either  = "set either etcdCluster, the name of an EtcdCluster in this namespace, or etcdEndpoints"
		theone  = "set exactly the field that belongs to storageType: s3 for S3, gcs for GCS, abs for ABS, persistentVolumeClaim for PersistentVolumeClaim"
		isFor   = "maxBackups and maxAge are for periodic backups: set backupIntervalInSecond or schedule"
		theirs  = "are the operator's: choose other labels"
		noDots  = "must be a path without . and .. and //"
		oneTime = "set either backupIntervalInSecond or schedule"
	)
	testkit.CheckSpecs(t, map[string]testkit.SpecCase{
		"the guide's":               {Spec: "etcdEndpoints: [<etcd-cluster-endpoints>], " + place, Want: "should match"},
		"the guide's, filled in":    {Spec: one},
		"with a user":               {Spec: "etcdEndpoints: ['http://example-client:2379'], clientUserSecret: etcd-root, " + place},
		"the guide's, with TLS":     {Spec: "etcdEndpoints: ['https://example-client:2379'], clientTLSSecret: etcd-client-tls, " + place},
		"the guide's, periodic":     {Spec: one + ", backupPolicy: {backupIntervalInSecond: 125, maxBackups: 4}"},
		"the guide's, with timeout": {Spec: one + ", backupPolicy: {timeoutInSecond: 300}"},
		"of a cluster":              {Spec: "etcdCluster: example, " + place},
		"of a cluster, no Secret":   {Spec: "etcdCluster: example, storageType: S3, s3: {path: b/k}"},
		"an endpoint of S3":         {Spec: from + "storageType: S3, s3: {path: b/k, endpoint: 'https://minio.example.com:9000', forcePathStyle: true}"},
		"a key with folders":        {Spec: from + "storageType: S3, s3: {path: b/a/b/c d}"},
		"GCS":                       {Spec: from + "storageType: GCS, gcs: {path: b/k, gcpSecret: gcp}"},
		"GCS, an emulator":          {Spec: from + "storageType: GCS, gcs: {path: b/k, endpoint: 'http://fake-gcs:4443'}"},
		"ABS":                       {Spec: from + "storageType: ABS, abs: {path: b/k, absSecret: abs}"},
		"ABS, an emulator":          {Spec: from + "storageType: ABS, abs: {path: b/k, absSecret: abs, endpoint: 'http://azurite:10000/devstoreaccount1'}"},
		"a claim":                   {Spec: from + "storageType: PersistentVolumeClaim, persistentVolumeClaim: {claimName: c, path: a/b}"},
		"a schedule":                {Spec: one + ", backupPolicy: {schedule: '30 2 * * *', timeZone: Europe/Berlin, maxAge: 720h}"},
		"a schedule, and 0":         {Spec: one + ", backupPolicy: {schedule: '@daily', backupIntervalInSecond: 0}"},
		"a proof":                   {Spec: one + ", verify: Restore"},
		"paused":                    {Spec: one + ", paused: true"},
		"pods": {Spec: one + ", pod: {serviceAccountName: backup, labels: {azure.workload.identity/use: 'true'}, nodeSelector: {a: b}, " +
			"tolerations: [{operator: Exists}], resources: {limits: {memory: 256Mi}}}"},

		"nothing":                        {Spec: "", Want: "spec.storageType: Required value"},
		"nothing to back up":             {Spec: place, Want: either},
		"no endpoint":                    {Spec: "etcdEndpoints: [], " + place, Want: either},
		"two things to back up":          {Spec: "etcdCluster: example, " + one, Want: either},
		"the user of a cluster":          {Spec: "etcdCluster: example, clientUserSecret: x, " + place, Want: "is for etcdEndpoints: an EtcdCluster has spec.auth"},
		"an endpoint without a scheme":   {Spec: "etcdEndpoints: ['example-client:2379'], " + place, Want: "should match"},
		"a password in an endpoint":      {Spec: "etcdEndpoints: ['http://user:password@example-client:2379'], " + place, Want: "should match"},
		"an endpoint with a path":        {Spec: "etcdEndpoints: ['http://example-client:2379/a'], " + place, Want: "should match"},
		"the certificate of a cluster":   {Spec: "etcdCluster: example, clientTLSSecret: x, " + place, Want: "is for etcdEndpoints: of an EtcdCluster it is known"},
		"OSS":                            {Spec: from + "storageType: OSS", Want: `Unsupported value: "OSS"`},
		"an unknown storage type":        {Spec: from + "storageType: FTP", Want: `supported values: "S3", "GCS", "ABS", "PersistentVolumeClaim"`},
		"no storage":                     {Spec: from + "storageType: S3", Want: theone},
		"another storage":                {Spec: from + "storageType: GCS, s3: {path: b/k}", Want: theone},
		"two storages":                   {Spec: one + ", gcs: {path: b/k}", Want: theone},
		"no path":                        {Spec: from + "storageType: S3, s3: {awsSecret: aws}", Want: "spec.s3.path: Required value"},
		"a path without a bucket":        {Spec: from + "storageType: S3, s3: {path: k}", Want: "should match"},
		"a path without a key":           {Spec: from + "storageType: S3, s3: {path: b/}", Want: "should match"},
		"a key that is a folder":         {Spec: from + "storageType: S3, s3: {path: b/k/}", Want: "should match"},
		"an S3 URL":                      {Spec: from + "storageType: S3, s3: {path: 's3://b/k'}", Want: "should match"},
		"a password in S3's endpoint":    {Spec: from + "storageType: S3, s3: {path: b/k, endpoint: 'http://user:password@host'}", Want: "must have no user and password"},
		"a password in GCS's endpoint":   {Spec: from + "storageType: GCS, gcs: {path: b/k, endpoint: 'http://user:password@host'}", Want: "must have no user and password"},
		"a password in ABS's endpoint":   {Spec: from + "storageType: ABS, abs: {path: b/k, absSecret: abs, endpoint: 'http://user:password@host/a'}", Want: "must have no user and password"},
		"an endpoint of S3 with a path":  {Spec: from + "storageType: S3, s3: {path: b/k, endpoint: 'https://minio/b'}", Want: "should match"},
		"ABS without a Secret":           {Spec: from + "storageType: ABS, abs: {path: b/k}", Want: "spec.abs.absSecret: Required value"},
		"a file outside of the claim":    {Spec: from + "storageType: PersistentVolumeClaim, persistentVolumeClaim: {claimName: c, path: ../b}", Want: noDots},
		"a file with two slashes":        {Spec: from + "storageType: PersistentVolumeClaim, persistentVolumeClaim: {claimName: c, path: a//b}", Want: noDots},
		"a file from the root":           {Spec: from + "storageType: PersistentVolumeClaim, persistentVolumeClaim: {claimName: c, path: /b}", Want: "should match"},
		"no claim":                       {Spec: from + "storageType: PersistentVolumeClaim, persistentVolumeClaim: {path: b}", Want: "claimName: Required value"},
		"an interval and a schedule":     {Spec: one + ", backupPolicy: {backupIntervalInSecond: 60, schedule: '@daily'}", Want: oneTime},
		"a negative interval":            {Spec: one + ", backupPolicy: {backupIntervalInSecond: -1}", Want: "should be greater than or equal to 0"},
		"no time to answer":              {Spec: one + ", backupPolicy: {timeoutInSecond: 0}", Want: "should be greater than or equal to 1"},
		"a time zone without a schedule": {Spec: one + ", backupPolicy: {timeZone: Europe/Berlin}", Want: "is for schedule"},
		"a time zone in the schedule":    {Spec: one + ", backupPolicy: {schedule: 'CRON_TZ=Europe/Berlin 0 0 * * *'}", Want: "must not have a time zone: set timeZone"},
		"one that is kept of one":        {Spec: one + ", backupPolicy: {maxBackups: 4}", Want: isFor},
		"one that is kept for a while":   {Spec: one + ", backupPolicy: {maxAge: 1h}", Want: isFor},
		"a negative number":              {Spec: one + ", backupPolicy: {backupIntervalInSecond: 60, maxBackups: -1}", Want: "should be greater than or equal to 0"},
		"kept for a second":              {Spec: one + ", backupPolicy: {backupIntervalInSecond: 60, maxAge: 1s}", Want: "must be at least 1m"},
		"an unknown check":               {Spec: one + ", verify: Maybe", Want: `supported values: "Hash", "Restore"`},
		"a label of the operator's":      {Spec: one + ", pod: {labels: {app: x}}", Want: theirs},
		"a label of members":             {Spec: one + ", pod: {labels: {etcd_cluster: x}}", Want: theirs},
		"an unknown field":               {Spec: one + ", bakcupPolicy: {}", Want: `unknown field "spec.bakcupPolicy"`},
	}, v1beta2.GroupVersion.WithKind("EtcdBackup"))
}

// TestDefaults: what is not said.
func TestDefaults(t *testing.T) {
	server := testkit.Server(t)
	c, err := client.New(server.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	const manifest = "{metadata: {name: x}, spec: {etcdCluster: example, storageType: S3, s3: {path: b/k}, backupPolicy: {}}}"
	if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
		t.Fatal(err)
	}
	obj.SetGroupVersionKind(v1beta2.GroupVersion.WithKind("EtcdBackup"))
	obj.SetNamespace(server.NewNamespace(t))
	if err := c.Create(t.Context(), obj, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	verify, _, _ := unstructured.NestedString(obj.Object, "spec", "verify")
	timeout, _, _ := unstructured.NestedInt64(obj.Object, "spec", "backupPolicy", "timeoutInSecond")
	if verify != "Hash" || timeout != 60 {
		t.Errorf("verify is %q, and the timeout %d", verify, timeout)
	}
}

// TestSamples: the samples are valid.
func TestSamples(t *testing.T) {
	server := testkit.Server(t)
	c, err := client.New(server.Config, client.Options{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatal(err)
	}
	namespace := server.NewNamespace(t)
	files, err := filepath.Glob("../config/samples/*etcdbackup*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d samples: %v", len(files), err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(content, &obj.Object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		obj.SetNamespace(namespace)
		if err := c.Create(t.Context(), obj, client.DryRunAll); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}
