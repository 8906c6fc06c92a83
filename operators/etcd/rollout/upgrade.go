package rollout

import (
	"fmt"
	"slices"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/session"
	"example.com/fairlead/operators/etcd/step"
	"example.com/fairlead/operators/etcd/versions"
	"example.com/fairlead/operators/etcd/view"
)

// This file is about versions: which one members are changed to next, and what etcd needs before
// the first of them has it.

// stepTo is the version that members are changed to next.
func stepTo(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step) (versions.Version, error) {
	lowest, highest := v.Lowest(), v.Highest()
	if lowest.IsZero() {
		return v.Wanted, nil
	}
	from := lowest
	if v.Wanted.Less(highest) {
		from = highest // of a downgrade the slowest is the one that is still high
	}
	path, err := versions.Path(from, v.Wanted)
	if err == nil {
		err = refused(ec, v)
	}
	var held *view.Member
	if err == nil {
		held, err = holdsVariables(ec, v)
	}
	if err != nil {
		return v.Wanted, err
	}
	if highest != v.Wanted || lowest != v.Wanted {
		s.Target = v.Wanted.String()
		s.Activity, s.Doing = v1beta2.ConditionUpgrading, fmt.Sprintf("members are changed from %s to %s", lowest, v.Wanted)
	}
	switch {
	case len(path) == 0:
		return v.Wanted, nil
	case held != nil:
		return highest, nil
	}
	return path[0], nil
}

// prepare does what etcd needs before the first member has the next version: a downgrade is
// enabled, before 3.6 what is kept about members is written anew, and before 3.7 the data is written out once as 3.6 does.
func prepare(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step, to versions.Version) bool {
	highest := v.Highest()
	switch {
	case v.Leading() == nil:
		return true
	case v.Find(func(m *view.Member) bool { return m.Version == to }) != nil:
		return false // it is under way
	case to.Minor() < highest.Minor():
		return enableDowngrade(ec, v, s, to)
	case to.Minor() == 6 && v.Lowest().Minor() == 5:
		return rewriteVoters(ec, v, s)
	case to.Minor() == 7 && v.Lowest().Minor() == 6:
		return writeOut(ec, v, s)
	}
	return false
}

// enableDowngrade has etcd accept members of an earlier minor version. The first of them starts
// once all members have the data in that version's format.
func enableDowngrade(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step, to versions.Version) bool {
	minor := to.MinorString()
	s.Soon()
	if v.Downgrading() != minor {
		// Etcd refuses it until the cluster has the version of its members, which the format shows.
		if v.IsWhole() && v.IsStoredAs(v.Highest().MinorString()) {
			s.Request = Downgrade(ec, v, minor)
		}
		return true
	}
	return !v.IsStoredAs(minor)
}

// rewriteVoters has etcd write anew what it keeps about each voter, when all members have a version that does so rightly,
// see package versions. Before 3.5.20 one that was promoted stayed a learner in the part of the data that 3.6 reads, and
// with two of these 3.6 does not start (etcd.io/blog/2025/upgrade_from_3.5_to_3.6_issue_followup). It was done, if a
// member was to have the next version before.
func rewriteVoters(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step) bool {
	hasBegun := func(m *view.Member) bool {
		changed, err := versions.Parse(m.Pod.Annotations[annotation.Version])
		return err == nil && changed.Minor() >= 6
	}
	if v.Find(func(m *view.Member) bool { return m.Pod != nil && hasBegun(m) }) != nil {
		return false
	}
	if !v.IsWhole() {
		s.Soon()
		return true
	}
	for _, m := range v.Members {
		if !slices.Contains(v.Rewritten, m.ID) {
			s.Request = step.AskedLeader(ec, v, "", members.Request{What: members.Rewrite, ID: m.ID, PeerURLs: m.PeerURLs, Listed: v.IDs()})
			s.Soon()
			return true
		}
	}
	return false
}

// writeOut makes sure that the members of a cluster that was upgraded to 3.6 do not have anything
// in their logs that 3.5 wrote, which 3.7 would refuse to start with. To enable a downgrade to 3.5
// makes them write out all their data, and to cancel it does so again.
func writeOut(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step) bool {
	if !v.IsWhole() {
		s.Soon()
		return true
	}
	s.Doing += ", whose data is written out first"
	switch downgrading, isPrepared := v.Downgrading(), ec.Status.DataPreparedFor == "3.7"; {
	case isPrepared && downgrading == "" && v.IsStoredAs("3.6"):
		return false
	case downgrading != "" && (isPrepared || downgrading != "3.5"):
		s.Request = Downgrade(ec, v, "")
	case isPrepared:
		// the format is being changed back
	case downgrading == "" && v.IsStoredAs("3.6"):
		s.Request = Downgrade(ec, v, "3.5")
	case downgrading == "3.5" && v.IsStoredAs("3.5"):
		s.Remember(ec).DataPreparedFor = "3.7"
		s.Claim = "prepared"
	}
	s.Soon()
	return true
}

// settleDowngrade cancels a downgrade that is enabled and not requested any more.
func settleDowngrade(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step, to versions.Version) bool {
	if ec.Status.DataPreparedFor != "" && v.Lowest().MinorString() == ec.Status.DataPreparedFor {
		s.Remember(ec).DataPreparedFor = ""
	}
	enabled, err := versions.ParseMinor(v.Downgrading())
	if err != nil || to.Minor() <= enabled || !v.IsWhole() || v.Lowest() != to {
		return false
	}
	s.Request = Downgrade(ec, v, "")
	s.Soon()
	return true
}

// Downgrade is the request to enable a downgrade to a minor version, or to cancel one.
func Downgrade(ec *v1beta2.EtcdCluster, v *view.View, to string) *session.Request {
	why := "downgrade to " + to + " enabled"
	if to == "" {
		why = "downgrade canceled"
	}
	return step.AskedLeader(ec, v, why, members.Request{What: members.Downgrade, Version: to})
}
