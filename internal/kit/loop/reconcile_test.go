package loop

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/status"
)

// bench is a loop whose objects are Services, because those have conditions, and
// whose children are ConfigMaps. Its cache is never late.
type bench struct {
	*testing.T
	*loop[*corev1.Service, string, *Plan]

	sent   []string // the names of writes, in order
	refuse map[string]error
	now    time.Time
	events *events.FakeRecorder
}

func newBench(t *testing.T, existing ...client.Object) *bench {
	b := &bench{T: t, refuse: map[string]error{}, now: time.Unix(1000, 0), events: events.NewFakeRecorder(10)}
	send := func(ctx context.Context, do func() error) error {
		b.sent = append(b.sent, NameOf(ctx))
		if err := b.refuse[NameOf(ctx)]; err != nil {
			return err
		}
		return do()
	}
	owner := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", UID: "u", Generation: 1}}
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithStatusSubresource(owner).WithObjects(append(existing, owner)...).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				return send(ctx, func() error { return c.Create(ctx, obj, opts...) })
			},
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				return send(ctx, func() error { return c.Patch(ctx, obj, patch, opts...) })
			},
			Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
				return send(ctx, func() error { return c.Delete(ctx, obj, opts...) })
			},
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
				return send(ctx, func() error { return c.SubResource(sub).Update(ctx, obj, opts...) })
			},
		}).Build()
	now := func() time.Time { return b.now }
	b.loop = &loop[*corev1.Service, string, *Plan]{
		kind: Kind[*corev1.Service, string, *Plan]{
			Operator: "bench", Empty: &corev1.Service{},
			Children:   []Child[*corev1.Service]{{Empty: &corev1.ConfigMap{}, Name: func(s *corev1.Service) string { return s.Name }}},
			Observe:    func(context.Context, *Reader, *corev1.Service) (string, error) { return "", nil },
			Decide:     func(*corev1.Service, string) (*Plan, error) { return &Plan{}, nil },
			Summarize:  func(s *corev1.Service, _ string, _ *Plan, did Did) { summary(s, did) },
			Conditions: func(s *corev1.Service) *[]metav1.Condition { return &s.Status.Conditions },
		},
		gvk: corev1.SchemeGroupVersion.WithKind("Service"), client: c, cache: c,
		alarms: newAlarms(now), unread: map[client.ObjectKey]int{}, last: map[client.ObjectKey]report{}, now: now,
		executor: &executor{
			client: c, live: c, children: apply.Children{Client: c, Live: c, Manager: "bench-operator"},
			owns:   func(owner, child client.Object) bool { return metav1.IsControlledBy(child, owner) },
			memory: apply.NewMemory(now), held: newHeld(time.Second, time.Minute), overruled: newOverruled(), events: b.events,
			optional: map[string]*optional{}, counts: counts{schema.GroupKind{Kind: "Service"}}, now: now,
		},
	}
	return b
}

func summary(s *corev1.Service, did Did) {
	conditions := status.Conditions{List: &s.Status.Conditions, Generation: s.Generation}
	conditions.Set(status.Available, true, "Serves", "It serves")
	if did.Failure != nil {
		conditions.MarkReconciling("Failing", did.Failure.Error())
		return
	}
	conditions.MarkReady("Done", "All is done")
}

// reconcile is one time, after which the object has these conditions.
func (b *bench) reconcile() (ready, available *metav1.Condition, err error) {
	b.Helper()
	_, err = b.Reconcile(b.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "n", Name: "s"}})
	var s corev1.Service
	if err := b.client.Get(b.Context(), client.ObjectKey{Namespace: "n", Name: "s"}, &s); err != nil {
		b.Fatal(err)
	}
	return meta.FindStatusCondition(s.Status.Conditions, status.Ready), meta.FindStatusCondition(s.Status.Conditions, status.Available), err
}

func (b *bench) expectSent(want ...string) {
	b.Helper()
	if !slices.Equal(b.sent, want) {
		b.Errorf("sent %q, want %q", b.sent, want)
	}
	b.sent = nil
}

// TestUnreadable: a status does not keep what cannot be read any more.
func TestUnreadable(t *testing.T) {
	b := newBench(t)
	if ready, _, err := b.reconcile(); err != nil || ready.Status != metav1.ConditionTrue {
		t.Fatalf("Ready is %+v, error %v", ready, err)
	}
	observe := b.kind.Observe
	b.kind.Observe = func(context.Context, *Reader, *corev1.Service) (string, error) {
		return "", apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "cert", errors.New("no right"))
	}
	ready, _, err := b.reconcile()
	if err == nil || ready.Status != metav1.ConditionTrue {
		t.Errorf("after the first failure Ready is %+v, error %v: the queue is to try again", ready, err)
	}
	ready, available, err := b.reconcile()
	if err == nil || ready.Status != metav1.ConditionUnknown || ready.Reason != "ReadFailed" || !strings.Contains(ready.Message, `secrets "cert" is forbidden`) {
		t.Errorf("after the second failure Ready is %+v, error %v", ready, err)
	}
	if available.Status != metav1.ConditionUnknown {
		t.Errorf("Available is %+v", available)
	}
	b.kind.Observe = observe
	if ready, available, err := b.reconcile(); err != nil || ready.Status != metav1.ConditionTrue || available.Status != metav1.ConditionTrue {
		t.Errorf("when it can be read again, Ready is %+v, Available %+v, error %v", ready, available, err)
	}
	b.kind.Observe = func(context.Context, *Reader, *corev1.Service) (string, error) { return "", errors.New("again") }
	if ready, _, _ := b.reconcile(); ready.Status != metav1.ConditionTrue {
		t.Errorf("the count of failures was not forgotten: Ready is %+v", ready)
	}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, Labels: map[string]string{apply.ManagedByLabel: "bench-operator"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: "s", UID: "u", Controller: new(true)}}}}
}

// TestWhatIsSent: which writes a failure keeps from being sent, and what status and the
// queue get of it.
func TestWhatIsSent(t *testing.T) {
	plan := func(*corev1.Service, string) (*Plan, error) {
		return &Plan{
			Writes: []Write{Create{Object: configMap("s")}, Delete{Object: configMap("other")}},
			Then:   []Write{Create{Object: &corev1.Secret{ObjectMeta: configMap("then").ObjectMeta}}},
		}, nil
	}
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "s", errors.New("exceeded quota"))
	cases := map[string]struct {
		err    error
		sent   []string
		ready  string // what the message has
		isErr  bool
		wakeIn time.Duration
	}{
		"nothing": {sent: []string{"create ConfigMap", "delete ConfigMap", "create Secret", "status Service"}, ready: "All is done",
			wakeIn: apply.MemoryLasts},
		"a refusal": {err: refused, sent: []string{"create ConfigMap", "delete ConfigMap", "status Service"},
			ready: "ConfigMap: configmaps", wakeIn: time.Second},
		"an error": {err: apierrors.NewInternalError(errors.New("etcd")), sent: []string{"create ConfigMap", "delete ConfigMap", "status Service"},
			ready: "Internal error", isErr: true, wakeIn: apply.MemoryLasts},
		"a conflict": {err: apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "s", errors.New("changed")),
			sent: []string{"create ConfigMap", "delete ConfigMap"}, wakeIn: conflictWait},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.kind.Decide = plan
			b.refuse["create ConfigMap"] = tc.err
			ready, _, err := b.reconcile()
			b.expectSent(tc.sent...)
			if (err != nil) != tc.isErr {
				t.Errorf("error %v", err)
			}
			if tc.ready == "" && ready != nil || tc.ready != "" && (ready == nil || !strings.Contains(ready.Message, tc.ready)) {
				t.Errorf("Ready is %+v, want %q", ready, tc.ready)
			}
			alarm := b.alarms.byKey[client.ObjectKey{Namespace: "n", Name: "s"}]
			if tc.wakeIn == 0 && alarm != nil || tc.wakeIn != 0 && (alarm == nil || !alarm.at.Equal(b.now.Add(tc.wakeIn))) {
				t.Errorf("alarm %+v, want one in %v", alarm, tc.wakeIn)
			}
		})
	}
}

// TestIfCurrent: a write that depends on the object being the newest is not sent when
// only the cache is behind.
func TestIfCurrent(t *testing.T) {
	b := newBench(t, configMap("s"))
	b.kind.Decide = func(*corev1.Service, string) (*Plan, error) {
		return &Plan{Writes: []Write{Delete{Object: configMap("s"), IfCurrent: true}}}, nil
	}
	newer := newBench(t, configMap("s"))
	if _, _, err := newer.reconcile(); err != nil { // another version of the Service
		t.Fatal(err)
	}
	b.executor.live = newer.client
	if _, _, err := b.reconcile(); err != nil {
		t.Error(err)
	}
	b.expectSent()
	b.executor.live = b.client
	if _, _, err := b.reconcile(); err != nil {
		t.Error(err)
	}
	b.expectSent("delete ConfigMap", "status Service")
}

// TestMadeAgain: what was deleted lately is made again only for the owner that the API
// server has, too.
func TestMadeAgain(t *testing.T) {
	b := newBench(t)
	b.kind.Decide = func(*corev1.Service, string) (*Plan, error) {
		return &Plan{Writes: []Write{Create{Object: configMap("s")}}}, nil
	}
	gone := configMap("s")
	gone.ResourceVersion = "7"
	b.executor.memory.Deleted("ConfigMap", gone)
	current := b.client
	b.executor.live = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build() // the owner is gone
	if _, _, err := b.reconcile(); err != nil {
		t.Error(err)
	}
	b.expectSent("status Service")
	b.executor.live = current
	b.now = b.now.Add(conflictWait)
	if _, _, err := b.reconcile(); err != nil {
		t.Error(err)
	}
	b.expectSent("create ConfigMap", "status Service")
}

// TestAnothersStatus: two operators that see different things take turns once in a
// second, and not as fast as they can.
func TestAnothersStatus(t *testing.T) {
	b := newBench(t)
	if _, _, err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	b.expectSent("status Service")
	var s corev1.Service
	key := client.ObjectKey{Namespace: "n", Name: "s"}
	if err := b.client.Get(t.Context(), key, &s); err != nil {
		t.Fatal(err)
	}
	meta.FindStatusCondition(s.Status.Conditions, status.Ready).Message = "another operator's"
	if err := b.client.Status().Update(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	b.sent = nil
	for _, after := range []time.Duration{0, yieldFor / 2} {
		b.now = b.now.Add(after)
		if ready, _, err := b.reconcile(); err != nil || ready.Message != "another operator's" {
			t.Errorf("Ready is %+v, error %v", ready, err)
		}
	}
	b.expectSent()
	if alarm := b.alarms.byKey[key]; alarm == nil || !alarm.at.Equal(b.now.Add(yieldFor/2)) {
		t.Errorf("alarm %+v", alarm)
	}
	b.now = b.now.Add(yieldFor / 2)
	if ready, _, err := b.reconcile(); err != nil || ready.Message != "All is done" {
		t.Errorf("Ready is %+v, error %v", ready, err)
	}
	b.expectSent("status Service")
}

// TestIfSame: what has changed since it was observed is not deleted.
func TestIfSame(t *testing.T) {
	b := newBench(t, configMap("s"))
	b.kind.Decide = func(*corev1.Service, string) (*Plan, error) {
		observed := configMap("s")
		observed.ResourceVersion = "1"
		return &Plan{Writes: []Write{Delete{Object: observed, IfSame: true}}}, nil
	}
	if _, _, err := b.reconcile(); err != nil {
		t.Error(err)
	}
	if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "s"}, &corev1.ConfigMap{}); err != nil {
		t.Errorf("it was deleted: %v", err)
	}
}

// TestRefusedIsHeldBack: whatever wakes the loop, what was refused waits for its time.
func TestRefusedIsHeldBack(t *testing.T) {
	b := newBench(t)
	b.kind.Decide = func(*corev1.Service, string) (*Plan, error) {
		return &Plan{Writes: []Write{Create{Object: configMap("s")}}}, nil
	}
	b.refuse["create ConfigMap"] = apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "s", errors.New("exceeded quota"))
	for _, step := range []struct {
		after time.Duration
		sent  []string
	}{
		{0, []string{"create ConfigMap", "status Service"}},
		{500 * time.Millisecond, nil},
		{500 * time.Millisecond, []string{"create ConfigMap"}}, // a second after the first
		{time.Second, nil},
		{time.Second, []string{"create ConfigMap"}}, // two after the second
	} {
		b.now = b.now.Add(step.after)
		if _, _, err := b.reconcile(); err != nil {
			t.Error(err)
		}
		b.expectSent(step.sent...)
	}
}

// TestFoundIsDecidedAnew: a child that is there although the cache does not show it is
// seen as it is before anything else is done about it.
func TestFoundIsDecidedAnew(t *testing.T) {
	there := configMap("s")
	there.UID, there.Data = "c", map[string]string{"page": "theirs"}
	b := newBench(t, there)
	hidden := b.cache
	b.cache = interceptor.NewClient(hidden.(client.WithWatch), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewNotFound(schema.GroupResource{}, "s")
		},
	})
	var pages []string
	b.kind.Observe = func(_ context.Context, r *Reader, _ *corev1.Service) (string, error) {
		return The[*corev1.ConfigMap](r.Children).Data["page"], nil
	}
	b.kind.Decide = func(_ *corev1.Service, page string) (*Plan, error) {
		if pages = append(pages, page); page != "" {
			return &Plan{}, nil
		}
		return &Plan{Writes: []Write{Create{Object: configMap("s")}}}, nil
	}
	if ready, _, err := b.reconcile(); err != nil || ready == nil || ready.Status != metav1.ConditionTrue {
		t.Errorf("Ready is %+v, error %v", ready, err)
	}
	if !slices.Equal(pages, []string{"", "theirs"}) {
		t.Errorf("decided on %q", pages)
	}
	b.expectSent("create ConfigMap", "status Service")
}

// TestFoundKeepsTheRestFromBeingSent: what follows a child that is found was decided without
// it. It is decided anew, a few times, and then left until later.
func TestFoundKeepsTheRestFromBeingSent(t *testing.T) {
	writes := []Write{Create{Object: configMap("s")}, Delete{Object: configMap("other")}}
	for name, tc := range map[string]struct {
		isMended bool // what is found leads to something else
		sent     []string
		status   bool
	}{
		"and then seen":   {isMended: true, sent: []string{"create ConfigMap", "delete Secret", "status Service"}, status: true},
		"again and again": {sent: slices.Repeat([]string{"create ConfigMap"}, attempts)},
	} {
		t.Run(name, func(t *testing.T) {
			there := configMap("s")
			there.UID = "c"
			b := newBench(t, there)
			b.cache = interceptor.NewClient(b.cache.(client.WithWatch), interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return apierrors.NewNotFound(schema.GroupResource{}, "s")
				},
			})
			b.kind.Observe = func(_ context.Context, r *Reader, _ *corev1.Service) (string, error) {
				return string(The[*corev1.ConfigMap](r.Children).UID), nil
			}
			b.kind.Decide = func(_ *corev1.Service, found string) (*Plan, error) {
				if tc.isMended && found != "" {
					return &Plan{Writes: []Write{Delete{Object: &corev1.Secret{ObjectMeta: configMap("other").ObjectMeta}}}}, nil
				}
				return &Plan{Writes: writes, Then: []Write{Create{Object: &corev1.Secret{ObjectMeta: configMap("then").ObjectMeta}}}}, nil
			}
			ready, _, err := b.reconcile()
			if err != nil || (ready != nil) != tc.status {
				t.Errorf("Ready is %+v, error %v", ready, err)
			}
			b.expectSent(tc.sent...)
			alarm := b.alarms.byKey[client.ObjectKey{Namespace: "n", Name: "s"}]
			if !tc.status && (alarm == nil || !alarm.at.Equal(b.now.Add(conflictWait))) {
				t.Errorf("alarm %+v, want one in %v", alarm, conflictWait)
			}
		})
	}
}

// TestEventsAfterTheStatus: what was not stored is not announced.
func TestEventsAfterTheStatus(t *testing.T) {
	b := newBench(t)
	b.kind.Announce = func(context.Context, *corev1.Service, *corev1.Service) []Event {
		return []Event{{Reason: "Done", Action: "Work", Note: "all is done"}}
	}
	b.refuse["status Service"] = apierrors.NewInternalError(errors.New("etcd"))
	if _, _, err := b.reconcile(); err == nil || len(b.events.Events) != 0 {
		t.Errorf("error %v, %d events", err, len(b.events.Events))
	}
	delete(b.refuse, "status Service")
	if _, _, err := b.reconcile(); err != nil || len(b.events.Events) != 1 {
		t.Errorf("error %v, %d events", err, len(b.events.Events))
	}
	b.sent = nil
	if _, _, err := b.reconcile(); err != nil || len(b.events.Events) != 1 {
		t.Errorf("error %v, %d events after nothing has changed", err, len(b.events.Events))
	}
	b.expectSent()
}
