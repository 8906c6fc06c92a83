package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/view"
)

// This file forms a cluster: the founders are named, created with a scheduling gate, counted,
// and let go. A founder starts with an empty disk and the list of all founders, and a majority
// of such founders is a cluster. So a founder that was lost must never be created again: with
// others that were, it would be a second, empty cluster under the name of the first. That
// status counts a founder before its gate is removed is what tells one that never ran from one
// that was lost.

// form takes a cluster that has no ID yet one step on.
func (p *plan) form(ec *v1beta2.EtcdCluster) bool {
	if ec.Status.ClusterID != "" {
		return false
	}
	p.activity, p.doing = v1beta2.ConditionScaling, "the cluster is being created"
	p.memory.QuorumLoss = nil
	switch {
	case len(ec.Status.Founders) > 0:
	case len(p.view.Present) > 0:
		p.takeIn(ec)
		return true
	default:
		p.nameFounders(ec)
		return true
	}
	p.removeOthers(ec)
	if id := formedBy(&p.view, ec); id != 0 {
		p.memory.ClusterID = id.String()
		p.claim("cluster")
		return true
	}
	lost := p.createFounders(ec)
	if len(ec.Status.Founders)-len(lost) < objects.Majority(len(ec.Status.Founders)) {
		p.reportLoss(ec, lost, nil)
		if ec.Spec.AcceptDataLoss == p.memory.QuorumLoss.ID && !p.recoverFrom(ec) {
			p.startAnew(ec)
		}
		p.startAll(ec)
		return true
	}
	p.mend(ec)
	p.soon()
	return true
}

// nameFounders names the founders. Nothing is created before they are stored.
func (p *plan) nameFounders(ec *v1beta2.EtcdCluster) {
	p.memory.Founders = nil
	for range ec.Spec.Size {
		p.memory.Founders = append(p.memory.Founders, p.nextName(ec))
	}
	p.claim("founders")
}

// nextName is a name that no member has had or, if status was emptied, that none has.
func (p *plan) nextName(ec *v1beta2.EtcdCluster) string {
	for {
		p.memory.MemberNamesUsed++
		name := objects.MemberName(ec, p.memory.MemberNamesUsed)
		if p.view.Named[name] == nil {
			return name
		}
	}
}

// createFounders creates those that are not there yet, and lets those go that status counts. It
// returns those that are lost: they were let go, or might have been, and their data is gone.
func (p *plan) createFounders(ec *v1beta2.EtcdCluster) (lost []string) {
	for _, name := range ec.Status.Founders {
		m := p.view.Of(name)
		counted := m.Was.DataUID
		switch {
		case m.Pod != nil && objects.IsOver(m.Pod):
			p.Remove(m.Pod, "it has ended")
		case m.Pod != nil && objects.IsEnding(m.Pod):
			// what becomes of it is seen when it is gone
		case counted != "" && counted != m.Data:
			lost = append(lost, name)
		case m.Pod != nil && pods.IsGated(m.Pod, objects.Gate) && counted != "":
			p.letGo(m.Pod)
		case m.Pod == nil || m.Data == "":
			p.create(ec, m, p.view.Wanted, foundingOf(ec))
		}
	}
	return lost
}

// foundingOf is how a founder starts.
func foundingOf(ec *v1beta2.EtcdCluster) objects.Start {
	s := objects.Start{IsNew: true, Token: string(ec.UID) + "-" + ec.Status.Founders[0]}
	for _, name := range ec.Status.Founders {
		s.Initial = append(s.Initial, objects.Founder{Name: name, PeerURL: objects.PeerURLOf(ec, name)})
	}
	return s
}

// letGo removes the scheduling gate.
func (p *plan) letGo(pod *corev1.Pod) {
	p.Do(loop.Patch{Object: pod, Part: "gate", Spec: pods.Ungated(objects.Gate)}) // the UID says enough
}

// formedBy is the ID of the cluster that a majority of the founders is; 0 if there is none yet.
func formedBy(v *view.View, ec *v1beta2.EtcdCluster) members.ID {
	following := map[members.ID]int{}
	for _, name := range ec.Status.Founders {
		a := v.Of(name).Answer
		if !a.HasList() || a.Status.Leader == 0 || len(a.List.Members) != len(ec.Status.Founders) {
			continue
		}
		id := a.Status.ClusterID
		if following[id]++; following[id] >= objects.Majority(len(ec.Status.Founders)) {
			return id
		}
	}
	return 0
}

// removeOthers removes what is left of an earlier try: pods and volumes of members that are no
// founders. Nothing of them is kept, because the user has accepted that.
func (p *plan) removeOthers(ec *v1beta2.EtcdCluster) {
	for _, m := range p.view.Present {
		if m.IsFounder {
			continue
		}
		if m.Pod != nil && !objects.IsEnding(m.Pod) {
			p.Remove(m.Pod, "it is no member of the cluster")
		}
		if m.Claim != nil && !objects.IsEnding(m.Claim) && !isKept(ec, m.PodName) {
			// It may have been set aside.
			p.Do(loop.Delete{Object: m.Claim, Why: "its member is no member of the cluster", IfCurrent: true, IfSame: true})
		}
	}
}

// startAnew forgets the cluster, whose data is lost, upon which another one is founded. The user
// has accepted that.
func (p *plan) startAnew(ec *v1beta2.EtcdCluster) {
	p.memory.ClusterID, p.memory.MemberBeingAdded, p.memory.MemberBeingUpdated, p.memory.DataPreparedFor = "", "", "", ""
	p.memory.Recovered = &v1beta2.Recovered{ID: p.memory.QuorumLoss.ID, Time: timeOf(p.view.Now)}
	p.memory.QuorumLoss = nil
	p.nameFounders(ec)
	p.claim("anew")
}

// mend changes the image of founders that cannot start, and creates those anew that cannot be
// scheduled as they are: none of them has run.
func (p *plan) mend(ec *v1beta2.EtcdCluster) {
	image := objects.ImageOf(ec, p.view.Wanted.String())
	for _, name := range ec.Status.Founders {
		m := p.view.Of(name)
		switch pod := m.Pod; {
		case pod == nil || objects.IsEnding(pod) || m.HasAnswered():
		case objects.ImageIn(pod) != image:
			p.setImage(ec, pod, p.view.Wanted, fmt.Sprintf("spec requests %s", image))
		case pod.Spec.NodeName == "" && !pods.IsGated(pod, objects.Gate) && annotation.Of(pod, annotation.Template) != objects.TemplateHash(ec):
			p.Remove(pod, "it could not be scheduled, and spec.pod has changed")
		}
	}
}
