//go:build apiserver

package operators

import (
	"context"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/api/etcd/v1beta2"
	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/standalone"
	"example.com/fairlead/operators/at"
	"example.com/fairlead/operators/etcd"
	"example.com/fairlead/operators/webserver"
)

func TestMain(m *testing.M) {
	testkit.Main(m, testkit.Options{CRDs: []string{"at/config/crd", "etcd/config/crd", "memcached/config/crd", "webserver/config/crd", "testdata"}})
}

// attempt is a request as an operator's service account, which has all rights.
type attempt struct {
	operator run.Operator
	// before is there already, as somebody else has made it.
	before client.Object
	do     func(context.Context, client.Client, client.Object) error
	// allowed is whether the policy lets it pass.
	allowed bool
}

func create(obj client.Object) func(context.Context, client.Client, client.Object) error {
	return func(ctx context.Context, c client.Client, near client.Object) error {
		if is, err := c.IsObjectNamespaced(obj); err != nil {
			return err
		} else if is {
			obj.SetNamespace(near.GetNamespace())
		}
		return c.Create(ctx, obj)
	}
}

func remove(ctx context.Context, c client.Client, obj client.Object) error { return c.Delete(ctx, obj) }

func merge(patch string) func(context.Context, client.Client, client.Object) error {
	return func(ctx context.Context, c client.Client, obj client.Object) error {
		return c.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch)))
	}
}

func setStatus(ctx context.Context, c client.Client, obj client.Object) error {
	return c.Status().Update(ctx, obj)
}

func evict(ctx context.Context, c client.Client, obj client.Object) error {
	return c.SubResource("eviction").Create(ctx, obj, &policyv1.Eviction{})
}

func bind(ctx context.Context, c client.Client, obj client.Object) error {
	return c.SubResource("binding").Create(ctx, obj, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "any"}})
}

// askToken asks for one in an object that says it is a child.
func askToken(ctx context.Context, c client.Client, near client.Object) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: near.GetNamespace(), Name: "default"}}
	return c.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{ObjectMeta: ownedByAt("default", true)})
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func claimOf(meta metav1.ObjectMeta) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: new("none"),
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
	}}
}

func operatorCondition() client.Object {
	condition := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "operators.coreos.com/v2", "kind": "OperatorCondition"}}
	condition.SetName("at-operator.v0.0.2")
	return condition
}

func marked(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{run.ManagedByLabel: run.ManagedBy("at")}}
}

func podOf(meta metav1.ObjectMeta) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "any", Image: "any"}}}}
}

func createEvent(apiVersion, kind string) func(context.Context, client.Client, client.Object) error {
	return func(ctx context.Context, c client.Client, near client.Object) error {
		about := corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: near.GetNamespace(), Name: "any"}
		return create(&eventsv1.Event{ObjectMeta: named("made"), Regarding: about, EventTime: metav1.NowMicro(), Action: "Try",
			Reason: "Try", Type: "Normal", ReportingController: "any", ReportingInstance: "any"})(ctx, c, near)
	}
}

const (
	byEtcd = `{"metadata":{"ownerReferences":[{"apiVersion":"etcd.database.coreos.com/v1beta2","kind":"EtcdCluster",` +
		`"name":"e","uid":"1","controller":true}]`
	byAt = `{"metadata":{"ownerReferences":[{"apiVersion":"at.example.com/v1alpha1","kind":"At",` +
		`"name":"a","uid":"1","controller":true}]`
	byWeb = `{"metadata":{"ownerReferences":[{"apiVersion":"my.domain/v1","kind":"WebServer",` +
		`"name":"web","uid":"1","controller":true}]`
	deadline = `},"spec":{"activeDeadlineSeconds":1}}`
	annotate = `{"metadata":{"annotations":{"changed":"yes"}}}`
)

func service(meta metav1.ObjectMeta) *corev1.Service {
	return &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
}

func lease(name string) *coordinationv1.Lease { return &coordinationv1.Lease{ObjectMeta: named(name)} }

// electionEvent is one of the older kind, which is what client-go's elections make.
func electionEvent(ctx context.Context, c client.Client, near client.Object) error {
	about := corev1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: near.GetNamespace(), Name: "any"}
	return create(&corev1.Event{ObjectMeta: named("election"), Reason: "LeaderElection", InvolvedObject: about})(ctx, c, near)
}

// ownedByAt is owned by an At that is not there: the finalizer keeps it from the garbage collector.
func ownedByAt(name string, controller bool) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Finalizers: []string{"example.com/kept"}, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "at.example.com/v1alpha1", Kind: "At", Name: "a", UID: "1", Controller: &controller}}}
}

func toAdopt(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Annotations: map[string]string{webv1.AnnotationAdoptBy: name}}
}

// TestAdmissionPolicy: what the policy lets pass, and what not. What the operators write otherwise, all tests against
// the API server show.
func TestAdmissionPolicy(t *testing.T) {
	anAt := func(name string, ttl *int64) *atv1alpha1.At {
		return &atv1alpha1.At{ObjectMeta: named(name), Spec: atv1alpha1.AtSpec{
			Schedule: "2099-01-01T00:00:00Z", Command: new("true"), TTLSecondsAfterFinished: ttl}}
	}
	nonResource := &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
	may := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "any", NonResourceAttributes: nonResource}}
	is := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "any"}}
	for name, try := range map[string]attempt{
		"a child":                                  {at.Operator, nil, create(podOf(ownedByAt("child", true))), true},
		"a child that another owner controls":      {at.Operator, nil, create(podOf(ownedByAt("shared", false))), false},
		"a child of another operator's kind":       {etcd.Operator, nil, create(podOf(ownedByAt("other", true))), false},
		"an object with nothing but the label":     {at.Operator, nil, create(podOf(marked("label"))), false},
		"change by the label":                      {at.Operator, podOf(marked("by-label")), merge(annotate), true},
		"change by the owner":                      {etcd.Operator, claimOf(marked("of-at")), merge(annotate), false},
		"change what is foreign":                   {at.Operator, podOf(named("foreign")), merge(annotate), false},
		"take over what is foreign":                {at.Operator, podOf(named("taken")), merge(byAt + `}}`), false},
		"delete a child":                           {at.Operator, podOf(marked("deleted")), remove, true},
		"delete what is foreign":                   {at.Operator, podOf(named("kept")), remove, false},
		"evict a child":                            {at.Operator, podOf(marked("evicted")), evict, false},
		"bind a child to a node":                   {at.Operator, podOf(marked("bound")), bind, false},
		"the status of a child":                    {at.Operator, podOf(marked("status")), setStatus, false},
		"the token of an account":                  {at.Operator, nil, askToken, false},
		"an At":                                    {at.Operator, nil, create(anAt("made", nil)), false},
		"the spec of an At":                        {at.Operator, anAt("a", nil), merge(`{"spec":{"suspend":true}}`), false},
		"the status of an At":                      {at.Operator, anAt("b", nil), setStatus, true},
		"the status of an At, by another operator": {etcd.Operator, anAt("c", nil), setStatus, false},
		"delete an At that is to stay":             {at.Operator, anAt("d", nil), remove, false},
		"delete an At that is to go":               {at.Operator, anAt("e", new(int64(1))), remove, true},
		"delete an EtcdCluster":                    {etcd.Operator, &v1beta2.EtcdCluster{ObjectMeta: named("e")}, remove, false},
		"adopt a volume":                           {etcd.Operator, claimOf(named("e-bcdfg")), merge(byEtcd + `}}`), true},
		"adopt a volume of a StatefulSet":          {etcd.Operator, claimOf(named("data-web-0")), merge(byEtcd + `}}`), false},
		"adopt a pod, and change it":               {etcd.Operator, podOf(named("e-bcdfg")), merge(byEtcd + deadline), false},
		"adopt another owner's pod":                {etcd.Operator, podOf(ownedByAt("e-bcdfh", true)), merge(byEtcd + `}}`), false},
		"adopt a volume, by another operator":      {at.Operator, claimOf(named("a-bcdfg")), merge(byEtcd + `}}`), false},
		"adopt a Service":                          {etcd.Operator, service(named("e-bcdfg")), merge(byEtcd + `}}`), false},
		"adopt a Service, for a WebServer":         {webserver.Operator, service(named("web")), merge(byWeb + `}}`), false},
		"adopt a Service that allows it":           {webserver.Operator, service(toAdopt("web-2")), merge(byWeb + `}}`), true},
		"adopt another owner's Service":            {webserver.Operator, service(ownedByAt("web-3", true)), merge(byWeb + `}}`), false},
		"adopt a pod, for a WebServer":             {webserver.Operator, podOf(named("web-4")), merge(byWeb + `}}`), false},
		"the lock of the election":                 {at.Operator, nil, create(lease("at-operator-leader")), true},
		"renew the lock":                           {etcd.Operator, lease("etcd-operator-leader"), merge(annotate), true},
		"the lock of another":                      {etcd.Operator, lease("at-operator-leader"), merge(annotate), false},
		"the lock of an election for life":         {at.Operator, nil, create(&corev1.ConfigMap{ObjectMeta: named("at-operator-leader")}), true},
		"a ConfigMap":                              {at.Operator, nil, create(&corev1.ConfigMap{ObjectMeta: named("any")}), false},
		"an event about an At":                     {at.Operator, nil, createEvent("at.example.com/v1alpha1", "At"), true},
		"an event about a pod":                     {at.Operator, nil, createEvent("v1", "Pod"), false},
		"an event about the election":              {at.Operator, nil, electionEvent, true},
		"who somebody is":                          {at.Operator, nil, create(is), true},
		"what somebody may":                        {at.Operator, nil, create(may), true},
		"the condition that OLM reads":             {at.Operator, operatorCondition(), merge(annotate), true},
		"a namespace":                              {at.Operator, nil, create(&corev1.Namespace{ObjectMeta: named("any")}), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			try.run(t)
		})
	}
}

func (a attempt) run(t *testing.T) {
	server := testkit.Server(t)
	scheme := standalone.Scheme(at.Operator)
	if err := etcd.Operator.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	namespace := server.NewNamespace(t)
	admin, err := client.New(server.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	account, err := standalone.AsAccount(t.Context(), server.Config, a.operator, namespace)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(account, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	about := a.before
	if about != nil {
		about.SetNamespace(namespace)
		if err := admin.Create(t.Context(), about); err != nil {
			t.Fatal(err)
		}
	} else {
		about = podOf(metav1.ObjectMeta{Namespace: namespace})
	}
	err = a.do(t.Context(), c, about)
	isRefused := apierrors.IsForbidden(err) && strings.Contains(err.Error(), "may only write objects of its own")
	if a.allowed && err != nil || !a.allowed && !isRefused {
		t.Errorf("the answer is %v, want it allowed: %v", err, a.allowed)
	}
}
