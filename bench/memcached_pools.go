package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/run"
)

const (
	poolsBound = 4.0 // times the bare client
	// poolWrites is what a pool may cost until it is at rest: its three
	// children and its status.
	poolWrites = 7
)

// pools creates many Memcacheds at once, on a cordoned node, against a bare
// client that sends the same children in the operator's name; counts what each
// costs; and listens to what they cost when they are at rest.
func pools(ctx context.Context, b *bench) ([]figure, error) {
	if err := b.deployMemcached(ctx, "memcached:"+newVersion); err != nil {
		return nil, err
	}
	if err := b.cordon(ctx, true); err != nil {
		return nil, err
	}
	defer func() { _ = b.cordon(context.WithoutCancel(ctx), false) }()
	pattern, err := b.poolPattern(ctx)
	if err != nil {
		return nil, err
	}
	var bare, ours []time.Duration
	var writes []float64
	idleRequests := 0
	var detail, rest string
	for round := range b.rounds {
		took, err := pattern.create(ctx, b, b.pools)
		if err != nil {
			return nil, err
		}
		made, err := b.createPools(ctx, b.pools, round == b.rounds-1)
		if err != nil {
			return nil, err
		}
		b.say("round %d: bare client %s, operator %s; %s", round+1, inSeconds(took), inSeconds(made.took), summary(made.requests))
		bare, ours = append(bare, took), append(ours, made.took)
		writes = append(writes, float64(count(made.requests, request.isWrite))/float64(b.pools))
		detail, rest, idleRequests = summary(made.requests), summary(made.idle), len(made.idle)
	}
	what := fmt.Sprintf("%d Memcacheds", b.pools)
	return []figure{
		{measure: what, what: "bare client, all children", value: inSeconds(median(bare)), spread: spread(bare, inSeconds)},
		{measure: what, what: "operator, all children", value: inSeconds(median(ours)), spread: spread(ours, inSeconds)},
		ratio(what, "operator against the bare client", median(ours).Seconds()/median(bare).Seconds(), poolsBound, quotients(ours, bare)),
		{measure: what, what: "writes for each, until at rest", value: fmt.Sprintf("%.2f", median(writes)), spread: "last round: " + detail,
			bound: fmt.Sprintf("≤ %d", poolWrites), missed: median(writes) > poolWrites},
		{measure: what, what: "requests within " + idleTime.String() + " at rest", value: fmt.Sprint(idleRequests), spread: rest, bound: "0", missed: idleRequests > 0},
	}, nil
}

// poolRun is what became of many Memcacheds.
type poolRun struct {
	took     time.Duration // until the last child was there
	requests []request     // of the operator, until all were at rest
	idle     []request     // of the operator, later
}

const poolsNamespace = "bench-pools"

// createPools creates n Memcacheds with the bare client's workers.
func (b *bench) createPools(ctx context.Context, n int, listen bool) (poolRun, error) {
	var made poolRun
	remove, err := b.scratch(ctx, poolsNamespace)
	if err != nil {
		return made, err
	}
	if err := b.quiet(ctx); err != nil {
		return made, err
	}
	tail, err := b.tailAudit()
	if err != nil {
		return made, err
	}
	defer tail.close()
	started := time.Now()
	if err := parallel(ctx, n, func(i int) error {
		return b.client.Create(ctx, &v1alpha1.Memcached{
			ObjectMeta: metav1.ObjectMeta{Namespace: poolsNamespace, Name: fmt.Sprintf("mc-%06d", i)},
			Spec:       v1alpha1.MemcachedSpec{Version: newVersion},
		})
	}); err != nil {
		return made, err
	}
	for _, kind := range childRequests {
		answered, err := tail.answered(ctx, 5*time.Minute, kind, "mc-", n)
		if err != nil {
			return made, err
		}
		made.took = max(made.took, last(answered).Sub(started))
	}
	if err := b.quiet(ctx); err != nil {
		return made, err
	}
	if _, err := tail.next(); err != nil {
		return made, err
	}
	made.requests = byMemcached(tail.seen)
	if listen {
		if err := sleep(ctx, idleTime); err != nil {
			return made, err
		}
		more, err := tail.next()
		if err != nil {
			return made, err
		}
		for _, r := range byMemcached(more) {
			if r.ObjectRef.Resource != "leases" && r.Verb != "watch" {
				made.idle = append(made.idle, r)
			}
		}
	}
	return made, remove(ctx)
}

// childRequests are those that make a Memcached's children.
var childRequests = []string{"create services", "create deployments", "create poddisruptionbudgets"}

// poolPattern is what the bare client creates, in the operator's name: the bytes
// of the children that the operator made of one Memcached, without a label by
// which it would find them.
type poolPattern struct {
	client   client.Client
	children []client.Object
}

func (b *bench) poolPattern(ctx context.Context) (*poolPattern, error) {
	const namespace, sample = "bench-pattern", "mc-999999"
	remove, err := b.scratch(ctx, namespace)
	if err != nil {
		return nil, err
	}
	mc := &v1alpha1.Memcached{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: sample},
		Spec:       v1alpha1.MemcachedSpec{Version: newVersion},
	}
	if err := b.client.Create(ctx, mc); err != nil {
		return nil, err
	}
	service, deployment, budget := &corev1.Service{}, &appsv1.Deployment{}, &policyv1.PodDisruptionBudget{}
	children := []client.Object{service, deployment, budget}
	for _, child := range children {
		if err := eventually(ctx, time.Minute, "a child of "+sample, func() (bool, error) {
			err := b.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: sample}, child)
			return err == nil, client.IgnoreNotFound(err)
		}); err != nil {
			return nil, err
		}
		labels := child.GetLabels()
		labels[run.ManagedByLabel] = "memcached-operatoR"
		annotations := child.GetAnnotations()
		delete(annotations, "deployment.kubernetes.io/revision")
		*metaOf(child) = metav1.ObjectMeta{Labels: labels, Annotations: annotations}
	}
	service.Spec.ClusterIPs, service.Spec.IPFamilies, service.Spec.IPFamilyPolicy = nil, nil, nil
	deployment.Spec.Template.Labels[run.ManagedByLabel] = "memcached-operatoR"
	service.Status, deployment.Status, budget.Status = corev1.ServiceStatus{}, appsv1.DeploymentStatus{}, policyv1.PodDisruptionBudgetStatus{}

	account, err := b.kube.CoreV1().ServiceAccounts(memcachedSystem).CreateToken(ctx, memcachedOperator, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	cfg := rest.AnonymousClientConfig(b.cfg)
	cfg.BearerToken, cfg.QPS = account.Status.Token, -1
	c, err := client.New(cfg, client.Options{Scheme: b.client.Scheme()})
	if err != nil {
		return nil, err
	}
	return &poolPattern{client: c, children: children}, remove(ctx)
}

func metaOf(obj client.Object) *metav1.ObjectMeta {
	switch obj := obj.(type) {
	case *corev1.Service:
		return &obj.ObjectMeta
	case *appsv1.Deployment:
		return &obj.ObjectMeta
	case *policyv1.PodDisruptionBudget:
		return &obj.ObjectMeta
	}
	panic("no child of a Memcached")
}

// create creates the children of n Memcacheds as fast as the API server takes
// them, and returns how long it took until the last request was answered.
func (p *poolPattern) create(ctx context.Context, b *bench, n int) (time.Duration, error) {
	remove, err := b.scratch(ctx, poolsNamespace)
	if err != nil {
		return 0, err
	}
	if err := b.quiet(ctx); err != nil {
		return 0, err
	}
	tail, err := b.tailAudit()
	if err != nil {
		return 0, err
	}
	defer tail.close()
	started := time.Now()
	if err := parallel(ctx, n, func(i int) error {
		name := fmt.Sprintf("bare-%06d", i)
		for _, pattern := range p.children {
			child := pattern.DeepCopyObject().(client.Object)
			child.SetNamespace(poolsNamespace)
			child.SetName(name)
			if d, ok := child.(*appsv1.Deployment); ok {
				d.Spec.Selector.MatchLabels["memcached_cr"], d.Spec.Template.Labels["memcached_cr"] = name, name
			}
			if err := p.client.Create(ctx, child); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return 0, err
	}
	var end time.Time
	for _, kind := range childRequests {
		answered, err := tail.answered(ctx, time.Minute, kind, "bare-", n)
		if err != nil {
			return 0, err
		}
		if at := last(answered); at.After(end) {
			end = at
		}
	}
	if err := remove(ctx); err != nil {
		return 0, fmt.Errorf("clear away: %w", err)
	}
	return end.Sub(started), nil
}
