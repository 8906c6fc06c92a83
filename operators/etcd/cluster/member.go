package cluster

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/session"
	"example.com/fairlead/operators/etcd/versions"
)

// member is all that is known of a member, or of what may be one: what each of five says of it, joined once
// (viewOf), and what follows from that. The seed of a restore is one, too.
type member struct {
	// Member is what etcd's member list says; while nobody has one, what of it status remembers.
	members.Member
	// was is what status says: empty if it does not have the member.
	was v1beta2.MemberStatus
	// pod and claim are nil if they are not there.
	pod   *corev1.Pod
	claim *corev1.PersistentVolumeClaim
	// answer is an error also if there was nobody to ask.
	answer session.Answer

	// name is that of its pod; empty for one that the operator does not run.
	name string
	// isMember says that it is in the member list, and isFounder that it is one of those that began.
	isMember, isFounder bool
	// data is the UID of what would have its data now: of its volume if isOnVolume, or else of its pod. Status has
	// that of what had it.
	data       string
	isOnVolume bool
	// follows says that it answers, and follows or is the leader, and isReached that the Service for
	// clients leads to it.
	follows, isReached bool
	// mayFollow says that it had a leader some seconds ago, and is only not heard, or heard at another
	// moment of an election than the others.
	mayFollow bool
	// needsRestart says that it has started with other CAs than there are now: etcd reads them only then.
	needsRestart bool
	// version is that of its etcd: what it says or, while it does not answer, said last.
	version versions.Version
	// alarms are the types of those that are raised for it.
	alarms []string
	// podProblem is what keeps its pod from running, and problem what keeps it from serving.
	podProblem, problem obstacle
}

// join puts together what is known of a member.
func (v *view) join(ec *v1beta2.EtcdCluster, seen observation, listed members.Member, name string) *member {
	m := &member{Member: listed, name: name, pod: seen.pods[name], claim: seen.claims[name], answer: session.Answer{Err: session.ErrNoAddress}}
	if a, ok := seen.answers[name]; ok {
		m.answer = a
	}
	if i := slices.IndexFunc(ec.Status.MemberList, func(known v1beta2.MemberStatus) bool { return known.Name == m.shownName(ec) }); i >= 0 {
		m.was = ec.Status.MemberList[i]
	}
	m.isFounder, m.isOnVolume = slices.Contains(ec.Status.Founders, name), objects.HasVolumes(ec)
	switch {
	case m.isOnVolume && m.claim != nil:
		m.data = string(m.claim.UID)
	case !m.isOnVolume && m.pod != nil:
		m.data = string(m.pod.UID)
	}
	m.version, _ = versions.Parse(m.was.Version) // none, if it has said nothing yet
	if said, err := versions.Parse(m.answer.Status.Version); m.hasAnswered() && err == nil {
		m.version = said
	}
	if m.pod != nil {
		m.isReached = seen.reached[m.pod.UID]
		m.needsRestart = seen.certs.CaHash != "" && annotation.Of(m.pod, annotation.CA) != seen.certs.CaHash
	}
	isAsListed := m.answer.IsOf(members.ParseID(ec.Status.ClusterID)) && m.answer.Status.ID == m.ID && m.answer.Status.Leader != 0
	m.follows = isAsListed && m.answer.Status.Leader == v.leader
	m.mayFollow = !m.follows && m.followedLately(seen) && (isAsListed || errors.Is(m.answer.Err, context.DeadlineExceeded) || m.isDefragmenting())
	m.podProblem = problemOfPod(m, seen.now)
	m.problem = problemOf(m, seen.certs.Doubt)
	if name != "" {
		v.named[name] = m
	}
	return m
}

// asListed is what status remembers of etcd's member list.
func asListed(known v1beta2.MemberStatus) members.Member {
	// One that the operator does not run, and that has not started, is shown by its ID.
	m := members.Member{ID: members.ParseID(cmp.Or(known.ID, known.Name)), IsLearner: known.Learner}
	if known.ID != "" || known.DataUID != "" {
		m.Name = known.Name // it may have started, so it counts as one that has
	}
	return m
}

// nameIn is the name that a member of etcd's list has; empty if the operator does not run it.
func nameIn(ec *v1beta2.EtcdCluster, listed members.Member) string {
	name := ""
	for _, url := range listed.PeerURLs {
		if host, ok := objects.MemberOfPeerURL(ec, url); ok {
			name = host
		}
	}
	return name
}

// shownName is the name that status has for a member: the pod's, or for one that the operator
// does not run the name or ID that etcd has. A name that one of the operator's own could have would
// be taken for one: its pod would be looked for again and again.
func (m *member) shownName(ec *v1beta2.EtcdCluster) string {
	switch {
	case m.name != "":
		return m.name
	case m.Name != "" && !objects.IsOurs(ec, m.Name):
		return m.Name
	}
	return m.ID.String()
}

// isForeign says that the operator does not run the member: its peer URL is somewhere else.
func (m *member) isForeign() bool { return m.name == "" }

// isStarted says that the member has started once. Until then it has no data.
func (m *member) isStarted() bool { return m.Name != "" }

func (m *member) isVoter() bool { return !m.IsLearner }

func (m *member) hasPod() bool { return m.pod != nil }

func (m *member) hasAnswered() bool { return m.answer.Err == nil }

// hasSpoken says that it answers as the member that it is: so it has started, and has data. The list
// has the names of founders from the beginning.
func (m *member) hasSpoken() bool {
	return m.isStarted() && m.hasAnswered() && m.answer.Status.ID == m.ID
}

// leadsAlone says that it answers as the leader of a cluster that has no other member.
func (m *member) leadsAlone() bool {
	return m.answer.HasList() && len(m.answer.List.Members) == 1 && m.answer.Status.Leader == m.answer.Status.ID
}

// refuses says that it does not tell the operator anything, because users are on.
func (m *member) refuses() bool { return errors.Is(m.answer.Err, members.ErrAuth) }

// isDefragmenting says that it is not asked, because it is being defragmented.
func (m *member) isDefragmenting() bool { return errors.Is(m.answer.Err, session.ErrDefragmenting) }

// isProbed says that it refuses the operator, and serves: its node has found that it reads with a quorum.
// The probe of the oldest versions says less.
func (m *member) isProbed() bool {
	return m.refuses() && m.isReached && objects.ServesMetrics(annotation.Of(m.pod, annotation.Version))
}

// lately is for how long what a member has said counts when it is not heard.
const lately = 10 * time.Second

// followedLately says whether a member had a leader a short time ago, and its node does not say otherwise.
func (m *member) followedLately(seen observation) bool {
	return m.pod != nil && !objects.IsEnding(m.pod) && objects.IsReady(m.pod) && seen.now.Sub(seen.led[m.name]) < lately
}

// neverRan says that a member is a founder that was not let go before the others formed the
// cluster.
func (m *member) neverRan() bool { return m.was.DataUID == "" && m.isFounder }

// isLost says whether the data of a member is gone: with its pod, where that had no volume, with
// its volume, or by a defect of the disk. That it cannot be reached says nothing.
func (m *member) isLost() bool {
	switch {
	case m.isForeign() || !m.isStarted():
		return false
	case m.claim != nil && objects.IsEnding(m.claim) && m.pod == nil:
		return true
	case m.pod == nil && m.claim == nil:
		return !m.neverRan()
	case m.was.DataUID != "" && m.data != m.was.DataUID:
		return true // what is there is not what had its data
	case m.pod == nil:
		return false
	case objects.IsOver(m.pod) && !m.isOnVolume:
		return true
	}
	return slices.Contains(m.alarms, members.Corrupt) || saysLost(m.pod)
}

// alarmsOf are the types of the alarms that are raised for a member.
func (v *view) alarmsOf(m *member) []string {
	var alarms []string
	for _, other := range v.members {
		if !other.follows {
			continue
		}
		for _, alarm := range other.answer.Status.Alarms {
			if alarm.Member == m.ID && !slices.Contains(alarms, alarm.Type) {
				alarms = append(alarms, alarm.Type)
			}
		}
	}
	slices.Sort(alarms)
	return alarms
}
