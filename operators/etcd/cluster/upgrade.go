package cluster

import (
	"fmt"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/versions"
	"example.com/fairlead/operators/etcd/view"
)

// This file is about versions: which one members are changed to next, and what etcd needs before
// the first of them has it.

// step is the version that members are changed to next.
func (p *plan) step() (versions.Version, error) {
	lowest, highest := p.view.Lowest(), p.view.Highest()
	if lowest.IsZero() {
		return p.view.Wanted, nil
	}
	p.target = ""
	if highest != p.view.Wanted || lowest != p.view.Wanted {
		p.target = p.view.Wanted.String()
		p.activity, p.doing = v1beta2.ConditionUpgrading, fmt.Sprintf("members are changed from %s to %s", lowest, p.view.Wanted)
	}
	from := lowest
	if p.view.Wanted.Less(highest) {
		from = highest // of a downgrade the slowest is the one that is still high
	}
	path, err := versions.Path(from, p.view.Wanted)
	if err != nil || len(path) == 0 {
		return p.view.Wanted, err
	}
	return path[0], nil
}

// prepare does what etcd needs before the first member has the next version: a downgrade is
// enabled, and before 3.7 the data is written out once as 3.6 does.
func (p *plan) prepare(ec *v1beta2.EtcdCluster, step versions.Version) bool {
	highest := p.view.Highest()
	switch {
	case p.view.Leading() == nil:
		return true
	case p.view.Find(func(m *view.Member) bool { return m.Version == step }) != nil:
		return false // it is under way
	case step.Minor() < highest.Minor():
		return p.enableDowngrade(ec, step)
	case step.Minor() == 7 && p.view.Lowest().Minor() == 6:
		return p.writeOut(ec)
	}
	return false
}

// enableDowngrade has etcd accept members of an earlier minor version. The first of them starts
// once all members have the data in that version's format.
func (p *plan) enableDowngrade(ec *v1beta2.EtcdCluster, step versions.Version) bool {
	to := step.MinorString()
	p.soon()
	if p.view.Downgrading() != to {
		// Etcd refuses it until the cluster has the version of its members, which the format shows.
		if p.view.IsWhole() && p.view.IsStoredAs(p.view.Highest().MinorString()) {
			p.downgrade(ec, to)
		}
		return true
	}
	return !p.view.IsStoredAs(to)
}

// writeOut makes sure that the members of a cluster that was upgraded to 3.6 do not have anything
// in their logs that 3.5 wrote, which 3.7 would refuse to start with. To enable a downgrade to 3.5
// makes them write out all their data, and to cancel it does so again.
func (p *plan) writeOut(ec *v1beta2.EtcdCluster) bool {
	if !p.view.IsWhole() {
		p.soon()
		return true
	}
	p.doing += ", whose data is written out first"
	switch downgrading, isPrepared := p.view.Downgrading(), ec.Status.DataPreparedFor == "3.7"; {
	case isPrepared && downgrading == "" && p.view.IsStoredAs("3.6"):
		return false
	case downgrading != "" && (isPrepared || downgrading != "3.5"):
		p.downgrade(ec, "")
	case isPrepared:
		// the format is being changed back
	case downgrading == "" && p.view.IsStoredAs("3.6"):
		p.downgrade(ec, "3.5")
	case downgrading == "3.5" && p.view.IsStoredAs("3.5"):
		p.memory.DataPreparedFor = "3.7"
		p.claim("prepared")
	}
	p.soon()
	return true
}

// settleDowngrade cancels a downgrade that is enabled and not requested any more.
func (p *plan) settleDowngrade(ec *v1beta2.EtcdCluster, step versions.Version) bool {
	if p.memory.DataPreparedFor != "" && p.view.Lowest().MinorString() == p.memory.DataPreparedFor {
		p.memory.DataPreparedFor = ""
	}
	enabled, err := versions.ParseMinor(p.view.Downgrading())
	if err != nil || step.Minor() <= enabled || !p.view.IsWhole() || p.view.Lowest() != step {
		return false
	}
	p.downgrade(ec, "")
	p.soon()
	return true
}

func (p *plan) downgrade(ec *v1beta2.EtcdCluster, to string) {
	why := "downgrade to " + to + " enabled"
	if to == "" {
		why = "downgrade canceled"
	}
	p.askLeader(ec, why, members.Request{What: members.Downgrade, Version: to})
}
