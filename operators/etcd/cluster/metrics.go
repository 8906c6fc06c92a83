package cluster

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/metrics"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/session"
	"example.com/fairlead/operators/etcd/view"
)

var (
	leaderChanges = metrics.Counter("fairlead_etcd_leader_changes_total",
		"Changes of leader that the operator saw, also those that it requested itself. It asks every 30 seconds at rest, so several within that time may be one.")
	memberCount = metrics.Gauge("fairlead_etcd_members",
		"Members of all EtcdClusters by state: ready (serves, as in status.readyMembers), learner (not yet a voter) or not_ready.", "state")
	sharingCount = metrics.Gauge("fairlead_etcd_members_sharing_node",
		"Members on a node with another member of their EtcdCluster, of the EtcdCluster that has most. They may be lost at once.", "namespace", "name")
	leaderlessClusters = metrics.Gauge("fairlead_etcd_clusters_without_leader",
		"EtcdClusters that have been formed, of which no member that answers says who leads. One that does not tell the operator, because it has users, is left out. An election takes a moment: alert on what lasts.")
	quotaRatio = metrics.Gauge("fairlead_etcd_database_quota_ratio",
		"Size of the database file by its quota, 0 to 1, of the member for which that is greatest. At 1 the cluster takes no writes. Members without a quota are left out.", "namespace", "name")
	certificateExpiry = metrics.Gauge("fairlead_etcd_certificate_expiry_timestamp_seconds",
		"When the first certificate of an EtcdCluster with TLS expires, or the CA that has signed it, of the EtcdCluster where that is soonest (a Unix time; in the past if it has expired). "+
			"Generated ones are renewed when a third of their time is left.", "namespace", "name")
)

// The states of members.
const (
	stateReady    = "ready"
	stateLearner  = "learner"
	stateNotReady = "not_ready"
)

// figures are those of all EtcdClusters.
var figures = metrics.NewBoard(sum, memberCount, sharingCount, leaderlessClusters, quotaRatio, certificateExpiry)

// figure is what counts of an EtcdCluster. What is not known at the moment is as it was.
type figure struct {
	members map[string]int // by state
	sharing int            // members that share a node
	reign   reign
	// isLeaderless says that no leader was seen last.
	isLeaderless bool
	// filled is how full members' databases are, by the members' names.
	filled map[string]float64
	// expires is when the first certificate does; zero without TLS.
	expires time.Time
}

// reign is a member's being the leader of a cluster.
type reign struct {
	cluster, leader members.ID
	term            uint64
}

// noteFigure keeps what the metrics say of an EtcdCluster, and counts a change of leader.
func noteFigure(ec *v1beta2.EtcdCluster, seen view.Observation) {
	figures.Change(objects.Key(ec), func(before figure) figure {
		is := before.next(ec, seen)
		if is.reign.succeeds(before.reign) {
			leaderChanges.WithLabelValues().Inc()
		}
		return is
	})
}

// next is the figure after another step.
func (f figure) next(ec *v1beta2.EtcdCluster, seen view.Observation) figure {
	cluster, v := members.ParseID(ec.Status.ClusterID), view.Of(ec, seen)
	is := figure{members: map[string]int{}, reign: f.reign, isLeaderless: f.isLeaderless, filled: map[string]float64{}, expires: f.expires}
	for _, there := range v.Sharing() {
		is.sharing += len(there)
	}
	for _, known := range ec.Status.MemberList {
		is.members[stateOf(known)]++
		if m := v.Of(known.Name); !m.Answer.IsOf(cluster) {
			if last, known := f.filled[m.PodName]; known {
				is.filled[m.PodName] = last
			}
		} else if quota := m.Quota(); quota > 0 {
			is.filled[m.PodName] = float64(m.Answer.Status.DBSize) / float64(quota)
		}
	}
	if seen.Answers != nil { // the members were asked
		now := reignOf(&v, cluster)
		is.isLeaderless = cluster != 0 && now.leader == 0 && v.Find((*view.Member).Refuses) == nil && v.Find((*view.Member).IsDefragmenting) == nil
		// A member that is cut off may still believe in an earlier leader.
		if now.cluster != f.reign.cluster || now.leader != 0 && now.term >= f.reign.term {
			is.reign = now
		}
	}
	switch {
	case ec.Spec.TLS == nil:
		is.expires = time.Time{}
	case !seen.Certs.Expires.IsZero():
		is.expires = seen.Certs.Expires
	}
	return is
}

func stateOf(m v1beta2.MemberStatus) string {
	switch {
	case m.Learner:
		return stateLearner
	case m.Ready:
		return stateReady
	}
	return stateNotReady
}

// reign is who leads the cluster now; nobody, if no member knows.
func reignOf(v *view.View, cluster members.ID) reign {
	r := reign{cluster: cluster, leader: v.Leader}
	for _, m := range v.Present {
		if a := m.Answer; v.Leader != 0 && a.IsOf(cluster) && a.Status.Leader == v.Leader {
			r.term = max(r.term, a.Status.RaftTerm)
		}
	}
	return r
}

// succeeds says whether the leader is another one than before. The first that is seen of a cluster is
// not: before, there may have been the same.
func (r reign) succeeds(before reign) bool {
	return before.leader != 0 && r.cluster == before.cluster && r.leader != before.leader
}

func sum(all map[types.NamespacedName]figure, say metrics.Say) {
	count, leaderless := map[string]int{}, 0
	fullest, soonest, closest := metrics.Worst{Greatest: true}, metrics.Worst{}, metrics.Worst{Greatest: true}
	for object, f := range all {
		for state, n := range f.members {
			count[state] += n
		}
		closest.Note(object, float64(f.sharing))
		if f.isLeaderless {
			leaderless++
		}
		for _, ratio := range f.filled {
			fullest.Note(object, ratio)
		}
		if !f.expires.IsZero() {
			soonest.Note(object, float64(f.expires.Unix()))
		}
	}
	for _, state := range []string{stateReady, stateLearner, stateNotReady} {
		say(memberCount, float64(count[state]), state)
	}
	say(leaderlessClusters, float64(leaderless))
	closest.Say(say, sharingCount)
	fullest.Say(say, quotaRatio)
	soonest.Say(say, certificateExpiry)
}

// registerMetrics registers the metrics, with a zero for all that can be requested.
func registerMetrics() error {
	leaderChanges.WithLabelValues()
	for _, write := range kind.Writes {
		if change, isRequest := strings.CutPrefix(write, "call/etcd "); isRequest {
			session.Requests.WithLabelValues(change)
		}
	}
	return metrics.Register(session.Requests, leaderChanges, figures)
}
