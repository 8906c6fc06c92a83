package membership

import (
	"fmt"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/step"
	"example.com/fairlead/operators/etcd/view"
)

// SettleCorrupt ends an alarm CORRUPT, upon which etcd takes no reads and no writes. Whom it accuses may be right, and the
// accuser wrong: so it is removed who has other data than a majority, whatever the alarm says, and the alarm is disarmed
// once all have the same. Where there is no majority, nothing is changed, and nobody can write, until the user says who is
// wrong. A learner goes: it may have its data from anybody.
func SettleCorrupt(ec *v1beta2.EtcdCluster, v *view.View) (s step.Step) {
	if !v.IsAccused() {
		return s
	}
	if s = RemoveLost(ec, v); s.IsLast {
		return s
	}
	s.Activity, s.Doing = v1beta2.ConditionRecovering, "etcd has an alarm CORRUPT, and takes no reads and no writes: the data of its members is compared"
	s.Soon()
	learner := v.Find(func(m *view.Member) bool { return m.IsLearner && !m.IsForeign() })
	switch {
	case learner != nil:
		remove(ec, v, &s, learner, "its data may be that of a member whose data is wrong")
	case v.IsSame:
		s.Request = step.AskedLeader(ec, v, "alarm disarmed: all members have the same data", members.Request{What: members.Disarm, Alarm: v.Alarms(members.Corrupt)[0]})
	case v.Find(func(m *view.Member) bool { return m.HasAnswered() && !m.HasHash() && m.Answer.HashErr == nil }) != nil:
		// It is being asked.
	case v.Find(func(m *view.Member) bool { return !m.HasHash() }) != nil:
		s.Report(reason.DataDiffers, "%s", undecided(ec, v))
	default:
		s.Activity, s.Doing = "", ""
		s.Stall(reason.DataDiffers, "%s", undecided(ec, v))
	}
	return s.Last()
}

// undecided says why nothing is changed, and what helps.
func undecided(ec *v1beta2.EtcdCluster, v *view.View) string {
	why := "No majority of its members has the same data, so nothing is changed"
	if v.Right != (members.Hash{}) {
		why = "A majority of its members has the same data, but not all are known to have it"
	}
	return fmt.Sprintf("Etcd has an alarm CORRUPT, and takes no reads and no writes. %s: %s. Who is known to have wrong data is replaced upon `kubectl annotate pod <name> %s=true`, with its volume kept",
		why, v.Hashes(ec), annotation.Replace)
}
