package cluster

import (
	"fmt"
	"slices"
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/session"
	"example.com/fairlead/operators/etcd/view"
)

// This file decides on compactions and defragmentations, and waits for them; package session makes them.

// othersFirst is for how long maintenance that has failed leaves the members to everything else.
const othersFirst = 10 * time.Second

// awaitMaintenance makes the request for the maintenance that status has, and waits until it is over.
func (p *plan) awaitMaintenance(ec *v1beta2.EtcdCluster) bool {
	claim := p.memory.Maintenance
	if claim == nil {
		return false
	}
	m := p.view.Of(claim.Member)
	is := p.view.Maintenance.ProgressOf(*claim, m.Pod, p.view.Now)
	switch is {
	case session.ToBegin:
		what := map[v1beta2.MaintenanceType]members.What{
			v1beta2.MaintenanceCompaction: members.Compact, v1beta2.MaintenanceDefragmentation: members.Defragment,
		}[claim.Type]
		p.ask(fmt.Sprintf("%s of member %s done", what, m.PodName), members.Request{
			What: what, At: objects.EndpointOf(ec, m.Pod), Revision: claim.Revision, Patience: claim.Deadline.Sub(p.view.Now),
		})
		p.soon()
	case session.UnderWay:
		p.later()
		if p.view.Now.Before(claim.StartTime.Add(session.BeginsWithin)) {
			p.soon() // most are short
		}
	case session.Done, session.NotDone:
		p.memory.Maintenance = nil
		p.claim("maintenance")
		p.soon()
		if is == session.Done {
			p.noteMaintained(claim)
		}
		return false
	}
	if full := p.memory.FullDatabase; claim.Type == v1beta2.MaintenanceCompaction {
		p.report(status.Problem{Reason: reason.NoSpace, Retriable: true, Message: "The database is full, and takes no writes: its history is being dropped"})
	} else if full != nil && full.ResolvedTime == nil {
		p.report(status.Problem{Reason: reason.NoSpace, Retriable: true, Message: fmt.Sprintf("The database is full, and takes no writes: member %s is being defragmented", m.PodName)})
	}
	return true
}

// maintain decides on maintenance. The request for it is made once status has it.
func (p *plan) maintain(m *view.Member, kind v1beta2.MaintenanceType, revision int64, patience time.Duration) {
	p.memory.Maintenance = &v1beta2.Maintenance{
		Type: kind, Member: m.PodName, Revision: revision, StartTime: *timeOf(p.view.Now), Deadline: *timeOf(p.view.Now.Add(patience)),
	}
	p.claim("maintenance")
	p.soon()
}

// defragment decides on the defragmentation of a member.
func (p *plan) defragment(m *view.Member) {
	p.maintain(m, v1beta2.MaintenanceDefragmentation, 0, members.DefragmentPatience(m.Answer.Status.DBSize))
}

// hasFailedLately says whether maintenance has failed some seconds ago: everything else has its turn then.
func (p *plan) hasFailedLately() bool {
	again := p.view.Maintenance.At.Add(othersFirst)
	if p.view.Maintenance.Err == nil || !p.view.Now.Before(again) {
		return false
	}
	p.Wake(again)
	return true
}

// noteMaintained notes in status what was done.
func (p *plan) noteMaintained(claim *v1beta2.Maintenance) {
	full := p.memory.FullDatabase
	switch {
	case claim.Type == v1beta2.MaintenanceCompaction:
		p.memory.FullDatabase = &v1beta2.FullDatabase{CompactedRevision: claim.Revision}
	case full != nil:
		full.ResolvedTime = nil // its alarm is to be disarmed, if it has one
		if !slices.Contains(full.DefragmentedMembers, claim.Member) {
			full.DefragmentedMembers = append(full.DefragmentedMembers, claim.Member)
		}
	}
}
