package cluster

import (
	"errors"
	"testing"

	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/session"
)

// TestCorrupt: whom an alarm CORRUPT accuses says nothing. It is removed who has other data than a majority.
func TestCorrupt(t *testing.T) {
	requireDecisions(t, map[string]decision{
		"the leader accuses who is right": {
			world: healthy(anEtcd(), 1, 2, 3).alarms(accuses(2)).hashes(7, 8, 8), asks: about(members.MoveLeader, 1, 2),
		},
		"a follower": {world: healthy(anEtcd(), 1, 2, 3).alarms(accuses(3)).hashes(8, 8, 7), asks: removes(1, 3, 1, 2, 3)},
		"a follower, with a volume: it is marked": {
			world: healthy(anEtcd(onVolumes), 1, 2, 3).alarms(accuses(3)).hashes(8, 8, 7), want: "patch PersistentVolumeClaim/suspect #3", asks: removes(1, 3, 1, 2, 3),
		},
		"nobody knows who": {world: healthy(anEtcd(), 1, 2, 3).alarms(accuses(0)).hashes(8, 8, 7), asks: removes(1, 3, 1, 2, 3)},
		"two of three: the user decides": {
			world: healthy(anEtcd(), 1, 2, 3).alarms(accuses(2)).hashes(7, 8, 9), problem: "DataDiffers: Etcd has an alarm CORRUPT, and takes no reads and no writes. No majority",
		},
		"two of three, by the user's word": {world: healthy(anEtcd(), 1, 2, 3).alarms(accuses(2)).hashes(7, 8, 9).annotates(3), asks: removes(1, 3, 1, 2, 3)},
		"two of five": {
			world: healthy(anEtcd(size(5)), 1, 2, 3, 4, 5).alarms(accuses(2)).hashes(8, 8, 7, 6, 8), asks: removes(1, 3, 1, 2, 3, 4, 5),
		},
		"one of two: the user decides": {world: healthy(anEtcd(size(2)), 1, 2).alarms(accuses(2)).hashes(7, 8), problem: "DataDiffers: "},
		"hashes are asked for":         {world: healthy(anEtcd(), 1, 2, 3).alarms(accuses(2)).hashes(0, 8, 8)},
		"a hash cannot be had": {
			world: healthy(anEtcd(), 1, 2, 3).alarms(accuses(2)).hashes(0, 8, 8).hides(1), problem: "DataDiffers: Etcd has an alarm CORRUPT, and takes no reads and no writes. A majority",
		},
		"one was compacted otherwise": {
			world: healthy(anEtcd(), 1, 2, 3).alarms(accuses(3)).hashes(8, 8, 7).amends(3, func(a *session.Answer) { a.Hash.Compacted = 40 }), problem: "DataDiffers: ",
		},
		"one is of another version": {
			world:   healthy(anEtcd(), 1, 2, 3).alarms(accuses(3)).hashes(8, 8, 7).amends(3, func(a *session.Answer) { a.Status.Version = "3.6.15" }),
			problem: "DataDiffers: ",
		},
		"all have the same: end it":       {world: healthy(anEtcd(), 1, 2, 3).alarms(accuses(3)).hashes(8, 8, 8), asks: disarms(accuses(3))},
		"of one that was removed: end it": {world: healthy(anEtcd(), 1, 2, 3).alarms(accuses(9)).hashes(8, 8, 8), asks: disarms(accuses(9))},
		"one is behind: wait": {
			world:   healthy(anEtcd(), 1, 2, 3).alarms(accuses(3)).hashes(8, 8, 8).amends(1, func(a *session.Answer) { a.Status.Revision++ }),
			problem: "DataDiffers: ",
		},
		"with a learner: it goes": {
			world: healthy(anEtcd(), 1, 2, 3).learns(3).alarms(accuses(2)).hashes(7, 8, 8), asks: removes(1, 3, 1, 2, 3),
		},
		"fewer than requested: nobody joins": {world: healthy(anEtcd(size(4), adding), 1, 2, 3).alarms(accuses(2)).hashes(7, 8, 9), problem: "DataDiffers: "},
	})
}

func accuses(n members.ID) members.Alarm { return members.Alarm{Member: n, Type: members.Corrupt} }

// hashes are those of the data of the members, the first and so on; 0 is one that is not known.
func (w *world) hashes(sums ...uint32) *world {
	for i, sum := range sums {
		if a := w.seen.Answers[w.name(int64(i+1))]; sum != 0 {
			a.Hash = members.Hash{Revision: a.Status.Revision, Sum: sum}
			w.seen.Answers[w.name(int64(i+1))] = a
		}
	}
	return w
}

// amends changes what a member says, beside what it has said already.
func (w *world) amends(n int64, how func(*session.Answer)) *world {
	a := w.seen.Answers[w.name(n)]
	how(&a)
	w.seen.Answers[w.name(n)] = a
	return w
}

// hides has the hash of a member not be had.
func (w *world) hides(n int64) *world {
	return w.amends(n, func(a *session.Answer) { a.HashErr = errors.New("no answer within 1m0s") })
}
