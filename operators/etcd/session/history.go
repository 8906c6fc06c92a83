package session

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
)

// DefaultQuota is etcd's.
const DefaultQuota = 2 << 30

// Quota is how many bytes the database of a member may have; negative if any. Before 3.6 etcd does not say.
func (a *Answer) Quota(pod *corev1.Pod) int64 {
	quota := a.Status.Quota
	if quota == 0 && pod != nil {
		quota, _ = strconv.ParseInt(objects.Variable(pod, "ETCD_QUOTA_BACKEND_BYTES"), 10, 64) // 0 if it is none
	}
	if quota == 0 {
		return DefaultQuota
	}
	return quota
}

// Growth is how the databases of a cluster have grown since this operator has had the history dropped, or began to ask.
type Growth struct {
	// Used is which part of its quota is in use in the database that is fullest, 0 to 1, and Least the least that it was:
	// what is more than that is history.
	Used, Least float64
	// PerSecond is by how much Used grows in a second.
	PerSecond float64
	// Halfway is the revision at which a quarter of the room was in use, as first seen, and HalfwayAt when that was. What
	// was written since is kept when the history is dropped. Zero until then.
	Halfway   int64
	HalfwayAt time.Time

	// measured is what was in use at the time since when growth is measured.
	measured   float64
	measuredAt time.Time
}

const (
	// roomForHistory is which part of the room, which is what is not in use without history, history may take.
	roomForHistory = 0.5
	// unknownAtMost is what is taken to be in use without history at most, while that is not known.
	unknownAtMost = 0.5
	// measuredFor is for how long growth is measured at least: etcd counts what is in use ten times a second.
	measuredFor = 250 * time.Millisecond
)

// Limit is which part of the quota may be in use before the history is dropped.
func (g Growth) Limit() float64 { return g.Least + (1-g.Least)*roomForHistory }

// ReachedIn is how long it takes until a part of the quota is in use, if it goes on like this; false if it does not grow.
func (g Growth) ReachedIn(part float64) (time.Duration, bool) {
	if g.PerSecond <= 0 {
		return 0, false
	}
	const aDay = 24 * time.Hour
	seconds := min(max(part-g.Used, 0)/g.PerSecond, aDay.Seconds())
	return time.Duration(seconds * float64(time.Second)), true
}

// note notes what is in use now, and the revision.
func (g *Growth) note(used float64, revision int64, now time.Time) {
	if g.measuredAt.IsZero() {
		*g = Growth{Least: min(used, unknownAtMost), measured: used, measuredAt: now}
	}
	g.Used, g.Least = used, min(g.Least, used)
	if after := now.Sub(g.measuredAt); after >= measuredFor {
		if used >= g.measured { // if not, history was dropped meanwhile, and what was written is not known
			g.PerSecond = (used - g.measured) / after.Seconds()
		}
		g.measured, g.measuredAt = used, now
	}
	if revision < g.Halfway { // quorum was lost, and with it what was written last
		g.Halfway = 0
	}
	if g.Halfway == 0 && used > g.Least && used >= (g.Least+g.Limit())/2 { // all that is in use may be keys
		g.Halfway, g.HalfwayAt = revision, now
	}
}

// noteGrowth notes what the operator's members say of their databases.
func (k *asked) noteGrowth(pods map[string]*corev1.Pod, now time.Time) {
	used, revision, cluster := 0.0, int64(0), members.ParseID(k.clusterID)
	for name, a := range k.Answers {
		pod, quota := pods[name], int64(0)
		if pod != nil && a.IsOf(cluster) {
			quota = a.Quota(pod)
		}
		if quota > 0 {
			used = max(used, float64(a.Status.DBSizeInUse)/float64(quota))
		}
		if pod != nil && a.IsOf(cluster) && a.Status.ID == a.Status.Leader {
			revision = a.Status.Revision
		}
	}
	if revision > 0 {
		k.Growth.note(used, revision, now)
	}
}

// noteDropped notes that the history was dropped.
func (a *Asker) noteDropped(ec types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := a.last[ec]
	last.Growth.Halfway, last.Growth.Least = 0, last.Growth.Used
	a.last[ec] = last
}

// noteCompacted notes that etcd itself, or another client, has dropped what is before a revision: halfway is the present
// one then. False if it was that already: there is no history left.
func (a *Asker) noteCompacted(ec types.NamespacedName, revision int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := a.last[ec]
	if revision >= last.Revision {
		return false
	}
	last.Growth.Halfway, last.Growth.HalfwayAt = last.Revision, a.now()
	a.last[ec] = last
	return true
}
