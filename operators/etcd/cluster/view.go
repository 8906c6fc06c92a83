package cluster

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/versions"
)

// view is the cluster as its members describe it.
type view struct {
	// members are those of etcd's member list, or while nobody has one those that status
	// remembers.
	members []member
	// strays are pods of the cluster that are no member's, and unused the volumes.
	strays, unused []string
	// leader is the ID of the member that leads; 0 if nobody is known to.
	leader members.ID
	// isKnown says that the list is etcd's, and isCurrent that it is the leader's.
	isKnown, isCurrent bool
	// hasQuorum says that a majority of the voters follows the leader, and mayHaveQuorum that it did some
	// seconds ago, and nothing says that it does not.
	hasQuorum, mayHaveQuorum bool
}

// member is a member, with its pod and volume and what it says, as far as there is any of it.
type member struct {
	members.Member
	name   string // of its pod; empty for one that the operator does not run
	pod    *corev1.Pod
	claim  *corev1.PersistentVolumeClaim
	answer *answer
	// follows says that it answers, and follows or is the leader, and isReached that the Service for
	// clients leads to it.
	follows, isReached bool
	// mayFollow says that it had a leader some seconds ago, and is only not heard, or heard at another
	// moment of an election than the others.
	mayFollow bool
	// recorded is the UID of what had its data, and data that of what would have it now.
	recorded, data string
	// version is that of its etcd: what it says or, while it does not answer, said last.
	version versions.Version
}

// isForeign says that the operator does not run the member: its peer URL is somewhere else.
func (m *member) isForeign() bool { return m.name == "" }

// isStarted says that the member has started once. Until then it has no data.
func (m *member) isStarted() bool { return m.Name != "" }

func (m *member) isVoter() bool { return !m.IsLearner }

// hasSpoken says that it answers as the member that it is: so it has started, and has data. The list
// has the names of founders from the beginning.
func (m *member) hasSpoken() bool {
	return m.isStarted() && m.answer != nil && m.answer.err == nil && m.answer.status.ID == m.ID
}

// refuses says that it does not tell the operator anything, because users are on.
func (m *member) refuses() bool { return m.answer != nil && errors.Is(m.answer.err, members.ErrAuth) }

// isProbed says that it refuses the operator, and serves: its node has found that it reads with a quorum.
// The probe of the oldest versions says less.
func (m *member) isProbed() bool {
	return m.refuses() && m.isReached && servesMetrics(m.pod.Annotations[versionAnnotation])
}

// viewOf puts together what the members say.
func viewOf(ec *v1beta2.EtcdCluster, seen observation) view {
	v := view{}
	want := members.ParseID(ec.Status.ClusterID)
	leader, best := choose(seen, want)
	if best == nil {
		for _, known := range ec.Status.MemberList {
			m := members.Member{ID: members.ParseID(known.ID), IsLearner: known.Learner}
			if known.ID != "" || known.DataUID != "" {
				m.Name = known.Name // it may have started, so it counts as one that has
			}
			v.members = append(v.members, v.join(ec, seen, m, known.Name, 0))
		}
		v.countVotes()
		v.findStrays(ec, seen)
		return v
	}
	v.leader, v.isKnown, v.isCurrent = leader, true, leader != 0 && best.status.ID == leader
	for _, listed := range best.list.Members {
		name := ""
		for _, url := range listed.PeerURLs {
			if host, ok := memberOfPeerURL(ec, url); ok {
				name = host
			}
		}
		v.members = append(v.members, v.join(ec, seen, listed, name, leader))
	}
	v.countVotes()
	v.findStrays(ec, seen)
	return v
}

// countVotes finds out whether there is a quorum.
func (v *view) countVotes() {
	voters := v.voters()
	v.hasQuorum = v.count(func(m *member) bool { return m.isVoter() && m.follows }) >= majority(voters)
	v.mayHaveQuorum = v.count(func(m *member) bool { return m.isVoter() && (m.follows || m.mayFollow) }) >= majority(voters)
}

// join puts a member together with its pod, its volume and its answer.
func (v *view) join(ec *v1beta2.EtcdCluster, seen observation, listed members.Member, name string, leader members.ID) member {
	m := member{Member: listed, name: name}
	if name == "" {
		return m
	}
	m.pod, m.claim = seen.pods[name], seen.claims[name]
	m.isReached = m.pod != nil && seen.reached[m.pod.UID]
	m.version = knownVersion(ec, name)
	m.recorded, m.data = recordedData(ec, name), dataOf(ec, seen, name)
	if a, ok := seen.answers[name]; ok {
		m.answer = &a
		if said, err := versions.Parse(a.status.Version); a.err == nil && err == nil {
			m.version = said
		}
		m.follows = leader != 0 && a.isOf(members.ParseID(ec.Status.ClusterID)) && a.status.ID == listed.ID && a.status.Leader == leader
		m.mayFollow = !m.follows && m.followedLately(ec, seen)
	}
	return m
}

// lately is for how long what a member has said counts when it is not heard.
const lately = 10 * time.Second

// followedLately says whether a member that is not known to follow the leader had one a short time ago, and
// neither it nor its node says otherwise.
func (m *member) followedLately(ec *v1beta2.EtcdCluster, seen observation) bool {
	if m.pod == nil || isEnding(m.pod) || !isReady(m.pod) || seen.now.Sub(seen.led[m.name]) >= lately {
		return false
	}
	if m.answer.err != nil {
		return errors.Is(m.answer.err, context.DeadlineExceeded)
	}
	return m.answer.isOf(members.ParseID(ec.Status.ClusterID)) && m.answer.status.ID == m.ID && m.answer.status.Leader != 0
}

// isReady says whether a pod's node finds that it serves.
func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// knownVersion is the version that a member said last.
func knownVersion(ec *v1beta2.EtcdCluster, name string) versions.Version {
	for _, known := range ec.Status.MemberList {
		if known.Name == name {
			v, _ := versions.Parse(known.Version) // none, if it has said nothing yet
			return v
		}
	}
	return versions.Version{}
}

// findStrays finds the pods and volumes of no member.
func (v *view) findStrays(ec *v1beta2.EtcdCluster, seen observation) {
	isMember := func(name string) bool {
		return name == ec.Status.Adding || slices.ContainsFunc(v.members, func(m member) bool { return m.name == name })
	}
	for _, name := range sortedKeys(seen.pods) {
		if !isMember(name) {
			v.strays = append(v.strays, name)
		}
	}
	for _, name := range sortedKeys(seen.claims) {
		if !isMember(name) {
			v.unused = append(v.unused, name)
		}
	}
}

// choose finds out who leads, and whose member list to believe: the leader's or, while that
// does not answer, that of the member that has applied the most. An answer that is of another
// cluster, or that contradicts itself, does not count.
func choose(seen observation, want members.ID) (leader members.ID, best *answer) {
	votes := map[members.ID]int{}
	var term uint64
	for _, name := range sortedKeys(seen.answers) {
		a := seen.answers[name]
		if a.isOf(want) && a.status.Leader != 0 {
			term = max(term, a.status.RaftTerm)
		}
	}
	for _, name := range sortedKeys(seen.answers) {
		a := seen.answers[name]
		if !a.isOf(want) || !a.hasList() {
			continue
		}
		if a.status.Leader != 0 && a.status.RaftTerm == term {
			votes[a.status.Leader]++
			if leader == 0 || votes[a.status.Leader] > votes[leader] {
				leader = a.status.Leader
			}
		}
		if best == nil || a.status.Applied > best.status.Applied {
			best = &a
		}
	}
	for _, name := range sortedKeys(seen.answers) {
		if a := seen.answers[name]; leader != 0 && a.status.ID == leader && a.isOf(want) && a.hasList() {
			return leader, &a
		}
	}
	return leader, best
}

// majority is the quorum of that many voters.
func majority(voters int) int { return voters/2 + 1 }

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
	for i := range v.members {
		if is(&v.members[i]) {
			n++
		}
	}
	return n
}

// find is the first member that is so; nil if none is.
func (v *view) find(is func(*member) bool) *member {
	for i := range v.members {
		if is(&v.members[i]) {
			return &v.members[i]
		}
	}
	return nil
}

func (v *view) byName(name string) *member {
	return v.find(func(m *member) bool { return m.name == name })
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
	for i := range v.members {
		m := &v.members[i]
		if !m.isVoter() || forEver && m.ID == gone.ID {
			continue
		}
		voters++
		if m.follows && m.ID != gone.ID {
			following++
		}
	}
	return following >= majority(voters)
}
