package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

var (
	monday    = time.Date(2031, 1, 6, 8, 0, 0, 0, time.UTC)
	tuesday   = monday.Add(24 * time.Hour)
	wednesday = tuesday.Add(24 * time.Hour)
)

// testScheme has the kinds of Kubernetes, and At.
func testScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, atv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// manifest is an object from YAML.
func manifest(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	b, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	return u
}

// owners are the managed fields of an object, in short.
func owners(obj client.Object) []string {
	var all []string
	for _, e := range obj.GetManagedFields() {
		when := "never"
		if e.Time != nil {
			when = strings.ToLower(e.Time.UTC().Weekday().String())
		}
		all = append(all, strings.Join([]string{e.Manager, string(e.Operation), e.Subresource, e.APIVersion, when, string(e.FieldsV1.GetRawBytes())}, " "))
	}
	return all
}

const (
	twoPorts = `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: default, labels: {a: x}}, spec: {ports: [{port: 80, name: http}, {port: 443, name: https}]}}`
	onePort  = `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: default, labels: {a: x}}, spec: {ports: [{port: 80, name: http}]}}`
	thirdOne = `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: default}, spec: {ports: [{port: 53, name: dns}]}}`
	labelZ   = `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: default, labels: {a: z}}}`
)

func TestApply(t *testing.T) {
	type step struct {
		patch, manager string
		force          bool
	}
	cases := map[string]struct {
		steps     []step
		wantPorts []int32
		wantLabel string
		wantErr   string
		want      []string
	}{
		"created": {
			steps:     []step{{onePort, "me", false}},
			wantPorts: []int32{80}, wantLabel: "x",
			want: []string{`me Apply  v1 monday {"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}}}}`},
		},
		"the same again": {
			steps:     []step{{onePort, "me", false}, {onePort, "me", false}},
			wantPorts: []int32{80}, wantLabel: "x",
			want: []string{`me Apply  v1 monday {"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}}}}`},
		},
		"an item is not applied any more": {
			steps:     []step{{twoPorts, "me", false}, {onePort, "me", false}},
			wantPorts: []int32{80}, wantLabel: "x",
			want: []string{`me Apply  v1 tuesday {"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}}}}`},
		},
		"another's item stays": {
			steps:     []step{{thirdOne, "you", false}, {twoPorts, "me", false}, {onePort, "me", false}},
			wantPorts: []int32{53, 80}, wantLabel: "x",
			want: []string{
				`you Apply  v1 monday {"f:spec":{"f:ports":{"k:{\"port\":53,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}}}}`,
				`me Apply  v1 wednesday {"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}}}}`,
			},
		},
		"conflict": {
			steps:   []step{{onePort, "you", false}, {labelZ, "me", false}},
			wantErr: `Apply failed with 1 conflict: conflict with "you": .metadata.labels.a`,
		},
		"forced": {
			steps:     []step{{onePort, "you", false}, {labelZ, "me", true}},
			wantPorts: []int32{80}, wantLabel: "z",
			want: []string{
				`you Apply  v1 monday {"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}}}}`,
				`me Apply  v1 tuesday {"f:metadata":{"f:labels":{"f:a":{}}}}`,
			},
		},
	}
	f := newFields(testScheme(t))
	for name, tc := range cases {
		for _, memory := range []string{"computed", "remembered"} {
			t.Run(name+"/"+memory, func(t *testing.T) {
				var live client.Object
				var err error
				for i, s := range tc.steps {
					var next client.Object
					next, err = f.apply(live, manifest(t, s.patch), s.manager, s.force, monday.Add(time.Duration(i)*24*time.Hour))
					if err != nil {
						break
					}
					if live == nil {
						next.SetUID("1")
					}
					live = next
				}
				if tc.wantErr != "" {
					if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), tc.wantErr) {
						t.Fatalf("apply: %v, want a conflict %q", err, tc.wantErr)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				var ports []int32
				for _, p := range live.(*corev1.Service).Spec.Ports {
					ports = append(ports, p.Port)
				}
				if diff := cmp.Diff(tc.wantPorts, ports); diff != "" {
					t.Errorf("ports (-want +got):\n%s", diff)
				}
				if got := live.GetLabels()["a"]; got != tc.wantLabel {
					t.Errorf("label %q, want %q", got, tc.wantLabel)
				}
				if diff := cmp.Diff(tc.want, owners(live)); diff != "" {
					t.Errorf("managed fields (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestApplyKeeps looks at what only the server sets.
func TestApplyKeeps(t *testing.T) {
	f := newFields(testScheme(t))
	for _, id := range []string{"1", "2"} { // the second from memory
		live := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: "c", Namespace: "default", UID: "u" + "1", ResourceVersion: id, Generation: 3, CreationTimestamp: metav1.Time{Time: monday}}}
		before := live.DeepCopy()
		patch := manifest(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: default, uid: other, resourceVersion: "9", creationTimestamp: null}, data: {a: b}}`)
		unpatched := patch.DeepCopy()
		got, err := f.apply(live, patch, "me", false, tuesday)
		if err != nil {
			t.Fatal(err)
		}
		want := before.DeepCopy()
		want.Data = map[string]string{"a": "b"}
		managed := got.GetManagedFields()
		got.SetManagedFields(nil)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("applied (-want +got):\n%s", diff)
		}
		if len(managed) != 1 || !managed[0].Time.Time.Equal(tuesday) {
			t.Errorf("managed fields %+v, want one entry of Tuesday", managed)
		}
		if diff := cmp.Diff(before, live); diff != "" {
			t.Errorf("apply changed the live object:\n%s", diff)
		}
		if diff := cmp.Diff(unpatched, patch); diff != "" {
			t.Errorf("apply changed the patch:\n%s", diff)
		}
	}
}

// TestApplyUnstructured applies a kind that the scheme does not have.
func TestApplyUnstructured(t *testing.T) {
	f := newFields(testScheme(t))
	route := `{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r, namespace: default}, spec: {hostnames: [%], parentRefs: [{name: g}]}}`
	var live client.Object
	for i, host := range []string{"a", "a", "b"} {
		next, err := f.apply(live, manifest(t, strings.ReplaceAll(route, "%", host)), "me", false, monday.Add(time.Duration(i)*24*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		want := "monday"
		if host == "b" {
			want = "wednesday"
		}
		if diff := cmp.Diff([]string{`me Apply  gateway.networking.k8s.io/v1 ` + want + ` {"f:spec":{".":{},"f:hostnames":{},"f:parentRefs":{}}}`}, owners(next)); diff != "" {
			t.Errorf("managed fields (-want +got):\n%s", diff)
		}
		hosts, _, err := unstructured.NestedStringSlice(next.(*unstructured.Unstructured).Object, "spec", "hostnames")
		if diff := cmp.Diff([]string{host}, hosts); diff != "" || err != nil {
			t.Errorf("host names: %v\n%s", err, diff)
		}
		live = next
	}
}

func TestUpdate(t *testing.T) {
	type write struct {
		subresource string
		change      func(*appsv1.Deployment)
	}
	replicas := func(n int32) write {
		return write{"", func(d *appsv1.Deployment) { d.Spec.Replicas = &n }}
	}
	cases := map[string]struct {
		writes []write
		want   []string
	}{
		"created": {want: []string{`me Update  apps/v1 monday {"f:spec":{"f:replicas":{}}}`}},
		"nothing changes": {
			writes: []write{replicas(1)},
			want:   []string{`me Update  apps/v1 monday {"f:spec":{"f:replicas":{}}}`},
		},
		"a value changes": {
			writes: []write{replicas(2)},
			want:   []string{`me Update  apps/v1 tuesday {"f:spec":{"f:replicas":{}}}`},
		},
		"a status": {
			writes: []write{{"status", func(d *appsv1.Deployment) { d.Status.Replicas = 1 }}},
			want: []string{
				`me Update  apps/v1 monday {"f:spec":{"f:replicas":{}}}`,
				`me Update status apps/v1 tuesday {"f:status":{"f:replicas":{}}}`,
			},
		},
		"managed fields are left out": {
			writes: []write{{"", func(d *appsv1.Deployment) { d.ManagedFields = nil }}},
			want:   []string{`me Update  apps/v1 monday {"f:spec":{"f:replicas":{}}}`},
		},
		"managed fields are removed": {
			writes: []write{{"", func(d *appsv1.Deployment) { d.ManagedFields = []metav1.ManagedFieldsEntry{{}} }}},
		},
		"a subresource cannot remove them": {
			writes: []write{{"status", func(d *appsv1.Deployment) { d.ManagedFields = []metav1.ManagedFieldsEntry{{}} }}},
			want:   []string{`me Update  apps/v1 monday {"f:spec":{"f:replicas":{}}}`},
		},
		"managed fields are set": {
			writes: []write{{"", func(d *appsv1.Deployment) {
				d.ManagedFields = []metav1.ManagedFieldsEntry{{
					Manager: "you", Operation: "Apply", APIVersion: "apps/v1", FieldsType: "FieldsV1",
					Time: &metav1.Time{Time: wednesday}, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`)}}
			}}},
			want: []string{`you Apply  apps/v1 wednesday {"f:spec":{"f:replicas":{}}}`},
		},
		"the upgrade of client-go": {
			writes: []write{{"", func(d *appsv1.Deployment) {
				if err := csaupgrade.UpgradeManagedFields(d, sets.New("me"), "me"); err != nil {
					panic(err)
				}
			}}},
			want: []string{`me Apply  apps/v1 monday {"f:spec":{"f:replicas":{}}}`},
		},
	}
	f := newFields(testScheme(t))
	for name, tc := range cases {
		for _, memory := range []string{"computed", "remembered"} {
			t.Run(name+"/"+memory, func(t *testing.T) {
				live := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: "default"}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))}}
				if err := f.update(nil, live, "me", "", monday); err != nil {
					t.Fatal(err)
				}
				// What Deployment's type has no omitempty for is of no interest.
				for i := range live.ManagedFields {
					live.ManagedFields[i].FieldsV1 = metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`)
				}
				live.UID = "1"
				for _, w := range tc.writes {
					obj := live.DeepCopy()
					w.change(obj)
					before := live.DeepCopy()
					if err := f.update(live, obj, "me", w.subresource, tuesday); err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(before, live); diff != "" {
						t.Errorf("update changed the live object:\n%s", diff)
					}
					live = obj
				}
				if diff := cmp.Diff(tc.want, owners(live)); diff != "" {
					t.Errorf("managed fields (-want +got):\n%s", diff)
				}
				if live.Kind != "" {
					t.Errorf("the object has the kind %q now", live.Kind)
				}
			})
		}
	}
}

// TestConflicts looks whether the API server's answer is always the same one.
func TestConflicts(t *testing.T) {
	var want error
	for range 20 {
		f := newFields(testScheme(t))
		var live client.Object
		for _, manager := range []string{"a", "b", "c"} {
			next, err := f.apply(live, manifest(t, onePort), manager, true, monday)
			if err != nil {
				t.Fatal(err)
			}
			live = next
		}
		_, err := f.apply(live, manifest(t, labelZ), "me", false, monday)
		if want == nil {
			want = err
		}
		if diff := cmp.Diff(want, err); diff != "" {
			t.Fatalf("two answers:\n%s", diff)
		}
	}
	causes := want.(apierrors.APIStatus).Status().Details.Causes
	if len(causes) != 3 || causes[0].Field != ".metadata.labels.a" {
		t.Errorf("causes %+v, want one by manager", causes)
	}
}

// TestUpdateThenApply applies to what an update made, and to what nobody tracks.
func TestUpdateThenApply(t *testing.T) {
	f := newFields(testScheme(t))
	at := &atv1alpha1.At{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}, Spec: atv1alpha1.AtSpec{Schedule: "x"}}
	if err := f.update(nil, at, "you", "", monday); err != nil {
		t.Fatal(err)
	}
	at.UID = "1"
	patch := manifest(t, `{apiVersion: at.example.com/v1alpha1, kind: At, metadata: {name: a, namespace: default}, spec: {image: i}}`)
	got, err := f.apply(at, patch, "me", false, tuesday)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`me Apply  at.example.com/v1alpha1 tuesday {"f:spec":{".":{},"f:image":{}}}`,
		`you Update  at.example.com/v1alpha1 monday {"f:spec":{".":{},"f:schedule":{}}}`,
	}
	if diff := cmp.Diff(want, owners(got)); diff != "" {
		t.Errorf("managed fields (-want +got):\n%s", diff)
	}
	if a := got.(*atv1alpha1.At); a.Spec.Schedule != "x" || a.Spec.Image != "i" {
		t.Errorf("spec %+v", a.Spec)
	}

	at.ManagedFields = nil
	if got, err = f.apply(at, patch, "me", false, tuesday); err != nil {
		t.Fatal(err)
	}
	want[1] = strings.ReplaceAll(strings.Replace(want[1], "you", "before-first-apply", 1), "monday", "tuesday")
	if diff := cmp.Diff(want, owners(got)); diff != "" {
		t.Errorf("managed fields (-want +got):\n%s", diff)
	}
}

// deployment is as large as the operators' ones.
const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: site
  namespace: default
  labels: {app.kubernetes.io/name: site, app.kubernetes.io/instance: site, app.kubernetes.io/managed-by: fairlead}
  ownerReferences: [{apiVersion: my.domain/v1, kind: WebServer, name: site, uid: 0000-1111, controller: true, blockOwnerDeletion: true}]
spec:
  replicas: 3
  selector: {matchLabels: {app.kubernetes.io/name: site, app.kubernetes.io/instance: site}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  template:
    metadata:
      labels: {app.kubernetes.io/name: site, app.kubernetes.io/instance: site}
      annotations: {fairlead.example.com/hash: 0123456789abcdef}
    spec:
      containers:
      - name: nginx
        image: nginx:1.29
        ports: [{name: http, containerPort: 80, protocol: TCP}]
        env: [{name: A, value: x}, {name: B, value: z}]
        resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}
        readinessProbe: {httpGet: {path: /, port: 80}, periodSeconds: 5}
        securityContext: {runAsNonRoot: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
        volumeMounts: [{name: conf, mountPath: /etc/nginx/conf.d, readOnly: true}, {name: html, mountPath: /usr/share/nginx/html, readOnly: true}]
      volumes: [{name: conf, configMap: {name: site-conf}}, {name: html, configMap: {name: site-html}}]
      affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app.kubernetes.io/name: site}}}}]}}
`

func BenchmarkFields(b *testing.B) {
	f := newFields(testScheme(b))
	patch := manifest(b, deployment)
	live, err := f.apply(nil, patch, "webserver", true, monday)
	if err != nil {
		b.Fatal(err)
	}
	live.SetUID("1")
	changed := patch.DeepCopy()
	if err := unstructured.SetNestedField(changed.Object, int64(5), "spec", "replicas"); err != nil {
		b.Fatal(err)
	}
	status := live.DeepCopyObject().(*appsv1.Deployment)
	status.Status.Replicas = 3
	for name, op := range map[string]func() error{
		"apply": func() error {
			_, err := f.apply(live, changed, "webserver", true, tuesday)
			return err
		},
		"apply without change": func() error {
			_, err := f.apply(live, patch, "webserver", true, tuesday)
			return err
		},
		"update": func() error {
			obj := *status
			return f.update(live, &obj, "kubelet", "status", tuesday)
		},
	} {
		b.Run(name+"/hit", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := op(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/miss", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f.applied, f.updated = memo[applied]{}, memo[updated]{}
				if err := op(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
