package cluster

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/services"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/session"
	"example.com/fairlead/operators/etcd/view"
)

// rootUser is who users are with authentication on, and the operator.
var rootUser = members.User{Name: members.Root, Password: "secret"}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

const theCluster = members.ID(0xc1)

type ecOption func(*v1beta2.EtcdCluster)

// anEtcd is an EtcdCluster of three members that has been formed of the first three names.
func anEtcd(options ...ecOption) *v1beta2.EtcdCluster {
	ec := &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "example", Namespace: "ns", UID: "uid-of-example", Generation: 1},
		Spec:       v1beta2.EtcdClusterSpec{Size: 3, Repository: "quay.io/coreos/etcd", Version: "3.6.16"},
	}
	ec.Status.ClusterID, ec.Status.MemberNamesUsed, ec.Status.CurrentVersion = theCluster.String(), 3, "3.6.16"
	for n := range int64(3) {
		ec.Status.Founders = append(ec.Status.Founders, objects.MemberName(ec, n+1))
		ec.Status.MemberList = append(ec.Status.MemberList, v1beta2.MemberStatus{Name: objects.MemberName(ec, n+1), ID: members.ID(n + 1).String(), Version: "3.6.16"})
	}
	for _, option := range options {
		option(ec)
	}
	return ec
}

func notFormed(ec *v1beta2.EtcdCluster) { ec.Status = v1beta2.EtcdClusterStatus{} }

func size(n int32) ecOption { return func(ec *v1beta2.EtcdCluster) { ec.Spec.Size = n } }

func version(v string) ecOption { return func(ec *v1beta2.EtcdCluster) { ec.Spec.Version = v } }

func onVolumes(ec *v1beta2.EtcdCluster) {
	ec.Spec.Pod = &v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
}

func withTLS(ec *v1beta2.EtcdCluster) {
	ec.Spec.TLS = &v1beta2.TLSPolicy{Generated: &v1beta2.GeneratedTLS{}}
}

func withQuota(bytes string) ecOption {
	return func(ec *v1beta2.EtcdCluster) {
		ec.Spec.Pod = &v1beta2.PodPolicy{EtcdEnv: []corev1.EnvVar{{Name: "ETCD_QUOTA_BACKEND_BYTES", Value: bytes}}}
	}
}

// world is what is observed, as a test builds it up.
type world struct {
	ec   *v1beta2.EtcdCluster
	seen view.Observation
	list []members.Member
}

// healthy is a world in which the members with these numbers are there, and the first leads.
func healthy(ec *v1beta2.EtcdCluster, numbers ...int64) *world {
	w := &world{ec: ec, seen: view.Observation{
		Now: noon, Children: loop.Children{"PodDisruptionBudget": &policyv1.PodDisruptionBudget{}},
		Peers: &corev1.Service{}, Clients: &corev1.Service{},
		Pods: map[string]*corev1.Pod{}, Claims: map[string]*corev1.PersistentVolumeClaim{}, Answers: map[string]session.Answer{},
		Reached: services.Targets{},
	}}
	for _, n := range numbers {
		name := objects.MemberName(ec, n)
		w.list = append(w.list, members.Member{ID: members.ID(n), Name: name, PeerURLs: []string{objects.PeerURLOf(ec, name)}})
	}
	for i := range ec.Status.MemberList {
		uid := fmt.Sprintf("pod-%d", i+1)
		if objects.HasVolumes(ec) {
			uid = fmt.Sprintf("claim-%d", i+1)
		}
		ec.Status.MemberList[i].DataUID = uid
	}
	for _, n := range numbers {
		w.addPod(n, "3.6.16")
		w.answer(n, func(*session.Answer) {})
	}
	return w
}

func (w *world) name(n int64) string { return objects.MemberName(w.ec, n) }

func (w *world) addPod(n int64, version string) {
	p := objects.Pod(w.ec, w.name(n), version, objects.Start{IsSealed: true}, objects.Certificates{})
	p.UID = types.UID(fmt.Sprintf("pod-%d", n))
	p.Status.PodIP = fmt.Sprintf("10.0.0.%d", n)
	p.Spec.NodeName = "node"
	w.seen.Pods[p.Name] = p
	if objects.HasVolumes(w.ec) {
		c := objects.Claim(w.ec, p.Name)
		c.UID = types.UID(fmt.Sprintf("claim-%d", n))
		w.seen.Claims[p.Name] = c
	}
}

// answer is that of a member which follows the first, but for what change changes.
func (w *world) answer(n int64, change func(*session.Answer)) {
	a := session.Answer{
		Status: members.Status{
			ClusterID: theCluster, ID: members.ID(n), Version: w.seen.Pods[w.name(n)].Annotations[annotation.Version],
			Leader: w.list[0].ID, RaftTerm: 2, RaftIndex: 100, Applied: 100, Revision: 50, DBSize: 1 << 20, DBSizeInUse: 1 << 20, StorageVersion: "3.6.0",
		},
		List: members.List{ClusterID: theCluster, By: members.ID(n), Members: w.list},
	}
	change(&a)
	w.seen.Answers[w.name(n)] = a
	w.seen.Reached[w.seen.Pods[w.name(n)].UID] = true
}

func withAuth(ec *v1beta2.EtcdCluster) { ec.Spec.Auth = &v1beta2.AuthPolicy{RootSecret: "root"} }

// logsIn is what etcd says to the operator's user.
func (w *world) logsIn(says error) *world {
	w.seen.Auth.LoggedIn = says
	return w
}

// hasNoSecret has root's Secret be missing.
func (w *world) hasNoSecret() *world {
	w.seen.Auth.Problem = &status.Problem{Reason: reason.NoSecret, Message: "Secret \"root\" does not exist"}
	return w
}

// loses takes a member's pod away, with what it says, and its volume.
func (w *world) loses(numbers ...int64) *world {
	for _, n := range numbers {
		delete(w.seen.Pods, w.name(n))
		delete(w.seen.Claims, w.name(n))
		delete(w.seen.Answers, w.name(n))
	}
	return w
}

// founding is before any of the members has said anything.
func (w *world) founding() *world {
	w.ec.Status.Founders = slices.Sorted(maps.Keys(w.seen.Pods))
	clear(w.seen.Answers)
	return w
}

// unready has the kubelet find members not ready, whatever they answer.
func (w *world) unready(numbers ...int64) *world {
	for _, n := range numbers {
		delete(w.seen.Reached, w.seen.Pods[w.name(n)].UID)
	}
	return w
}

// silences has members not answer.
func (w *world) silences(numbers ...int64) *world {
	for _, n := range numbers {
		w.seen.Answers[w.name(n)] = session.Answer{Err: errors.New("timeout")}
	}
	return w
}

// leaderless has all members know no leader.
func (w *world) leaderless() *world {
	for name, a := range w.seen.Answers {
		a.Status.Leader = 0
		w.seen.Answers[name] = a
	}
	return w
}

// asks is a request that a plan makes in a world.
type asks func(w *world) members.Request

// at is a member's address.
func (w *world) at(n int64) members.Endpoint { return objects.EndpointOf(w.ec, w.seen.Pods[w.name(n)]) }

// about is a request to a member about another one, or itself.
func about(what members.What, at, n int64) asks {
	return func(w *world) members.Request {
		return members.Request{What: what, At: w.at(at), ID: members.ID(n)}
	}
}

// removes is the request to the first member to remove one, while the list is that.
func removes(at, n int64, listed ...members.ID) asks {
	return func(w *world) members.Request {
		return members.Request{What: members.Remove, At: w.at(at), ID: members.ID(n), Listed: listed}
	}
}

// adds is the request to the first of three members to add the fourth.
func adds(noDowngrade bool) asks {
	return func(w *world) members.Request {
		return members.Request{
			What: members.Add, At: w.at(1), PeerURLs: []string{objects.PeerURLOf(w.ec, w.name(4))}, Learner: true, Listed: []members.ID{1, 2, 3}, NoDowngrade: noDowngrade,
		}
	}
}

func compacts(revision int64) asks {
	return func(w *world) members.Request {
		return members.Request{What: members.Compact, At: w.at(1), Revision: revision, Patience: members.CompactPatience(revision, 1<<20)}
	}
}

func defragments(n int64) asks {
	return func(w *world) members.Request {
		return members.Request{What: members.Defragment, At: w.at(n), Patience: members.DefragmentPatience(1 << 20)}
	}
}

func disarms(alarm members.Alarm) asks {
	return func(w *world) members.Request {
		return members.Request{What: members.Disarm, At: w.at(1), Alarm: alarm}
	}
}

// downgradesTo is the request to enable a downgrade, or to cancel it.
func downgradesTo(version string) asks {
	return func(w *world) members.Request {
		return members.Request{What: members.Downgrade, At: w.at(1), Version: version}
	}
}

// asked says how what a plan requests of etcd differs from what it should.
func (w *world) asked(p *plan, want asks) string {
	var got, wanted members.Request
	if p.Request != nil {
		got = p.Request.Request
	}
	if want != nil {
		wanted = want(w)
	}
	return cmp.Diff(wanted, got)
}

// doing is what a plan does, in words: its writes, but for those of the objects beside the
// members, and its claim. Names of members are their numbers.
func (w *world) doing(p *plan) string {
	var all []string
	for _, write := range p.Writes {
		text := loop.Name(write)
		switch write := write.(type) {
		case loop.Apply:
			continue
		case loop.Call:
			text += " by a func"
		default:
			text += " " + loop.ObjectOf(write).GetName()
		}
		all = append(all, text)
	}
	if p.Claim != "" {
		claim := "status/" + p.Claim
		if m := p.memory.Maintenance; m != nil && p.Claim == "maintenance" {
			claim += fmt.Sprintf(": %s of %s", m.Type, m.Member)
		}
		all = append(all, claim)
	}
	said := strings.Join(all, "; ")
	for n := int64(1); n < 12; n++ {
		said = strings.ReplaceAll(said, w.name(n), fmt.Sprintf("#%d", n))
	}
	return said
}
