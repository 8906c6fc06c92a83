package cluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/versions"
)

// This file changes members one at a time, each when all others follow the leader, and the
// leader last, which hands over before: so there is always a quorum, and writes wait for no
// election. The image is changed in the pod, so that a member keeps its data also where it has
// no volume; other changes of a pod need another pod.

// rollOut takes the members to the version and the pods that the spec requests.
func (p *plan) rollOut(ec *v1beta2.EtcdCluster, seen observation, wanted versions.Version) bool {
	if !p.view.isCurrent {
		return false
	}
	step, err := p.step(wanted)
	if err != nil {
		p.stall(reasonVersionRefused, "%v", err)
		step = p.lowest()
	}
	if (step != p.lowest() || step != p.highest()) && p.prepare(ec, seen, step) {
		return true
	}
	return p.changeOne(ec, seen, step) || p.settleDowngrade(ec, seen, step)
}

// lowest is the lowest version of the members, as far as they have one.
func (p *plan) lowest() versions.Version {
	var lowest versions.Version
	for _, m := range p.view.members {
		if !m.version.IsZero() && (lowest.IsZero() || m.version.Less(lowest)) {
			lowest = m.version
		}
	}
	return lowest
}

// step is the version that members are changed to next.
func (p *plan) step(wanted versions.Version) (versions.Version, error) {
	lowest, highest := p.lowest(), p.highest()
	if lowest.IsZero() {
		return wanted, nil
	}
	p.target = ""
	if highest != wanted || lowest != wanted {
		p.target = wanted.String()
		p.activity, p.doing = v1beta2.ConditionUpgrading, fmt.Sprintf("members are changed from %s to %s", lowest, wanted)
	}
	from := lowest
	if wanted.Less(highest) {
		from = highest // of a downgrade the slowest is the one that is still high
	}
	path, err := versions.Path(from, wanted)
	if err != nil || len(path) == 0 {
		return wanted, err
	}
	return path[0], nil
}

// highest is the highest version of the members.
func (p *plan) highest() versions.Version {
	var highest versions.Version
	for _, m := range p.view.members {
		if highest.Less(m.version) {
			highest = m.version
		}
	}
	return highest
}

// prepare does what etcd needs before the first member has the next version: a downgrade is
// enabled, and before 3.7 the data is written out once as 3.6 does.
func (p *plan) prepare(ec *v1beta2.EtcdCluster, seen observation, step versions.Version) bool {
	at, ok := p.leadingEndpoint(ec)
	highest := p.highest()
	switch {
	case !ok:
		return true
	case p.view.find(func(m *member) bool { return m.version == step }) != nil:
		return false // it is under way
	case step.Minor() < highest.Minor():
		return p.enableDowngrade(seen, at, step)
	case step.Minor() == 7 && p.lowest().Minor() == 6:
		return p.writeOut(ec, seen, at)
	}
	return false
}

// enableDowngrade has etcd accept members of an earlier minor version. The first of them starts
// once all members have the data in that version's format.
func (p *plan) enableDowngrade(seen observation, at members.Endpoint, step versions.Version) bool {
	to := step.MinorString()
	p.soon(seen)
	if p.downgrading() != to {
		if p.view.isWhole() {
			p.downgrade(seen, at, to)
		}
		return true
	}
	return !p.isStoredAs(to)
}

// writeOut makes sure that the members of a cluster that was upgraded to 3.6 do not have anything
// in their logs that 3.5 wrote, which 3.7 would refuse to start with. To enable a downgrade to 3.5
// makes them write out all their data, and to cancel it does so again.
func (p *plan) writeOut(ec *v1beta2.EtcdCluster, seen observation, at members.Endpoint) bool {
	if !p.view.isWhole() {
		p.soon(seen)
		return true
	}
	p.doing += ", whose data is written out first"
	switch downgrading, isPrepared := p.downgrading(), ec.Status.Prepared == "3.7"; {
	case isPrepared && downgrading == "" && p.isStoredAs("3.6"):
		return false
	case downgrading != "" && (isPrepared || downgrading != "3.5"):
		p.downgrade(seen, at, "")
	case isPrepared:
		// the format is being changed back
	case downgrading == "" && p.isStoredAs("3.6"):
		p.downgrade(seen, at, "3.5")
	case downgrading == "3.5" && p.isStoredAs("3.5"):
		p.memory.prepared = "3.7"
		p.claim("prepared")
	}
	p.soon(seen)
	return true
}

// settleDowngrade cancels a downgrade that is enabled and not requested any more.
func (p *plan) settleDowngrade(ec *v1beta2.EtcdCluster, seen observation, step versions.Version) bool {
	if p.memory.prepared != "" && p.lowest().MinorString() == p.memory.prepared {
		p.memory.prepared = ""
	}
	enabled, err := versions.ParseMinor(p.downgrading())
	at, ok := p.leadingEndpoint(ec)
	if err != nil || !ok || step.Minor() <= enabled || !p.view.isWhole() || p.lowest() != step {
		return false
	}
	p.downgrade(seen, at, "")
	p.soon(seen)
	return true
}

func (p *plan) downgrade(seen observation, at members.Endpoint, to string) {
	why := "downgrade to " + to + " enabled"
	if to == "" {
		why = "downgrade canceled"
	}
	p.change("downgrade", why, func(ctx context.Context) error {
		err := seen.client.Downgrade(ctx, at, to)
		if errors.Is(err, members.ErrNoDowngrade) {
			return errLater
		}
		return err
	})
}

// downgrading is the version that a downgrade is enabled to; empty if none is.
func (p *plan) downgrading() string {
	if m := p.view.leading(); m != nil {
		return m.answer.status.Downgrading
	}
	return ""
}

// isStoredAs says whether all members have their data in the format of a minor version.
func (p *plan) isStoredAs(minor string) bool {
	return p.view.find(func(m *member) bool {
		return m.answer == nil || m.answer.err != nil || versions.MinorOf(m.answer.status.StorageVersion) != minor
	}) == nil
}

// changeOne changes the next member that is not as it is to be.
func (p *plan) changeOne(ec *v1beta2.EtcdCluster, seen observation, step versions.Version) bool {
	var next *member
	for i := range p.view.members {
		m := &p.view.members[i]
		if m.isForeign() || m.pod == nil || isEnding(m.pod) || !p.differs(ec, seen, m, step) {
			continue
		}
		if next == nil || !m.follows && next.follows || next.ID == p.view.leader && m.follows {
			next = m // one that is down anyway is first, the leader last
		}
	}
	if next == nil {
		return p.awaitChanged(seen, step)
	}
	p.soon(seen)
	others := p.view.find(func(m *member) bool { return m.ID != next.ID && !m.isForeign() && !p.isSettled(m) })
	if others != nil {
		p.doing += fmt.Sprintf(", waiting for member %s", others.name)
		return true
	}
	if at, ok := p.leadingEndpoint(ec); ok && next.ID == p.view.leader && p.moveLeader(seen, at) {
		return true
	}
	if needsRestart(seen, next) {
		p.restart(seen, next)
		return true
	}
	if imageIn(next.pod) == noImage && !hasStopped(next.pod) {
		return true
	}
	if imageIn(next.pod) != imageOf(ec, step.String()) {
		p.setImage(ec, next.pod, step, fmt.Sprintf("member %s changed from %s to %s", next.name, next.version, step))
		return true
	}
	p.delete(next.pod, "spec.pod has changed")
	return true
}

// differs says whether a member's pod is not as it is to be.
func (p *plan) differs(ec *v1beta2.EtcdCluster, seen observation, m *member, step versions.Version) bool {
	if imageIn(m.pod) != imageOf(ec, step.String()) || needsRestart(seen, m) {
		return true
	}
	return hasVolumes(ec) && m.claim != nil && m.pod.Annotations[templateAnnotation] != templateHash(ec)
}

// needsRestart says whether a member has started with other CAs than there are now: etcd reads them
// only then.
func needsRestart(seen observation, m *member) bool {
	return seen.certs.caHash != "" && m.pod.Annotations[caAnnotation] != seen.certs.caHash
}

// restart restarts the container of a member: it stops it here, and the next step has it start.
func (p *plan) restart(seen observation, m *member) {
	p.patch(m.pod, "restart", fmt.Sprintf("member %s is restarted, to trust another CA", m.name), map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{caAnnotation: seen.certs.caHash}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": containerName, "image": noImage}}},
	})
}

// isSettled says whether a member is as its pod says, and follows the leader.
func (p *plan) isSettled(m *member) bool {
	return m.follows && m.pod != nil && !isEnding(m.pod) && m.version.String() == m.pod.Annotations[versionAnnotation]
}

// awaitChanged waits for the member that was changed last.
func (p *plan) awaitChanged(seen observation, step versions.Version) bool {
	if p.view.find(func(m *member) bool { return !m.isForeign() && m.version != step }) == nil {
		return false
	}
	p.soon(seen)
	return true
}

// setImage changes the image in a pod. Its kubelet then restarts the container, and nothing else.
func (p *plan) setImage(ec *v1beta2.EtcdCluster, pod *corev1.Pod, version versions.Version, why string) {
	annotations := map[string]any{versionAnnotation: version.String()}
	if loss := ec.Status.QuorumLoss; pod.Annotations[forceAnnotation] == "true" && (loss == nil || loss.From != pod.Name) {
		annotations[forceAnnotation] = "false" // it would forget all other members
	}
	p.patch(pod, "image", why, map[string]any{
		"metadata": map[string]any{"annotations": annotations},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": containerName, "image": imageOf(ec, version.String())}}},
	})
}

// repairImage gives a member that does not start the image that the others have.
func (p *plan) repairImage(ec *v1beta2.EtcdCluster, seen observation, m *member) bool {
	lowest := p.lowest()
	if lowest.IsZero() || imageIn(m.pod) == imageOf(ec, lowest.String()) {
		return false
	}
	p.setImage(ec, m.pod, lowest, fmt.Sprintf("member %s takes the version of the others", m.name))
	p.soon(seen)
	return true
}

// imageIn is the image that a pod is to run.
func imageIn(pod *corev1.Pod) string {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == containerName {
			return pod.Spec.Containers[i].Image
		}
	}
	return ""
}
