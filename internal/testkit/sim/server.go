package sim

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Server is an API server of one history: every request is done at once, in the order
// in which they come. What it has stored is never changed, so that caches share it.
type Server struct {
	API *API

	// Admit, if set, is asked about every write before it is stored; old is nil for a new
	// object.
	Admit func(k *Kind, old, obj client.Object) error
	// Stored, if set, is told of every change.
	Stored func(Change)

	now     func() time.Time
	version int64
	uids    int64
	ports   int32 // how many addresses and node ports were given
	stores  map[schema.GroupVersionKind]*store
	ordered []*store // in the order of their first use
}

// Change is a write that changed something.
type Change struct {
	Kind *Kind
	Type watch.EventType
	// Old is nil for an object that was added. New is what was deleted, too, with the
	// version of the deletion.
	Old, New client.Object
	By       string
}

type store struct {
	kind    *Kind
	objects map[types.NamespacedName]client.Object
	keys    []types.NamespacedName // sorted
	log     []Change
}

// NewServer makes an empty server with a clock.
func NewServer(api *API, now func() time.Time) *Server {
	return &Server{API: api, now: now, stores: map[schema.GroupVersionKind]*store{}}
}

// write is what a request to write says besides the object.
type write struct {
	by          string // who sends it, for the story
	manager     string // of fields
	subresource string
	dryRun      bool
	force       bool // of an apply
}

func (s *Server) store(k *Kind) *store {
	st := s.stores[k.GroupVersionKind]
	if st == nil {
		st = &store{kind: k, objects: map[types.NamespacedName]client.Object{}}
		s.stores[k.GroupVersionKind] = st
		s.ordered = append(s.ordered, st)
	}
	return st
}

// find is the stored object, or a NotFound error. It must not be changed.
func (s *Server) find(k *Kind, key types.NamespacedName) (client.Object, error) {
	if !k.Namespaced {
		key.Namespace = ""
	}
	if obj, ok := s.store(k).objects[key]; ok {
		return obj, nil
	}
	return nil, apierrors.NewNotFound(k.groupResource(), key.Name)
}

// each calls f for the stored objects of a kind by their names, until it returns false.
func (s *Server) each(k *Kind, namespace string, f func(client.Object) bool) {
	st := s.store(k)
	for _, key := range st.keys {
		if namespace != "" && key.Namespace != namespace {
			continue
		}
		if obj, ok := st.objects[key]; ok && !f(obj) {
			return
		}
	}
}

func (s *Server) create(k *Kind, obj client.Object, w write) (client.Object, error) {
	obj, err := k.received(obj)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if obj.GetResourceVersion() != "" {
		return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if obj.GetName() == "" {
		if obj.GetGenerateName() == "" {
			return nil, apierrors.NewInvalid(k.GroupKind(), "", nil)
		}
		obj.SetName(obj.GetGenerateName() + strconv.FormatInt(s.uids+1, 36))
	}
	return s.add(k, obj, w, true)
}

// add stores a new object, of which nothing but the managed fields may be set.
func (s *Server) add(k *Kind, obj client.Object, w write, isUpdate bool) (client.Object, error) {
	obj.SetUID("")
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetSelfLink("")
	obj, err := s.admitted(k, nil, obj, "")
	if err != nil {
		return nil, err
	}
	key := client.ObjectKeyFromObject(obj)
	if !k.Namespaced {
		key.Namespace = ""
		obj.SetNamespace("")
	}
	if _, exists := s.store(k).objects[key]; exists {
		return nil, apierrors.NewAlreadyExists(k.groupResource(), key.Name)
	}
	if k.countsGenerations() {
		obj.SetGeneration(1)
	}
	obj.SetCreationTimestamp(metav1.NewTime(s.now().Truncate(time.Second)))
	if isUpdate {
		if err := s.API.fields.update(nil, obj, w.manager, "", s.now()); err != nil {
			return nil, err
		}
	}
	if w.dryRun {
		return obj, nil
	}
	s.uids++
	obj.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", s.uids)))
	s.put(k, Change{Kind: k, Type: watch.Added, New: obj, By: w.by})
	return obj, nil
}

// admitted is an object as it would be stored, after defaults and validation.
func (s *Server) admitted(k *Kind, old, obj client.Object, subresource string) (client.Object, error) {
	var err error
	if k.definition != nil {
		obj, err = k.definition.admit(obj, old, subresource)
	} else {
		err = s.prepare(k, old, obj, subresource)
	}
	if err == nil && s.Admit != nil {
		err = s.Admit(k, old, obj)
	}
	return obj, err
}

func (s *Server) conflict(k *Kind, name, why string) error {
	return apierrors.NewConflict(k.groupResource(), name, errors.New(why))
}

// delete removes an object, or marks it for those who have a finalizer, or for the
// kubelet of a pod that is on a node.
func (s *Server) delete(k *Kind, key types.NamespacedName, options *client.DeleteOptions, w write) error {
	old, err := s.find(k, key)
	if err != nil {
		return err
	}
	if p := options.Preconditions; p != nil {
		if p.UID != nil && *p.UID != old.GetUID() {
			return s.conflict(k, key.Name, fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", *p.UID, old.GetUID()))
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != old.GetResourceVersion() {
			return s.conflict(k, key.Name, "Precondition failed: ResourceVersion")
		}
	}
	if w.dryRun {
		return nil
	}
	grace := gracePeriod(old, options.GracePeriodSeconds)
	if len(old.GetFinalizers()) == 0 && grace == 0 {
		s.remove(k, old, w)
		return nil
	}
	if old.GetDeletionTimestamp() != nil {
		return nil
	}
	obj := old.DeepCopyObject().(client.Object)
	at := metav1.NewTime(s.now().Truncate(time.Second).Add(time.Duration(grace) * time.Second))
	obj.SetDeletionTimestamp(&at)
	obj.SetDeletionGracePeriodSeconds(&grace)
	nextGeneration(old, obj)
	s.put(k, Change{Kind: k, Type: watch.Modified, Old: old, New: obj, By: w.by})
	return nil
}

// gracePeriod is how many seconds a deleted object is kept; 0 for all but pods at work.
func gracePeriod(obj client.Object, requested *int64) int64 {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return 0
	}
	if requested != nil {
		return *requested
	}
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		return *pod.Spec.TerminationGracePeriodSeconds
	}
	return corev1.DefaultTerminationGracePeriodSeconds
}

func (s *Server) remove(k *Kind, old client.Object, w write) client.Object {
	last := shallow(old)
	s.put(k, Change{Kind: k, Type: watch.Deleted, Old: old, New: last, By: w.by})
	return last
}

// put stores a change.
func (s *Server) put(k *Kind, c Change) {
	s.version++
	c.New.SetResourceVersion(strconv.FormatInt(s.version, 10))
	st := s.store(k)
	key := client.ObjectKeyFromObject(c.New)
	if c.Type == watch.Deleted {
		delete(st.objects, key)
		if i, found := slices.BinarySearchFunc(st.keys, key, byName); found {
			st.keys = slices.Delete(st.keys, i, i+1)
		}
	} else {
		st.objects[key] = c.New
		if i, found := slices.BinarySearchFunc(st.keys, key, byName); !found {
			st.keys = slices.Insert(st.keys, i, key)
		}
	}
	st.log = append(st.log, c)
	if s.Stored != nil {
		s.Stored(c)
	}
}

func byName(a, b types.NamespacedName) int {
	if order := strings.Compare(a.Namespace, b.Namespace); order != 0 {
		return order
	}
	return strings.Compare(a.Name, b.Name)
}
