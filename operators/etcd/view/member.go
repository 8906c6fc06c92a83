package view

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/session"
	"example.com/fairlead/operators/etcd/versions"
)

// Member is all that is known of a member, or of what may be one: what each of five says of it, joined once
// (join), and what follows from that. The seed of a restore is one, too.
type Member struct {
	// Member is what etcd's member list says; while nobody has one, what of it status remembers.
	members.Member
	// Was is what status says: empty if it does not have the member.
	Was v1beta2.MemberStatus
	// Pod and claim are nil if they are not there.
	Pod   *corev1.Pod
	Claim *corev1.PersistentVolumeClaim
	// Answer is an error also if there was nobody to ask.
	Answer session.Answer
	// URL is where a member was asked that the operator does not run; empty if it was not, or did not answer.
	URL string

	// PodName is that of its pod; empty for one that the operator does not run.
	PodName string
	// IsMember says that it is in the member list, and IsFounder that it is one of those that began.
	IsMember, IsFounder bool
	// Data is the UID of what would have its data now: of its volume if IsOnVolume, or else of its pod. Status has
	// that of what had it.
	Data       string
	IsOnVolume bool
	// Follows says that it answers, and follows or is the leader, and isReached that the Service for
	// clients leads to it.
	Follows, IsReached bool
	// MayFollow says that it had a leader some seconds ago, and is only not heard, or heard at another
	// moment of an election than the others.
	MayFollow bool
	// NeedsRestart says that it has started with other CAs than there are now: etcd reads them only then.
	NeedsRestart bool
	// Version is that of its etcd: what it says or, while it does not answer, said last.
	Version versions.Version
	// Leaving is why another member is to take its place; empty if none is.
	Leaving string
	// Alarms are the types of those that are raised for it.
	Alarms []string
	// Differs says that its data is another one than a majority's, or that the user says so: only while etcd has an
	// alarm CORRUPT.
	Differs bool
	// PodProblem is what keeps its pod from running, and problem what keeps it from serving.
	PodProblem, Problem obstacle
}

// join puts together what is known of a member.
func (v *View) join(ec *v1beta2.EtcdCluster, seen Observation, listed members.Member, name string) *Member {
	m := &Member{Member: listed, PodName: name, Pod: seen.Pods[name], Claim: seen.Claims[name], Answer: session.Answer{Err: session.ErrNoAddress}}
	if a, ok := seen.Answers[name]; ok {
		m.Answer = a
	}
	if name == "" {
		m.askedElsewhere(ec, seen)
	}
	if i := slices.IndexFunc(ec.Status.MemberList, func(known v1beta2.MemberStatus) bool { return known.Name == m.ShownName(ec) }); i >= 0 {
		m.Was = ec.Status.MemberList[i]
	}
	m.IsFounder, m.IsOnVolume = slices.Contains(ec.Status.Founders, name), objects.HasVolumes(ec)
	switch {
	case m.IsOnVolume && m.Claim != nil:
		m.Data = string(m.Claim.UID)
	case !m.IsOnVolume && m.Pod != nil:
		m.Data = string(m.Pod.UID)
	}
	m.Version, _ = versions.Parse(m.Was.Version) // none, if it has said nothing yet
	if said, err := versions.Parse(m.Answer.Status.Version); m.HasAnswered() && err == nil {
		m.Version = said
	}
	if m.Pod != nil {
		m.IsReached = seen.Reached[m.Pod.UID]
		m.NeedsRestart = seen.Certs.CaHash != "" && m.Pod.Annotations[annotation.CA] != seen.Certs.CaHash
	}
	isAsListed := m.Answer.IsOf(members.ParseID(ec.Status.ClusterID)) && m.Answer.Status.ID == m.ID && m.Answer.Status.Leader != 0
	m.Follows = isAsListed && m.Answer.Status.Leader == v.Leader
	m.MayFollow = !m.Follows && m.followedLately(seen) && (isAsListed || errors.Is(m.Answer.Err, context.DeadlineExceeded) || m.IsDefragmenting())
	m.PodProblem = problemOfPod(m, seen.Now)
	m.Problem = problemOf(m, seen.Certs.Doubt, v.AsksElsewhere)
	if name != "" {
		v.Named[name] = m
	}
	return m
}

// askedElsewhere is what a member says that the operator does not run. Where it was asked, another one may have
// answered.
func (m *Member) askedElsewhere(ec *v1beta2.EtcdCluster, seen Observation) {
	for _, url := range sortedKeys(objects.Elsewhere(ec)) {
		if a := seen.Answers[url]; a.IsOf(members.ParseID(ec.Status.ClusterID)) && a.Status.ID == m.ID {
			m.Answer, m.URL = a, url
			return
		}
	}
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

// ShownName is the name that status has for a member: the pod's, or for one that the operator
// does not run the name or ID that etcd has. A name that one of the operator's own could have would
// be taken for one: its pod would be looked for again and again.
func (m *Member) ShownName(ec *v1beta2.EtcdCluster) string {
	switch {
	case m.PodName != "":
		return m.PodName
	case m.Name != "" && !objects.IsOurs(ec, m.Name):
		return m.Name
	}
	return m.ID.String()
}

// IsForeign says that the operator does not run the member: its peer URL is somewhere else.
func (m *Member) IsForeign() bool { return m.PodName == "" }

// IsStarted says that the member has started once. Until then it has no data.
func (m *Member) IsStarted() bool { return m.Name != "" }

// IsVoter says that it counts for the quorum.
func (m *Member) IsVoter() bool { return !m.IsLearner }

// IsMarked says that its pod is marked as a voter's.
func (m *Member) IsMarked() bool { return m.Pod.Labels[objects.VoterLabel] == "true" }

// HasPod says that its pod is there.
func (m *Member) HasPod() bool { return m.Pod != nil }

// HasAnswered says that it was asked, and has answered.
func (m *Member) HasAnswered() bool { return m.Answer.Err == nil }

// HasSpoken says that it answers as the member that it is: so it has started, and has data. The list
// has the names of founders from the beginning.
func (m *Member) HasSpoken() bool {
	return m.IsStarted() && m.HasAnswered() && m.Answer.Status.ID == m.ID
}

// LeadsAlone says that it answers as the leader of a cluster that has no other member.
func (m *Member) LeadsAlone() bool {
	return m.Answer.HasList() && len(m.Answer.List.Members) == 1 && m.Answer.Status.Leader == m.Answer.Status.ID
}

// Refuses says that it does not tell the operator anything, because users are on.
func (m *Member) Refuses() bool { return errors.Is(m.Answer.Err, members.ErrAuth) }

// IsDefragmenting says that it is not asked, because it is being defragmented.
func (m *Member) IsDefragmenting() bool { return errors.Is(m.Answer.Err, session.ErrDefragmenting) }

// IsProbed says that it refuses the operator, and serves: its node has found that it reads with a quorum.
// The probe of the oldest versions says less.
func (m *Member) IsProbed() bool {
	return m.Refuses() && m.IsReached && objects.ServesMetrics(m.Pod.Annotations[annotation.Version])
}

// Lately is for how long what a member has said counts when it is not heard.
const Lately = 10 * time.Second

// followedLately says whether a member had a leader a short time ago, and its node does not say otherwise.
func (m *Member) followedLately(seen Observation) bool {
	return m.Pod != nil && !objects.IsEnding(m.Pod) && pods.IsReady(m.Pod) && seen.Now.Sub(seen.Led[m.PodName]) < Lately
}

// NeverRan says that a member is a founder that was not let go before the others formed the
// cluster.
func (m *Member) NeverRan() bool { return m.Was.DataUID == "" && m.IsFounder }

// IsLost says whether the data of a member is gone, or is wrong: with its pod, where that had no volume, with its volume,
// or by a defect of the disk. That it cannot be reached says nothing, nor does an alarm.
func (m *Member) IsLost() bool {
	switch {
	case m.IsForeign() || !m.IsStarted():
		return false
	case m.Claim != nil && objects.IsEnding(m.Claim) && m.Pod == nil:
		return true
	case m.Pod == nil && m.Claim == nil:
		return !m.NeverRan()
	case m.Was.DataUID != "" && m.Data != m.Was.DataUID:
		return true // what is there is not what had its data
	case m.Pod == nil:
		return false
	case pods.IsOver(m.Pod) && !m.IsOnVolume:
		return true
	}
	return m.Differs || saysLost(m.Pod)
}

// Suspicion is why the data of a member is not trusted although it is there; empty if it is trusted. What is suspected may
// be right, and be the last that is.
func (m *Member) Suspicion() string {
	switch {
	case m.Claim == nil || m.IsForeign() || !m.IsMember || m.IsLearner || !m.IsStarted() || m.NeverRan():
		return ""
	case m.Differs:
		return "its data is not that of the other members"
	case m.Was.DataUID != "" && m.Data != m.Was.DataUID:
		return "it is not the volume that had the member's data"
	case m.Pod == nil:
		return ""
	case saysLost(m.Pod):
		return "etcd cannot start with its data"
	case m.isToBeReplaced():
		return "its pod had the annotation " + annotation.Replace
	}
	return ""
}

// alarmsOf are the types of the alarms that are raised for a member.
func (v *View) alarmsOf(m *Member) []string {
	var alarms []string
	for _, other := range v.Members {
		if !other.Follows {
			continue
		}
		for _, alarm := range other.Answer.Status.Alarms {
			if alarm.Member == m.ID && !slices.Contains(alarms, alarm.Type) {
				alarms = append(alarms, alarm.Type)
			}
		}
	}
	slices.Sort(alarms)
	return alarms
}

// Quota is how many bytes a member's database may have; negative if any.
func (m *Member) Quota() int64 { return m.Answer.Quota(m.Pod) }

// IsSettled says whether a member is as its pod says, and follows the leader.
func (m *Member) IsSettled() bool {
	return m.Follows && m.Pod != nil && !objects.IsEnding(m.Pod) && m.Version.String() == m.Pod.Annotations[annotation.Version]
}
