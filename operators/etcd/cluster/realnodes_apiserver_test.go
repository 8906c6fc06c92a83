//go:build apiserver

package cluster

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	discoveryv1ac "k8s.io/client-go/applyconfigurations/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/operators/etcd/objects"
)

// realNodes are the nodes of a run on the real API server. They are scheduler, volume binder and
// kubelet for its pods, which run real etcd.
type realNodes struct {
	*machine

	client    client.WithWatch
	namespace string
	folder    string
	quota     string // of the databases; empty for etcd's own
	wake      chan struct{}
	cares     map[types.UID]*realPod // of the loop alone
	leads     string                 // what the slices of Services were last made of

	mu      sync.Mutex
	pods    map[types.UID]*corev1.Pod
	claims  map[types.UID]*corev1.PersistentVolumeClaim
	serving map[string]string // the addresses of the pods whose etcd runs, by their names
	started time.Time         // when the last one was
	puts    int
	keys    []string          // those that were acknowledged
	by      map[string]uint64 // the clusters that acknowledged them
	backups map[string]storedBackup
	fails   int // how often fetching fails before it works
	words   map[string]string
	spoiled map[string]bool   // the members whose data is to be damaged
	hosts   map[string]string // the addresses of all hosts that there were, by their names
	// elsewhere are members that no EtcdCluster has.
	elsewhere map[string]memberElsewhere
}

// realPod is a pod on a node.
type realPod struct {
	name, ip  string
	claim     types.UID
	data      string // a folder
	image     string // that its container was started with, or could not be
	process   *process
	stopping  time.Time // when the process was told to end; zero if it was not
	state     corev1.ContainerState
	last      corev1.ContainerState
	starts    int32
	isReady   bool
	waits     bool // for another image
	isRemoved bool
	retry     time.Time
	backOff   time.Duration
	failure   error // to start at all
	init      corev1.ContainerState
	fetched   bool // its init container has ended well
}

const (
	firstBackOff   = 200 * time.Millisecond // a real kubelet's begins at 10 s
	longestBackOff = 5 * time.Second
	lookEvery      = 50 * time.Millisecond
)

// run makes the nodes of a run, which end with the context.
func (m *machine) run(ctx context.Context, r *testkit.Run, quota string) error {
	folder, err := os.MkdirTemp(m.folder, "")
	if err != nil {
		return err
	}
	n := &realNodes{
		machine: m, client: r.Client.(client.WithWatch), namespace: r.Namespace, folder: folder, quota: quota,
		wake: make(chan struct{}, 1), cares: map[types.UID]*realPod{},
		pods: map[types.UID]*corev1.Pod{}, claims: map[types.UID]*corev1.PersistentVolumeClaim{},
		serving: map[string]string{}, by: map[string]uint64{}, backups: map[string]storedBackup{}, words: map[string]string{}, spoiled: map[string]bool{}, hosts: map[string]string{},
	}
	r.Own = n
	m.runs.Go(func() { n.watch(ctx, &corev1.PodList{}) })
	m.runs.Go(func() { n.watch(ctx, &corev1.PersistentVolumeClaimList{}) })
	m.runs.Go(func() { n.live(ctx) })
	return nil
}

// watch keeps what is there. Without a resource version a watch begins with that, so a broken one
// is begun again.
func (n *realNodes) watch(ctx context.Context, list client.ObjectList) {
	for ctx.Err() == nil {
		w, err := n.client.Watch(ctx, list, client.InNamespace(n.namespace))
		if err != nil {
			time.Sleep(lookEvery)
			continue
		}
		for event := range w.ResultChan() {
			n.see(event)
		}
		w.Stop()
	}
}

func (n *realNodes) see(event watch.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch obj := event.Object.(type) {
	case *corev1.Pod:
		note(n.pods, event.Type, obj.UID, obj)
	case *corev1.PersistentVolumeClaim:
		note(n.claims, event.Type, obj.UID, obj)
	}
	select {
	case n.wake <- struct{}{}:
	default: // it will look anyway
	}
}

func note[T any](all map[types.UID]T, what watch.EventType, uid types.UID, obj T) {
	if what == watch.Deleted {
		delete(all, uid)
	} else {
		all[uid] = obj
	}
}

// live does what is to be done, again and again, and leaves nothing behind.
func (n *realNodes) live(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		n.act(ctx)
		select {
		case <-n.wake:
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	for _, p := range n.cares {
		n.kill(p)
	}
	n.clearElsewhere()
	_ = os.RemoveAll(n.folder) // or with the machine's
}

func (n *realNodes) act(ctx context.Context) {
	n.mu.Lock()
	pods, claims := maps.Clone(n.pods), maps.Clone(n.claims)
	n.mu.Unlock()
	for _, claim := range claims {
		n.provision(ctx, claim)
	}
	for _, pod := range pods {
		n.care(ctx, pod, claims)
	}
	for uid, p := range n.cares {
		if pods[uid] == nil {
			n.kill(p)
			delete(n.cares, uid)
		}
	}
	n.dropVolumes(claims)
	n.lead(ctx, pods)
}

// lead keeps the EndpointSlices of the Services that have an address. Kubernetes' own controller
// could not: no slice may have the loopback addresses of these pods.
func (n *realNodes) lead(ctx context.Context, pods map[types.UID]*corev1.Pod) {
	var ready []*corev1.Pod
	madeOf := ""
	for uid, pod := range pods {
		if p := n.cares[uid]; p != nil && p.isReady && !p.isRemoved && pod.DeletionTimestamp == nil {
			ready = append(ready, pod)
		}
	}
	slices.SortFunc(ready, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for _, pod := range ready {
		madeOf += fmt.Sprintf("%s %v\n", pod.UID, pod.Labels)
	}
	var services corev1.ServiceList
	if madeOf == n.leads || n.client.List(ctx, &services, client.InNamespace(n.namespace)) != nil {
		return
	}
	for _, service := range services.Items {
		if service.Spec.ClusterIP == corev1.ClusterIPNone {
			continue
		}
		slice := discoveryv1ac.EndpointSlice(service.Name, n.namespace).
			WithLabels(service.Labels).WithLabels(map[string]string{discoveryv1.LabelServiceName: service.Name}).
			WithAddressType(discoveryv1.AddressTypeIPv4)
		for i, pod := range ready {
			if k8slabels.SelectorFromSet(service.Spec.Selector).Matches(k8slabels.Set(pod.Labels)) {
				slice.WithEndpoints(discoveryv1ac.Endpoint().
					WithAddresses(fmt.Sprintf("192.0.2.%d", i+1)).
					WithConditions(discoveryv1ac.EndpointConditions().WithReady(true)).
					WithTargetRef(corev1ac.ObjectReference().WithKind("Pod").WithName(pod.Name).WithUID(pod.UID)))
			}
		}
		if n.client.Apply(ctx, slice, client.ForceOwnership, client.FieldOwner("nodes")) != nil {
			return // it is tried again
		}
	}
	n.leads = madeOf
}

// provision binds a claim, and grows its volume.
func (n *realNodes) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) {
	wants := claim.Spec.Resources.Requests
	if claim.Status.Phase == corev1.ClaimBound && wants.Storage().Cmp(*claim.Status.Capacity.Storage()) == 0 {
		return
	}
	n.patchStatus(ctx, claim, corev1.PersistentVolumeClaimStatus{
		Phase: corev1.ClaimBound, AccessModes: claim.Spec.AccessModes, Capacity: wants,
	})
}

// dropVolumes deletes the data of claims that are gone. Their pods are gone before.
func (n *realNodes) dropVolumes(claims map[types.UID]*corev1.PersistentVolumeClaim) {
	volumes, _ := os.ReadDir(filepath.Join(n.folder, "claims"))
	for _, v := range volumes {
		if claims[types.UID(v.Name())] == nil {
			_ = os.RemoveAll(filepath.Join(n.folder, "claims", v.Name())) // it is tried again
		}
	}
}

// care does the next thing for a pod.
func (n *realNodes) care(ctx context.Context, pod *corev1.Pod, claims map[types.UID]*corev1.PersistentVolumeClaim) {
	p := n.cares[pod.UID]
	switch {
	case p == nil && pod.DeletionTimestamp == nil:
		n.bind(ctx, pod, claims)
	case p == nil:
		n.cares[pod.UID] = &realPod{name: pod.Name, isRemoved: true}
		n.remove(ctx, pod)
	case p.isRemoved:
	case pod.DeletionTimestamp != nil:
		if n.hasEnded(pod, p) {
			p.isRemoved = true
			if p.claim == "" {
				_ = os.RemoveAll(p.data) // or with the run's
			}
			n.remove(ctx, pod)
		}
	case len(pod.Spec.InitContainers) > 0 && !p.fetched:
		if !time.Now().Before(p.retry) {
			n.fetch(ctx, pod, p)
		}
	case p.image != objects.ImageOfContainer(pod):
		if n.hasEnded(pod, p) {
			p.waits, p.retry, p.backOff = false, time.Time{}, 0
			n.start(ctx, pod, p)
		}
	case p.process != nil && p.process.hasEnded():
		n.crash(ctx, pod, p)
	case n.isSpoiled(p.name):
		n.kill(p)
		n.spoil(p)
	case p.process != nil:
		if p.process.hasServed() && !p.isReady {
			p.isReady = true
			n.report(ctx, pod, p)
		}
	case p.waits || time.Now().Before(p.retry):
	default:
		n.start(ctx, pod, p)
	}
}

// bind puts a pod on a node, once its volume is there.
func (n *realNodes) bind(ctx context.Context, pod *corev1.Pod, claims map[types.UID]*corev1.PersistentVolumeClaim) {
	if len(pod.Spec.SchedulingGates) > 0 {
		return
	}
	p := &realPod{name: pod.Name, data: filepath.Join(n.folder, "pods", string(pod.UID))}
	if volume := pod.Spec.Volumes[0].PersistentVolumeClaim; volume != nil {
		for uid, claim := range claims {
			if claim.Name == volume.ClaimName && claim.DeletionTimestamp == nil && claim.Status.Phase == corev1.ClaimBound {
				p.claim, p.data = uid, filepath.Join(n.folder, "claims", string(uid))
			}
		}
		if p.claim == "" {
			return
		}
	}
	err := n.client.SubResource("binding").Create(ctx, pod.DeepCopy(), &corev1.Binding{
		ObjectMeta: pod.ObjectMeta, Target: corev1.ObjectReference{Kind: "Node", Name: "pretend"},
	})
	if err != nil {
		return // it is tried again, or deleted
	}
	p.ip = n.newAddress()
	n.mu.Lock()
	n.hosts[pod.Spec.Hostname+"."+pod.Spec.Subdomain+"."+pod.Namespace+".svc"] = p.ip
	p.failure = n.writeHosts()
	n.mu.Unlock()
	n.cares[pod.UID] = p
}

// writeHosts writes the file of hosts that all members have. The lock is held.
func (n *realNodes) writeHosts() error {
	text := "127.0.0.1 localhost\n"
	for _, name := range slices.Sorted(maps.Keys(n.hosts)) {
		text += n.hosts[name] + " " + name + "\n"
	}
	return os.WriteFile(n.hostsFile(), []byte(text), 0o600)
}

func (n *realNodes) hostsFile() string { return filepath.Join(n.folder, "hosts") }
