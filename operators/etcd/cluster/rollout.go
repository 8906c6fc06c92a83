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
)

// This file changes members one at a time, each when all others follow the leader, and the
// leader last, which hands over before: so there is always a quorum, and writes wait for no
// election. The image is changed in the pod, so that a member keeps its data also where it has
// no volume; other changes of a pod need another pod.

// rollOut takes the members to the version and the pods that the spec requests.
func (p *plan) rollOut(ec *v1beta2.EtcdCluster) bool {
	if !p.view.isCurrent {
		return false
	}
	step, err := p.step()
	if err != nil {
		p.stall(reason.VersionRefused, "%v", err)
		step = p.view.lowest()
	}
	if (step != p.view.lowest() || step != p.view.highest()) && p.prepare(ec, step) {
		return true
	}
	return p.changeOne(ec, step) || p.settleDowngrade(ec, step)
}

// changeOne changes the next member that is not as it is to be. Which one that is, status remembers
// before: no other is changed until it is complete, whatever late caches show of its pod.
func (p *plan) changeOne(ec *v1beta2.EtcdCluster, step versions.Version) bool {
	if m := p.view.of(p.memory.MemberBeingUpdated); !m.isMember || m.isComplete(ec, step) {
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
	p.rolling(fmt.Sprintf("now %s: %s", next.name, whyChanged(next, objects.ImageOf(ec, step.String()))))
	others := p.view.find(func(m *member) bool { return m.ID != next.ID && !m.isForeign() && !m.isSettled() })
	if others != nil {
		if others.needsRestart && isCutOff(ec, others) { // it is missed already, and this brings it back
			p.restart(others, "to trust another CA: nobody can talk to it")
			return true
		}
		p.doing += fmt.Sprintf(", waiting for member %s", others.name)
		return true
	}
	if p.memory.MemberBeingUpdated == "" {
		p.memory.MemberBeingUpdated = next.name
		p.claim("change")
		return true
	}
	if next.ID == p.view.leader && p.moveLeader(ec) {
		return true
	}
	isSame := next.version == step
	switch image := objects.ImageOf(ec, step.String()); {
	case next.needsRestart:
		p.restart(next, "to trust another CA")
	case objects.IsStopping(next.pod):
	case wasEdited(next):
		p.setImage(ec, next.pod, step, "")
	case objects.ImageIn(next.pod) == image:
		p.Remove(next.pod, "spec.pod has changed")
	case isSame && objects.ImageIn(next.pod) != objects.NoImage:
		p.restart(next, "with image "+image) // that it has would not tell when it runs
	case isSame:
		p.setImage(ec, next.pod, step, "")
	default:
		p.setImage(ec, next.pod, step, fmt.Sprintf("member %s changed from %s to %s", next.name, next.version, step))
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
func (p *plan) nextToChange(ec *v1beta2.EtcdCluster, step versions.Version) *member {
	var next *member
	for _, m := range p.view.members {
		switch {
		case m.isForeign() || m.pod == nil || objects.IsEnding(m.pod) || !m.differs(ec, step):
		case p.memory.MemberBeingUpdated != "" && p.memory.MemberBeingUpdated != m.name:
		case next == nil || !m.follows && next.follows || next.ID == p.view.leader && m.follows:
			next = m
		}
	}
	return next
}

// isComplete says whether a member is as it is to be, and follows the leader.
func (m *member) isComplete(ec *v1beta2.EtcdCluster, step versions.Version) bool {
	return m.isSettled() && !m.differs(ec, step)
}

// differs says whether a member's pod is not as it is to be.
func (m *member) differs(ec *v1beta2.EtcdCluster, step versions.Version) bool {
	if objects.ImageIn(m.pod) != objects.ImageOf(ec, step.String()) || m.needsRestart || wasEdited(m) {
		return true
	}
	return objects.HasVolumes(ec) && m.claim != nil && annotation.Of(m.pod, annotation.Template) != objects.TemplateHash(ec)
}

// whyChanged says why a member's pod is not as it is to be, if its version is.
func whyChanged(m *member, image string) string {
	switch {
	case m.needsRestart || objects.ImageIn(m.pod) == objects.NoImage:
		return "it is restarted"
	case objects.ImageIn(m.pod) != image || wasEdited(m):
		return "its image is to be " + image
	}
	return "spec.pod has changed"
}

// wasEdited says whether the image of a member does not do, and is not the one that it is to have:
// somebody has changed it in the pod. One that does is left as it is.
func wasEdited(m *member) bool {
	return objects.ImageOfContainer(m.pod) != objects.ImageIn(m.pod) && (objects.LacksImage(m.pod) || m.follows && m.version.String() != annotation.Of(m.pod, annotation.Version))
}

// restart restarts the container of a member: it stops it here, and the next step has it start.
func (p *plan) restart(m *member, why string) {
	annotations := map[string]any{}
	if p.view.certs.CaHash != "" {
		annotations[annotation.CA] = p.view.certs.CaHash
	}
	p.Do(objects.Stopping(m.pod, "restart", fmt.Sprintf("member %s is restarted, %s", m.name, why), annotations))
}

// isSettled says whether a member is as its pod says, and follows the leader.
func (m *member) isSettled() bool {
	return m.follows && m.pod != nil && !objects.IsEnding(m.pod) && m.version.String() == annotation.Of(m.pod, annotation.Version)
}

// awaitChanged waits for the member that was changed last.
func (p *plan) awaitChanged(step versions.Version) bool {
	if p.memory.MemberBeingUpdated != "" {
		p.soon()
		p.rolling("waiting for " + p.memory.MemberBeingUpdated)
		return true
	}
	if p.view.find(func(m *member) bool { return !m.isForeign() && m.version != step }) == nil {
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
func (p *plan) repairImage(ec *v1beta2.EtcdCluster, m *member) bool {
	lowest := p.view.lowest()
	if lowest.IsZero() || objects.ImageIn(m.pod) == objects.ImageOf(ec, lowest.String()) {
		return false
	}
	p.setImage(ec, m.pod, lowest, fmt.Sprintf("member %s takes the version of the others", m.name))
	p.soon()
	return true
}
