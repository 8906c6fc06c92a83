package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	cachev1alpha1 "example.com/fairlead/api/cache/v1alpha1"
	etcdv1beta2 "example.com/fairlead/api/etcd/v1beta2"
	webv1 "example.com/fairlead/api/web/v1"
)

const (
	memoryBound  = 4096 // bytes for each At
	restartBound = 30 * time.Second
	growPatience = 30 * time.Minute
	scrapeBound  = 50 * time.Millisecond
)

// scale measures what a fleet at rest costs its manager as it grows: memory, how
// long a new manager takes until it works, and a scrape of its metrics. The
// objects have no running pods, which would cost the node and not the manager.
type scale struct {
	measure   string
	operator  operator
	what      string // the objects, as the table calls them
	namespace string
	sizes     []int // one object for so many of -scale
	list      func() client.ObjectList
	object    func(name string) client.Object
	observed  func(client.Object) int64 // the generation that its status is about, 0 without one
}

var (
	scaleAts = scale{
		measure: "scale", operator: atOperator, what: "Ats that wait", namespace: workload, sizes: []int{1000, 10, 1},
		list:     func() client.ObjectList { return &atv1alpha1.AtList{} },
		object:   func(name string) client.Object { return newAt(name, farOff) },
		observed: func(obj client.Object) int64 { return obj.(*atv1alpha1.At).Status.ObservedGeneration },
	}
	scaleMemcacheds = scale{
		measure: "scale-memcached", operator: memcachedOperator, what: "Memcacheds of size 0", namespace: "bench-scale-memcached", sizes: []int{1000, 10},
		list: func() client.ObjectList { return &cachev1alpha1.MemcachedList{} },
		object: func(name string) client.Object {
			mc := &cachev1alpha1.Memcached{Spec: cachev1alpha1.MemcachedSpec{Size: new(int32(0))}}
			mc.Name = name
			return mc
		},
		observed: func(obj client.Object) int64 { return obj.(*cachev1alpha1.Memcached).Status.ObservedGeneration },
	}
	scaleWebServers = scale{
		measure: "scale-webserver", operator: webServerOperator, what: "WebServers of 0 replicas", namespace: "bench-scale-webserver", sizes: []int{1000, 10},
		list: func() client.ObjectList { return &webv1.WebServerList{} },
		object: func(name string) client.Object {
			// There are fewer node ports than objects.
			ws := &webv1.WebServer{Spec: webv1.WebServerSpec{Image: webImage, Replicas: new(int32(0)), Service: &webv1.ServiceSpec{Type: "ClusterIP"}}}
			ws.Name = name
			return ws
		},
		observed: func(obj client.Object) int64 { return obj.(*webv1.WebServer).Status.ObservedGeneration },
	}
	scaleEtcds = scale{
		measure: "scale-etcd", operator: etcdOperator, what: "paused EtcdClusters", namespace: "bench-scale-etcd",
		// No more: each that never had a member is read again every 30 s.
		sizes: []int{1000},
		list:  func() client.ObjectList { return &etcdv1beta2.EtcdClusterList{} },
		object: func(name string) client.Object {
			ec := newEtcd("", name, 1)
			ec.Spec.Paused = true
			return ec
		},
		observed: func(obj client.Object) int64 { return obj.(*etcdv1beta2.EtcdCluster).Status.ObservedGeneration },
	}
)

// profile is what a manager costs with n objects.
type profile struct {
	n      int
	memory memory
	start  time.Duration
	scrape scrape
}

// take lets the fleet grow from size to size.
func (s scale) take(ctx context.Context, b *bench) ([]figure, error) {
	if err := b.namespace(ctx, s.namespace, nil); err != nil {
		return nil, err
	}
	var profiles []profile
	there := 0
	for _, part := range s.sizes {
		size := max(b.scale/part, there+1)
		if err := s.grow(ctx, b, there, size); err != nil {
			return nil, err
		}
		there = size
		p, err := s.profile(ctx, b, size)
		if err != nil {
			return nil, err
		}
		b.say("%d %s: %s; %s; at work after %s", size, s.what, p.memory, p.scrape, inSeconds(p.start))
		profiles = append(profiles, p)
	}
	figures := s.figures(profiles)
	if err := b.draw(s.measure, s.charts(profiles)...); err != nil || s.operator != atOperator {
		return figures, err
	}
	more, err := s.endings(ctx, b, profiles)
	return append(figures, more...), err
}

// grow creates the objects from one size to the next, and waits until the
// operator has said something about each and all is quiet.
func (s scale) grow(ctx context.Context, b *bench, from, to int) error {
	seen, err := s.follow(ctx, b, s.measure+"-")
	if err != nil {
		return err
	}
	defer seen.stop()
	started := time.Now()
	if err := parallel(ctx, to-from, func(i int) error { return s.create(ctx, b, s.object(fmt.Sprintf("%s-%06d", s.measure, from+i))) }); err != nil {
		return err
	}
	if _, err := seen.wait(ctx, growPatience, isObserved, to-from); err != nil {
		return err
	}
	b.say("%d more %s after %s", to-from, s.what, time.Since(started).Round(time.Second))
	return b.quiet(ctx)
}

func (s scale) create(ctx context.Context, b *bench, obj client.Object) error {
	obj.SetNamespace(s.namespace)
	return b.client.Create(ctx, obj)
}

// isObserved is the state of objects that have a status of the operator's.
const isObserved = "observed"

func (s scale) follow(ctx context.Context, b *bench, prefix string) (*sightings, error) {
	return b.follow(ctx, s.list(), s.namespace, prefix, func(obj client.Object) []string {
		if s.observed(obj) > 0 {
			return []string{isObserved}
		}
		return nil
	})
}

// profile takes the figures of a manager that has seen all objects come, and the
// time that a new one takes to start.
func (s scale) profile(ctx context.Context, b *bench, n int) (p profile, err error) {
	p.n = n
	if p.memory, err = b.settledMemory(ctx, s.operator); err != nil {
		return p, err
	}
	if p.scrape, err = b.scrapes(ctx, s.operator); err != nil {
		return p, err
	}
	if err := b.stopped(ctx, s.operator); err != nil {
		return p, err
	}
	p.start, err = s.restart(ctx, b, "started-"+strconv.Itoa(n), func(ctx context.Context) error {
		return b.command(ctx, "kubectl", "-n", s.operator.namespace(), "scale", "--replicas", "1", "deployment/"+s.operator.account())
	})
	return p, err
}

// works is what tells that a manager works.
func (s scale) works() string {
	if s.operator == atOperator {
		return "until an At that is due may run"
	}
	return "until a new object has a status"
}

// figures are a line for each size, and what one object more costs.
func (s scale) figures(profiles []profile) []figure {
	var figures []figure
	for _, p := range profiles {
		what := fmt.Sprintf("%d %s", p.n, s.what)
		figures = append(figures,
			figure{measure: s.measure, what: what + ": working set", value: inMiB(p.memory.workingSet), spread: fmt.Sprintf("resident %s, heap in use %s", inMiB(p.memory.resident), inMiB(p.scrape.heap))},
			figure{measure: s.measure, what: what + ": manager started " + s.works(), value: inSeconds(p.start), bound: "≤ " + restartBound.String(), missed: p.start > restartBound},
			figure{
				measure: s.measure, what: what + ": a scrape", value: inMillis(median(p.scrape.took)),
				spread: fmt.Sprintf("%s; %d KiB, %d series", spread(p.scrape.took, inMillis), p.scrape.size>>10, p.scrape.series),
				bound:  "≤ " + inMillis(scrapeBound), missed: median(p.scrape.took) > scrapeBound,
			})
	}
	first, last := profiles[0], profiles[len(profiles)-1]
	if first.n == last.n {
		return figures
	}
	return append(figures, s.perObject("working set for each", last.memory.workingSet, first, last, true))
}

// perObject is the memory of each object that came after those of the first size.
func (s scale) perObject(name string, full uint64, first, last profile, bounded bool) figure {
	each := (float64(full) - float64(first.memory.workingSet)) / float64(last.n-first.n)
	f := figure{
		measure: s.measure, what: fmt.Sprintf("%d %s: %s", last.n, s.what, name), value: fmt.Sprintf("%.0f B", each),
		spread: inMiB(first.memory.workingSet) + " → " + inMiB(full),
	}
	if bounded && s.operator == atOperator {
		f.bound, f.missed = fmt.Sprintf("≤ %d B", memoryBound), each > memoryBound
	}
	return f
}

// endings are the figures of a manager with all Ats that ends without a word.
func (s scale) endings(ctx context.Context, b *bench, profiles []profile) ([]figure, error) {
	first, last := profiles[0], profiles[len(profiles)-1]
	again, err := b.settledMemory(ctx, s.operator)
	if err != nil {
		return nil, err
	}
	b.say("after a restart: %s", again)
	deleted, err := s.restart(ctx, b, "deleted", b.deleteManager)
	if err != nil {
		return nil, err
	}
	killed, err := s.restart(ctx, b, "killed", b.killManager)
	if err != nil {
		return nil, err
	}
	figures := []figure{
		s.perObject("working set for each, after a restart", again.workingSet, first, last, true),
		s.perObject("highest working set seen, for each", max(last.memory.peak, again.peak), first, last, false),
	}
	duration := func(how string, d time.Duration) figure {
		return figure{
			measure: s.measure, what: fmt.Sprintf("%d %s: manager %s, %s", last.n, s.what, how, s.works()),
			value: inSeconds(d), bound: "≤ " + restartBound.String(), missed: d > restartBound,
		}
	}
	return append(figures, duration("deleted by force", deleted), duration("killed (SIGKILL)", killed)), nil
}

// charts show how the costs grow.
func (s scale) charts(profiles []profile) []chart {
	line := func(y func(profile) float64) []series {
		var points []point
		for _, p := range profiles {
			points = append(points, point{float64(p.n), y(p)})
		}
		return []series{{Name: s.what, Points: points}}
	}
	objects := axis{Label: "objects", Log: true}
	return []chart{
		{Title: "Working set of the manager", X: objects, Y: axis{Unit: "bytes"}, Series: line(func(p profile) float64 { return float64(p.memory.workingSet) })},
		{Title: "From its start until it works", X: objects, Y: axis{Unit: "s"}, Series: line(func(p profile) float64 { return p.start.Seconds() })},
		{Title: "A scrape of its metrics", X: objects, Y: axis{Unit: "s"}, Series: line(func(p profile) float64 { return median(p.scrape.took).Seconds() })},
	}
}
