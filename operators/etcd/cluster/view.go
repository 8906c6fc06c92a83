package cluster

import (
	"slices"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/session"
	"example.com/fairlead/operators/etcd/versions"
)

// view is what was observed, and the cluster as its members describe it.
type view struct {
	observation
	// wanted is the version that the spec requests.
	wanted versions.Version
	// members are those of etcd's member list, or while nobody has one those that status
	// remembers.
	members []*member
	// present are all that have a pod or a volume, members and others, sorted by their names: not the seed.
	present []*member
	// strays are those of them that are no member's.
	strays []*member
	// seed is that of the restore that is under way, until the cluster is the seed's; nil if there is none.
	seed *member
	// named are all of these by their names, and those that only status remembers.
	named map[string]*member
	// leader is the ID of the member that leads; 0 if nobody is known to.
	leader members.ID
	// isKnown says that the list is etcd's, and isCurrent that it is the leader's.
	isKnown, isCurrent bool
	// hasQuorum says that a majority of the voters follows the leader, and mayHaveQuorum that it did some
	// seconds ago, and nothing says that it does not.
	hasQuorum, mayHaveQuorum bool
}

// viewOf puts together what the members say.
func viewOf(ec *v1beta2.EtcdCluster, seen observation) view {
	v := view{observation: seen, named: map[string]*member{}}
	leader, best := choose(seen, members.ParseID(ec.Status.ClusterID))
	if best != nil {
		v.leader, v.isKnown, v.isCurrent = leader, true, leader != 0 && best.Status.ID == leader
		for _, listed := range best.List.Members {
			v.members = append(v.members, v.join(ec, seen, listed, nameIn(ec, listed)))
		}
	}
	for _, known := range ec.Status.MemberList {
		name := known.Name
		if !objects.IsOurs(ec, name) {
			name = ""
		}
		if !v.isKnown {
			v.members = append(v.members, v.join(ec, seen, asListed(known), name))
		} else if name != "" && v.named[name] == nil {
			v.join(ec, seen, members.Member{}, name)
		}
	}
	for _, m := range v.members {
		m.isMember, m.alarms = true, v.alarmsOf(m)
	}
	if r := ec.Status.Restoring; r != nil && r.Phase != v1beta2.RestoreCompleting {
		v.seed = v.join(ec, seen, members.Member{}, r.Seed)
		v.seed.was.DataUID = r.SeedDataUID
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(sortedKeys(seen.pods), sortedKeys(seen.claims))))) {
		m := v.named[name]
		if m == nil {
			m = v.join(ec, seen, members.Member{}, name)
		}
		if m == v.seed {
			continue
		}
		v.present = append(v.present, m)
		if !m.isMember && name != ec.Status.MemberBeingAdded {
			v.strays = append(v.strays, m)
		}
	}
	voters := v.voters()
	v.hasQuorum = v.count(func(m *member) bool { return m.isVoter() && m.follows }) >= objects.Majority(voters)
	v.mayHaveQuorum = v.count(func(m *member) bool { return m.isVoter() && (m.follows || m.mayFollow) }) >= objects.Majority(voters)
	return v
}

// choose finds out who leads, and whose member list to believe: the leader's or, while that
// does not answer, that of the member that has applied the most. An answer that is of another
// cluster, or that contradicts itself, does not count.
func choose(seen observation, want members.ID) (leader members.ID, best *session.Answer) {
	votes := map[members.ID]int{}
	var term uint64
	for _, name := range sortedKeys(seen.answers) {
		a := seen.answers[name]
		if a.IsOf(want) && a.Status.Leader != 0 {
			term = max(term, a.Status.RaftTerm)
		}
	}
	for _, name := range sortedKeys(seen.answers) {
		a := seen.answers[name]
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
	for _, name := range sortedKeys(seen.answers) {
		if a := seen.answers[name]; leader != 0 && a.Status.ID == leader && a.IsOf(want) && a.HasList() {
			return leader, &a
		}
	}
	return leader, best
}

// ids are the IDs of the members, sorted.
func (v *view) ids() []members.ID {
	var all []members.Member
	for _, m := range v.members {
		all = append(all, m.Member)
	}
	return members.IDs(all)
}

// voters counts the voters.
func (v *view) voters() int { return v.count(func(m *member) bool { return m.isVoter() }) }

func (v *view) count(is func(*member) bool) int {
	n := 0
	for _, m := range v.members {
		if is(m) {
			n++
		}
	}
	return n
}

// find is the first member that is so; nil if none is.
func (v *view) find(is func(*member) bool) *member {
	if i := slices.IndexFunc(v.members, is); i >= 0 {
		return v.members[i]
	}
	return nil
}

// of is what is known of a name: nothing, if nobody knows it.
func (v *view) of(name string) *member {
	if m := v.named[name]; m != nil {
		return m
	}
	return &member{name: name, answer: session.Answer{Err: session.ErrNoAddress}}
}

// leading is the member that leads, if it answers.
func (v *view) leading() *member {
	return v.find(func(m *member) bool { return v.leader != 0 && m.ID == v.leader && m.follows && m.pod != nil })
}

// isReached says that the Service for clients leads to a member that follows the leader, as far as is known.
func (v *view) isReached() bool {
	return v.find(func(m *member) bool { return (m.follows || m.mayFollow) && m.isReached }) != nil
}

// isWhole says that all members have started and follow the leader, and none is a learner.
func (v *view) isWhole() bool {
	return v.hasQuorum && v.count(func(m *member) bool { return m.isForeign() || m.isVoter() && m.isStarted() && m.follows }) == len(v.members)
}

// survivesWithout says whether the voters that follow the leader are a quorum of those that are
// left when a member is taken away, for a while or for ever.
func (v *view) survivesWithout(gone *member, forEver bool) bool {
	voters, following := 0, 0
	for _, m := range v.members {
		if !m.isVoter() || forEver && m.ID == gone.ID {
			continue
		}
		voters++
		if m.follows && m.ID != gone.ID {
			following++
		}
	}
	return following >= objects.Majority(voters)
}
