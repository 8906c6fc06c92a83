package rollout

import (
	"fmt"
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/step"
	"example.com/fairlead/operators/etcd/view"
)

// DropHistory drops the older half of the history when that takes half of the room that a database has: what etcd writes
// then goes where the history was, and the file does not grow any more. It is decided by what is in use, so that what a
// defragmentation would free counts as room. Etcd drops it bit by bit, while it serves, so nothing else waits for that,
// and status need not know: whoever requests it again is told that it is done. A request of another step comes first.
//
// The faster the databases grow, the sooner they are looked at again.
func DropHistory(ec *v1beta2.EtcdCluster, v *view.View) (s step.Step) {
	leader, limit := v.Leading(), v.Growth.Limit()
	switch keep := ec.Spec.KeepHistory; {
	case keep != nil && keep.Duration == 0:
		return s
	case keep != nil || objects.CompactsItself(ec):
		limit = max(limit, nearlyFull)
	}
	if leader == nil || !v.IsCurrent || len(v.Alarms(members.NoSpace)) > 0 || len(v.Alarms(members.Corrupt)) > 0 || objects.MayGoBack(ec) {
		return s
	}
	if reached, grows := v.Growth.ReachedIn(limit); grows {
		s.Wake(v.Now.Add(max(step.BusyWake, reached/2)))
	}
	if v.Growth.Used < limit || v.Growth.Halfway == 0 {
		return s
	}
	if soonest := v.Growth.HalfwayAt.Add(step.BusyWake); v.Now.Before(soonest) { // something is kept for who is about to read it
		s.Wake(soonest)
		return s
	}
	s.Request = step.AskedLeader(ec, v, fmt.Sprintf("history before revision %d dropped: it takes half of the room of a database", v.Growth.Halfway),
		members.Request{What: members.DropHistory, Revision: v.Growth.Halfway})
	s.Wake(v.Now.Add(step.BusyWake))
	return s
}

// nearlyFull is which part of its quota has to be in use until history is dropped that spec.keepHistory, or a variable of
// etcd's own, keeps.
const nearlyFull = 7. / 8

// isFilling says whether databases grow so fast that a file that is made smaller is soon as great as before.
func isFilling(v *view.View) bool {
	reached, grows := v.Growth.ReachedIn(v.Growth.Limit())
	return grows && reached < smallFor
}

// smallFor is for how long a file has to stay smaller for a defragmentation to pay.
const smallFor = 10 * time.Minute
