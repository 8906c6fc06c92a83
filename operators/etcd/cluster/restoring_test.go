package cluster

import (
	"slices"
	"strings"
	"testing"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/restoring"
	"example.com/fairlead/operators/etcd/task"
)

func TestRestoring(t *testing.T) {
	const lostBefore = "Restoring: "
	for name, tc := range map[string]struct {
		world *world
		want  string
		// problem is in what status reports first.
		problem string
	}{
		"an EtcdRestore: name the seed":            {world: healthy(anEtcd(), 1, 2, 3).wants(), want: "status/seed"},
		"a new cluster: the seed, and no founders": {world: healthy(anEtcd(notFormed)).wants(), want: "status/seed"},
		"a new cluster: not before it is of this one": {
			world: healthy(anEtcd(notFormed)).isUndecided(), problem: `Restoring: Waiting for EtcdRestore "mine", with which the cluster is to begin, to have the UID`,
		},
		"it may be of another one: go on":         {world: healthy(anEtcd(size(4)), 1, 2, 3).isUndecided(), want: "status/member"},
		"named: create it":                        {world: healthy(anEtcd(), 1, 2, 3).verifies(), want: "create Pod #4", problem: lostBefore},
		"named, with volumes: both":               {world: healthy(anEtcd(onVolumes), 1, 2, 3).verifies(), want: "create PersistentVolumeClaim #4; create Pod #4"},
		"created: record its data":                {world: healthy(anEtcd(), 1, 2, 3).verifies().hasSeed(unrecorded, gated), want: "status/seeded"},
		"recorded: let it go":                     {world: healthy(anEtcd(), 1, 2, 3).verifies().hasSeed(gated), want: "patch Pod/gate #4"},
		"it fetches: keep the cluster":            {world: healthy(anEtcd(size(4)), 1, 2, 3).verifies().hasSeed(), want: "status/member"},
		"it cannot fetch for now: wait":           {world: healthy(anEtcd(), 1, 2, 3).verifies().hasSeed(cannotFetch(true)), problem: `Restoring: EtcdRestore "mine" is under way: reading and checking the backup, while the cluster goes on as it is; Why: because`},
		"it never can: failed":                    {world: healthy(anEtcd(), 1, 2, 3).verifies().hasSeed(cannotFetch(false)), want: "status/restored"},
		"another seed's data: lost":               {world: healthy(anEtcd(), 1, 2, 3).verifies().hasSeed(otherData), want: "status/seed"},
		"the seed is gone: another":               {world: healthy(anEtcd(), 1, 2, 3).verifies().hasSeed(gone), want: "status/seed"},
		"it is of the backup, and does not serve": {world: healthy(anEtcd(), 1, 2, 3).verifies().hasSeed(fetched)},
		"it serves: switch":                       {world: healthy(anEtcd(), 1, 2, 3).verifies().hasSeed(fetched, serving), want: "status/switching"},
		"it serves less than the backup: wait":    {world: healthy(anEtcd(), 1, 2, 3).verifies().hasSeed(fetched, serving, behind)},
		"it serves, far ahead: switch":            {world: healthy(anEtcd(), 1, 2, 3).verifies().hasSeed(fetched, serving).hasWritten(task.RevisionsAhead / 4), want: "status/switching"},
		"it serves, and is overtaken: another":    {world: healthy(anEtcd(), 1, 2, 3).verifies().hasSeed(fetched, serving).hasWritten(task.RevisionsAhead), want: "status/seed"},
		"it serves, a member hangs: wait":         {world: healthy(anEtcd(), 1, 2, 3).verifies().hasSeed(fetched, serving).silences(3).runs(3), problem: "Restoring: "},
		"it serves, a member is gone: switch":     {world: healthy(anEtcd(onVolumes), 1, 2, 3).verifies().hasSeed(fetched, serving).losesPod(3), want: "status/switching"},
		"the EtcdRestore is deleted: cancelled":   {world: healthy(anEtcd(), 1, 2, 3).verifies().hasSeed(fetched, serving).unwants(), want: "status/restored"},
		"switching: stop all":                     {world: healthy(anEtcd(), 1, 2, 3).switches().hasSeed(fetched, serving), want: "patch Pod/stop #2; patch Pod/stop #1; patch Pod/stop #3"},
		"one has not stopped yet: wait":           {world: healthy(anEtcd(), 1, 2, 3).switches().hasSeed(fetched, serving).stops(1, 2, 3).runs(2)},
		"stopped for another restore: stop it":    {world: healthy(anEtcd(), 1, 2, 3).switches().hasSeed(fetched, serving).stops(1, 2, 3).stoppedFor(2, "another"), want: "patch Pod/stop #2"},
		"all have stopped: the cluster is it":     {world: healthy(anEtcd(), 1, 2, 3).switches().hasSeed(fetched, serving).stops(1, 2, 3), want: "status/switched"},
		"all have stopped, the seed is silent":    {world: healthy(anEtcd(), 1, 2, 3).switches().hasSeed(fetched).stops(1, 2, 3)},
		"the seed is lost while switching":        {world: healthy(anEtcd(), 1, 2, 3).switches().hasSeed(gone).stops(1, 2), want: "status/seed"},
		"it takes too long: not now":              {world: healthy(anEtcd(), 1, 2, 3).switches().hasSeed(fetched).stops(1, 2, 3).passes(restoring.SwitchPatience), want: "status/seed"},
		"not now: start them":                     {world: healthy(anEtcd(), 1, 2, 3).verifies().stops(1, 2, 3), want: "create Pod #4; patch Pod/start #1; patch Pod/start #2; patch Pod/start #3"},
		"switched: label it, and delete the rest": {world: healthy(anEtcd(), 1, 2, 3).stops(1, 2, 3).switched(), want: "patch Pod/marks #4; delete Pod #2; delete Pod #1; delete Pod #3; status/member"},
		"switched, one runs again: not yet":       {world: healthy(anEtcd(), 1, 2, 3).stops(1, 3).switched(), want: "delete Pod #2; delete Pod #1; delete Pod #3; status/member"},
		"switched: the volumes stay":              {world: healthy(anEtcd(onVolumes), 1, 2, 3).losesPod(1, 2, 3).switched(), want: "patch Pod/marks #4; status/member"},
		"complete":                                {world: healthy(anEtcd(onVolumes, size(1)), 1, 2, 3).losesPod(1, 2, 3).switched().isMember(), want: "status/restored"},
		"complete: keep the volumes":              {world: healthy(anEtcd(onVolumes, size(1)), 1, 2, 3).losesPod(1, 2, 3).switched(keepsOld).isMember(), want: "patch PersistentVolumeClaim/kept #2; patch PersistentVolumeClaim/kept #1; patch PersistentVolumeClaim/kept #3"},
		"over: the volumes go":                    {world: healthy(anEtcd(onVolumes, size(1)), 1, 2, 3).losesPod(1, 2, 3).switched().isMember().isOver(), want: "delete PersistentVolumeClaim #2; delete PersistentVolumeClaim #1; delete PersistentVolumeClaim #3"},
		"a seed is left: delete it":               {world: healthy(anEtcd(), 1, 2, 3).hasOldSeed(5), want: "delete Pod #5"},
		"it failed for a new cluster: do not begin": {
			world: healthy(anEtcd(notFormed)).hasFailed(), problem: `RestoreFailed: EtcdRestore "mine", with which the cluster is to begin, has failed: Why: because`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := decide(tc.world.ec, tc.world.seen)
			if got := tc.world.doing(p); got != tc.want {
				t.Errorf("it does %q, want %q", got, tc.want)
			}
			if diff := tc.world.asked(p, nil); diff != "" {
				t.Errorf("what it asks for (-want +got):\n%s", diff)
			}
			st := tc.world.ec.Status.DeepCopy()
			if first := firstProblem(tc.world.ec, p, st, "", nil); tc.problem != "" && (first == nil || !strings.HasPrefix(first.Reason+": "+first.Message, tc.problem)) {
				t.Errorf("it reports %v, want %q", first, tc.problem)
			}
		})
	}
}

func TestSwitchedStatus(t *testing.T) {
	w := healthy(anEtcd(adding, changing(2)), 1, 2, 3).switches().hasSeed(fetched, serving).stops(1, 2, 3)
	p := decide(w.ec, w.seen)
	st := summarize(w.ec, w.seen, p, nil)
	if st.ClusterID != "5eed" || st.MemberBeingAdded != "" || st.MemberBeingUpdated != "" || len(st.Founders) != 0 || st.Restoring.Phase != v1beta2.RestoreCompleting {
		t.Errorf("%+v", st)
	}
	if len(st.MemberList) != 1 || st.MemberList[0].Name != w.name(4) || st.MemberList[0].DataUID != "pod-4" || st.MemberList[0].ID == "" {
		t.Errorf("members: %+v", st.MemberList)
	}
	if want := []string{w.name(1), w.name(2), w.name(3)}; !slices.Equal(st.Restoring.Replaced, slices.Sorted(slices.Values(want))) {
		t.Errorf("replaced: %v, want %v", st.Restoring.Replaced, want)
	}
}

// TestStatusIsNotFarBehind: with every write the revision changes, and status is not written for it; but a restore begins
// above what it says, if nothing else knows more.
func TestStatusIsNotFarBehind(t *testing.T) {
	for behind, want := range map[int64]bool{1: false, mostBehind: false, mostBehind + 1: true} {
		w := healthy(anEtcd(), 1, 2, 3)
		st := summarize(w.ec, w.seen, decide(w.ec, w.seen), nil)
		w.ec.Status = st
		before := st.MemberList[0].Revision
		for name, a := range w.seen.Answers {
			a.Status.Revision = before + behind
			w.seen.Answers[name] = a
		}
		after := summarize(w.ec, w.seen, decide(w.ec, w.seen), nil).MemberList[0].Revision
		if isWritten := after == before+behind; isWritten != want {
			t.Errorf("%d revisions behind: status has %d, and had %d", behind, after, before)
		}
	}
}
