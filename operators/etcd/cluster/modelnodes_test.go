package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/sim"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/members/model"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/pki"
)

// modelNodes are the nodes of a simulated cluster: they run etcd pods, with a model of etcd.
type modelNodes struct {
	world *sim.World
	model *model.World
	pods  map[types.UID]*modelPod
	disks map[types.UID]*model.Disk // by the UID of a claim
	ips   int
	// isSlow says that members take longer for a defragmentation than the operator waits for it.
	isSlow bool
	// gone is the registry that has no images any more.
	gone string
	// next is when something will change in the model by itself.
	next time.Time
	// backups are what can be fetched, by their keys, and fails how often fetching fails before it works.
	backups map[string]*model.Snapshot
	fails   int
	// given is the last revision that a write was given, and by which cluster.
	given struct {
		revision int64
		by       members.ID
	}
	// led are the pods that an operator has seen lead.
	led map[string]bool
	// off is the node that has no power, since when, and cut the member that nobody reaches; empty if there is none.
	// givenUp are the pods that went because the user has deleted their Node, or drained it.
	off, cut string
	offSince time.Time
	givenUp  []string
	// drained are the nodes that are being drained, and undone the steps that the user still has to do, of those in any order.
	drained []string
	undone  []testkit.Step
	// idleSince is when the user has last done anything of them.
	idleSince time.Time
	// steady is when members will have run for long enough; zero if they have.
	steady time.Time
	// rotten are the members whose data was changed behind their backs.
	rotten []string
	// elsewhere are the members that no EtcdCluster has.
	elsewhere []model.Config
}

// modelPod is a pod on a node.
type modelPod struct {
	name    string
	claim   types.UID
	disk    *model.Disk
	image   string // that its container was started with, or could not be
	runs    bool
	waits   bool // for an image
	ip      string
	trusts  []byte // the CAs that it was started with
	fetched bool   // its init container has ended well
	started time.Time
	hung    time.Time // since when its etcd stands still; zero if it does not
	retry   time.Time
	crashes int
}

// tags are the versions that there are images of.
var tags = []string{"3.5.9", "3.5.35", "3.6.15", "3.6.16", "3.7.3"}

func newModelNodes(w *sim.World, r *testkit.Run) *modelNodes {
	n := &modelNodes{world: w, model: model.New(w.Now), pods: map[types.UID]*modelPod{}, disks: map[types.UID]*model.Disk{}, backups: map[string]*model.Snapshot{}, led: map[string]bool{}}
	r.Own, w.SeesNodes = n, true
	w.Context = func(ctx context.Context) context.Context { return context.WithValue(ctx, nodesKey{}, n) }
	return n
}

func (*modelNodes) Name() string { return "nodes" }

// Act does the first thing that is to be done.
func (n *modelNodes) Act() (did bool, wake time.Time) {
	n.wipe()
	sim.Each(n.world.Server, func(claim *corev1.PersistentVolumeClaim) {
		if !did && claim.Status.Phase != corev1.ClaimBound {
			bound := claim.DeepCopy()
			bound.Status.Phase = corev1.ClaimBound
			n.world.Fail(n.world.Server.Report(bound, n.Name()))
			did = true
		}
	})
	sim.Each(n.world.Server, func(pod *corev1.Pod) {
		if did {
			return
		}
		var at time.Time
		did, at = n.care(pod)
		if !at.IsZero() && (wake.IsZero() || at.Before(wake)) {
			wake = at
		}
	})
	if did {
		return true, time.Time{}
	}
	for _, due := range []*time.Time{&n.steady, &n.next} {
		if !due.IsZero() && !n.world.Now().Before(*due) {
			*due = time.Time{}
			n.world.Changed()
		}
	}
	n.next = n.model.Next()
	for _, at := range []time.Time{n.steady, n.next} {
		if !at.IsZero() && (wake.IsZero() || at.Before(wake)) {
			wake = at
		}
	}
	return false, wake
}

// inOrder are the pods in the order of their names: what is done to them is the same each time.
func (n *modelNodes) inOrder() []*modelPod {
	return slices.SortedFunc(maps.Values(n.pods), func(a, b *modelPod) int { return strings.Compare(a.name, b.name) })
}

func (n *modelNodes) isSteady() bool { return n.steady.IsZero() }

// care does the next thing for a pod, or says when there will be something to do.
func (n *modelNodes) care(pod *corev1.Pod) (did bool, wake time.Time) {
	p := n.pods[pod.UID]
	switch {
	case p == nil && pod.DeletionTimestamp != nil:
		n.world.Fail(n.world.Server.Remove(pod, n.Name()))
		return true, wake
	case p == nil:
		return n.bind(pod), wake
	case n.off != "" && pod.Spec.NodeName == n.off:
		return n.unattended(pod, p)
	case pod.DeletionTimestamp != nil:
		n.end(p)
		n.forget(p)
		delete(n.pods, pod.UID)
		n.world.Fail(n.world.Server.Remove(pod, n.Name()))
		n.world.Changed()
		return true, wake
	case p.image != objects.ImageOfContainer(pod) && (p.fetched || len(pod.Spec.InitContainers) == 0):
		n.end(p)
		p.image, p.retry, p.waits = objects.ImageOfContainer(pod), n.world.Now().Add(100*time.Millisecond), false
		n.report(pod, p, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}, nil)
		return true, wake
	case len(pod.Spec.InitContainers) > 0 && !p.fetched:
		if n.world.Now().Before(p.retry) {
			return false, p.retry
		}
		n.fetch(pod, p)
		return true, wake
	case p.runs:
		if running, exit := n.model.IsRunning(p.name); !running {
			p.runs = false
			n.crash(pod, p, exit)
			return true, wake
		}
		return n.probe(pod, p)
	case p.waits:
		return false, wake
	case n.world.Now().Before(p.retry):
		return false, p.retry
	}
	n.start(pod, p)
	return true, wake
}

// bind puts a pod on a node, once its volume is there.
func (n *modelNodes) bind(pod *corev1.Pod) bool {
	if len(pod.Spec.SchedulingGates) > 0 {
		return false
	}
	node := n.nodeFor()
	if node == "" {
		return false
	}
	p := &modelPod{name: pod.Name, image: objects.ImageOfContainer(pod)}
	if volume := pod.Spec.Volumes[0].PersistentVolumeClaim; volume != nil {
		claim, isThere := sim.Find[*corev1.PersistentVolumeClaim](n.world.Server, types.NamespacedName{Namespace: pod.Namespace, Name: volume.ClaimName})
		if !isThere || claim.DeletionTimestamp != nil {
			return false
		}
		if p.claim = claim.UID; n.disks[p.claim] == nil {
			n.disks[p.claim] = n.model.NewDisk()
		}
		p.disk = n.disks[p.claim]
	} else {
		p.disk = n.model.NewDisk()
	}
	n.ips++
	p.ip = fmt.Sprintf("10.%d.%d.%d", n.ips>>16, n.ips>>8&255, n.ips&255)
	n.pods[pod.UID] = p
	n.world.Fail(n.world.Server.Bind(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, node, "scheduler"))
	return true
}

// nodeFor is the node that has the fewest pods of those that take more: "pretend", if the story has none at all.
func (n *modelNodes) nodeFor() string {
	pods, all := map[string]int{}, false
	sim.Each(n.world.Server, func(pod *corev1.Pod) { pods[pod.Spec.NodeName]++ })
	best := ""
	sim.Each(n.world.Server, func(node *corev1.Node) {
		all = true
		if !node.Spec.Unschedulable && node.Name != n.off && (best == "" || pods[node.Name] < pods[best]) {
			best = node.Name
		}
	})
	if !all {
		return "pretend"
	}
	return best
}

// keepsVoters returns an error if a member is to be removed without another one in its place, although nothing but its node
// is to go, or one that is only not reached. In stories with nodes, nothing is lost but what the user has given up.
func (n *modelNodes) keepsVoters(removed members.ID) error {
	hasNodes, size := false, 0
	sim.Each(n.world.Server, func(*corev1.Node) { hasNodes = true })
	sim.Each(n.world.Server, func(ec *v1beta2.EtcdCluster) { size = int(ec.Spec.Size) })
	for _, leading := range n.model.Leading() {
		voters, isGivenUp := 0, false
		for _, m := range leading.Members() {
			switch {
			case m.ID == removed && n.mustStay(m.Name):
				return fmt.Errorf("the operator removes member %s, which is only not reached", m.Name)
			case m.ID == removed:
				isGivenUp = slices.Contains(n.givenUp, m.Name)
			case !m.IsLearner:
				voters++
			}
		}
		if hasNodes && voters < size && !isGivenUp {
			return fmt.Errorf("the operator removes member %s, and leaves %d voters of %d", removed, voters, size)
		}
	}
	return nil
}

// start starts the container.
func (n *modelNodes) start(pod *corev1.Pod, p *modelPod) {
	_, version, _ := strings.Cut(p.image, ":v")
	if !slices.Contains(tags, version) || n.gone != "" && strings.HasPrefix(p.image, n.gone) {
		p.waits = true
		reason := "ErrImagePull"
		if strings.HasSuffix(p.image, objects.NoImage) {
			reason = "InvalidImageName"
		}
		n.report(pod, p, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}, nil)
		return
	}
	p.started, p.trusts = n.world.Now(), n.inSecret(pod.Namespace, "example-peer-tls", pki.Peer.Files.CA)
	running, exit := n.model.Start(model.Config{
		Name: pod.Name, PeerURL: objects.Variable(pod, "ETCD_INITIAL_ADVERTISE_PEER_URLS"), Address: p.ip + ":2379", Version: version,
		InitialCluster: pod.Annotations[annotation.InitialCluster], Existing: objects.Variable(pod, "ETCD_INITIAL_CLUSTER_STATE") == "existing",
		Token: objects.Variable(pod, "ETCD_INITIAL_CLUSTER_TOKEN"), ForceNew: pod.Annotations[annotation.ForceNewCluster] == "true", Disk: p.disk,
		Quota: n.quota(pod),
	})
	if !running {
		n.crash(pod, p, exit)
		return
	}
	p.runs, n.steady = true, n.world.Now().Add(6*time.Second)
	n.report(pod, p, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: second(p.started)}}, nil)
}

// quota is the size that the database of a pod may have.
func (n *modelNodes) quota(pod *corev1.Pod) int64 {
	bytes, err := strconv.ParseInt(objects.Variable(pod, "ETCD_QUOTA_BACKEND_BYTES"), 10, 64)
	if err != nil {
		return 256 << 10 // not much, so that it is soon full
	}
	return bytes
}

// inSecret is what a Secret has under a key; nil if there is no such Secret.
func (n *modelNodes) inSecret(namespace, name, key string) []byte {
	secret, isThere := sim.Find[*corev1.Secret](n.world.Server, types.NamespacedName{Namespace: namespace, Name: name})
	if !isThere {
		return nil
	}
	return secret.Data[key]
}

// crash is for a container that has ended by itself. It is started again, later each time.
func (n *modelNodes) crash(pod *corev1.Pod, p *modelPod, exit string) {
	code, message := int32(137), "" // it was killed
	if exit != "" {
		code, message = 1, fmt.Sprintf(`{"level":"fatal","msg":"discovery failed","error":%q}`, exit)
	}
	p.crashes++
	p.retry = n.world.Now().Add(min(5*time.Second<<min(p.crashes, 10), 5*time.Minute))
	n.report(pod, p, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}, &corev1.ContainerStateTerminated{
		ExitCode: code, Message: message, StartedAt: second(p.started), FinishedAt: second(n.world.Now()),
	})
	n.world.Changed()
}

func (n *modelNodes) end(p *modelPod) {
	if p.runs {
		n.model.Stop(p.name)
		p.runs = false
		n.world.Changed()
	}
}

// forget loses the data of a pod that is gone, unless it has a volume that is there.
func (n *modelNodes) forget(p *modelPod) {
	if p.claim == "" {
		p.disk.Wipe()
	}
}

// wipe loses the data of claims that are gone.
func (n *modelNodes) wipe() {
	gone := maps.Clone(n.disks)
	sim.Each(n.world.Server, func(claim *corev1.PersistentVolumeClaim) { delete(gone, claim.UID) })
	for _, p := range n.pods {
		delete(gone, p.claim)
	}
	for uid, disk := range gone {
		disk.Wipe()
		delete(n.disks, uid)
	}
}

// report stores the status of a pod.
func (n *modelNodes) report(pod *corev1.Pod, p *modelPod, state corev1.ContainerState, last *corev1.ContainerStateTerminated) {
	told := pod.DeepCopy()
	told.Status.Phase, told.Status.PodIP = corev1.PodRunning, p.ip
	c := corev1.ContainerStatus{Name: objects.ContainerName, Image: p.image, State: state, RestartCount: int32(p.crashes), Ready: state.Running != nil}
	if last != nil {
		c.LastTerminationState.Terminated = last
	}
	told.Status.ContainerStatuses = []corev1.ContainerStatus{c}
	ready := corev1.ConditionFalse
	if c.Ready {
		ready = corev1.ConditionTrue
	}
	n.world.Server.SetPodCondition(&told.Status, corev1.PodReady, ready, "")
	n.world.Fail(n.world.Server.Report(told, n.Name()))
}

func second(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }
