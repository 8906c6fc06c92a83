package sim

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"example.com/fairlead/internal/kit/outside"
	"example.com/fairlead/internal/kit/run"
)

// process is one operator at work: the shipped controllers over a cache of their own.
type process struct {
	world       *World
	number      int
	name        string
	isAlive     bool
	isReplaced  bool
	restartAt   time.Time
	client      *Client
	owns        map[*Kind]bool
	among       map[*Kind]bool
	indexes     map[index]client.IndexerFunc
	informers   []*informer
	controllers []*controller
	background  []*task // what goes on beside the reconciles
	ctx         context.Context
}

// controller is one of an operator's, and its queue.
type controller struct {
	*run.Controller
	process *process
	queue
	active []*work
}

// work is a reconcile under way.
type work struct {
	*task
	request reconcile.Request
}

// start starts an operator.
func (w *World) start() {
	p := &process{world: w, number: len(w.processes) + 1, isAlive: true, owns: map[*Kind]bool{}, among: map[*Kind]bool{}, indexes: map[index]client.IndexerFunc{}}
	p.name = fmt.Sprintf("operator %d", p.number)
	w.processes = append(w.processes, p)
	w.Tracef(p.name, "starts")
	api := w.Server.API
	p.client = NewClient(w.Server, p.name, "", p.via, cached{p})
	for _, kind := range w.story.Operator.Kinds {
		for _, owned := range kind.Owns {
			if k, err := api.kindOf(owned); err == nil {
				p.owns[k] = true
			}
		}
		for _, owned := range kind.OwnsAmong {
			if k, err := api.kindOf(owned); err == nil {
				p.among[k] = true
			}
		}
	}
	logger := logr.Discard()
	if w.trace != nil {
		logger = funcr.New(func(_, args string) {
			if p.isAlive {
				w.Tracef(p.name, "log %s", strings.TrimPrefix(args, `"level"=0 `))
			}
		}, funcr.Options{})
	}
	p.ctx = outside.With(log.IntoContext(context.Background(), logger), p.outside)
	p.ctx = outside.WithBackground(p.ctx, func(do func()) { p.background = append(p.background, w.newTask(do)) })
	if w.Context != nil {
		p.ctx = w.Context(p.ctx)
	}
	parts := run.Parts{
		Scheme: api.Scheme, Mapper: mapper{api}, Client: p.client, Live: p.client.Live(), Cache: cached{p},
		Index: func(obj client.Object, field string, values client.IndexerFunc) error {
			k, err := api.kindOf(obj)
			if err == nil {
				p.indexes[index{k.GroupVersionKind, field}] = values
			}
			return err
		},
		Events: func(string) recorder.EventRecorder { return events{process: p} },
		Served: p.served,
		Sees:   func(context.Context, client.Object, string) (bool, error) { return w.SeesNodes, nil },
		Logs:   p.logs,
		Now:    w.Now,
	}
	for _, kind := range w.story.Operator.Kinds {
		c := &controller{process: p}
		c.queue = queue{now: w.Now, failures: map[reconcile.Request]int{}}
		parts.Watch = func(s run.Source) error { return p.watch(c, s) }
		parts.Unwatch = func(_ context.Context, obj client.Object) error {
			k, err := api.kindOf(obj)
			for i := range p.informers {
				if err == nil && p.informers[i].kind == k {
					p.informers = append(p.informers[:i], p.informers[i+1:]...)
					break
				}
			}
			return err
		}
		made, err := kind.New(parts)
		if err != nil {
			w.Fail(err)
			return
		}
		c.Controller = made
		c.first, c.longest = made.First, made.Longest
		p.controllers = append(p.controllers, c)
		for _, s := range made.Sources {
			if err := p.watch(c, s); err != nil {
				w.Fail(err)
			}
		}
		if made.Started != nil {
			if err := made.Started(p.ctx); err != nil {
				w.Fail(err)
			}
		}
	}
}

// watch begins to watch a kind, with all objects that are there.
func (p *process) watch(c *controller, s run.Source) error {
	i, err := p.informerOf(s.Object)
	if err != nil {
		return err
	}
	added := wakes{s, &c.queue}
	for _, key := range i.keys {
		e := createEvent(i.objects[key])
		if added.lets(func(p predicates) bool { return p.Create(e) }) {
			s.Handler.Create(p.ctx, e, &c.queue)
		}
	}
	i.sources = append(i.sources, added)
	i.noticed = i.position
	return nil
}

// served lists what the cluster has of a group and version.
func (p *process) served(_ context.Context, groupVersion string) (*metav1.APIResourceList, error) {
	names, ok := p.world.story.Resources[groupVersion]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: groupVersion}, "")
	}
	list := &metav1.APIResourceList{GroupVersion: groupVersion}
	for _, name := range names {
		resource, kind, _ := strings.Cut(name, " ")
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: resource, Kind: kind})
	}
	return list, nil
}

func (p *process) logs(ctx context.Context, pod types.NamespacedName, _ *corev1.PodLogOptions) (io.ReadCloser, error) {
	var text string
	err := p.via(ctx, Request{Verb: "get", Resource: "pods", Subresource: "log", NamespacedName: pod}, func() error {
		if _, found := Find[*corev1.Pod](p.world.Server, pod); !found {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, pod.Name)
		}
		text = p.world.Logs[pod.Name]
		return nil
	})
	return io.NopCloser(strings.NewReader(text)), err
}

// outside carries calls to other servers as requests to this one are carried.
func (p *process) outside(ctx context.Context, call outside.Call, do func() error) error {
	return p.via(ctx, Request{Verb: call.Verb, Resource: call.What, NamespacedName: types.NamespacedName{Name: call.Name}}, do)
}

// ready adds what the operator can do.
func (p *process) ready(add func(func())) {
	w := p.world
	for _, i := range p.informers {
		if !i.isBehind() {
			continue
		}
		if i.noticed <= i.position {
			i.noticed = len(i.log.log)
			if late := w.choices.ask(News, len(lateness)); late > 0 {
				i.heldUntil = w.now.Add(lateness[late])
				i.isCut = late == len(lateness)-1
				if w.trace != nil {
					how := "is late"
					if i.isCut {
						how = "is cut, and begins anew after"
					}
					w.Tracef(p.name, "its watch of %s %s %s", i.kind.Resource, how, lateness[late])
				}
			}
		}
		if !w.now.Before(i.heldUntil) {
			add(i.next)
		}
	}
	for _, t := range p.background {
		if !w.now.Before(t.resumeAt) {
			add(func() { p.goOn(t) })
		}
	}
	for _, c := range p.controllers {
		for _, a := range c.active {
			if !w.now.Before(a.resumeAt) {
				add(func() { c.goOn(a) })
			}
		}
		due, _ := c.Alarms.Next()
		if !due.IsZero() && !due.After(w.now) {
			keys, _ := c.Alarms.Ring()
			for _, key := range keys {
				c.Add(reconcile.Request{NamespacedName: key})
			}
		}
		c.ring()
		if r, ok := c.take(); ok {
			add(func() { c.begin(r) })
		}
	}
}

// take is the next request that can be worked on.
func (c *controller) take() (r reconcile.Request, ok bool) {
next:
	for _, r := range c.waiting {
		for _, a := range c.active {
			if a.request == r {
				continue next
			}
		}
		return r, true
	}
	return r, false
}

// begin reconciles an object.
func (c *controller) begin(r reconcile.Request) {
	c.remove(r)
	a := &work{request: r}
	a.task = c.process.world.newTask(func() {
		result, err := c.Reconcile(c.process.ctx, r)
		if !c.process.isAlive {
			return
		}
		switch {
		case err != nil:
			c.process.world.Tracef(c.process.name, "tries %s again: %v", r.Name, err)
			c.AddRateLimited(r)
		case result.RequeueAfter > 0:
			c.AddAfter(r, result.RequeueAfter)
		default:
			c.Forget(r)
		}
	})
	c.active = append(c.active, a)
	c.goOn(a)
}

// goOn continues what goes on in the background.
func (p *process) goOn(t *task) {
	p.world.step(t)
	if t.isOver {
		p.background = slices.DeleteFunc(p.background, func(other *task) bool { return other == t })
	}
}

func (c *controller) goOn(a *work) {
	c.process.world.step(a.task)
	if !a.isOver {
		return
	}
	for i := range c.active {
		if c.active[i] == a {
			c.active = append(c.active[:i], c.active[i+1:]...)
			return
		}
	}
}

// wakes adds when the operator may have something to do.
func (p *process) wakes(add func(time.Time)) {
	if !p.isAlive {
		if !p.isReplaced {
			add(p.restartAt)
		}
		return
	}
	for _, i := range p.informers {
		if i.isBehind() {
			add(i.heldUntil)
		}
	}
	for _, t := range p.background {
		add(t.resumeAt)
	}
	for _, c := range p.controllers {
		for _, a := range c.active {
			add(a.resumeAt)
		}
		if at, ok := c.Alarms.Next(); ok {
			add(at)
		}
		for _, d := range c.delayed {
			add(d.at)
		}
	}
}

// isSlow says whether something of the operator is only late.
func (p *process) isSlow() bool {
	if !p.isAlive {
		return !p.isReplaced
	}
	for _, i := range p.informers {
		if i.isBehind() {
			return true
		}
	}
	for _, c := range p.controllers {
		if len(c.active) > 0 || len(c.delayed) > 0 {
			return true
		}
	}
	return len(p.background) > 0
}

// events shows the events of an operator in the story.
type events struct {
	recorder.EventRecorder
	*process
}

func (e events) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	if e.world.trace != nil && e.isAlive {
		e.world.Tracef(e.name, "event %s %s: %s", kind, reason, fmt.Sprintf(note, args...))
	}
}
