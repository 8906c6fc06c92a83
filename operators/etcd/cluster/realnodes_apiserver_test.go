//go:build apiserver

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcstatus "google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/members/etcdtest"
)

// machine is what all runs have in common: the programs, the addresses of pods, and the name
// service. Each pod has a loopback address of its own, so that the ports are those of a real pod.
// Members find each other by the names of pods, which no resolver knows: they send their requests
// to a proxy, which does. A member that joins resolves the names as well, only to compare them: a
// file of hosts is mounted for it.
type machine struct {
	programs map[string]string // by version
	folder   string
	proxy    string
	runs     sync.WaitGroup

	mu        sync.Mutex
	made      uint32            // addresses so far
	addresses map[string]string // of pods whose etcd runs, by <pod>.<namespace>
}

// newMachine makes a machine with some versions of etcd. It ends with the test, and waits then for
// all that runs on it.
func newMachine(t *testing.T, versions ...string) *machine {
	t.Helper()
	m := &machine{programs: map[string]string{}, folder: t.TempDir(), addresses: map[string]string{}}
	for _, v := range versions {
		m.programs[v] = etcdtest.Program(t, "v"+v)
	}
	// Another process that runs these tests takes other addresses, most likely.
	m.made = uint32(1+rand.IntN(250)) << 16
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.proxy = "http://" + l.Addr().String()
	silent := log.New(io.Discard, "", 0)
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.URL.Host = m.find(r.In.URL.Host) },
		Transport:     &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: 5 * time.Second},
		FlushInterval: -1, // they send each other messages in bodies without an end
		ErrorLog:      silent,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	server := &http.Server{ErrorLog: silent, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.find(r.URL.Host) == "" {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		forward.ServeHTTP(w, r)
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() {
		m.runs.Wait()
		_ = server.Close()
	})
	return m
}

// find is the address of a pod, such as example-abcde.example.shop.svc:2380.
func (m *machine) find(host string) string {
	name, port, _ := net.SplitHostPort(host)
	m.mu.Lock()
	defer m.mu.Unlock()
	if labels := strings.Split(name, "."); len(labels) > 2 {
		if ip := m.addresses[labels[0]+"."+labels[2]]; ip != "" {
			return net.JoinHostPort(ip, port)
		}
	}
	return ""
}

func (m *machine) newAddress() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.made++; m.made&255 == 0 || m.made&255 == 255; {
		m.made++
	}
	return fmt.Sprintf("127.%d.%d.%d", m.made>>16&255, m.made>>8&255, m.made&255)
}

func (m *machine) publish(pod, namespace, ip string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ip == "" {
		delete(m.addresses, pod+"."+namespace)
	} else {
		m.addresses[pod+"."+namespace] = ip
	}
}

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

	mu      sync.Mutex
	pods    map[types.UID]*corev1.Pod
	claims  map[types.UID]*corev1.PersistentVolumeClaim
	serving map[string]string // the addresses of the pods whose etcd runs, by their names
	started time.Time         // when the last one was
	puts    int
	keys    []string        // those that were acknowledged
	by      map[uint64]bool // the clusters that acknowledged them
	words   map[string]string
	spoiled map[string]bool   // the members whose data is to be damaged
	hosts   map[string]string // the addresses of all hosts that there were, by their names
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
		serving: map[string]string{}, by: map[uint64]bool{}, words: map[string]string{}, spoiled: map[string]bool{}, hosts: map[string]string{},
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
	case p.image != imageIn(pod):
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
	n.hosts[pod.Spec.Hostname+"."+pod.Spec.Subdomain+"."+pod.Namespace+".svc"] = p.ip
	text := "127.0.0.1 localhost\n"
	for _, name := range slices.Sorted(maps.Keys(n.hosts)) {
		text += n.hosts[name] + " " + name + "\n"
	}
	if err := os.WriteFile(n.hostsFile(), []byte(text), 0o600); err != nil {
		p.failure = err
	}
	n.cares[pod.UID] = p
}

func (n *realNodes) hostsFile() string { return filepath.Join(n.folder, "hosts") }

// start starts the container, with the environment that the pod says now.
func (n *realNodes) start(ctx context.Context, pod *corev1.Pod, p *realPod) {
	p.image = imageIn(pod)
	_, version, _ := strings.Cut(p.image, ":v")
	if program := n.programs[version]; program != "" {
		err := errors.Join(p.failure, os.MkdirAll(p.data, 0o700))
		if err == nil {
			p.process, err = startProcess(program, n.hostsFile(), n.environment(pod, p), healthOf(pod, p.ip))
		}
		if err != nil {
			p.process = failedProcess(err)
		}
		p.starts++
		p.state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: second(p.process.started)}}
		n.publish(pod.Name, n.namespace, p.ip)
		n.mu.Lock()
		n.serving[pod.Name], n.started = p.ip, p.process.started
		n.mu.Unlock()
	} else {
		p.waits = true
		reason := "ErrImagePull"
		if p.image == noImage {
			reason = "InvalidImageName"
		}
		p.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	n.report(ctx, pod, p)
}

// environment is the environment of a container, for a process that shares the machine with others.
func (n *realNodes) environment(pod *corev1.Pod, p *realPod) []string {
	all := []string{
		"PATH=" + os.Getenv("PATH"),
		"HTTP_PROXY=" + n.proxy,
		// A process that is killed loses nothing that it wrote; only a machine does.
		"ETCD_UNSAFE_NO_FSYNC=true",
		"GOMAXPROCS=1",
	}
	if n.quota != "" {
		all = append(all, "ETCD_QUOTA_BACKEND_BYTES="+n.quota)
	}
	for _, c := range pod.Spec.Containers {
		if c.Name != containerName {
			continue
		}
		for _, v := range c.Env {
			value := v.Value
			if v.ValueFrom != nil {
				annotation := strings.TrimSuffix(strings.TrimPrefix(v.ValueFrom.FieldRef.FieldPath, "metadata.annotations['"), "']")
				value = pod.Annotations[annotation]
			}
			switch {
			case v.Name == "ETCD_DATA_DIR":
				value = filepath.Join(p.data, strings.TrimPrefix(value, dataPath))
			case strings.HasPrefix(v.Name, "ETCD_LISTEN_"):
				value = strings.ReplaceAll(value, "0.0.0.0", p.ip)
			}
			all = append(all, v.Name+"="+value)
		}
	}
	return all
}

// healthOf is what the kubelet asks a pod for.
func healthOf(pod *corev1.Pod, ip string) string {
	for _, c := range pod.Spec.Containers {
		if c.Name == containerName && c.StartupProbe != nil && c.StartupProbe.HTTPGet != nil {
			return fmt.Sprintf("http://%s:%d%s", ip, c.StartupProbe.HTTPGet.Port.IntValue(), c.StartupProbe.HTTPGet.Path)
		}
	}
	return ""
}

// hasEnded says whether the process of a pod has ended, which it is told to.
func (n *realNodes) hasEnded(pod *corev1.Pod, p *realPod) bool {
	switch {
	case p.process == nil:
		return true
	case p.process.hasEnded():
		n.ended(p)
		return true
	case p.stopping.IsZero():
		p.stopping = time.Now()
		p.process.signal(syscall.SIGTERM)
	case time.Since(p.stopping) > time.Duration(*pod.Spec.TerminationGracePeriodSeconds)*time.Second:
		p.process.signal(syscall.SIGKILL)
	}
	return false
}

// ended notes that a process has ended.
func (n *realNodes) ended(p *realPod) {
	n.publish(p.name, n.namespace, "")
	p.last = corev1.ContainerState{Terminated: p.process.end()}
	n.mu.Lock()
	delete(n.serving, p.name)
	if t := p.last.Terminated; t.ExitCode != 0 {
		n.words[p.name] = fmt.Sprintf("exit code %d at %s: %s", t.ExitCode, t.FinishedAt.Format(time.TimeOnly), lastWords(corev1.ContainerStatus{LastTerminationState: p.last}, t.Message))
	}
	n.mu.Unlock()
	p.process, p.stopping, p.isReady = nil, time.Time{}, false
}

// crash is for a container that has ended by itself. It is started again, later each time.
func (n *realNodes) crash(ctx context.Context, pod *corev1.Pod, p *realPod) {
	n.ended(p)
	p.backOff = min(max(2*p.backOff, firstBackOff), longestBackOff)
	p.retry = time.Now().Add(p.backOff)
	p.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	n.report(ctx, pod, p)
}

// kill ends a process whose pod is gone.
func (n *realNodes) kill(p *realPod) {
	if p.process != nil {
		p.process.signal(syscall.SIGKILL)
		<-p.process.done
		n.ended(p)
	}
}

// report stores the status of a pod.
func (n *realNodes) report(ctx context.Context, pod *corev1.Pod, p *realPod) {
	is := func(t corev1.PodConditionType, ok bool) corev1.PodCondition {
		if ok {
			return corev1.PodCondition{Type: t, Status: corev1.ConditionTrue}
		}
		return corev1.PodCondition{Type: t, Status: corev1.ConditionFalse}
	}
	status := corev1.PodStatus{
		Phase: corev1.PodPending, PodIP: p.ip, PodIPs: []corev1.PodIP{{IP: p.ip}},
		Conditions: []corev1.PodCondition{
			is(corev1.PodScheduled, true), is(corev1.PodInitialized, true), is(corev1.ContainersReady, p.isReady), is(corev1.PodReady, p.isReady),
		},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: containerName, Image: p.image, ImageID: "", State: p.state, LastTerminationState: p.last,
			RestartCount: max(p.starts-1, 0), Ready: p.isReady, Started: new(p.isReady),
		}},
	}
	if p.starts > 0 {
		status.Phase = corev1.PodRunning
	}
	n.patchStatus(ctx, pod, status)
}

// patchStatus stores a status. The UID keeps it off a new object of the same name.
func (n *realNodes) patchStatus(ctx context.Context, obj client.Object, status any) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": obj.GetUID()}, "status": status})
	n.insist(ctx, func() error {
		if err != nil {
			return err
		}
		return n.client.Status().Patch(ctx, obj.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, patch))
	})
}

func (n *realNodes) remove(ctx context.Context, pod *corev1.Pod) {
	n.insist(ctx, func() error {
		return n.client.Delete(ctx, pod.DeepCopy(), client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	})
}

// insist repeats a request until it is done, or the object is gone or another one.
func (n *realNodes) insist(ctx context.Context, send func() error) {
	for ctx.Err() == nil {
		err := send()
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return
		}
		n.mu.Lock()
		n.words["API server"] = err.Error()
		n.mu.Unlock()
		time.Sleep(lookEvery)
	}
}

// state is how the nodes are, for the message of a run that fails.
func (n *realNodes) state() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	text := fmt.Sprintf("running: %v", slices.Sorted(maps.Keys(n.serving)))
	for _, pod := range slices.Sorted(maps.Keys(n.words)) {
		text += fmt.Sprintf("; %s last: %.300s", pod, n.words[pod])
	}
	return text
}

func (n *realNodes) isSteady() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Since(n.started) > 6*time.Second
}

// each calls do for each member that runs, until it succeeds.
func (n *realNodes) each(timeout time.Duration, do func(ctx context.Context, name string, conn grpc.ClientConnInterface) error) error {
	n.mu.Lock()
	serving := maps.Clone(n.serving)
	n.mu.Unlock()
	err := errors.New("no pod runs")
	for _, name := range slices.Sorted(maps.Keys(serving)) {
		if err = at(serving[name], timeout, func(ctx context.Context, conn grpc.ClientConnInterface) error { return do(ctx, name, conn) }); err == nil {
			return nil
		}
	}
	return err
}

// at makes requests to a member.
func at(ip string, timeout time.Duration, do func(context.Context, grpc.ClientConnInterface) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := grpc.NewClient(fmt.Sprintf("passthrough:///%s:%d", ip, members.ClientPort),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(), grpc.WithDisableServiceConfig())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return do(ctx, conn)
}

const keyPrefix = "acknowledged/"

func (n *realNodes) put(*testkit.Run) error {
	n.mu.Lock()
	n.puts++
	key := fmt.Sprintf("%s%06d", keyPrefix, n.puts)
	n.mu.Unlock()
	return n.each(2*time.Second, func(ctx context.Context, _ string, conn grpc.ClientConnInterface) error {
		done, err := pb.NewKVClient(conn).Put(ctx, &pb.PutRequest{Key: []byte(key), Value: []byte("x")})
		if err != nil {
			return err
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.keys = append(n.keys, key)
		n.by[done.GetHeader().GetClusterId()] = true
		return nil
	})
}

// lost reads with a quorum.
func (n *realNodes) lost(*testkit.Run) error {
	n.mu.Lock()
	acknowledged, clusters := slices.Clone(n.keys), len(n.by)
	n.mu.Unlock()
	if clusters > 1 {
		return fmt.Errorf("%d clusters have acknowledged writes under the same name", clusters)
	}
	there := map[string]bool{}
	err := n.each(5*time.Second, func(ctx context.Context, _ string, conn grpc.ClientConnInterface) error {
		got, err := pb.NewKVClient(conn).Range(ctx, &pb.RangeRequest{Key: []byte(keyPrefix), RangeEnd: []byte(keyPrefix + "~"), KeysOnly: true})
		for _, kv := range got.GetKvs() {
			there[string(kv.GetKey())] = true
		}
		return err
	})
	if err != nil {
		return err
	}
	lost := slices.DeleteFunc(acknowledged, func(key string) bool { return there[key] })
	if len(lost) > 0 {
		return fmt.Errorf("%d writes that were acknowledged are lost: %v", len(lost), lost)
	}
	return nil
}

// corrupt raises the alarm that etcd raises itself when it compares data.
func (n *realNodes) corrupt(_ *testkit.Run, member string) error {
	n.mu.Lock()
	ip := n.serving[member]
	n.mu.Unlock()
	if ip == "" {
		return fmt.Errorf("there is no member %s", member)
	}
	return at(ip, 5*time.Second, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		c := pb.NewMaintenanceClient(conn)
		status, err := c.Status(ctx, &pb.StatusRequest{})
		if err != nil {
			return err
		}
		_, err = c.Alarm(ctx, &pb.AlarmRequest{
			Action: pb.AlarmRequest_ACTIVATE, MemberID: status.GetHeader().GetMemberId(), Alarm: pb.AlarmType_CORRUPT,
		})
		return err
	})
}

// damage has the loop damage the data of a member.
func (n *realNodes) damage(_ *testkit.Run, member string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.serving[member] == "" {
		return fmt.Errorf("there is no member %s", member)
	}
	n.spoiled[member] = true
	return nil
}

// isSpoiled says, once, that the data of a member is to be damaged.
func (n *realNodes) isSpoiled(member string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	is := n.spoiled[member]
	delete(n.spoiled, member)
	return is
}

// spoil overwrites the pages by which a database is opened.
func (n *realNodes) spoil(p *realPod) {
	err := filepath.WalkDir(p.data, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Name() != "db" {
			return err
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt(make([]byte, 16<<10), 0)
		return errors.Join(err, f.Close())
	})
	if err != nil {
		p.failure = err
	}
}

// fill writes to the same key, so that it is its history that fills the database.
func (n *realNodes) fill(*testkit.Run) error {
	if n.quota == "" {
		return errors.New("the database has room for everything")
	}
	for range 1000 {
		err := n.each(5*time.Second, func(ctx context.Context, _ string, conn grpc.ClientConnInterface) error {
			_, err := pb.NewKVClient(conn).Put(ctx, &pb.PutRequest{Key: []byte("large"), Value: make([]byte, 256<<10)})
			return err
		})
		if grpcstatus.Code(err) == codes.ResourceExhausted {
			return nil
		} else if err != nil {
			return err
		}
	}
	return errors.New("the database is not full")
}

func (n *realNodes) byHand(*testkit.Run) (members.Client, members.Endpoint, error) {
	c, err := members.Dial(nil)
	if err != nil {
		return nil, members.Endpoint{}, err
	}
	n.mu.Lock()
	serving := maps.Clone(n.serving)
	n.mu.Unlock()
	for _, ip := range serving {
		here := members.Endpoint{Address: fmt.Sprintf("%s:%d", ip, members.ClientPort)}
		if s, err := c.Status(context.Background(), here); err == nil && s.ID == s.Leader {
			return c, here, nil
		}
	}
	return c, members.Endpoint{}, errors.New("nobody leads")
}

// process is an etcd that runs, or has ended.
type process struct {
	cmd     *exec.Cmd
	started time.Time
	output  *lastLines
	done    chan struct{} // closed when it has ended
	over    time.Time
	failure error         // to start
	served  chan struct{} // closed when it has answered once that it serves
}

// startProcess starts a program that has a file of hosts of its own. The shell becomes the program.
func startProcess(program, hosts string, env []string, health string) (*process, error) {
	flags := "-m"
	if os.Geteuid() != 0 {
		flags = "-rm"
	}
	p := &process{started: time.Now(), output: &lastLines{}, done: make(chan struct{}), served: make(chan struct{})}
	p.cmd = exec.CommandContext(context.Background(), // who started it ends it
		"unshare", flags, "sh", "-c", `mount --bind "$0" /etc/hosts && exec "$1"`, hosts, program)
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = env, p.output, p.output
	p.cmd.SysProcAttr = etcdtest.EndsWithParent()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in its state
		p.over = time.Now()
		close(p.done)
	}()
	go p.probe(health)
	return p, nil
}

// failedProcess is one that could not be started.
func failedProcess(err error) *process {
	p := &process{started: time.Now(), over: time.Now(), output: &lastLines{}, done: make(chan struct{}), served: make(chan struct{}), failure: err}
	close(p.done)
	return p
}

var prober = &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// probe asks whether the process serves, until it does.
func (p *process) probe(health string) {
	for {
		select {
		case <-p.done:
			return
		case <-time.After(200 * time.Millisecond):
		}
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, health, nil)
		if err != nil {
			return
		}
		resp, err := prober.Do(req)
		if err != nil {
			continue
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			close(p.served)
			return
		}
	}
}

func (p *process) hasEnded() bool  { return isClosed(p.done) }
func (p *process) hasServed() bool { return isClosed(p.served) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (p *process) signal(s syscall.Signal) {
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(s) // one that has ended does not mind
	}
}

// end is how the process ended, as a kubelet reports it.
func (p *process) end() *corev1.ContainerStateTerminated {
	t := &corev1.ContainerStateTerminated{
		ExitCode: 128, Reason: "Error", Message: p.output.String(), StartedAt: second(p.started), FinishedAt: second(p.over),
	}
	if p.failure != nil {
		t.Reason, t.Message = "StartError", p.failure.Error()
		return t
	}
	status, _ := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	t.ExitCode = int32(status.ExitStatus())
	if status.Signaled() {
		t.ExitCode = 128 + int32(status.Signal())
	}
	if t.ExitCode == 0 {
		t.Reason, t.Message = "Completed", ""
	}
	return t
}

// lastLines is the end of a log, as a kubelet makes a termination message of it.
type lastLines struct {
	mu   sync.Mutex
	text []byte
}

func (l *lastLines) Write(text []byte) (int, error) {
	const most = 2 << 10
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, text...)
	if len(l.text) > 64*most {
		l.text = append([]byte(nil), l.text[len(l.text)-most:]...)
	}
	return len(text), nil
}

func (l *lastLines) String() string {
	const most = 2 << 10
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text[max(0, len(l.text)-most):])
}
