package membership

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/docs"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/rollout"
	"example.com/fairlead/operators/etcd/session"
	"example.com/fairlead/operators/etcd/versions"
	"example.com/fairlead/operators/etcd/view"
)

// This file checks a running etcd before anything is changed of it. The list of checks is what has to hold, the first
// that does not is reported.

// joinChecks look at the running etcd as if it were this EtcdCluster's already.
var joinChecks = []func(*v1beta2.EtcdCluster, *view.View) *status.Problem{
	hasOtherNames, hasStarted, isAnswering, isHealthy, isStable, hasNoAlarm, hasReachableVersion, hasReachablePeers, hasRoom,
}

// checkJoin is the ID of the running etcd if all checks hold, or the first problem.
func checkJoin(ec *v1beta2.EtcdCluster, v *view.View) (members.ID, *status.Problem) {
	if v.ElsewhereProblem != nil {
		return 0, v.ElsewhereProblem
	}
	id, problem := commonCluster(ec, v)
	if problem != nil {
		return 0, problem
	}
	joined := ec.DeepCopy()
	joined.Status.ClusterID = id.String()
	as := view.Of(joined, v.Observation)
	as.Wanted = v.Wanted
	for _, check := range joinChecks {
		if problem := check(joined, &as); problem != nil {
			return 0, problem
		}
	}
	return id, nil
}

// waits is a problem that ends by itself, or when something else is done; stalls is one that the spec is to be changed
// for, or the running etcd.
func waits(reason, format string, args ...any) *status.Problem {
	return &status.Problem{Reason: reason, Retriable: true, Message: fmt.Sprintf(format, args...)}
}

func stalls(reason, format string, args ...any) *status.Problem {
	return &status.Problem{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// commonCluster is the ID of the cluster that all endpoints are of.
func commonCluster(ec *v1beta2.EtcdCluster, v *view.View) (id members.ID, problem *status.Problem) {
	first := ""
	for _, at := range slices.Sorted(maps.Keys(objects.Elsewhere(ec))) {
		switch a := v.Answers[at]; {
		case errors.Is(a.Err, members.ErrAuth):
			refusal := rollout.Refusal(ec, v)
			return 0, &refusal
		case a.Err != nil:
			return 0, waits(reason.JoinUnreachable, "%s of spec.joinFrom.etcdEndpoints does not answer the operator: %s", at, status.Shortened(a.Err.Error()))
		case !a.HasList():
			return 0, waits(reason.JoinUnhealthy, "%s has no member list to tell, as a learner, or a Service that leads to another member each time", at)
		case first != "" && a.Status.ClusterID != id:
			return 0, stalls(reason.JoinClusters, "%s is of cluster %s, and %s of cluster %s: correct spec.joinFrom.etcdEndpoints", first, id, at, a.Status.ClusterID)
		default:
			first, id = at, a.Status.ClusterID
		}
	}
	return id, nil
}

// hasOtherNames: members that have the names of this EtcdCluster's would be taken for its own.
func hasOtherNames(_ *v1beta2.EtcdCluster, v *view.View) *status.Problem {
	for _, m := range v.Members {
		if !m.IsForeign() {
			return stalls(reason.JoinNames, "The peer URL %s of the running etcd is one that a member of this EtcdCluster could have: create an EtcdCluster of another name", m.PeerURLs[0])
		}
	}
	return nil
}

func hasStarted(_ *v1beta2.EtcdCluster, v *view.View) *status.Problem {
	for _, m := range v.Members {
		switch {
		case !m.IsStarted():
			return waits(reason.JoinUnhealthy, "The running etcd has a member that has not started, %s: start it, or remove it with `etcdctl member remove %s`", strings.Join(m.PeerURLs, ", "), m.ID)
		case m.IsLearner:
			return waits(reason.JoinUnhealthy, "The running etcd has a learner, %s, and can have but one: promote it, or remove it with `etcdctl member remove %s`", m.Name, m.ID)
		}
	}
	return nil
}

// isAnswering: each member is asked, so that none is taken for stopped that is not.
func isAnswering(_ *v1beta2.EtcdCluster, v *view.View) *status.Problem {
	for _, m := range v.Members {
		if m.URL == "" {
			return stalls(reason.JoinEndpoints, "None of spec.joinFrom.etcdEndpoints is that of member %s: add the URL at which the operator reaches it. It advertises %s", m.Name, strings.Join(m.ClientURLs, ", "))
		}
	}
	return nil
}

func isHealthy(_ *v1beta2.EtcdCluster, v *view.View) *status.Problem {
	for _, m := range v.Members {
		if !m.Follows {
			return waits(reason.JoinUnhealthy, "Member %s of the running etcd does not follow the leader of the others", m.Name)
		}
	}
	if !v.IsCurrent {
		return waits(reason.JoinUnhealthy, "The running etcd has no leader")
	}
	return nil
}

// isStable: nobody changes the members meanwhile.
func isStable(_ *v1beta2.EtcdCluster, v *view.View) *status.Problem {
	for _, m := range v.Members {
		if !slices.Equal(members.IDs(m.Answer.List.Members), v.IDs()) {
			return waits(reason.JoinUnhealthy, "The members of the running etcd are being changed: %s has another member list than the leader", m.Name)
		}
	}
	return nil
}

func hasNoAlarm(_ *v1beta2.EtcdCluster, v *view.View) *status.Problem {
	for _, m := range v.Members {
		switch {
		case slices.Contains(m.Alarms, members.NoSpace):
			return stalls(reason.JoinAlarm, "Member %s of the running etcd has the alarm NOSPACE, so that nobody can write: compact and defragment it, then `etcdctl alarm disarm`", m.Name)
		case len(m.Alarms) > 0:
			return stalls(reason.JoinAlarm, "Member %s of the running etcd has the alarm %s: replace it first", m.Name, m.Alarms[0])
		}
	}
	return nil
}

// lowestToJoin is the lowest minor version that is joined: of earlier ones nobody has tried it.
const lowestToJoin = 5

func hasReachableVersion(ec *v1beta2.EtcdCluster, v *view.View) *status.Problem {
	lowest, highest := v.Lowest(), v.Highest()
	switch {
	case lowest.Minor() < lowestToJoin:
		return stalls(reason.JoinVersion, "The running etcd has version %s, and is joined from 3.%d on: upgrade it one minor version at a time, or move with a pause: %s", lowest, lowestToJoin, docs.Page("moving/etcd.md"))
	case lowest.Minor() != highest.Minor():
		return waits(reason.JoinVersion, "The running etcd has members of %s and %s: complete its upgrade first", lowest, highest)
	case v.Downgrading() != "":
		return waits(reason.JoinVersion, "A downgrade to %s is enabled in the running etcd: complete it, or cancel it with `etcdctl downgrade cancel`", v.Downgrading())
	}
	if _, err := versions.Path(lowest, v.Wanted); err != nil {
		return stalls(reason.JoinVersion, "spec.version is %s, and the running etcd has %s: %v", ec.Spec.Version, lowest, err)
	}
	return nil
}

// hasReachablePeers: what of the way between peers can be told from their URLs.
func hasReachablePeers(ec *v1beta2.EtcdCluster, v *view.View) *status.Problem {
	for _, m := range v.Members {
		for _, text := range m.PeerURLs {
			u, err := url.Parse(text)
			switch {
			case err != nil || isLoopback(u.Hostname()):
				return stalls(reason.JoinPeers, "Member %s advertises the peer URL %s, at which no other pod reaches it: change it with `etcdctl member update %s --peer-urls`", m.Name, text, m.ID)
			case u.Scheme == "https" && ec.Spec.TLS == nil:
				return stalls(reason.JoinPeers, "The peers of the running etcd use TLS: create an EtcdCluster with spec.TLS.static, whose peerSecret is of the CA that they trust")
			case u.Scheme == "https" && ec.Spec.TLS.Static == nil:
				return stalls(reason.JoinPeers, "The peers of the running etcd use TLS, and do not trust a CA that the operator makes: create an EtcdCluster with spec.TLS.static, whose peerSecret is of the CA that they trust")
			case u.Scheme != "https" && ec.Spec.TLS != nil:
				return stalls(reason.JoinPeers, "The peers of the running etcd do not use TLS, and members with and without it cannot talk to each other: create an EtcdCluster without spec.TLS")
			}
		}
	}
	return nil
}

func isLoopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }

// hasRoom: a member that may have less than those of before raises NOSPACE for all, so it may have as much, and what there
// is fits in with room to grow. Before 3.6 etcd does not say what it may have: then it is taken for its default.
func hasRoom(ec *v1beta2.EtcdCluster, v *view.View) *status.Problem {
	quota := quotaOf(ec)
	for _, m := range v.Members {
		theirs, size := m.Quota(), m.Answer.Status.DBSize
		if quota > 0 && (theirs < 0 || theirs > quota) {
			enough := fmt.Sprintf("to %d at least", theirs)
			if theirs < 0 {
				enough = "to -1"
			}
			return stalls(reason.JoinRoom, "The database of member %s may have %s, and of members of this EtcdCluster %s: at that, nobody could write any more. Set ETCD_QUOTA_BACKEND_BYTES in spec.pod.etcdEnv %s", m.Name, shownQuota(theirs), shownQuota(quota), enough)
		}
		if quota > 0 && isTight(size, quota) {
			return stalls(reason.JoinRoom, "The database of member %s has %s, and of members of this EtcdCluster may have %s: set a greater ETCD_QUOTA_BACKEND_BYTES in spec.pod.etcdEnv", m.Name, bytes(size), bytes(quota))
		}
		if !objects.HasVolumes(ec) {
			continue
		}
		if storage, ok := ec.Spec.Pod.PersistentVolumeClaimSpec.Resources.Requests[corev1.ResourceStorage]; ok && isTight(size, storage.Value()) {
			return stalls(reason.JoinRoom, "The database of member %s has %s, and the volumes of this EtcdCluster %s: create an EtcdCluster with larger ones", m.Name, bytes(size), &storage)
		}
	}
	return nil
}

// isTight says that a database would fill more than 80 % of what it may: from there on there is an alert.
func isTight(size, room int64) bool { return size > room/10*8 }

// quotaOf is how many bytes the database of a member of an EtcdCluster may have; negative if any.
func quotaOf(ec *v1beta2.EtcdCluster) int64 {
	quota := int64(session.DefaultQuota)
	if is := ec.Spec.QuotaBackendBytes; is != nil {
		return is.Value()
	}
	if ec.Spec.Pod == nil {
		return quota
	}
	for _, variable := range ec.Spec.Pod.EtcdEnv {
		if n, err := strconv.ParseInt(variable.Value, 10, 64); variable.Name == "ETCD_QUOTA_BACKEND_BYTES" && err == nil && n != 0 {
			quota = n
		}
	}
	return quota
}

func bytes(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.BinarySI) }

func shownQuota(n int64) string {
	if n < 0 {
		return "any size"
	}
	return bytes(n).String()
}
