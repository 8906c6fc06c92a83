//go:build apiserver

package apply_test

import (
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/pace"
)

func TestMain(m *testing.M) { testkit.Main(m, testkit.Options{}) }

const manager = "toy-operator"

// stage is a namespace with an owner, which is a ConfigMap.
type stage struct {
	*testing.T
	client.Client
	children apply.Children
	owner    *corev1.ConfigMap
}

func newStage(t *testing.T) *stage {
	t.Helper()
	server := testkit.Server(t)
	c, err := client.New(server.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{T: t, Client: c, children: apply.Children{Client: c, Live: c, Manager: manager, Settled: []string{"nodePort"}}}
	s.owner = s.newOwner(server.NewNamespace(t))
	return s
}

func (s *stage) newOwner(namespace string) *corev1.ConfigMap {
	s.Helper()
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "owner"}}
	s.must(s.Create(s.Context(), owner))
	owner.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return owner
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) eventually(done func() bool) {
	s.Helper()
	pace.Eventually(s, 30*time.Second, func() error {
		if !done() {
			return errors.New("not so")
		}
		return nil
	})
}

// apply applies a child to what is there now.
func (s *stage) apply(seen client.Object, want runtime.ApplyConfiguration) (apply.Outcome, error) {
	s.Helper()
	s.must(client.IgnoreNotFound(s.Get(s.Context(), client.ObjectKey{Namespace: s.owner.Namespace, Name: "child"}, seen)))
	return s.children.Apply(s.Context(), s.owner, seen, want)
}

func (s *stage) labels() map[string]string {
	return map[string]string{apply.ManagedByLabel: manager, apply.InstanceLabel: "owner"}
}

func (s *stage) ownedBy() *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().WithAPIVersion("v1").WithKind("ConfigMap").WithName("owner").WithUID(s.owner.UID).WithController(true)
}

func (s *stage) service(port int32) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service("child", s.owner.Namespace).WithLabels(s.labels()).WithOwnerReferences(s.ownedBy()).
		WithSpec(corev1ac.ServiceSpec().WithType("NodePort").WithSelector(map[string]string{"app": "toy"}).
			WithPorts(corev1ac.ServicePort().WithName("http").WithProtocol("TCP").WithPort(port).WithTargetPort(intstr.FromInt32(8080))))
}

func (s *stage) disruptionBudget() *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	return policyv1ac.PodDisruptionBudget("child", s.owner.Namespace).WithLabels(s.labels()).WithOwnerReferences(s.ownedBy()).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().WithMaxUnavailable(intstr.FromInt32(1)).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{"app": "toy"})))
}

func (s *stage) deployment() *appsv1ac.DeploymentApplyConfiguration {
	app := map[string]string{"app": "toy"}
	return appsv1ac.Deployment("child", s.owner.Namespace).WithLabels(s.labels()).WithOwnerReferences(s.ownedBy()).
		WithSpec(appsv1ac.DeploymentSpec().WithReplicas(2).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(app)).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(app).WithSpec(corev1ac.PodSpec().WithContainers(corev1ac.Container().
				WithName("server").WithImage("server:1").
				WithEnv(corev1ac.EnvVar().WithName("MODE").WithValue("quick")).
				WithLivenessProbe(corev1ac.Probe().WithTCPSocket(corev1ac.TCPSocketAction().WithPort(intstr.FromInt32(8080)))).
				WithVolumeMounts(corev1ac.VolumeMount().WithName("tmp").WithMountPath("/tmp"))).
				WithVolumes(corev1ac.Volume().WithName("tmp").WithEmptyDir(corev1ac.EmptyDirVolumeSource())))))
}

// TestApplyRepairsAlternatives: a field that another writer has set and that excludes a
// field of the operator's is removed, along with all other drift; what others have set in
// metadata stays.
func TestApplyRepairsAlternatives(t *testing.T) {
	type check func(*testing.T, client.Object)
	const container = `{"op":"remove","path":"/spec/template/spec/containers/0/`
	cases := map[string]struct {
		empty func() client.Object
		want  func(*stage) runtime.ApplyConfiguration
		spoil string // a JSON patch
		check check
	}{
		"a Service's port has another number": {
			empty: func() client.Object { return &corev1.Service{} },
			want:  func(s *stage) runtime.ApplyConfiguration { return s.service(80) },
			spoil: `[{"op":"replace","path":"/spec/ports/0/port","value":81},{"op":"replace","path":"/spec/selector","value":{"app":"other"}}]`,
			check: func(t *testing.T, obj client.Object) {
				spec := obj.(*corev1.Service).Spec
				if len(spec.Ports) != 1 || spec.Ports[0].Port != 80 || spec.Ports[0].TargetPort.IntValue() != 8080 || spec.Selector["app"] != "toy" {
					t.Errorf("the Service is %+v", spec)
				}
			},
		},
		"a Service's port has another number, and a node port that is wanted": {
			empty: func() client.Object { return &corev1.Service{} },
			want: func(s *stage) runtime.ApplyConfiguration {
				var now corev1.Service
				want := s.service(80)
				if s.Get(s.Context(), client.ObjectKey{Namespace: s.owner.Namespace, Name: "child"}, &now) == nil {
					want.Spec.Ports[0].WithNodePort(now.Spec.Ports[0].NodePort)
				}
				return want
			},
			spoil: `[{"op":"replace","path":"/spec/ports/0/port","value":81}]`,
			check: func(t *testing.T, obj client.Object) {
				if ports := obj.(*corev1.Service).Spec.Ports; len(ports) != 1 || ports[0].Port != 80 {
					t.Errorf("the Service has ports %+v", ports)
				}
			},
		},
		"a PodDisruptionBudget has its other field": {
			empty: func() client.Object { return &policyv1.PodDisruptionBudget{} },
			want:  func(s *stage) runtime.ApplyConfiguration { return s.disruptionBudget() },
			spoil: `[{"op":"remove","path":"/spec/maxUnavailable"},{"op":"add","path":"/spec/minAvailable","value":2},{"op":"add","path":"/metadata/annotations/team","value":"blue"}]`,
			check: func(t *testing.T, obj client.Object) {
				pdb := obj.(*policyv1.PodDisruptionBudget)
				if pdb.Spec.MinAvailable != nil || pdb.Spec.MaxUnavailable.IntValue() != 1 || pdb.Annotations["team"] != "blue" {
					t.Errorf("the PodDisruptionBudget is %+v with annotations %v", pdb.Spec, pdb.Annotations)
				}
			},
		},
		"a probe, a variable and a volume are of another sort": {
			empty: func() client.Object { return &appsv1.Deployment{} },
			want:  func(s *stage) runtime.ApplyConfiguration { return s.deployment() },
			spoil: `[` + container + `livenessProbe/tcpSocket"},
				{"op":"add","path":"/spec/template/spec/containers/0/livenessProbe/exec","value":{"command":["true"]}},
				` + container + `env/0/value"},
				{"op":"add","path":"/spec/template/spec/containers/0/env/0/valueFrom","value":{"fieldRef":{"fieldPath":"metadata.name"}}},
				{"op":"remove","path":"/spec/template/spec/volumes/0/emptyDir"},
				{"op":"add","path":"/spec/template/spec/volumes/0/hostPath","value":{"path":"/tmp"}},
				{"op":"replace","path":"/spec/replicas","value":7},
				{"op":"add","path":"/spec/template/metadata/annotations","value":{"kubectl.kubernetes.io/restartedAt":"now"}}]`,
			check: func(t *testing.T, obj client.Object) {
				d := obj.(*appsv1.Deployment)
				pod := d.Spec.Template.Spec
				if probe := pod.Containers[0].LivenessProbe; probe.Exec != nil || probe.TCPSocket == nil {
					t.Errorf("the probe is %+v", probe)
				}
				if env := pod.Containers[0].Env; len(env) != 1 || env[0].Value != "quick" || env[0].ValueFrom != nil {
					t.Errorf("the variables are %+v", env)
				}
				if v := pod.Volumes; len(v) != 1 || v[0].EmptyDir == nil || v[0].HostPath != nil {
					t.Errorf("the volumes are %+v", v)
				}
				if *d.Spec.Replicas != 2 || d.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] != "now" {
					t.Errorf("%d replicas, annotations %v", *d.Spec.Replicas, d.Spec.Template.Annotations)
				}
			},
		},
	}
	for name, tc := range cases {
		for _, by := range []string{"patch", "apply"} {
			t.Run(name+" by "+by, func(t *testing.T) {
				s := newStage(t)
				if _, err := s.apply(tc.empty(), tc.want(s)); err != nil {
					t.Fatal(err)
				}
				spoiled := tc.empty()
				spoiled.SetNamespace(s.owner.Namespace)
				spoiled.SetName("child")
				s.must(s.Patch(t.Context(), spoiled, client.RawPatch(types.JSONPatchType, []byte(tc.spoil)), client.FieldOwner("kubectl-edit")))
				if by == "apply" { // as if it had been applied by another manager
					fields := spoiled.GetManagedFields()
					for i := range fields {
						if fields[i].Manager == "kubectl-edit" {
							fields[i].Operation = metav1.ManagedFieldsOperationApply
						}
					}
					spoiled.SetManagedFields(fields)
					s.must(s.Update(t.Context(), spoiled))
				}
				outcome, err := s.apply(tc.empty(), tc.want(s))
				s.must(err)
				if !outcome.Applied || !outcome.Repaired || outcome.TakenBack {
					t.Errorf("the outcome is %+v", outcome)
				}
				live := tc.empty()
				s.must(s.Get(t.Context(), client.ObjectKeyFromObject(spoiled), live))
				tc.check(t, live)
				if outcome, err = s.apply(tc.empty(), tc.want(s)); err != nil || outcome.Applied {
					t.Errorf("not silent afterwards: %+v, %v", outcome, err)
				}
			})
		}
	}
}

// TestApplyKeepsWhatOthersSetWhenRefused: when what is wanted is invalid by
// itself, nobody's fields are taken.
func TestApplyKeepsWhatOthersSetWhenRefused(t *testing.T) {
	s := newStage(t)
	_, err := s.apply(&corev1.Service{}, s.service(80))
	s.must(err)
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.owner.Namespace, Name: "child"}}
	s.must(s.Patch(t.Context(), svc, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"sessionAffinity":"ClientIP"}}`)), client.FieldOwner("kubectl-edit")))
	if _, err := s.apply(&corev1.Service{}, s.service(-1)); !apply.IsRefusal(err) {
		t.Fatalf("the error is %v, want a refusal", err)
	}
	_, err = s.apply(&corev1.Service{}, s.service(81))
	s.must(err)
	s.must(s.Get(t.Context(), client.ObjectKeyFromObject(svc), svc))
	if svc.Spec.SessionAffinity != corev1.ServiceAffinityClientIP || len(svc.Spec.Ports) != 1 || svc.Spec.Ports[0].Port != 81 {
		t.Errorf("the Service is %+v", svc.Spec)
	}
}

// TestApplyTakesBack: a child that has lost a mark is recognised by the others,
// and gets it again.
func TestApplyTakesBack(t *testing.T) {
	const foreign = "not owned"
	cases := map[string]struct {
		spoil string // a merge patch
		want  string // "", or foreign
	}{
		"no owner reference":                   {spoil: `{"metadata":{"ownerReferences":null}}`},
		"no label":                             {spoil: `{"metadata":{"labels":{"` + apply.ManagedByLabel + `":null}}}`},
		"no owner reference and no label":      {spoil: `{"metadata":{"ownerReferences":null,"labels":null}}`},
		"no owner reference and no annotation": {spoil: `{"metadata":{"ownerReferences":null,"annotations":null}}`},
		"restored from a backup":               {spoil: `{"metadata":{"ownerReferences":null,"managedFields":[{}]}}`},
		"no mark but managedFields": {
			spoil: `{"metadata":{"ownerReferences":null,"labels":null,"annotations":null}}`, want: foreign},
		"no owner reference, another owner's name": {
			spoil: `{"metadata":{"ownerReferences":null,"labels":{"` + apply.InstanceLabel + `":"other"}}}`, want: foreign},
		"another controller": {
			spoil: `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"other","uid":"1-2-3","controller":true}]}}`, want: foreign},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			_, err := s.apply(&corev1.Service{}, s.service(80))
			s.must(err)
			svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.owner.Namespace, Name: "child"}}
			s.must(s.Patch(t.Context(), svc, client.RawPatch(types.MergePatchType, []byte(tc.spoil))))

			// As the operator does: with what its cache shows, which is
			// nothing if the label is gone, and then with what was found.
			seen := &corev1.Service{}
			if svc.Labels[apply.ManagedByLabel] != "" {
				seen = svc.DeepCopy()
			}
			outcome, err := s.children.Apply(t.Context(), s.owner, seen, s.service(80))
			if err == nil && outcome.Found {
				outcome, err = s.children.Apply(t.Context(), s.owner, seen, s.service(80))
			}
			var conflict *apply.ConflictError
			switch {
			case tc.want == foreign:
				if !errors.As(err, &conflict) {
					t.Errorf("the error is %v, want a conflict", err)
				}
				return
			case err != nil:
				t.Fatal(err)
			}
			if !outcome.TakenBack || !outcome.Repaired {
				t.Errorf("the outcome is %+v", outcome)
			}
			s.must(s.Get(t.Context(), client.ObjectKeyFromObject(svc), svc))
			if !metav1.IsControlledBy(svc, s.owner) || svc.Labels[apply.ManagedByLabel] != manager {
				t.Errorf("the Service has %v and %v", svc.OwnerReferences, svc.Labels)
			}
			if outcome, err = s.apply(&corev1.Service{}, s.service(80)); err != nil || outcome.Applied {
				t.Errorf("not silent afterwards: %+v, %v", outcome, err)
			}
			if outcome, err = s.apply(&corev1.Service{}, s.service(81)); err != nil || !outcome.Applied || outcome.Repaired {
				t.Errorf("what its owner changes: %+v, %v", outcome, err)
			}
		})
	}
}

// awaitGarbageCollector returns once it knows all Services that are there now: it orphans only those that it knows, and
// deletes the others, because their owner is gone. It is told of Services in their order, and deletes one whose owner
// never was.
func (s *stage) awaitGarbageCollector() {
	s.Helper()
	last := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.owner.Namespace, Name: "last", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "never", UID: "never"},
		}},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	s.must(s.Create(s.Context(), last))
	s.eventually(func() bool { return apierrors.IsNotFound(s.Get(s.Context(), client.ObjectKeyFromObject(last), last)) })
}

// TestApplyTakesOverFromTheDeletedOwner: an owner that was deleted with
// --cascade=orphan and created again has its children.
func TestApplyTakesOverFromTheDeletedOwner(t *testing.T) {
	s := newStage(t)
	_, err := s.apply(&corev1.Service{}, s.service(80))
	s.must(err)
	s.awaitGarbageCollector()
	s.must(s.Delete(t.Context(), s.owner, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	s.eventually(func() bool { // the garbage collector orphans the child, and then lets the owner go
		return apierrors.IsNotFound(s.Get(t.Context(), client.ObjectKeyFromObject(s.owner), &corev1.ConfigMap{}))
	})
	s.owner = s.newOwner(s.owner.Namespace)
	outcome, err := s.apply(&corev1.Service{}, s.service(80))
	s.must(err)
	if !outcome.TakenBack {
		t.Errorf("the outcome is %+v", outcome)
	}
}
