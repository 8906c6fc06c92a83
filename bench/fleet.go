package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fleet is many objects of a kind that are created at once, and what their
// operator does about them, on a cordoned node.
type fleet struct {
	operator operator
	kind     schema.GroupVersionKind
	resource string // of the kind
	spec     map[string]any
	children []fleetChild
	// Bounds: of the time, as a multiple of the bare client's; of the writes of
	// one child, and of one object's status, until all are at rest.
	times                     float64
	childWrites, statusWrites int
}

type fleetChild struct {
	kind     schema.GroupVersionKind
	resource string
	suffix   string // of its name, after the parent's
}

const (
	fleetPrefix    = "fleet-"
	fleetSample    = fleetPrefix + "999999"
	fleetNamespace = "bench-fleet"
)

func fleetName(i int) string { return fmt.Sprintf(fleetPrefix+"%06d", i) }

// measure creates the fleet against a bare client that sends the same requests,
// while the operator is stopped: object, children, first status.
func (f fleet) measure(ctx context.Context, b *bench) ([]figure, error) {
	defer func() { _ = b.cordon(context.WithoutCancel(ctx), false) }()
	pattern, err := f.pattern(ctx, b)
	if err != nil {
		return nil, err
	}
	var bare, ours []time.Duration
	var made fleetRun
	child, status := 0, 0
	for round := range b.rounds {
		took, err := f.bare(ctx, b, pattern)
		if err != nil {
			return nil, err
		}
		if made, err = f.create(ctx, b, round == b.rounds-1); err != nil {
			return nil, err
		}
		b.say("round %d: bare client %s, operator %s; %s", round+1, inSeconds(took), inSeconds(made.took), summary(made.requests))
		bare, ours = append(bare, took), append(ours, made.took)
		child, status = max(child, f.mostOfAChild(made.requests)), max(status, mostOfOne(made.requests, f.resource, "status"))
	}
	what := fmt.Sprintf("%d %ss", b.fleet, f.kind.Kind)
	most := func(of string, n, bound int, detail string) figure {
		return figure{measure: what, what: "writes of " + of + ", at most", value: fmt.Sprint(n), spread: detail, bound: fmt.Sprintf("≤ %d", bound), missed: n > bound}
	}
	return []figure{
		{measure: what, what: "bare client, until the last child exists", value: inSeconds(median(bare)), spread: spread(bare, inSeconds)},
		{measure: what, what: "operator, until the last child exists", value: inSeconds(median(ours)), spread: spread(ours, inSeconds)},
		ratio(what, "operator against the bare client", median(ours).Seconds()/median(bare).Seconds(), f.times, quotients(ours, bare)),
		most("a child", child, f.childWrites, "last round: "+summary(made.requests)),
		most("a status", status, f.statusWrites, ""),
		{measure: what, what: "requests within " + idleTime.String() + " at rest", value: fmt.Sprint(len(made.idle)), spread: summary(made.idle), bound: "0", missed: len(made.idle) > 0},
	}, nil
}

// fleetRun is what became of a fleet.
type fleetRun struct {
	took     time.Duration // from the first object until the last child was there
	requests []request     // of the operator, until all were at rest
	idle     []request     // of the operator, later
}

// create creates the objects with the bare client's workers, and leaves the rest
// to the operator.
func (f fleet) create(ctx context.Context, b *bench, listen bool) (made fleetRun, err error) {
	tail, remove, err := f.stage(ctx, b)
	if err != nil {
		return made, err
	}
	defer tail.close()
	started := time.Now()
	if err := parallel(ctx, b.fleet, func(i int) error { return b.client.Create(ctx, f.object(fleetNamespace, fleetName(i))) }); err != nil {
		return made, err
	}
	if made.took, err = f.lastChild(ctx, tail, b.fleet, started); err != nil {
		return made, err
	}
	if err := b.quiet(ctx); err != nil {
		return made, err
	}
	if _, err := tail.next(); err != nil {
		return made, err
	}
	made.requests = by(f.operator, tail.seen)
	if listen {
		if err := sleep(ctx, idleTime); err != nil {
			return made, err
		}
		more, err := tail.next()
		if err != nil {
			return made, err
		}
		for _, r := range by(f.operator, more) {
			if r.ObjectRef.Resource != "leases" && r.Verb != "watch" {
				made.idle = append(made.idle, r)
			}
		}
	}
	return made, remove(ctx)
}

// bare sends what the user and the operator send for the fleet, each in their
// name, as fast as the API server takes it.
func (f fleet) bare(ctx context.Context, b *bench, pattern []byte) (time.Duration, error) {
	if err := b.scaled(ctx, f.operator, "0"); err != nil {
		return 0, err
	}
	asOperator, err := b.as(ctx, f.operator)
	if err != nil {
		return 0, err
	}
	fleet := make([]fleetPattern, b.fleet)
	for i := range fleet {
		body := strings.ReplaceAll(string(pattern), fleetSample, fleetName(i))
		if err := json.Unmarshal([]byte(body), &fleet[i]); err != nil {
			return 0, err
		}
	}
	tail, remove, err := f.stage(ctx, b)
	if err != nil {
		return 0, err
	}
	defer tail.close()
	started := time.Now()
	if err := parallel(ctx, b.fleet, func(i int) error {
		owner := f.object(fleetNamespace, fleetName(i))
		if err := b.client.Create(ctx, owner); err != nil {
			return err
		}
		for _, child := range fleet[i].Children {
			child.SetNamespace(fleetNamespace)
			child.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, f.kind)})
			if err := asOperator.Create(ctx, child); err != nil {
				return err
			}
		}
		owner.Object["status"] = fleet[i].Status
		return asOperator.Status().Update(ctx, owner)
	}); err != nil {
		return 0, err
	}
	took, err := f.lastChild(ctx, tail, b.fleet, started)
	if err != nil {
		return 0, err
	}
	if err := remove(ctx); err != nil {
		return 0, err
	}
	return took, b.scaled(ctx, f.operator, "1")
}

// stage closes the node, waits for quiet in an empty namespace, and reads the
// audit log from there.
func (f fleet) stage(ctx context.Context, b *bench) (*auditTail, func(context.Context) error, error) {
	if err := b.cordon(ctx, true); err != nil {
		return nil, nil, err
	}
	remove, err := b.scratch(ctx, fleetNamespace)
	if err != nil {
		return nil, nil, err
	}
	if err := b.quiet(ctx); err != nil {
		return nil, nil, err
	}
	tail, err := b.tailAudit()
	return tail, remove, err
}

// lastChild is when the last child of n objects was there.
func (f fleet) lastChild(ctx context.Context, tail *auditTail, n int, started time.Time) (time.Duration, error) {
	var took time.Duration
	for _, child := range f.children {
		answered, err := tail.answered(ctx, 5*time.Minute, "create "+child.resource, fleetPrefix, n)
		if err != nil {
			return 0, err
		}
		took = max(took, last(answered).Sub(started))
	}
	return took, nil
}

func (f fleet) object(namespace, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": runtime.DeepCopyJSON(f.spec)}}
	obj.SetGroupVersionKind(f.kind)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}

// fleetPattern is what the operator makes of one object, as it sent it.
type fleetPattern struct {
	Children []*unstructured.Unstructured
	Status   any
}

// pattern has the operator make a sample, and returns it as JSON: to have it of
// another name is to replace the name, wherever it is.
func (f fleet) pattern(ctx context.Context, b *bench) ([]byte, error) {
	const namespace = "bench-pattern"
	remove, err := b.scratch(ctx, namespace)
	if err != nil {
		return nil, err
	}
	sample := f.object(namespace, fleetSample)
	if err := b.client.Create(ctx, sample); err != nil {
		return nil, err
	}
	var made fleetPattern
	for _, kind := range f.children {
		child := &unstructured.Unstructured{}
		child.SetGroupVersionKind(kind.kind)
		if err := eventually(ctx, time.Minute, kind.resource+" of "+fleetSample, func() (bool, error) {
			err := b.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: fleetSample + kind.suffix}, child)
			return err == nil, client.IgnoreNotFound(err)
		}); err != nil {
			return nil, err
		}
		made.Children = append(made.Children, asWritten(child))
	}
	if err := eventually(ctx, time.Minute, "the status of "+fleetSample, func() (bool, error) {
		err := b.client.Get(ctx, client.ObjectKeyFromObject(sample), sample)
		made.Status = sample.Object["status"]
		_, told, _ := unstructured.NestedSlice(sample.Object, "status", "conditions")
		return told, err
	}); err != nil {
		return nil, err
	}
	pattern, err := json.Marshal(made)
	if err != nil {
		return nil, err
	}
	return pattern, remove(ctx)
}

// asWritten is a child without what the API server and its controllers added.
func asWritten(child *unstructured.Unstructured) *unstructured.Unstructured {
	annotations := child.GetAnnotations()
	delete(annotations, "deployment.kubernetes.io/revision")
	sent := &unstructured.Unstructured{Object: map[string]any{"spec": child.Object["spec"]}}
	sent.SetGroupVersionKind(child.GroupVersionKind())
	sent.SetName(child.GetName())
	sent.SetLabels(child.GetLabels())
	sent.SetAnnotations(annotations)
	for _, field := range []string{"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} {
		if child.GetKind() == "Service" {
			unstructured.RemoveNestedField(sent.Object, "spec", field)
		}
	}
	ports, _, _ := unstructured.NestedSlice(sent.Object, "spec", "ports")
	for _, port := range ports {
		delete(port.(map[string]any), "nodePort")
	}
	if ports != nil {
		_ = unstructured.SetNestedSlice(sent.Object, ports, "spec", "ports")
	}
	return sent
}

// mostOfAChild is how often that child was written that was written most.
func (f fleet) mostOfAChild(requests []request) int {
	most := 0
	for _, child := range f.children {
		most = max(most, mostOfOne(requests, child.resource, ""))
	}
	return most
}

// mostOfOne is how often that object of a resource was written that was written
// most.
func mostOfOne(requests []request, resource, subresource string) int {
	writes, most := map[string]int{}, 0
	for _, r := range requests {
		if r.isWrite() && r.ObjectRef.Resource == resource && r.ObjectRef.Subresource == subresource {
			writes[r.ObjectRef.Name]++
			most = max(most, writes[r.ObjectRef.Name])
		}
	}
	return most
}
