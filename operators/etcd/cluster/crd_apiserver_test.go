//go:build apiserver

package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/testkit"
)

const (
	volumes = "persistentVolumeClaimSpec: {resources: {requests: {storage: 1Gi}}}"
	static  = "member: {peerSecret: p, serverSecret: s}, operatorSecret: o"
)

// TestValidation: bad input is refused at the door, with a message that says
// what would be right.
func TestValidation(t *testing.T) {
	testkit.CheckSpecs(t, map[string]testkit.SpecCase{
		"the guide's":               {Spec: "size: 3, version: 3.2.13"},
		"with a v":                  {Spec: "size: 3, version: v3.6.16"},
		"nothing":                   {Spec: ""},
		"one member":                {Spec: "size: 1"},
		"an even number":            {Spec: "size: 4"},
		"the most members":          {Spec: "size: 9"},
		"a pre-release":             {Spec: "version: 3.7.0-rc.1"},
		"a registry with a port":    {Spec: "repository: 'registry.example.com:5000/etcd-development/etcd'"},
		"paused":                    {Spec: "paused: true"},
		"fields of the first betas": {Spec: "baseImage: b, backup: {backupIntervalInSecond: 30, storageType: S3}, restore: {backupClusterName: x}, selfHosted: {bootMemberClientEndpoint: u}"},
		"fields of no effect":       {Spec: "pod: {busyboxImage: 'busybox:1.28', DNSTimeoutInSecond: 30}"},
		"labels":                    {Spec: "pod: {labels: {team: shop, application: a}, annotations: {team: shop, etcdserver: x}}"},
		"placement":                 {Spec: "pod: {nodeSelector: {a: b}, antiAffinity: true, tolerations: [{operator: Exists}], affinity: {nodeAffinity: {}}}"},
		"placement in zones":        {Spec: "pod: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}], priorityClassName: high}"},
		"how images are pulled":     {Spec: "pod: {serviceAccountName: pulls, imagePullSecrets: [{name: registry}], dnsConfig: {options: [{name: ndots, value: '1'}]}}"},
		"variables":                 {Spec: "pod: {etcdEnv: [{name: ETCD_QUOTA_BACKEND_BYTES, value: '8589934592'}]}"},
		"volumes":                   {Spec: "pod: {" + volumes + "}"},
		"a security context":        {Spec: "pod: {securityContext: {runAsUser: 1000, fsGroup: 1000}, ClusterDomain: cluster.local}"},
		"authentication":            {Spec: "auth: {rootSecret: root}"},
		"Secrets of one's own":      {Spec: "TLS: {static: {" + static + "}}"},
		"generated":                 {Spec: "TLS: {generated: {}}"},
		"generated, short":          {Spec: "TLS: {generated: {validFor: 1h, caValidFor: 3h}}"},
		"a quota":                   {Spec: "quotaBackendBytes: 8Gi"},
		"a quota on a volume":       {Spec: "quotaBackendBytes: 512Mi, pod: {" + volumes + "}"},
		"a quota that fills it":     {Spec: "quotaBackendBytes: 1Gi, pod: {" + volumes + "}", Want: "the volume must have 512Mi more than quotaBackendBytes"},
		"a quota of nothing":        {Spec: "quotaBackendBytes: 1Mi", Want: "must be at least 16Mi"},
		"two quotas":                {Spec: "quotaBackendBytes: 1Gi, pod: {etcdEnv: [{name: ETCD_QUOTA_BACKEND_BYTES, value: '1'}]}", Want: "pod.etcdEnv sets what quotaBackendBytes"},
		"a quota, and a variable":   {Spec: "quotaBackendBytes: 1Gi, pod: {etcdEnv: [{name: ETCD_ELECTION_TIMEOUT, value: '5000'}]}"},
		"elections between regions": {Spec: "heartbeatInterval: 300ms, electionTimeout: 3s"},
		"elections too soon":        {Spec: "heartbeatInterval: 300ms", Want: "must be at least five times heartbeatInterval"},
		"elections within nothing":  {Spec: "electionTimeout: 400ms", Want: "must be at least five times heartbeatInterval"},
		"elections after a minute":  {Spec: "electionTimeout: 1m", Want: "must be at most 50s"},
		"too many heartbeats":       {Spec: "heartbeatInterval: 1ms", Want: "must be from 10ms to 5s"},
		"an hour of history":        {Spec: "keepHistory: 1h"},
		"all history":               {Spec: "keepHistory: 0s"},
		"the least history":         {Spec: "keepHistory: 5m"},
		"what is there is adopted":  {Spec: "adoptExisting: true"},
		"data loss accepted":        {Spec: "acceptDataLoss: abc123"},

		"no member":                   {Spec: "size: 0", Want: "should be greater than or equal to 1"},
		"too many members":            {Spec: "size: 10", Want: "should be less than or equal to 9"},
		"half a member":               {Spec: "size: 1.5", Want: "must be of type integer"},
		"no version":                  {Spec: "version: latest", Want: "should match"},
		"a minor version":             {Spec: "version: '3.6'", Want: "should match"},
		"etcd 2":                      {Spec: "version: 2.3.8", Want: "should match"},
		"a version with a digest":     {Spec: "version: '3.6.16@sha256:0'", Want: "should match"},
		"no repository":               {Spec: "repository: ''", Want: "should be at least 1 chars long"},
		"a repository with a digest":  {Spec: "repository: 'etcd@sha256:0'", Want: "should match"},
		"a repository with a space":   {Spec: "repository: 'quay.io/etcd '", Want: "should match"},
		"the label app":               {Spec: "pod: {labels: {app: x}}", Want: "are the operator's: choose other labels"},
		"a label of the operator's":   {Spec: "pod: {labels: {etcd_cluster: x}}", Want: "are the operator's: choose other labels"},
		"a label of Kubernetes":       {Spec: "pod: {labels: {app.kubernetes.io/name: x}}", Want: "are the operator's: choose other labels"},
		"the version's annotation":    {Spec: "pod: {annotations: {etcd.version: x}}", Want: "are the operator's: choose other annotations"},
		"the operator's annotation":   {Spec: "pod: {annotations: {etcd.database.coreos.com/template: x}}", Want: "are the operator's: choose other annotations"},
		"a domain in capitals":        {Spec: "pod: {ClusterDomain: Cluster.Local}", Want: "should match"},
		"a domain that begins at dot": {Spec: "pod: {ClusterDomain: .local}", Want: "should match"},
		"authentication, no Secret":   {Spec: "auth: {}", Want: "rootSecret"},
		"both kinds of certificates":  {Spec: "TLS: {generated: {}, static: {" + static + "}}", Want: "set either static, with Secrets of yours, or generated"},
		"neither":                     {Spec: "TLS: {}", Want: "set either static, with Secrets of yours, or generated"},
		"no Secret of the operator":   {Spec: "TLS: {static: {member: {peerSecret: p, serverSecret: s}}}", Want: "all three are needed"},
		"no Secret of the members":    {Spec: "TLS: {static: {operatorSecret: o}}", Want: "all three are needed"},
		"half of the members' ones":   {Spec: "TLS: {static: {member: {peerSecret: p}, operatorSecret: o}}", Want: "set both peerSecret and serverSecret"},
		"certificates for a minute":   {Spec: "TLS: {generated: {validFor: 1m}}", Want: "must be at least 1h"},
		"a CA for an hour":            {Spec: "TLS: {generated: {caValidFor: 1h}}", Want: "must be at least 3h"},
		"a minute of history":         {Spec: "keepHistory: 1m", Want: "must be 0s, or at least 5m in whole minutes"},
		"seconds of history":          {Spec: "keepHistory: 5m1s", Want: "must be 0s, or at least 5m in whole minutes"},
		"history before the present":  {Spec: "keepHistory: -1h", Want: "must be 0s, or at least 5m in whole minutes"},
		"to join":                     {Spec: "joinFrom: {etcdEndpoints: ['http://my-etcd-0.my-etcd-headless.shop.svc:2379', 'http://[fd00::1]:2379']}"},
		"to join with TLS":            {Spec: "joinFrom: {etcdEndpoints: ['https://a.shop.svc:2379'], clientTLSSecret: c}"},
		"to join with TLS or not":     {Spec: "joinFrom: {etcdEndpoints: ['https://a:2379', 'http://b:2379'], clientTLSSecret: c}", Want: "either all https or all http"},
		"to join, no certificate":     {Spec: "joinFrom: {etcdEndpoints: ['https://a:2379']}", Want: "clientTLSSecret is for endpoints with https"},
		"to join, needless":           {Spec: "joinFrom: {etcdEndpoints: ['http://a:2379'], clientTLSSecret: c}", Want: "clientTLSSecret is for endpoints with https"},
		"to join nothing":             {Spec: "joinFrom: {etcdEndpoints: []}", Want: "should have at least 1 items"},
		"to join, without a port":     {Spec: "joinFrom: {etcdEndpoints: ['http://a']}", Want: "should match"},
		"to join, with a password":    {Spec: "joinFrom: {etcdEndpoints: ['http://root:x@a:2379']}", Want: "should match"},
		"an unknown field":            {Spec: "sise: 3", Want: `unknown field "spec.sise"`},
	}, v1beta2.GroupVersion.WithKind("EtcdCluster"))
}

// TestNamesAreChecked: the names of pods and Services are made of an EtcdCluster's.
func TestNamesAreChecked(t *testing.T) {
	c, namespace := strictClient(t)
	for name, want := range map[string]string{
		"example-etcd-cluster":  "",
		"e":                     "",
		strings.Repeat("a", 40): "",
		strings.Repeat("a", 41): "must be at most 40 characters long",
		"1st":                   "must be a DNS label that begins with a letter",
		"www.example":           "must be a DNS label that begins with a letter",
	} {
		err := c.Create(t.Context(), inYAML(t, namespace, name, ""), client.DryRunAll)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("name %q: %v, want %q", name, err, want)
		}
	}
}

// TestChangesAreChecked: what cannot be changed of a cluster that exists is refused.
func TestChangesAreChecked(t *testing.T) {
	c, namespace := strictClient(t)
	const noShrinking = "a volume cannot shrink: request at least as much storage as before"
	for name, tc := range map[string]struct{ before, after, want string }{
		"size and version":     {"size: 3, version: 3.5.21", "size: 5, version: 3.6.16", ""},
		"TLS on":               {"", "TLS: {generated: {}}", "TLS cannot be turned on or off"},
		"TLS off":              {"TLS: {generated: {}}", "", "TLS cannot be turned on or off"},
		"other certificates":   {"TLS: {generated: {}}", "TLS: {static: {" + static + "}}", ""},
		"volumes on":           {"", "pod: {" + volumes + "}", "volumes cannot be added to or taken from"},
		"volumes on, of a pod": {"pod: {antiAffinity: true}", "pod: {" + volumes + "}", "volumes cannot be added to or taken from"},
		"volumes off":          {"pod: {" + volumes + "}", "pod: {antiAffinity: true}", "volumes cannot be added to or taken from"},
		"the pod policy off":   {"pod: {" + volumes + "}", "", "volumes cannot be added to or taken from"},
		"the policy on":        {"", "pod: {antiAffinity: true}", ""},
		"to join, later":       {"", "joinFrom: {etcdEndpoints: ['http://a:2379']}", "joinFrom is for a new EtcdCluster"},
		"joined, and over":     {"joinFrom: {etcdEndpoints: ['http://a:2379']}", "", ""},
		"larger volumes":       {"pod: {" + volumes + "}", "pod: {persistentVolumeClaimSpec: {resources: {requests: {storage: 1.5Gi}}}}", ""},
		"the same in bytes":    {"pod: {" + volumes + "}", "pod: {persistentVolumeClaimSpec: {resources: {requests: {storage: 1073741824}}}}", ""},
		"smaller volumes":      {"pod: {" + volumes + "}", "pod: {persistentVolumeClaimSpec: {resources: {requests: {storage: 1000M}}}}", noShrinking},
		"no size any more":     {"pod: {" + volumes + "}", "pod: {persistentVolumeClaimSpec: {volumeMode: Filesystem}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			obj := inYAML(t, namespace, "x", tc.before)
			if err := c.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			changed := inYAML(t, namespace, "x", tc.after)
			changed.SetResourceVersion(obj.GetResourceVersion())
			err := c.Update(t.Context(), changed, client.DryRunAll)
			if deleted := c.Delete(t.Context(), obj); deleted != nil {
				t.Error(deleted)
			}
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

// TestJoinFromStays: while there are members of before, a manifest without joinFrom is refused.
func TestJoinFromStays(t *testing.T) {
	c, namespace := strictClient(t)
	obj := inYAML(t, namespace, "x", "joinFrom: {etcdEndpoints: ['http://a:2379']}")
	if err := c.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	for phase, want := range map[v1beta2.JoinPhase]string{
		v1beta2.JoinJoining: "can be removed when", v1beta2.JoinJoined: "can be removed when", v1beta2.JoinReplacing: "can be removed when", v1beta2.JoinComplete: "",
	} {
		if err := errors.Join(unstructured.SetNestedField(obj.Object, string(phase), "status", "join", "phase"), c.Status().Update(t.Context(), obj)); err != nil {
			t.Fatal(err)
		}
		without := obj.DeepCopy()
		unstructured.RemoveNestedField(without.Object, "spec", "joinFrom")
		err := c.Update(t.Context(), without, client.DryRunAll)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", phase, err, want)
		}
	}
}

// TestDefaults: what an empty spec is.
func TestDefaults(t *testing.T) {
	c, namespace := strictClient(t)
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(v1beta2.GroupVersion.WithKind("EtcdCluster"))
	obj.SetNamespace(namespace)
	obj.SetName("x")
	if err := c.Create(t.Context(), obj, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	spec, _, _ := unstructured.NestedMap(obj.Object, "spec")
	if spec["size"] != int64(3) || spec["repository"] != "quay.io/coreos/etcd" || spec["version"] != "3.6.16" || len(spec) != 3 {
		t.Errorf("an empty spec becomes %v", spec)
	}
}

// TestSamples: the samples, and the manifest of the guides for the CoreOS operator.
func TestSamples(t *testing.T) {
	c, namespace := strictClient(t)
	files, err := filepath.Glob("../config/samples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	manifests := map[string]string{
		"of the guides": "apiVersion: etcd.database.coreos.com/v1beta2\nkind: EtcdCluster\nmetadata: {name: example}\nspec:\n  size: 3\n  version: 3.2.13\n",
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		manifests[file] = string(content)
	}
	for name, manifest := range manifests {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		obj.SetNamespace(namespace)
		if err := c.Create(t.Context(), obj, client.DryRunAll); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// strictClient refuses unknown fields, as kubectl does.
func strictClient(t *testing.T) (client.Client, string) {
	t.Helper()
	server := testkit.Server(t)
	c, err := client.New(server.Config, client.Options{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatal(err)
	}
	return c, server.NewNamespace(t)
}

// inYAML is an EtcdCluster with that inside the braces of its spec.
func inYAML(t *testing.T, namespace, name, spec string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("{spec: {"+spec+"}}"), &obj.Object); err != nil {
		t.Fatal(err)
	}
	obj.SetGroupVersionKind(v1beta2.GroupVersion.WithKind("EtcdCluster"))
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}
