package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/versions"
	"example.com/fairlead/operators/etcd/view"
)

// This file changes members one at a time, each when all others follow the leader, and the
// leader last, which hands over before: so there is always a quorum, and writes wait for no
// election. The image is changed in the pod, so that a member keeps its data also where it has
// no volume; other changes of a pod need another pod.

// rollOut takes the members to the version and the pods that the spec requests.
func (p *plan) rollOut(ec *v1beta2.EtcdCluster) bool {
	if !p.view.IsCurrent {
		return false
	}
	step, err := p.step()
	if err != nil {
		p.stall(reason.VersionRefused, "%v", err)
		step = p.view.Lowest()
	}
	if (step != p.view.Lowest() || step != p.view.Highest()) && p.prepare(ec, step) {
		return true
	}
	return p.changeOne(ec, step) || p.settleDowngrade(ec, step)
}

// changeOne changes the next member that is not as it is to be. Which one that is, status remembers
// before: no other is changed until it is complete, whatever late caches show of its pod.
func (p *plan) changeOne(ec *v1beta2.EtcdCluster, step versions.Version) bool {
	if m := p.view.Of(p.memory.MemberBeingUpdated); !m.IsMember || isComplete(m, ec, step) {
		p.memory.MemberBeingUpdated = ""
	}
	next := p.nextToChange(ec, step)
	if next == nil {
		return p.awaitChanged(step)
	}
	if wasEdited(next) {
		p.later() // a webhook may make the same of it again
	} else {
		p.soon()
	}
	p.rolling(fmt.Sprintf("now %s: %s", next.PodName, whyChanged(next, objects.ImageOf(ec, step.String()))))
	others := p.view.Find(func(m *view.Member) bool { return m.ID != next.ID && !m.IsForeign() && !m.IsSettled() })
	if others != nil {
		if others.NeedsRestart && isCutOff(ec, others) { // it is missed already, and this brings it back
			p.restart(others, "to trust another CA: nobody can talk to it")
			return true
		}
		p.doing += fmt.Sprintf(", waiting for member %s", others.PodName)
		return true
	}
	if p.memory.MemberBeingUpdated == "" {
		p.memory.MemberBeingUpdated = next.PodName
		p.claim("change")
		return true
	}
	if next.ID == p.view.Leader && p.moveLeader(ec) {
		return true
	}
	isSame := next.Version == step
	switch image := objects.ImageOf(ec, step.String()); {
	case next.NeedsRestart:
		p.restart(next, "to trust another CA")
	case objects.IsStopping(next.Pod):
	case wasEdited(next):
		p.setImage(ec, next.Pod, step, "")
	case objects.ImageIn(next.Pod) == image:
		p.Remove(next.Pod, "spec.pod has changed")
	case isSame && objects.ImageIn(next.Pod) != objects.NoImage:
		p.restart(next, "with image "+image) // that it has would not tell when it runs
	case isSame:
		p.setImage(ec, next.Pod, step, "")
	default:
		p.setImage(ec, next.Pod, step, fmt.Sprintf("member %s changed from %s to %s", next.PodName, next.Version, step))
	}
	return true
}

// rolling reports what of the members is changed, if that is not their version.
func (p *plan) rolling(what string) {
	if p.activity == "" {
		p.report(status.Problem{Reason: reason.RollingOut, Retriable: true, Message: "Members are changed one after the other, " + what})
	}
}

// nextToChange is the member that is being changed or, if none is, the next that is not as it is to
// be: one that is down anyway is first, the leader last.
func (p *plan) nextToChange(ec *v1beta2.EtcdCluster, step versions.Version) *view.Member {
	var next *view.Member
	for _, m := range p.view.Members {
		switch {
		case m.IsForeign() || m.Pod == nil || objects.IsEnding(m.Pod) || !differs(m, ec, step):
		case p.memory.MemberBeingUpdated != "" && p.memory.MemberBeingUpdated != m.PodName:
		case next == nil || !m.Follows && next.Follows || next.ID == p.view.Leader && m.Follows:
			next = m
		}
	}
	return next
}

// isComplete says whether a member is as it is to be, and follows the leader.
func isComplete(m *view.Member, ec *v1beta2.EtcdCluster, step versions.Version) bool {
	return m.IsSettled() && !differs(m, ec, step)
}

// differs says whether a member's pod is not as it is to be.
func differs(m *view.Member, ec *v1beta2.EtcdCluster, step versions.Version) bool {
	if objects.ImageIn(m.Pod) != objects.ImageOf(ec, step.String()) || m.NeedsRestart || wasEdited(m) {
		return true
	}
	return objects.HasVolumes(ec) && m.Claim != nil && annotation.Of(m.Pod, annotation.Template) != objects.TemplateHash(ec)
}

// whyChanged says why a member's pod is not as it is to be, if its version is.
func whyChanged(m *view.Member, image string) string {
	switch {
	case m.NeedsRestart || objects.ImageIn(m.Pod) == objects.NoImage:
		return "it is restarted"
	case objects.ImageIn(m.Pod) != image || wasEdited(m):
		return "its image is to be " + image
	}
	return "spec.pod has changed"
}

// wasEdited says whether the image of a member does not do, and is not the one that it is to have:
// somebody has changed it in the pod. One that does is left as it is.
func wasEdited(m *view.Member) bool {
	return objects.ImageOfContainer(m.Pod) != objects.ImageIn(m.Pod) && (objects.LacksImage(m.Pod) || m.Follows && m.Version.String() != annotation.Of(m.Pod, annotation.Version))
}

// restart restarts the container of a member: it stops it here, and the next step has it start.
func (p *plan) restart(m *view.Member, why string) {
	annotations := map[string]any{}
	if p.view.Certs.CaHash != "" {
		annotations[annotation.CA] = p.view.Certs.CaHash
	}
	p.Do(objects.Stopping(m.Pod, "restart", fmt.Sprintf("member %s is restarted, %s", m.PodName, why), annotations))
}

// awaitChanged waits for the member that was changed last.
func (p *plan) awaitChanged(step versions.Version) bool {
	if p.memory.MemberBeingUpdated != "" {
		p.soon()
		p.rolling("waiting for " + p.memory.MemberBeingUpdated)
		return true
	}
	if p.view.Find(func(m *view.Member) bool { return !m.IsForeign() && m.Version != step }) == nil {
		return false
	}
	p.soon()
	return true
}

// setImage changes the image in a pod. Its kubelet then restarts the container, and nothing else.
func (p *plan) setImage(ec *v1beta2.EtcdCluster, pod *corev1.Pod, version versions.Version, why string) {
	p.Do(imageChange(ec, pod, "image", why, version))
}

func imageChange(ec *v1beta2.EtcdCluster, pod *corev1.Pod, part, why string, version versions.Version) loop.Patch {
	image := objects.ImageOf(ec, version.String())
	annotations := map[string]any{annotation.Version: version.String(), annotation.Image: image}
	if loss := ec.Status.QuorumLoss; annotation.Of(pod, annotation.ForceNewCluster) == "true" && (loss == nil || loss.From != pod.Name) {
		annotations[annotation.ForceNewCluster] = "false" // it would forget all other members
	}
	return objects.WithImage(pod, part, why, image, annotations)
}

// repairImage gives a member that does not start the image that the others have.
func (p *plan) repairImage(ec *v1beta2.EtcdCluster, m *view.Member) bool {
	lowest := p.view.Lowest()
	if lowest.IsZero() || objects.ImageIn(m.Pod) == objects.ImageOf(ec, lowest.String()) {
		return false
	}
	p.setImage(ec, m.Pod, lowest, fmt.Sprintf("member %s takes the version of the others", m.PodName))
	p.soon()
	return true
}
