package etcd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	etcdv1beta2 "example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
	"example.com/fairlead/operators/etcd/members"
)

func TestQuorumWithoutAMember(t *testing.T) {
	down := errors.New("it is down")
	voter := func(name string, problem error) member { return member{name: name, problem: problem} }
	learner := member{name: "l", Status: members.Status{IsLearner: true}}
	for name, tc := range map[string]struct {
		members []member
		want    string
	}{
		"all serve":                  {[]member{voter("a", nil), voter("b", nil), voter("c", nil)}, ""},
		"the member itself is down":  {[]member{voter("a", down), voter("b", nil), voter("c", nil)}, ""},
		"another one is down":        {[]member{voter("a", nil), voter("b", down), voter("c", nil)}, "1 of the other members serve, and 2 are needed; b does not serve: it is down"},
		"a learner does not count":   {[]member{voter("a", nil), voter("b", nil), learner}, "1 of the other members serve, and 2 are needed. Scale it to 3 members first"},
		"there is no other":          {[]member{voter("a", nil)}, "0 of the other members serve, and 1 are needed. Scale it to 3 members first"},
		"two of five are down":       {[]member{voter("a", nil), voter("b", down), voter("c", down), voter("d", nil), voter("e", nil)}, "2 of the other members serve, and 3 are needed"},
		"it, and one of five, is":    {[]member{voter("a", down), voter("b", down), voter("c", nil), voter("d", nil), voter("e", nil)}, ""},
		"what is replaced may learn": {[]member{{name: "a", Status: members.Status{IsLearner: true}}, voter("b", nil), voter("c", nil), voter("d", nil)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := &cluster{EtcdCluster: &etcdv1beta2.EtcdCluster{}, members: tc.members}
			err := e.survivesWithout(tc.members[0])
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

// TestDryMoveLeader: who would lead is said, and no member is told.
func TestDryMoveLeader(t *testing.T) {
	var out strings.Builder
	c, cmd := &cli.CLI{}, &cobra.Command{}
	c.Out = &out
	var dry cli.DryRun
	dry.AddTo(cmd)
	if err := cmd.Flags().Set("dry-run", "client"); err != nil {
		t.Fatal(err)
	}
	e := &cluster{EtcdCluster: &etcdv1beta2.EtcdCluster{}, members: []member{
		{name: "a", Status: members.Status{ID: 1, Leader: 1}}, {name: "b", Status: members.Status{ID: 2, Leader: 1}},
	}}
	if err := moveLeader(t.Context(), c, e, "", dry); err != nil || out.String() != "a, the leader, hands over to b (dry run)\n" {
		t.Errorf("%q, %v", &out, err)
	}
}

// TestQuiet: nothing is done to members while the operator does something to them.
func TestQuiet(t *testing.T) {
	now := time.Now()
	of := func(ago time.Duration) *etcdv1beta2.Maintenance {
		return &etcdv1beta2.Maintenance{Type: etcdv1beta2.MaintenanceDefragmentation, Member: "db-a", Deadline: metav1.NewTime(now.Add(-ago))}
	}
	for want, st := range map[string]etcdv1beta2.EtcdClusterStatus{
		"": {Join: &etcdv1beta2.Join{Phase: etcdv1beta2.JoinComplete}, Maintenance: of(time.Minute)},
		"has a defragmentation of member db-a under way":              {Maintenance: of(-time.Minute)},
		"is taking over a running etcd: wait until status.join.phase": {Join: &etcdv1beta2.Join{Phase: etcdv1beta2.JoinJoined}},
		"is adding member db-b":                                       {MemberBeingAdded: "db-b"},
		"is changing member db-c":                                     {MemberBeingUpdated: "db-c"},
	} {
		err := (&cluster{EtcdCluster: &etcdv1beta2.EtcdCluster{Status: st}}).quiet()
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestEach: between members it is looked whether the next one may be done.
func TestEach(t *testing.T) {
	of := func(name string, id members.ID) member {
		return member{name: name, Status: members.Status{ID: id, Leader: 1}}
	}
	for name, tc := range map[string]struct {
		then func(*cluster) error
		want string
	}{
		"all is well":                 {func(*cluster) error { return nil }, "b, c, a"},
		"it cannot be looked":         {func(*cluster) error { return errors.New("no API server") }, "b; the members after b were left alone: no API server"},
		"another one does not serve":  {func(e *cluster) error { e.members[1].problem = errors.New("down"); return nil }, "b; the members after b were left alone: etcdcluster/db is not healthy: member c: down"},
		"the operator does something": {func(e *cluster) error { e.Status.MemberBeingUpdated = "db-c"; return nil }, "b; the members after b were left alone: etcdcluster/db is changing member db-c: wait until that is done"},
	} {
		e := &cluster{EtcdCluster: &etcdv1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "db"}}, members: []member{of("a", 1), of("b", 2), of("c", 3)}}
		var done []string
		err := e.each(func() error { return tc.then(e) }, func(m member) error {
			done = append(done, m.name)
			return nil
		})
		got := strings.Join(done, ", ")
		if err != nil {
			got += "; " + err.Error()
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestSnapshotIsOfAFollower(t *testing.T) {
	of := func(name string, id, applied uint64, problem error) member {
		return member{name: name, problem: problem, Status: members.Status{ID: members.ID(id), Leader: 1, Applied: applied}}
	}
	down := errors.New("it is down")
	for name, tc := range map[string]struct {
		members []member
		want    string
	}{
		"the furthest follower":   {[]member{of("leads", 1, 9, nil), of("late", 2, 7, nil), of("far", 3, 8, nil)}, "far"},
		"the leader, if it is it": {[]member{of("leads", 1, 9, nil), of("late", 2, 7, down)}, "leads"},
		"nobody":                  {[]member{of("leads", 1, 9, down)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := (&cluster{EtcdCluster: &etcdv1beta2.EtcdCluster{}, members: tc.members}).toSave()
			if got.name != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("%q, %v; want %q", got.name, err, tc.want)
			}
		})
	}
}

func TestGiveName(t *testing.T) {
	part, path := filepath.Join(t.TempDir(), "part"), filepath.Join(t.TempDir(), "file")
	for _, content := range []string{"first", "second"} {
		if err := os.WriteFile(part, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := giveName(part, path); (err != nil) != (content == "second") {
			t.Errorf("the %s file: %v", content, err)
		}
	}
	if got, err := os.ReadFile(path); string(got) != "first" {
		t.Errorf("the file has %q, %v: it was replaced", got, err)
	}
}
