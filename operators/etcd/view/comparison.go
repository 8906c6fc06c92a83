package view

import (
	"fmt"
	"slices"
	"strings"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
)

// This file says whose data is wrong, while etcd has an alarm CORRUPT. The alarm is an accusation: etcd's leader raises it
// for whoever has other data than itself. So it counts what a majority of the voters has, of which each was asked for its
// hash. Hashes say nothing that are of data which was compacted up to another revision, or of another version of etcd.
// Of a member that is not known to have what the majority has, the user may say so, by the annotation that has it replaced.

// IsAccused says that etcd has an alarm CORRUPT: nobody can read or write.
func (v *View) IsAccused() bool { return len(v.Alarms(members.Corrupt)) > 0 }

// compareData finds out whose data is that of a majority, and whose is another.
func (v *View) compareData() {
	if !v.IsAccused() {
		return
	}
	right := v.Find(func(m *Member) bool {
		return m.IsVoter() && v.Count(func(other *Member) bool { return other.IsVoter() && other.hasDataOf(m) }) >= objects.Majority(v.voters())
	})
	if right != nil {
		v.Right, v.IsSame = right.Answer.Hash, true
	}
	for _, m := range v.Members {
		h, agrees := m.Answer.Hash, right != nil && m.hasDataOf(right)
		isProved := right != nil && h.Revision == v.Right.Revision && h.Compacted == v.Right.Compacted && m.Version == right.Version
		m.Differs = !agrees && (isProved || m.isToBeReplaced())
		v.IsSame = v.IsSame && agrees && m.Answer.Status.Revision == v.Right.Revision
	}
}

// hasDataOf says whether two members are known to have the same data.
func (m *Member) hasDataOf(other *Member) bool {
	return m.HasHash() && m.Answer.Hash == other.Answer.Hash
}

// HasHash says that it is known what data a member has.
func (m *Member) HasHash() bool { return m.Answer.Hash != members.Hash{} }

// Hashes says what data each member has, for a person who is to decide.
func (v *View) Hashes(ec *v1beta2.EtcdCluster) string {
	var all []string
	for _, m := range v.Members {
		h := m.Answer.Hash
		var said string
		switch {
		case m.HasHash():
			said = fmt.Sprintf("%s has hash %08x at revision %d", m.ShownName(ec), h.Sum, h.Revision)
		case !m.HasAnswered():
			said = m.ShownName(ec) + " does not answer"
		case m.Answer.HashErr != nil:
			said = fmt.Sprintf("%s gives none (%s)", m.ShownName(ec), status.Shortened(m.Answer.HashErr.Error()))
		default:
			said = m.ShownName(ec) + " has not said yet"
		}
		all = append(all, said)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
