package step

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/session"
	"example.com/fairlead/operators/etcd/versions"
	"example.com/fairlead/operators/etcd/view"
)

// Removed deletes an object that nothing needs any more.
func Removed(obj client.Object, why string) loop.Write {
	return loop.Delete{Object: obj, Why: why, IfCurrent: true}
}

// Asked is a request to a member.
func Asked(why string, r members.Request) *session.Request {
	return &session.Request{Request: r, Why: why}
}

// AskedLeader is a request to the leader; nil if that does not answer.
func AskedLeader(ec *v1beta2.EtcdCluster, v *view.View, why string, r members.Request) *session.Request {
	leader := v.LeadingAnywhere()
	switch {
	case leader == nil:
		return nil
	case leader.Pod == nil:
		r.At = objects.Elsewhere(ec)[leader.URL]
		return &session.Request{Request: r, Why: why, IsElsewhere: true}
	}
	r.At = objects.EndpointOf(ec, leader.Pod)
	return Asked(why, r)
}

// Created is the pod of a member, with its volume, as far as they are not there.
func Created(ec *v1beta2.EtcdCluster, v *view.View, m *view.Member, version versions.Version, s objects.Start) (writes []loop.Write) {
	var kept []metav1.OwnerReference
	if objects.MayGoBack(ec) {
		kept = objects.KeptBy(v.Peers)
	}
	if objects.HasVolumes(ec) && m.Claim == nil {
		claim := objects.Claim(ec, m.PodName)
		claim.OwnerReferences = append(claim.OwnerReferences, kept...)
		writes = append(writes, loop.Create{Object: claim, IfCurrent: true})
	}
	if m.Pod == nil {
		pod := objects.Pod(roomy(ec, v), m.PodName, version.String(), s, v.Certs)
		pod.OwnerReferences = append(pod.OwnerReferences, kept...)
		writes = append(writes, loop.Create{Object: pod, IfCurrent: true})
	}
	return writes
}

// roomy is the spec as a pod may be made of it now: without a quota that a database has reached, with which the first member
// would raise an alarm for all. The rollout reports it, and replaces the pod once the quota is larger.
func roomy(ec *v1beta2.EtcdCluster, v *view.View) *v1beta2.EtcdCluster {
	quota, size, has := ec.Spec.QuotaBackendBytes, int64(0), int64(0)
	if quota == nil {
		return ec
	}
	for _, m := range v.Members {
		switch {
		case m.IsForeign():
			continue
		case m.HasAnswered():
			size = max(size, m.Answer.Status.DBSize)
		case m.Was.DBSize != nil:
			size = max(size, m.Was.DBSize.Value())
		}
		if m.Pod != nil {
			has = max(has, m.Quota())
		}
	}
	if size < quota.Value() {
		return ec
	}
	ec = ec.DeepCopy()
	ec.Spec.QuotaBackendBytes = resource.NewQuantity(max(has, 2*size), resource.BinarySI)
	return ec
}

// LetGo removes the scheduling gate.
func LetGo(pod *corev1.Pod) loop.Write {
	return loop.Patch{Object: pod, Part: "gate", Spec: pods.Ungated(objects.Gate)} // the UID says enough
}

// Dropped deletes the volume of one that is no member. It may have been set aside meanwhile.
func Dropped(claim *corev1.PersistentVolumeClaim, why string) loop.Write {
	return loop.Delete{Object: claim, Why: why, IfCurrent: true, IfSame: true}
}

// Mark makes an object one of the cluster's: by its labels and its owner reference.
func Mark(ec *v1beta2.EtcdCluster, obj client.Object, why string) loop.Write {
	return loop.Patch{Object: obj, Part: "marks", Why: why, IfCurrent: true, Metadata: map[string]any{
		"labels":          objects.MemberLabels(ec, obj.GetName()),
		"ownerReferences": objects.ControlledBy(ec),
	}}
}

// ImageChange changes the image in a pod. Its kubelet then restarts the container, and nothing else.
func ImageChange(ec *v1beta2.EtcdCluster, pod *corev1.Pod, part, why string, version versions.Version) loop.Patch {
	image := objects.ImageOf(ec, version.String())
	annotations := map[string]any{annotation.Version: version.String(), annotation.Image: image}
	if loss := ec.Status.QuorumLoss; pod.Annotations[annotation.ForceNewCluster] == "true" && (loss == nil || loss.From != pod.Name) {
		annotations[annotation.ForceNewCluster] = "false" // it would forget all other members
	}
	return objects.WithImage(pod, part, why, image, annotations)
}

// Restarted restarts the container of a member: it stops it here, and the next step has it start.
func Restarted(v *view.View, m *view.Member, why string) loop.Write {
	annotations := map[string]any{}
	if v.Certs.CaHash != "" {
		annotations[annotation.CA] = v.Certs.CaHash
	}
	return objects.Stopping(m.Pod, "restart", fmt.Sprintf("member %s is restarted, %s", m.PodName, why), annotations)
}

// NewNames are names that no member has had or, if status was emptied, that none has, and how many are used then.
func NewNames(ec *v1beta2.EtcdCluster, v *view.View, n int) (names []string, used int64) {
	for used = ec.Status.MemberNamesUsed; len(names) < n; {
		used++
		if name := objects.MemberName(ec, used); v.Named[name] == nil {
			names = append(names, name)
		}
	}
	return names, used
}

// HandOver is the request to the leader to hand over to the voter that has applied the most; nil if there is none.
func HandOver(ec *v1beta2.EtcdCluster, v *view.View) *session.Request {
	return HandOverTo(ec, v, func(m *view.Member) bool { return !m.IsLost() })
}

// HandOverTo is [HandOver] to one of those that are so.
func HandOverTo(ec *v1beta2.EtcdCluster, v *view.View, may func(*view.Member) bool) *session.Request {
	var to *view.Member
	for _, m := range v.Members {
		if may(m) && m.IsVoter() && m.Follows && m.ID != v.Leader && (to == nil || m.Answer.Status.Applied > to.Answer.Status.Applied) {
			to = m
		}
	}
	if to == nil {
		return nil
	}
	return AskedLeader(ec, v, "", members.Request{What: members.MoveLeader, ID: to.ID})
}

// TimeOf is a time as status has it.
func TimeOf(now time.Time) *metav1.Time {
	t := metav1.NewTime(now.Truncate(time.Second))
	return &t
}

// FoundingOf is how a founder starts.
func FoundingOf(ec *v1beta2.EtcdCluster) objects.Start {
	s := objects.Start{IsNew: true, Token: string(ec.UID) + "-" + ec.Status.Founders[0]}
	for _, name := range ec.Status.Founders {
		s.Initial = append(s.Initial, objects.Founder{Name: name, PeerURL: objects.PeerURLOf(ec, name)})
	}
	return s
}
