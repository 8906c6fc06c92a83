package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"example.com/fairlead/internal/kit/apply"
)

// Did is what became of the writes of a plan.
type Did struct {
	// Children are those that have a name, as they are after the writes.
	Children Children
	// Failure joins what went wrong; nil if all was done.
	Failure error
}

// executor carries writes out.
type executor struct {
	client    client.Client
	live      client.Reader
	children  apply.Children
	owns      func(owner, child client.Object) bool
	memory    *apply.Memory
	held      *held
	overruled *overruled
	events    recorder.EventRecorder
	optional  map[string]*optional // by kind
	words     map[string]string
	counts    counts
	now       func() time.Time
}

// round is one time that a plan is carried out.
type round struct {
	*executor
	owner  client.Object
	reader *Reader
	isNew  bool // nothing was reported about the owner's present generation

	did      Did
	failures []error   // of did.Failure
	again    bool      // something was otherwise than the cache had it
	found    bool      // something was there that the cache does not show
	conflict bool      // there was another write
	retryAt  time.Time // when a refused write is tried again
	awaits   bool      // the event of a write
	errs     []error   // for the queue to retry
}

// carryOut sends the writes of a plan.
func (x *executor) carryOut(ctx context.Context, owner client.Object, isNew bool, reader *Reader, plan *Plan) *round {
	r := &round{executor: x, owner: owner, isNew: isNew, reader: reader, did: Did{Children: reader.Children}}
	for _, w := range plan.Writes {
		r.do(ctx, w)
		if r.found {
			break // what follows was decided without what is there
		}
	}
	if len(r.failures) == 0 && !r.again {
		for _, w := range plan.Then {
			r.do(ctx, w)
		}
	}
	r.did.Failure = errors.Join(r.failures...)
	r.again = r.again || plan.Again && len(r.failures) == 0
	return r
}

// do makes one write, and sorts what went wrong with it.
func (r *round) do(ctx context.Context, w Write) {
	if last, ok := r.held.back(r.owner, w, r.now()); ok {
		r.refuse(last)
		return
	}
	err := r.send(withName(ctx, Name(w)), w)
	if err != nil {
		r.counts.write(Name(w), resultOf(err))
	}
	switch {
	case err == nil:
		r.held.done(r.owner, w)
	case apply.AnyOf(err, apierrors.IsConflict):
		r.conflict = true
		r.failures = append(r.failures, err)
	case !isReported(err):
		failure := &WriteError{w, err}
		r.failures = append(r.failures, failure)
		r.errs = append(r.errs, failure)
	case r.goOn(ctx, w, err):
	default:
		last, isFirst := r.held.note(r.owner, w, &WriteError{w, err}, r.now())
		if isFirst {
			log.FromContext(ctx).Info("write refused", "write", described(w), "why", err.Error())
		}
		r.refuse(last)
	}
}

// goOn does what a write has for the case that it is refused. It returns false if that is nothing.
func (r *round) goOn(ctx context.Context, w Write, refusal error) bool {
	if p, ok := w.(Patch); ok && p.Otherwise != nil {
		log.FromContext(ctx).Info("write refused, another one is made", "write", described(w), "for", p.Why, "why", refusal.Error())
		r.do(ctx, p.Otherwise)
		return true
	}
	a, ok := w.(Apply)
	isAnew := ok && (a.Refused != nil && a.Refused(refusal) || r.findHidden(ctx, a))
	r.again = r.again || isAnew
	return isAnew
}

func (r *round) refuse(last refusal) {
	r.failures = append(r.failures, last.err)
	if r.retryAt.IsZero() || last.until.Before(r.retryAt) {
		r.retryAt = last.until
	}
}

// isReported says whether an error lasts until a user acts, so that status is the place
// for it.
func isReported(err error) bool {
	var taken *apply.ConflictError
	return errors.As(err, &taken) || apply.AnyOf(err, apply.IsRefusal)
}

func (r *round) send(ctx context.Context, w Write) error {
	if w.head().ifCurrent || r.isAgain(w) || r.takesBack(w) {
		if err := r.ownerIsCurrent(ctx); err != nil {
			return err
		}
	}
	switch w := w.(type) {
	case Create:
		return r.create(ctx, w)
	case Apply:
		return r.apply(ctx, w)
	case Patch:
		return r.patch(ctx, w)
	case Delete:
		return r.delete(ctx, w)
	case Call:
		err := w.Do(ctx, Caller{Client: r.client, Live: r.live, Wrote: r.note, Emit: r.emit})
		switch {
		case errors.Is(err, ErrNotNow):
			return nil
		case err == nil:
			r.counts.write(Name(w), asDone)
		}
		return err
	}
	return fmt.Errorf("no such write: %T", w)
}

// isAgain says whether a write makes an object that was deleted lately. The owner may be
// gone as well, and only this cache not show it: the garbage collector and the operator
// would then be at work against each other.
func (r *round) isAgain(w Write) bool {
	h := w.head()
	if h.verb != "create" && h.verb != "apply" || h.object.GetUID() != "" {
		return false
	}
	return r.memory.WentLately(KindOf(h.object), client.ObjectKey{Namespace: r.owner.GetNamespace(), Name: objectName(w)})
}

// takesBack says whether a write gives a child its owner reference back. The garbage collector takes that away when the
// owner is deleted with --cascade=orphan, which this cache may not show yet: given back, it would have the child deleted
// with the owner.
func (r *round) takesBack(w Write) bool {
	a, ok := w.(Apply)
	return ok && a.Object.GetUID() != "" && metav1.GetControllerOf(a.Object) == nil
}

func (r *round) create(ctx context.Context, w Create) error {
	obj := w.Object.DeepCopyObject().(client.Object)
	err := r.client.Create(ctx, obj, client.FieldOwner(r.children.Manager))
	if apierrors.IsAlreadyExists(err) {
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		if !r.owns(r.owner, obj) {
			return &apply.ConflictError{Kind: KindOf(obj), Name: obj.GetName(), Predecessor: apply.BelongsToPredecessor(obj, r.owner)}
		}
		if !w.Named {
			r.find(obj)
		}
		return nil
	}
	if err != nil {
		return err
	}
	r.note(obj)
	r.logCreated(ctx, obj, false)
	if !r.isShown(obj) {
		r.find(obj) // there will be no event
	}
	return nil
}

// find puts an object that the cache does not show where the next observation
// sees it.
func (r *round) find(obj client.Object) {
	r.reader.found[foundKeyOf(obj)] = obj
	r.again, r.found = true, true
}

func (r *round) apply(ctx context.Context, w Apply) error {
	seen := w.Object.DeepCopyObject().(client.Object)
	outcome, err := r.children.Apply(ctx, r.owner, seen, w.Want)
	if err == nil && outcome.Found && w.Named {
		outcome, err = r.children.Apply(ctx, r.owner, seen, w.Want)
	}
	kind := KindOf(seen)
	switch {
	case apierrors.IsNotFound(err) && r.optional[kind] != nil:
		gone, askErr := r.optional[kind].isGone(ctx)
		r.again = r.again || gone
		if gone || askErr != nil {
			return askErr
		}
		return err
	case err != nil:
		return err
	case outcome.Found:
		r.find(seen)
		return nil
	case outcome.Created:
		r.logCreated(ctx, seen, !r.isNew && !w.Named)
	case outcome.Applied:
		r.logApplied(ctx, w, outcome)
	}
	if outcome.Created || outcome.Applied {
		r.note(seen)
	}
	if old, ok := r.did.Children[kind]; ok && (old.GetUID() == "" || old.GetName() == seen.GetName()) {
		r.did.Children = r.did.Children.With(seen)
	}
	if w.Private && len(outcome.Overruled) > 0 {
		outcome.Overruled = []string{"data"}
	}
	r.overruled.note(client.ObjectKeyFromObject(r.owner), kind+" "+seen.GetName(), outcome.Overruled)
	if outcome.TakenBack {
		r.emit(Event{Reason: "TakenBack", Action: "Repair",
			Note: fmt.Sprintf("Restored the owner reference or labels of %s %q", kind, seen.GetName())})
	}
	return nil
}

func (r *round) patch(ctx context.Context, w Patch) error {
	obj := w.Object.DeepCopyObject().(client.Object) // what was observed stays as it is
	data, err := w.data()
	if err != nil {
		return err
	}
	patch := client.RawPatch(types.StrategicMergePatchType, data)
	if w.Subresource != "" {
		err = r.client.SubResource(w.Subresource).Patch(ctx, obj, patch, client.FieldOwner(r.children.Manager))
	} else {
		err = r.client.Patch(ctx, obj, patch, client.FieldOwner(r.children.Manager))
	}
	if apierrors.IsNotFound(err) {
		r.counts.write(Name(w), asConflict)
		return nil // the event of its deletion follows
	}
	if err != nil {
		return err
	}
	r.note(obj)
	r.counts.write(Name(w), asDone)
	if w.Why != "" {
		log.FromContext(ctx).Info("patched", "kind", KindOf(obj), "child", obj.GetName(), "why", w.Why)
	}
	if w.Done != nil {
		w.Done()
	}
	return nil
}

func (r *round) delete(ctx context.Context, w Delete) error {
	uid, version := w.Object.GetUID(), w.Object.GetResourceVersion()
	same := client.Preconditions{UID: &uid}
	if w.IfSame {
		same.ResourceVersion = &version
	}
	err := r.client.Delete(ctx, w.Object, same, client.PropagationPolicy("Background"))
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	kind := KindOf(w.Object)
	r.reader.found.deleted(w.Object)
	r.memory.NoteDeleted(kind, w.Object)
	r.overruled.drop(client.ObjectKeyFromObject(r.owner), kind+" "+w.Object.GetName())
	r.awaits = true
	r.counts.write(Name(w), asDone)
	if w.Why != "" {
		log.FromContext(ctx).Info(kind+" deleted", "child", w.Object.GetName(), "why", w.Why)
	}
	return nil
}

// emit reports an event about the owner.
func (r *round) emit(e Event) { emit(r.events, r.owner, e) }

func emit(events recorder.EventRecorder, about client.Object, e Event) {
	if e.Type == "" {
		e.Type = corev1.EventTypeNormal
	}
	events.Eventf(about, nil, e.Type, e.Reason, e.Action, "%s", e.Note)
}

// note remembers a write, unless no cache will ever show the object.
func (r *round) note(obj client.Object) {
	r.reader.found.wrote(obj)
	if r.isShown(obj) {
		r.memory.Note(KindOf(obj), obj)
		r.awaits = true
	}
}

// isShown says whether an object has the label by which the cache shows it.
func (r *round) isShown(obj client.Object) bool {
	return obj.GetLabels()[apply.ManagedByLabel] == r.children.Manager
}

// ownerIsCurrent returns a conflict if the cache's owner is not the API server's.
// Two caches are not equally late: one may show what the other has not led to yet.
func (r *round) ownerIsCurrent(ctx context.Context) error {
	now := r.owner.DeepCopyObject().(client.Object)
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(r.owner), now); err != nil {
		return err
	}
	if now.GetResourceVersion() != r.owner.GetResourceVersion() {
		return apierrors.NewConflict(schema.GroupResource{Resource: KindOf(r.owner)}, r.owner.GetName(), errors.New("the cache is late"))
	}
	return nil
}

// findHidden looks for the cause of a refusal to create: the child may be there, without
// the label by which the cache shows it. The API server looks at some fields, such as the
// node port of a Service, before it looks at the name.
func (r *round) findHidden(ctx context.Context, w Apply) bool {
	if w.Object.GetUID() != "" {
		return false
	}
	hidden := w.Object.DeepCopyObject().(client.Object)
	err := r.live.Get(ctx, client.ObjectKey{Namespace: r.owner.GetNamespace(), Name: objectName(w)}, hidden)
	if client.IgnoreNotFound(err) != nil {
		log.FromContext(ctx).Info("cannot look for what may be there already", "write", described(w), "why", err.Error())
	}
	if err != nil || !r.owns(r.owner, hidden) {
		return false
	}
	r.find(hidden)
	return true
}

// logCreated logs a new child, in the words of its user.
func (r *round) logCreated(ctx context.Context, child client.Object, again bool) {
	kind := KindOf(child)
	r.counts.write(NameOf(ctx), asDone)
	said := kind + " created"
	if again {
		r.counts.repair(kind)
		said += " again"
	}
	log.FromContext(ctx).Info(said, "kind", kind, "child", child.GetName())
}

// logApplied logs what of a child was changed.
func (r *round) logApplied(ctx context.Context, w Apply, outcome apply.Outcome) {
	kind := KindOf(outcome.Object)
	r.counts.write(Name(w), asDone)
	if outcome.Repaired {
		r.counts.repair(kind)
	}
	logger := log.FromContext(ctx).WithValues("kind", kind, "child", outcome.Object.GetName())
	var others []string
	for _, change := range outcome.Changes {
		word, ok := r.words[change.Path]
		switch {
		case w.Private: // its content is nobody's business
			others = []string{"data"}
		case ok:
			logger.Info(fmt.Sprintf("%s changed from %v to %v", word, change.From, change.To), "from", change.From, "to", change.To)
		case !strings.Contains(change.Path, "annotations."+r.children.Manager):
			others = append(others, change.Path)
		}
	}
	if len(others) > 0 {
		logger.Info(kind+" changed", "fields", others)
	}
}
