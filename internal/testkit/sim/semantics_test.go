package sim

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

// request is what a step does.
type request = func(a *attempt) error

const otherUID types.UID = "11111111-2222-4333-8444-555555555555"

// creates creates an object, after some changes.
func creates[T client.Object](obj func() T, changes ...func(T)) request {
	return createsWith(obj, nil, changes...)
}

func createsWith[T client.Object](obj func() T, opts []client.CreateOption, changes ...func(T)) request {
	return func(a *attempt) error {
		made := obj()
		made.SetNamespace(a.namespace)
		made.SetName(objectName)
		for _, change := range changes {
			change(made)
		}
		return a.Create(a, made, opts...)
	}
}

// updates sends the object as it was seen, after some changes.
func updates[T client.Object](changes ...func(T)) request {
	return func(a *attempt) error { return a.Update(a, changed(a, changes...)) }
}

func updatesStatus[T client.Object](changes ...func(T)) request {
	return func(a *attempt) error { return a.Status().Update(a, changed(a, changes...)) }
}

func dryRun[T client.Object](changes ...func(T)) request {
	return func(a *attempt) error { return a.Update(a, changed(a, changes...), client.DryRunAll) }
}

func changed[T client.Object](a *attempt, changes ...func(T)) T {
	obj := a.seen.DeepCopyObject().(T)
	for _, change := range changes {
		change(obj)
	}
	return obj
}

// patches sends a patch, and deletes a deletion, of the object of the case.
func patches(empty client.Object, how types.PatchType, data string) request {
	return func(a *attempt) error { return a.Patch(a, named(a, empty), client.RawPatch(how, []byte(data))) }
}

func deletes(empty client.Object, opts ...client.DeleteOption) request {
	return func(a *attempt) error { return a.Delete(a, named(a, empty), opts...) }
}

func named(a *attempt, empty client.Object) client.Object {
	obj := empty.DeepCopyObject().(client.Object)
	obj.SetNamespace(a.namespace)
	obj.SetName(objectName)
	return obj
}

// applies is a server-side apply of a manifest in JSON.
func applies(manager, text string, opts ...client.ApplyOption) request {
	return func(a *attempt) error {
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
			return err
		}
		u.SetNamespace(a.namespace)
		u.SetName(objectName)
		return a.Apply(a, client.ApplyConfigurationFromUnstructured(u), append(opts, client.FieldOwner(manager))...)
	}
}

// appliesAs is an apply with the version and the UID that are returned.
func appliesAs(text string, which func(seen client.Object) (version string, uid types.UID)) request {
	return func(a *attempt) error {
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
			return err
		}
		u.SetNamespace(a.namespace)
		u.SetName(objectName)
		version, uid := which(a.seen)
		if version != "" {
			u.SetResourceVersion(version)
		}
		if uid != "" {
			u.SetUID(uid)
		}
		return a.Apply(a, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("me"))
	}
}

func binds() request {
	return func(a *attempt) error {
		return a.SubResource("binding").Create(a, named(a, &corev1.Pod{}), &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: objectName}, Target: corev1.ObjectReference{Kind: "Node", Name: "n"}})
	}
}

// Changes of whatever object.

func labelled[T client.Object](value string) func(T) {
	return func(obj T) { obj.SetLabels(map[string]string{"l": value}) }
}

func version[T client.Object](v string) func(T) { return func(obj T) { obj.SetResourceVersion(v) } }

func uid[T client.Object](u types.UID) func(T) { return func(obj T) { obj.SetUID(u) } }

func finalizers[T client.Object](names ...string) func(T) {
	return func(obj T) { obj.SetFinalizers(names) }
}

// differences are what the simulated server answers otherwise than the real one, by case
// and step.
var differences = map[string]string{
	// Nobody does that, and the answer is an error on both.
	"create, update, delete: with a version": "400 BadRequest, gone",
	// The real server stores the defaults of a status with the first write that follows.
	"apply of an At: again":                          "ok",
	"generation of an At: the default of the status": "ok",
	// Its collector removes the references to owners that are gone.
	"garbage of two owners: one goes": "ok",
}

// serverCases are the table, with what a real API server says.
func serverCases() []serverCase {
	return []serverCase{
		{"create, update, delete", &corev1.ConfigMap{}, []serverStep{
			{"dry run", createsWith(configMap, []client.CreateOption{client.DryRunAll}), "ok, gone"},
			{"with a version", creates(configMap, version[*corev1.ConfigMap]("7")), "500 , gone"},
			{"create", creates(configMap, uid[*corev1.ConfigMap](otherUID)), "ok, there, generation 0"},
			{"again", creates(configMap), "409 AlreadyExists"},
			{"again, dry run", createsWith(configMap, []client.CreateOption{client.DryRunAll}), "409 AlreadyExists"},
			{"update nothing", updates[*corev1.ConfigMap](), "ok"},
			{"update", updates(data("w")), "ok, stored"},
			{"update of an old version", updates(version[*corev1.ConfigMap]("1"), data("x")), "409 Conflict"},
			{"update of an old version, nothing", updates(version[*corev1.ConfigMap]("1")), "409 Conflict"},
			{"update of another UID", updates(uid[*corev1.ConfigMap](otherUID), data("x")), "409 Conflict"},
			{"update of another UID, any version", updates(version[*corev1.ConfigMap](""), uid[*corev1.ConfigMap](otherUID), data("x")), "409 Conflict"},
			{"update of any version", updates(version[*corev1.ConfigMap](""), data("x")), "ok, stored"},
			{"update, dry run", dryRun(data("y")), "ok"},
			{"delete another UID", deletes(&corev1.ConfigMap{}, client.Preconditions{UID: new(otherUID)}), "409 Conflict"},
			{"delete another version", deletes(&corev1.ConfigMap{}, client.Preconditions{ResourceVersion: new("1")}), "409 Conflict"},
			{"delete, dry run", deletes(&corev1.ConfigMap{}, client.DryRunAll), "ok"},
			{"delete", func(a *attempt) error {
				uid, version := a.seen.GetUID(), a.seen.GetResourceVersion()
				return a.Delete(a, a.seen, client.Preconditions{UID: &uid, ResourceVersion: &version})
			}, "ok, gone"},
			{"delete again", deletes(&corev1.ConfigMap{}), "404 NotFound, gone"},
			{"patch what is gone", patches(&corev1.ConfigMap{}, types.MergePatchType, `{"data":{"k":"w"}}`), "404 NotFound, gone"},
			{"create anew", creates(configMap), "ok, there, generation 0"},
		}},
		{"update what is not there", &corev1.ConfigMap{}, []serverStep{
			{"update", func(a *attempt) error {
				return a.Update(a, named(a, configMap()))
			}, "404 NotFound, gone"},
			{"status of an At", func(a *attempt) error { return a.Status().Update(a, named(a, anyAt())) }, "404 NotFound, gone"},
		}},
		{"generation of an At", &atv1alpha1.At{}, []serverStep{
			{"invalid", creates(anyAt, func(at *atv1alpha1.At) { at.Spec.Schedule = "tomorrow" }), "422 Invalid, gone"},
			{"create", creates(anyAt, phase("RUNNING")), "ok, there, generation 1"},
			{"the default of the status", updatesStatus[*atv1alpha1.At](phase("PENDING")), "ok, stored"},
			{"label", updates(labelled[*atv1alpha1.At]("m")), "ok, stored"},
			{"spec", updates(command("true")), "ok, stored, generation 2"},
			{"spec once more", updates(command("true")), "ok"},
			{"no status is updated", updates(phase("RUNNING")), "ok"},
			{"status", updatesStatus(phase("RUNNING")), "ok, stored"},
			{"the same status", updatesStatus(phase("RUNNING")), "ok"},
			{"status, and spec", updatesStatus(command("false")), "ok"},
			{"status, and a label", updatesStatus(labelled[*atv1alpha1.At]("n")), "ok"},
			{"invalid status", updatesStatus(phase("DREAMING")), "422 Invalid"},
			{"status of an old version", updatesStatus(version[*atv1alpha1.At]("1"), phase("DONE")), "409 Conflict"},
			{"status of another UID", updatesStatus(uid[*atv1alpha1.At](otherUID), phase("DONE")), "409 Conflict"},
			{"status of any version", updatesStatus(version[*atv1alpha1.At](""), phase("DONE")), "422 Invalid"},
			{"delete", deletes(&atv1alpha1.At{}), "ok, gone"},
		}},
		{"finalizers of an At", &atv1alpha1.At{}, []serverStep{
			{"create", creates(anyAt, finalizers[*atv1alpha1.At]("example.com/a", "example.com/b")), "ok, there, generation 1"},
			{"delete, dry run", deletes(&atv1alpha1.At{}, client.DryRunAll), "ok"},
			{"delete", deletes(&atv1alpha1.At{}), "ok, stored, generation 2, being deleted"},
			{"delete again", deletes(&atv1alpha1.At{}), "ok"},
			{"label", updates(labelled[*atv1alpha1.At]("m")), "ok, stored"},
			{"another finalizer", updates(finalizers[*atv1alpha1.At]("example.com/a", "example.com/b", "example.com/c")), "422 Invalid"},
			{"one fewer", updates(finalizers[*atv1alpha1.At]("example.com/b")), "ok, stored"},
			{"status", updatesStatus(phase("RUNNING")), "ok, stored"},
			{"none", updates(finalizers[*atv1alpha1.At]()), "ok, gone"},
		}},
		{"finalizers of a ConfigMap", &corev1.ConfigMap{}, []serverStep{
			{"create", creates(configMap, finalizers[*corev1.ConfigMap]("example.com/a")), "ok, there, generation 0"},
			{"delete", deletes(&corev1.ConfigMap{}), "ok, stored, being deleted"},
			{"create again", creates(configMap), "409 AlreadyExists"},
			{"another finalizer, by a patch", patches(&corev1.ConfigMap{}, types.MergePatchType, `{"metadata":{"finalizers":["example.com/a","example.com/b"]}}`), "422 Invalid"},
			{"none, by a patch", patches(&corev1.ConfigMap{}, types.MergePatchType, `{"metadata":{"finalizers":null}}`), "ok, gone"},
		}},
		{"patches", &corev1.ConfigMap{}, []serverStep{
			{"create", creates(configMap), "ok, there, generation 0"},
			{"merge", patches(&corev1.ConfigMap{}, types.MergePatchType, `{"data":{"k":"w"}}`), "ok, stored"},
			{"the same", patches(&corev1.ConfigMap{}, types.MergePatchType, `{"data":{"k":"w"}}`), "ok"},
			{"merge of an old version", patches(&corev1.ConfigMap{}, types.MergePatchType, `{"metadata":{"resourceVersion":"1"},"data":{"k":"x"}}`), "409 Conflict"},
			{"merge of another UID", patches(&corev1.ConfigMap{}, types.MergePatchType, `{"metadata":{"uid":"`+string(otherUID)+`"},"data":{"k":"x"}}`), "422 Invalid"},
			{"merge of no JSON", patches(&corev1.ConfigMap{}, types.MergePatchType, `{"data":`), "400 BadRequest"},
			{"merge of a wrong type", patches(&corev1.ConfigMap{}, types.MergePatchType, `{"data":"k"}`), "422 Invalid"},
			{"strategic merge", patches(&corev1.ConfigMap{}, types.StrategicMergePatchType, `{"data":{"k":"y"}}`), "ok, stored"},
			{"JSON, test passes", patches(&corev1.ConfigMap{}, types.JSONPatchType, `[{"op":"test","path":"/data/k","value":"y"},{"op":"replace","path":"/data/k","value":"z"}]`), "ok, stored"},
			{"JSON, test fails", patches(&corev1.ConfigMap{}, types.JSONPatchType, `[{"op":"test","path":"/data/k","value":"y"},{"op":"replace","path":"/data/k","value":"a"}]`), "422 Invalid"},
			{"JSON, nothing to remove", patches(&corev1.ConfigMap{}, types.JSONPatchType, `[{"op":"remove","path":"/data/nothing"}]`), "422 Invalid"},
			{"JSON, what is not there is null", patches(&corev1.ConfigMap{}, types.JSONPatchType, `[{"op":"test","path":"/data/nothing","value":null},{"op":"test","path":"/metadata/annotations","value":null}]`), "ok"},
			{"JSON, below what is not there", patches(&corev1.ConfigMap{}, types.JSONPatchType, `[{"op":"test","path":"/metadata/annotations/a","value":null}]`), "422 Invalid"},
			{"JSON, test of the UID", func(a *attempt) error {
				return patches(&corev1.ConfigMap{}, types.JSONPatchType, `[{"op":"test","path":"/metadata/uid","value":"`+string(a.seen.GetUID())+`"},{"op":"remove","path":"/data/k"}]`)(a)
			}, "ok, stored"},
		}},
		{"patches of an At", &atv1alpha1.At{}, []serverStep{
			{"create", creates(anyAt), "ok, there, generation 1"},
			{"strategic merge", patches(&atv1alpha1.At{}, types.StrategicMergePatchType, `{"spec":{"suspend":true}}`), "415 UnsupportedMediaType"},
			{"merge", patches(&atv1alpha1.At{}, types.MergePatchType, `{"spec":{"suspend":true}}`), "ok, stored, generation 2"},
			{"invalid", patches(&atv1alpha1.At{}, types.MergePatchType, `{"spec":{"backoffLimit":-1}}`), "422 Invalid"},
			{"unknown field", patches(&atv1alpha1.At{}, types.MergePatchType, `{"spec":{"colour":"red"}}`), "ok"},
			{"no status", patches(&atv1alpha1.At{}, types.MergePatchType, `{"status":{"phase":"RUNNING"}}`), "ok"},
			{"status", func(a *attempt) error {
				return a.Status().Patch(a, named(a, &atv1alpha1.At{}), client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"RUNNING"}}`)))
			}, "ok, stored"},
		}},
		{"apply", &corev1.ConfigMap{}, []serverStep{
			{"with a UID, nothing is there", appliesAs(appliedMap("v"), func(client.Object) (string, types.UID) { return "", otherUID }), "409 Conflict, gone"},
			{"with a version, nothing is there", appliesAs(appliedMap("v"), func(client.Object) (string, types.UID) { return "7", "" }), "ok, there, generation 0"},
			{"delete", deletes(&corev1.ConfigMap{}), "ok, gone"},
			{"dry run", applies("me", appliedMap("v"), client.DryRunAll), "ok, gone"},
			{"create", applies("me", appliedMap("v")), "ok, there, generation 0"},
			{"again", applies("me", appliedMap("v")), "ok"},
			{"change", applies("me", appliedMap("w")), "ok, stored"},
			{"of somebody else, the same", applies("you", appliedMap("w")), "ok, stored"},
			{"of somebody else, other", applies("you", appliedMap("x")), "409 Conflict"},
			{"of somebody else, other, by force", applies("you", appliedMap("x"), client.ForceOwnership), "ok, stored"},
			{"dry run of a change", applies("you", appliedMap("y"), client.DryRunAll), "ok"},
			{"with a field fewer", applies("you", `{"apiVersion":"v1","kind":"ConfigMap"}`), "ok, stored"},
			{"of an old version", appliesAs(appliedMap("z"), func(client.Object) (string, types.UID) { return "1", "" }), "409 Conflict"},
			{"of another UID", appliesAs(appliedMap("z"), func(client.Object) (string, types.UID) { return "", otherUID }), "422 Invalid"},
			{"of this very version", appliesAs(appliedMap("z"), func(seen client.Object) (string, types.UID) {
				return seen.GetResourceVersion(), seen.GetUID()
			}), "ok, stored"},
		}},
		{"apply of an At", &atv1alpha1.At{}, []serverStep{
			{"invalid", applies("me", appliedAt(`"schedule":"tomorrow"`)), "422 Invalid, gone"},
			{"create", applies("me", appliedAt(`"schedule":"2031-01-06T08:00:00Z","command":"true"`)), "ok, there, generation 1"},
			{"again", applies("me", appliedAt(`"schedule":"2031-01-06T08:00:00Z","command":"true"`)), "ok, stored"},
			{"and again", applies("me", appliedAt(`"schedule":"2031-01-06T08:00:00Z","command":"true"`)), "ok"},
			{"change", applies("me", appliedAt(`"schedule":"2031-01-06T08:00:00Z","command":"false"`)), "ok, stored, generation 2"},
			{"invalid change", applies("me", appliedAt(`"schedule":"tomorrow"`)), "422 Invalid"},
		}},
		{"what may change in a pod", &corev1.Pod{}, []serverStep{
			{"create", creates(aPod, gates("example.com/a", "example.com/b"), podPhase(corev1.PodFailed)), "ok, there, generation 1"},
			{"bind", binds(), "409 Conflict"},
			{"a gate more", updates(gates("example.com/a", "example.com/b", "example.com/c")), "422 Invalid"},
			{"a gate renamed", updates(gates("example.com/a", "example.com/c")), "422 Invalid"},
			{"a gate fewer", updates(gates("example.com/b")), "ok, stored, generation 2"},
			{"a preferred node and no gate", updates(gates(), prefers("a")), "ok, stored, generation 3"},
			{"another preferred node", updates(prefers("b")), "422 Invalid"},
			{"a gate again", updates(gates("example.com/a")), "422 Invalid"},
			{"image", updates(func(p *corev1.Pod) { p.Spec.Containers[0].Image = "j" }), "ok, stored, generation 4"},
			{"command", updates(func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"c"} }), "422 Invalid"},
			{"deadline", updates(deadline(100)), "ok, stored, generation 5"},
			{"later deadline", updates(deadline(200)), "422 Invalid"},
			{"sooner deadline", updates(deadline(50)), "ok, stored, generation 6"},
			{"label", updates(labelled[*corev1.Pod]("m")), "ok, stored"},
			{"no status", updates(podPhase(corev1.PodRunning)), "ok"},
			{"status", updatesStatus(podPhase(corev1.PodRunning)), "ok, stored"},
			{"a label with a status", updatesStatus(labelled[*corev1.Pod]("n")), "ok, stored"},
			{"bind", binds(), "ok, stored"},
			{"bind again", binds(), "409 Conflict"},
			{"another UID", patches(&corev1.Pod{}, types.MergePatchType, `{"metadata":{"uid":"`+string(otherUID)+`"},"spec":{"activeDeadlineSeconds":1}}`), "422 Invalid"},
		}},
		{"deletion of a pod without a node", &corev1.Pod{}, []serverStep{
			{"create", creates(aPod, gates("example.com/a")), "ok, there, generation 1"},
			{"delete", deletes(&corev1.Pod{}), "ok, gone"},
		}},
		{"deletion of a pod with a node", &corev1.Pod{}, []serverStep{
			{"create", creates(aPod), "ok, there, generation 1"},
			{"bind", binds(), "ok, stored"},
			{"delete", deletes(&corev1.Pod{}), "ok, stored, generation 2, being deleted"},
			{"delete again", deletes(&corev1.Pod{}), "ok"},
			{"status", updatesStatus(podPhase(corev1.PodRunning)), "ok, stored"},
			{"delete without grace", deletes(&corev1.Pod{}, client.GracePeriodSeconds(0)), "ok, gone"},
		}},
		{"deletion of a finished pod", &corev1.Pod{}, []serverStep{
			{"create", creates(aPod), "ok, there, generation 1"},
			{"bind", binds(), "ok, stored"},
			{"status", updatesStatus(podPhase(corev1.PodSucceeded)), "ok, stored"},
			{"delete", deletes(&corev1.Pod{}), "ok, gone"},
		}},
		{"deletion of a pod with a finalizer", &corev1.Pod{}, []serverStep{
			{"create", creates(aPod, finalizers[*corev1.Pod]("example.com/a")), "ok, there, generation 1"},
			{"delete", deletes(&corev1.Pod{}), "ok, stored, generation 2, being deleted"},
			{"no finalizer", updates(finalizers[*corev1.Pod]()), "ok, gone"},
		}},
		{"deletion of a pod with a node and a finalizer", &corev1.Pod{}, []serverStep{
			{"create", creates(aPod, finalizers[*corev1.Pod]("example.com/a")), "ok, there, generation 1"},
			{"bind", binds(), "ok, stored"},
			{"delete", deletes(&corev1.Pod{}), "ok, stored, generation 2, being deleted"},
			{"no finalizer", updates(finalizers[*corev1.Pod]()), "ok, stored"},
			{"delete without grace", deletes(&corev1.Pod{}, client.GracePeriodSeconds(0)), "ok, gone"},
		}},
		{"garbage", &corev1.ConfigMap{}, []serverStep{
			{"create", owned("a"), "ok, there, generation 0"},
			{"its owner is there", func(a *attempt) error { a.collect(nil); return nil }, "ok"},
			{"its owner goes", disowned("a", isGone), "ok, gone"},
		}},
		{"garbage of two owners", &corev1.ConfigMap{}, []serverStep{
			{"create", owned("a", "b"), "ok, there, generation 0"},
			{"one goes", disowned("a", func(obj client.Object) bool { return obj != nil && len(obj.GetOwnerReferences()) == 1 }), "ok, stored"},
			{"the other goes", disowned("b", isGone), "ok, gone"},
		}},
		{"garbage of an owner that never was", &corev1.ConfigMap{}, []serverStep{
			{"create", func(a *attempt) error {
				err := creates(configMap, func(c *corev1.ConfigMap) {
					c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: otherUID}}
				})(a)
				a.collect(isGone)
				return err
			}, "ok, gone"},
		}},
	}
}

func appliedMap(value string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","data":{"k":"` + value + `"}}`
}

func appliedAt(spec string) string {
	return `{"apiVersion":"at.example.com/v1alpha1","kind":"At","spec":{` + spec + `}}`
}

// owned creates the owners, and the object of the case with references to them.
func owned(owners ...string) request {
	return func(a *attempt) error {
		obj := configMap()
		for _, name := range owners {
			owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: name}}
			if err := a.Create(a, owner); err != nil {
				return err
			}
			obj.OwnerReferences = append(obj.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: owner.UID})
		}
		return creates(func() *corev1.ConfigMap { return obj })(a)
	}
}

func isGone(obj client.Object) bool { return obj == nil }

// disowned deletes an owner, and lets the garbage collector do its work.
func disowned(owner string, is func(client.Object) bool) request {
	return func(a *attempt) error {
		err := a.Delete(a, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: owner}})
		a.collect(is)
		return err
	}
}
