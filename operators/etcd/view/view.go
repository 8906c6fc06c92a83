package view

import (
	"slices"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/session"
	"example.com/fairlead/operators/etcd/versions"
)

// View is what was observed, and the cluster as its members describe it.
type View struct {
	Observation
	// Wanted is the version that the spec requests.
	Wanted versions.Version
	// Members are those of etcd's member list, or while nobody has one those that status
	// remembers.
	Members []*Member
	// Present are all that have a pod or a volume, members and others, sorted by their names: not the seed.
	Present []*Member
	// Strays are those of them that are no member's.
	Strays []*Member
	// Seed is that of the restore that is under way, until the cluster is the seed's; nil if there is none.
	Seed *Member
	// Named are all of these by their names, and those that only status remembers.
	Named map[string]*Member
	// Leader is the ID of the member that leads; 0 if nobody is known to.
	Leader members.ID
	// IsKnown says that the list is etcd's, and IsCurrent that it is the leader's.
	IsKnown, IsCurrent bool
	// HasQuorum says that a majority of the voters follows the leader, and MayHaveQuorum that it did some
	// seconds ago, and nothing says that it does not.
	HasQuorum, MayHaveQuorum bool
	// Right is the hash of the data of a majority; zero if there is none, or members are not compared. IsSame says that
	// all members have that data, and no other.
	Right  members.Hash
	IsSame bool
	// AsksElsewhere says that members which the operator does not run are asked, too.
	AsksElsewhere bool
}

// Of puts together what the members say.
func Of(ec *v1beta2.EtcdCluster, seen Observation) View {
	v := View{Observation: seen, Named: map[string]*Member{}, AsksElsewhere: len(objects.Elsewhere(ec)) > 0}
	leader, best := choose(seen, members.ParseID(ec.Status.ClusterID))
	if best != nil {
		v.Leader, v.IsKnown, v.IsCurrent = leader, true, leader != 0 && best.Status.ID == leader
		for _, listed := range best.List.Members {
			v.Members = append(v.Members, v.join(ec, seen, listed, nameIn(ec, listed)))
		}
	}
	for _, known := range ec.Status.MemberList {
		name := known.Name
		if !objects.IsOurs(ec, name) {
			name = ""
		}
		if !v.IsKnown {
			v.Members = append(v.Members, v.join(ec, seen, asListed(known), name))
		} else if name != "" && v.Named[name] == nil {
			v.join(ec, seen, members.Member{}, name)
		}
	}
	for _, m := range v.Members {
		m.IsMember, m.Alarms, m.Leaving = true, v.alarmsOf(m), v.whyLeaving(m)
	}
	if r := ec.Status.Restoring; r != nil && r.Phase != v1beta2.RestoreCompleting {
		v.Seed = v.join(ec, seen, members.Member{}, r.Seed)
		v.Seed.Was.DataUID = r.SeedDataUID
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(sortedKeys(seen.Pods), sortedKeys(seen.Claims))))) {
		m := v.Named[name]
		if m == nil {
			m = v.join(ec, seen, members.Member{}, name)
		}
		if m == v.Seed {
			continue
		}
		v.Present = append(v.Present, m)
		if !m.IsMember && name != ec.Status.MemberBeingAdded {
			v.Strays = append(v.Strays, m)
		}
	}
	voters := v.voters()
	v.compareData()
	v.HasQuorum = v.Count(func(m *Member) bool { return m.IsVoter() && m.Follows }) >= objects.Majority(voters)
	v.MayHaveQuorum = v.Count(func(m *Member) bool { return m.IsVoter() && (m.Follows || m.MayFollow) }) >= objects.Majority(voters)
	return v
}

// choose finds out who leads, and whose member list to believe: the leader's or, while that
// does not answer, that of the member that has applied the most. An answer that is of another
// cluster, or that contradicts itself, does not count.
func choose(seen Observation, want members.ID) (leader members.ID, best *session.Answer) {
	votes := map[members.ID]int{}
	var term uint64
	for _, name := range sortedKeys(seen.Answers) {
		a := seen.Answers[name]
		if a.IsOf(want) && a.Status.Leader != 0 {
			term = max(term, a.Status.RaftTerm)
		}
	}
	for _, name := range sortedKeys(seen.Answers) {
		a := seen.Answers[name]
		if !a.IsOf(want) || !a.HasList() {
			continue
		}
		if a.Status.Leader != 0 && a.Status.RaftTerm == term {
			votes[a.Status.Leader]++
			if leader == 0 || votes[a.Status.Leader] > votes[leader] {
				leader = a.Status.Leader
			}
		}
		if best == nil || a.Status.Applied > best.Status.Applied {
			best = &a
		}
	}
	for _, name := range sortedKeys(seen.Answers) {
		if a := seen.Answers[name]; leader != 0 && a.Status.ID == leader && a.IsOf(want) && a.HasList() {
			return leader, &a
		}
	}
	return leader, best
}

// IDs are the IDs of the members, sorted.
func (v *View) IDs() []members.ID {
	var all []members.Member
	for _, m := range v.Members {
		all = append(all, m.Member)
	}
	return members.IDs(all)
}

// voters counts the voters.
func (v *View) voters() int { return v.Count(func(m *Member) bool { return m.IsVoter() }) }

// Count counts the members that are so.
func (v *View) Count(is func(*Member) bool) int {
	n := 0
	for _, m := range v.Members {
		if is(m) {
			n++
		}
	}
	return n
}

// Find is the first member that is so; nil if none is.
func (v *View) Find(is func(*Member) bool) *Member {
	if i := slices.IndexFunc(v.Members, is); i >= 0 {
		return v.Members[i]
	}
	return nil
}

// Of is what is known of a name: nothing, if nobody knows it.
func (v *View) Of(name string) *Member {
	if m := v.Named[name]; m != nil {
		return m
	}
	return &Member{PodName: name, Answer: session.Answer{Err: session.ErrNoAddress}}
}

// Leading is the member that leads, if it answers, and the operator runs it.
func (v *View) Leading() *Member {
	if m := v.LeadingAnywhere(); m != nil && m.Pod != nil {
		return m
	}
	return nil
}

// LeadingAnywhere is the member that leads, if it answers, whoever runs it.
func (v *View) LeadingAnywhere() *Member {
	return v.Find(func(m *Member) bool {
		return v.Leader != 0 && m.ID == v.Leader && m.Follows && (m.Pod != nil || m.URL != "")
	})
}

// Ours counts the members that the operator runs.
func (v *View) Ours() int { return v.Count(func(m *Member) bool { return !m.IsForeign() }) }

// LeadsToMarked says whether the Service for clients leads to pods that are marked as voters' only. It does from the
// beginning, and where pods are there that were made before there was the mark, once all voters have it.
func (v *View) LeadsToMarked() bool {
	return v.Clients.Spec.Selector[objects.VoterLabel] != "" || len(v.Existing) == 0 && !slices.ContainsFunc(v.Present, func(m *Member) bool {
		return m.Pod != nil && !m.IsLearner && !m.IsMarked()
	})
}

// IsReached says that the Service for clients leads to a member that follows the leader, as far as is known.
func (v *View) IsReached() bool {
	return v.Find(func(m *Member) bool { return (m.Follows || m.MayFollow) && m.IsReached }) != nil
}

// IsWhole says that all members have started and follow the leader, and none is a learner, as far as they are asked.
func (v *View) IsWhole() bool {
	return v.HasQuorum && v.Count(func(m *Member) bool {
		return m.IsForeign() && !v.AsksElsewhere || m.IsVoter() && m.IsStarted() && m.Follows
	}) == len(v.Members)
}

// SurvivesWithout says whether the voters that follow the leader are a quorum of those that are
// left when a member is taken away, for a while or for ever.
func (v *View) SurvivesWithout(gone *Member, forEver bool) bool {
	voters, following := 0, 0
	for _, m := range v.Members {
		if !m.IsVoter() || forEver && m.ID == gone.ID {
			continue
		}
		voters++
		if m.Follows && m.ID != gone.ID {
			following++
		}
	}
	return following >= objects.Majority(voters)
}
