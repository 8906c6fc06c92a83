package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/session"
	"example.com/fairlead/operators/etcd/view"
)

// TestJoin: what is decided while a running etcd of three members is taken over.
func TestJoin(t *testing.T) {
	before := func(options ...ecOption) *world {
		return healthy(anEtcd(append([]ecOption{notFormed, joins}, options...)...)).elsewhere(0, 1, 2)
	}
	during := func(phase v1beta2.JoinPhase, numbers ...int64) *world {
		return healthy(anEtcd(joins, inPhase(phase)), numbers...).elsewhere(0, 1, 2)
	}
	led := func(w *world) *world { return w.isLedBy(1) }
	requireDecisions(t, map[string]decision{
		"all checks hold: claim it":            {world: before(), want: "status/cluster", problem: "Joining: Cluster c1"},
		"a later version, by way of others":    {world: before(version("3.7.3")), want: "status/cluster", problem: "Joining: "},
		"one does not answer":                  {world: before().stopsElsewhere(2), problem: "JoinUnreachable: http://my-etcd-2.my-etcd-headless.ns.svc:2379 of spec.joinFrom.etcdEndpoints does not answer"},
		"authentication is on":                 {world: before().says(1, func(a *session.Answer) { a.Err = members.ErrAuth }), problem: "AuthenticationRequired: "},
		"endpoints of two clusters":            {world: before().says(2, func(a *session.Answer) { a.Status.ClusterID, a.List.ClusterID = 7, 7 }), problem: "JoinDifferentClusters: "},
		"an endpoint that knows no members":    {world: before().says(2, func(a *session.Answer) { a.List = members.List{} }), problem: "JoinNotHealthy: http://my-etcd-2.my-etcd-headless.ns.svc:2379 has no member list to tell"},
		"an endpoint is left out":              {world: before().leavesOut(2), problem: "JoinEndpointMissing: None of spec.joinFrom.etcdEndpoints is that of member my-etcd-2"},
		"no leader":                            {world: before().leaderless(), problem: "JoinNotHealthy: "},
		"one follows another leader":           {world: before().says(2, func(a *session.Answer) { a.Status.Leader = 0 }), problem: "JoinNotHealthy: Member my-etcd-2"},
		"a member has not started":             {world: before().joins(members.Member{ID: 9, PeerURLs: []string{"http://192.0.2.9:2380"}}), problem: "JoinNotHealthy: The running etcd has a member that has not started"},
		"a learner":                            {world: before().joins(members.Member{ID: 9, Name: "l", IsLearner: true, PeerURLs: []string{"http://192.0.2.9:2380"}}), problem: "JoinNotHealthy: The running etcd has a learner, l"},
		"members are being changed":            {world: before().says(1, func(a *session.Answer) { a.List.Members = a.List.Members[:2] }), problem: "JoinNotHealthy: The members of the running etcd are being changed: my-etcd-1"},
		"NOSPACE":                              {world: before().alarms(members.Alarm{Member: 101, Type: members.NoSpace}), problem: "JoinAlarm: Member my-etcd-1 of the running etcd has the alarm NOSPACE"},
		"CORRUPT":                              {world: before().alarms(members.Alarm{Member: 101, Type: members.Corrupt}), problem: "JoinAlarm: Member my-etcd-1 of the running etcd has the alarm CORRUPT"},
		"3.4":                                  {world: before().haveVersion("3.4.37"), problem: "JoinVersionRefused: The running etcd has version 3.4.37, and is joined from 3.5 on"},
		"a version that is too low":            {world: before(version("3.5.35")).haveVersion("3.7.3"), problem: "JoinVersionRefused: spec.version is 3.5.35, and the running etcd has 3.7.3"},
		"an upgrade is under way":              {world: before().says(1, func(a *session.Answer) { a.Status.Version = "3.5.35" }), problem: "JoinVersionRefused: The running etcd has members of 3.5.35 and 3.6.16"},
		"a downgrade is enabled":               {world: before().says(0, func(a *session.Answer) { a.Status.Downgrading = "3.5" }), problem: "JoinVersionRefused: A downgrade to 3.5"},
		"peers at localhost":                   {world: before().havePeers("http://localhost:2380"), problem: "JoinPeersUnreachable: Member my-etcd-0 advertises the peer URL http://localhost:2380"},
		"peers at a loopback address":          {world: before().havePeers("http://127.0.0.1:2380"), problem: "JoinPeersUnreachable: Member my-etcd-0 advertises the peer URL http://127.0.0.1:2380"},
		"peers with TLS":                       {world: before().havePeers("https://192.0.2.1:2380"), problem: "JoinPeersUnreachable: The peers of the running etcd use TLS: create"},
		"peers with TLS, and a CA of our own":  {world: before(withTLS).havePeers("https://192.0.2.1:2380"), problem: "JoinPeersUnreachable: The peers of the running etcd use TLS, and do not trust"},
		"peers without TLS":                    {world: before(withTLS), problem: "JoinPeersUnreachable: The peers of the running etcd do not use TLS"},
		"names that are taken":                 {world: before().havePeers("http://example-0.example.ns.svc:2380"), problem: "JoinNameTaken: "},
		"a quota below etcd's default":         {world: before(withQuota("1000000")), problem: "JoinDatabaseTooLarge: The database of member my-etcd-0 may have 2Gi, and of members of this EtcdCluster 1000000: at that, nobody could write any more. Set ETCD_QUOTA_BACKEND_BYTES in spec.pod.etcdEnv to 2147483648 at least"},
		"a quota below one of theirs":          {world: before().says(2, hasQuota(4<<30)), problem: "JoinDatabaseTooLarge: The database of member my-etcd-2 may have 4Gi, and of members of this EtcdCluster 2Gi"},
		"a quota as theirs":                    {world: before(withQuota("4294967296")).says(2, hasQuota(4<<30)), want: "status/cluster", problem: "Joining: "},
		"they may have any size":               {world: before().says(1, hasQuota(-1)), problem: "JoinDatabaseTooLarge: The database of member my-etcd-1 may have any size, and of members of this EtcdCluster 2Gi: at that, nobody could write any more. Set ETCD_QUOTA_BACKEND_BYTES in spec.pod.etcdEnv to -1"},
		"all may have any size":                {world: before(withQuota("-1")).says(1, hasQuota(-1)), want: "status/cluster", problem: "Joining: "},
		"a database that nearly fills a quota": {world: before(withQuota("1200000")).says(0, hasQuota(1200000)).says(1, hasQuota(1)).says(2, hasQuota(1)), problem: "JoinDatabaseTooLarge: The database of member my-etcd-0 has 1Mi, and of members of this EtcdCluster may have 1200000"},
		"a database beyond the volumes":        {world: before(onVolumes, smallVolumes), problem: "JoinDatabaseTooLarge: The database of member my-etcd-0 has 1Mi, and the volumes"},
		"go back before anything":              {world: before(goingBack), problem: "JoinUndone: spec.joinFrom.goBack is true: nothing is joined"},
		"no certificate to ask with":           {world: before().lacksCertificate(), problem: "SecretNotFound: theirs"},
		"paused":                               {world: before(func(ec *v1beta2.EtcdCluster) { ec.Spec.Paused = true })},
		"claimed: name the first":              {world: during("Joining"), want: "status/member"},
		"named: add it, by their leader":       {world: named(during("Joining"), 1), asks: elsewhereAdds(1)},
		"one of them is silent: wait":          {world: during("Joining", 1).stopsElsewhere(2), problem: "Joining: 1 of 3 members vote in the etcd that they join. None is added while my-etcd-2 does not answer"},
		"a learner has caught up: promote":     {world: during("Joining", 1).learns(1), asks: elsewhereAsks(members.Promote, 1)},
		"a learner gives no token: promote":    {world: during("Joining", 1).learns(1).givesNoToken(1), asks: elsewhereAsks(members.Promote, 1)},
		"all vote: hand over to one of ours":   {world: during("Joining", 1, 2, 3), asks: elsewhereAsks(members.MoveLeader, 1), problem: "Joining: 3 members vote in the etcd that they have joined, and one of them is to lead"},
		"one of ours leads: remember it":       {world: led(during("Joining", 1, 2, 3)), want: "status/cluster", problem: "Joining: "},
		"joined: wait until one is stopped":    {world: led(during("Joined", 1, 2, 3)), problem: "Joining: "},
		"joined: the highest is stopped":       {world: led(during("Joined", 1, 2, 3)).stopsElsewhere(2), want: "status/cluster", problem: "Joining: my-etcd-2 is stopped"},
		"joined: another one is stopped":       {world: led(during("Joined", 1, 2, 3)).stopsElsewhere(0), problem: "Joining: "},
		"joined: gone for a moment":            {world: led(during("Joined", 1, 2, 3)).stopsElsewhere(2).goneAgo(2, time.Second), problem: "Joining: my-etcd-2 does not answer, and may come back"},
		"joined: the highest is silent":        {world: led(during("Joined", 1, 2, 3)).silencesElsewhere(2), problem: "Joining: my-etcd-2 does not answer, and may come back. It is removed from the member list once its pod is gone; if it is no pod, or not in this Kubernetes cluster, and you have stopped it for good, remove it with `etcdctl member remove 66`. To go back"},
		"joined: one gone, the highest silent": {world: led(during("Joined", 1, 2, 3)).stopsElsewhere(1).silencesElsewhere(2), problem: "Joining: my-etcd-2 does not answer"},
		"replacing: the next is silent":        {world: led(during("Replacing", 1, 2, 3)).silencesElsewhere(2), problem: "Joining: my-etcd-2 does not answer"},
		"joined: one was added elsewhere":      {world: led(during("Joined", 1, 2, 3)).joins(members.Member{ID: 103, Name: "my-etcd-3", PeerURLs: []string{"http://192.0.2.9:2380"}}), problem: "JoinEndpointMissing: Member my-etcd-3 was added"},
		"replacing: remove the stopped one":    {world: led(during("Replacing", 1, 2, 3)).stopsElsewhere(2), asks: removes(1, 102, 1, 2, 3, 100, 101, 102), problem: "Joining: Removing my-etcd-2"},
		"replacing, one of ours is lost":       {world: led(during("Replacing", 1, 2, 3)).loses(3).stopsElsewhere(2), asks: removes(1, 3, 1, 2, 3, 100, 101, 102)},
		"replacing, without quorum: wait":      {world: led(during("Replacing", 1, 2, 3)).stopsElsewhere(0, 1, 2)},
		"replacing, another version requested": {world: led(during("Replacing", 1, 2, 3).requests("3.6.15")), problem: "Joining: "},
		"the last is gone: the version":        {world: healthy(anEtcd(joins, inPhase("Replacing"), version("3.6.15")), 1, 2, 3), want: "status/change"},
		"one comes back: remove it":            {world: healthy(anEtcd(joins, inPhase("Complete")), 1, 2, 3).joins(members.Member{ID: 109, PeerURLs: []string{"http://my-etcd-2.my-etcd-headless.ns.svc:2380"}}), asks: removes(1, 109, 1, 2, 3, 109), problem: "Joining: Removing 6d"},
		"go back: one that does not vote yet":  {world: during("Joining", 1, 2).learns(2).wantsBack(), asks: elsewhereAsks(members.Remove, 2)},
		"go back: hand over to one of theirs":  {world: led(during("Joined", 1)).wantsBack(), asks: about(members.MoveLeader, 1, 100)},
		"go back: another one first":           {world: led(during("Joined", 1, 2)).wantsBack(), asks: removes(1, 2, 1, 2, 100, 101, 102)},
		"gone back":                            {world: during("Joined").wantsBack(), problem: "JoinUndone: The members of this EtcdCluster have left"},
		"gone back, but for a pod":             {world: during("Joined", 1).withoutMember(1).wantsBack(), want: "delete Pod #1"},
		"too late to go back":                  {world: led(during("Replacing", 1, 2, 3)).wantsBack(), problem: "Joining: "},
	})
}

// TestJoinPhases: what status says of the phases.
func TestJoinPhases(t *testing.T) {
	for name, tc := range map[string]struct {
		world *world
		want  v1beta2.Join
	}{
		"joined":     {healthy(anEtcd(joins, inPhase("Joining")), 1, 2, 3).elsewhere(0, 9, 10).isLedBy(1), v1beta2.Join{Phase: "Joined", NextToStop: "my-etcd-10"}},
		"replacing":  {healthy(anEtcd(joins, inPhase("Joined")), 1, 2, 3).elsewhere(0, 1, 2).isLedBy(1).stopsElsewhere(2), v1beta2.Join{Phase: "Replacing", NextToStop: "my-etcd-2"}},
		"another":    {healthy(anEtcd(joins, inPhase("Replacing")), 1, 2, 3).elsewhere(0, 1).isLedBy(1), v1beta2.Join{Phase: "Replacing", NextToStop: "my-etcd-1"}},
		"complete":   {healthy(anEtcd(joins, inPhase("Replacing")), 1, 2, 3), v1beta2.Join{Phase: "Complete"}},
		"going back": {healthy(anEtcd(joins, inPhase("Joined")), 1, 2, 3).elsewhere(0, 1, 2).isLedBy(1).wantsBack(), v1beta2.Join{Phase: "Joined"}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.world.ec.Status.Join.Phase == "Joined" {
				tc.world.ec.Status.Join.NextToStop = "my-etcd-2"
			}
			p := decide(tc.world.ec, tc.world.seen)
			if got := *p.memory.Join; got != tc.want {
				t.Errorf("status.join is %+v, want %+v", got, tc.want)
			}
		})
	}
}

// TestFullWhileJoining: that nobody can write is said before anything else.
func TestFullWhileJoining(t *testing.T) {
	raised := members.Alarm{Member: 1, Type: members.NoSpace}
	for want, w := range map[string]*world{
		"The etcd that is joined has the alarm NOSPACE, and takes no writes: compact": healthy(anEtcd(joins, inPhase("Joining")), 1).elsewhere(0, 1, 2).alarms(raised),
		"The database is full, and takes no writes: its history is dropped":           healthy(anEtcd(joins, inPhase("Joined")), 1, 2, 3).elsewhere(0, 1, 2).isLedBy(1).alarms(raised),
	} {
		st := summarize(w.ec, w.seen, decide(w.ec, w.seen), nil)
		ready := meta.FindStatusCondition(st.Conditions, status.Ready)
		if ready == nil || ready.Reason != reason.NoSpace || !strings.HasPrefix(ready.Message, want) {
			t.Errorf("Ready is %+v, want %q", ready, want)
		}
	}
}

// TestLeavingIsNoLoss: a member that leaves because the user goes back has no event that its data was lost; one that is lost
// has.
func TestLeavingIsNoLoss(t *testing.T) {
	for want, options := range map[string][]ecOption{
		"Replacing Dead Member, Member Removed": {size(2)},
		"Member Removed":                        {size(2), joins, inPhase(v1beta2.JoinJoined), goingBack},
	} {
		ec := anEtcd(options...)
		ec.Status.Size, ec.Status.ClusterID = 2, theCluster.String()
		ec.Status.MemberList = []v1beta2.MemberStatus{{Name: "example-1", ID: "1"}, {Name: "example-2", ID: "2"}}
		after := ec.DeepCopy()
		after.Status.Size, after.Status.MemberList = 1, after.Status.MemberList[:1]
		var got []string
		for _, e := range announce(t.Context(), ec, after) {
			got = append(got, e.Reason)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("the events are %q, want %q", got, want)
		}
	}
}

// TestKeepsMembers: members and their Service keep each other until the first member of before is removed.
func TestKeepsMembers(t *testing.T) {
	for phase, want := range map[v1beta2.JoinPhase]int{"Joining": 1, "Joined": 1, "Replacing": 0} {
		w := healthy(anEtcd(joins, onVolumes, inPhase(phase)), 1, 2).isAdded(3).elsewhere(0)
		w.seen.Peers.Name, w.seen.Peers.UID = "example", "service"
		pods, created := 0, 0
		for _, write := range decide(w.ec, w.seen).Writes {
			switch write := write.(type) {
			case loop.Create:
				created++
				if refs := write.Object.GetOwnerReferences(); len(refs) != 1+want || want > 0 && refs[1].UID != "service" {
					t.Errorf("%s: %s has the owners %v", phase, loop.Name(write), refs)
				}
			case loop.Apply:
				if s, is := write.Want.(*corev1ac.ServiceApplyConfiguration); is && *s.Name == "example" {
					pods = len(s.OwnerReferences) - 1
				}
			}
		}
		if pods != 2*want || created != 2 {
			t.Errorf("%s: the Service is kept by %d pods, and %d objects are created", phase, pods, created)
		}
	}
}

func theirURL(n int) string { return fmt.Sprintf("http://my-etcd-%d.my-etcd-headless.ns.svc:2379", n) }

// joins is for an EtcdCluster that takes over the three members of a chart.
func joins(ec *v1beta2.EtcdCluster) {
	ec.Spec.JoinFrom = &v1beta2.JoinSource{EtcdEndpoints: []string{theirURL(0), theirURL(1), theirURL(2)}}
	ec.Status.Founders = nil
}

func inPhase(phase v1beta2.JoinPhase) ecOption {
	return func(ec *v1beta2.EtcdCluster) { ec.Status.Join = &v1beta2.Join{Phase: phase} }
}

func goingBack(ec *v1beta2.EtcdCluster) { ec.Spec.JoinFrom.GoBack = true }

func smallVolumes(ec *v1beta2.EtcdCluster) {
	ec.Spec.Pod.PersistentVolumeClaimSpec.Resources.Requests["storage"] = resource.MustParse("1Mi")
}

// elsewhere has members of a chart with these ordinals, which answer; the first of them leads.
func (w *world) elsewhere(ordinals ...int) *world {
	w.ec.Spec.JoinFrom.EtcdEndpoints = nil
	for _, n := range ordinals {
		url := theirURL(n)
		w.ec.Spec.JoinFrom.EtcdEndpoints = append(w.ec.Spec.JoinFrom.EtcdEndpoints, url)
		w.list = append(w.list, members.Member{ID: members.ID(100 + n), Name: fmt.Sprintf("my-etcd-%d", n), PeerURLs: []string{strings.Replace(url, "2379", "2380", 1)}, ClientURLs: []string{url}})
		w.seen.Answers[url] = session.Answer{
			Status: members.Status{
				ClusterID: theCluster, ID: members.ID(100 + n), Version: "3.6.16", RaftTerm: 2, RaftIndex: 100, Applied: 100, Revision: 50,
				DBSize: 1 << 20, DBSizeInUse: 1 << 20, StorageVersion: "3.6.0",
			},
			List: members.List{ClusterID: theCluster, By: members.ID(100 + n)},
		}
	}
	return w.isLed(members.ID(100 + ordinals[0])).knows()
}

// knows has all have the same list.
func (w *world) knows() *world {
	for name, a := range w.seen.Answers {
		a.List.Members = w.list
		w.seen.Answers[name] = a
	}
	return w
}

// withoutMember has the cluster not have a member any more.
func (w *world) withoutMember(n int64) *world {
	w.list = slices.DeleteFunc(w.list, func(m members.Member) bool { return m.ID == members.ID(n) })
	delete(w.seen.Answers, w.name(n))
	return w.knows()
}

func (w *world) isLed(leader members.ID) *world {
	for name, a := range w.seen.Answers {
		a.Status.Leader = leader
		w.seen.Answers[name] = a
	}
	return w
}

func (w *world) isLedBy(n int64) *world { return w.isLed(members.ID(n)) }

// says changes what a member of the chart answers.
func (w *world) says(n int, change func(*session.Answer)) *world {
	a := w.seen.Answers[theirURL(n)]
	change(&a)
	w.seen.Answers[theirURL(n)] = a
	return w
}

// silencesElsewhere has members of the chart not answer.
func (w *world) silencesElsewhere(ordinals ...int) *world {
	for _, n := range ordinals {
		w.seen.Answers[theirURL(n)] = session.Answer{Err: errors.New("connection refused")}
	}
	return w
}

// stopsElsewhere has members of the chart not answer, and their pods gone.
func (w *world) stopsElsewhere(ordinals ...int) *world {
	w.seen.Gone = map[string]time.Time{}
	for _, n := range ordinals {
		w.seen.Gone[theirURL(n)] = noon.Add(-view.Lately)
	}
	return w.silencesElsewhere(ordinals...)
}

// goneAgo has the pod of a member of the chart be gone that long ago.
func (w *world) goneAgo(n int, ago time.Duration) *world {
	w.seen.Gone[theirURL(n)] = noon.Add(-ago)
	return w
}

// givesNoToken has a learner refuse the operator, whom no other member has given a token that it knows.
func (w *world) givesNoToken(n int64) *world {
	w.seen.Answers[w.name(n)] = session.Answer{Err: fmt.Errorf("log in: %w", members.ErrIsLearner)}
	return w
}

// lacksCertificate has the Secret of spec.joinFrom not be there.
func (w *world) lacksCertificate() *world {
	w.seen.ElsewhereProblem = &status.Problem{Reason: reason.NoSecret, Message: "theirs"}
	return w
}

func (w *world) haveVersion(version string) *world {
	for n := range 3 {
		w.says(n, func(a *session.Answer) { a.Status.Version = version })
	}
	return w
}

// hasQuota has a member say how great its database may be, as 3.6 does.
func hasQuota(bytes int64) func(*session.Answer) {
	return func(a *session.Answer) { a.Status.Quota = bytes }
}

// leavesOut has the user not say where a member of the chart is.
func (w *world) leavesOut(n int) *world {
	delete(w.seen.Answers, theirURL(n))
	w.ec.Spec.JoinFrom.EtcdEndpoints = slices.DeleteFunc(w.ec.Spec.JoinFrom.EtcdEndpoints, func(url string) bool { return url == theirURL(n) })
	return w
}

// havePeers has the first member of the chart advertise that.
func (w *world) havePeers(url string) *world {
	w.list[len(w.list)-3].PeerURLs = []string{url}
	return w.knows()
}

func (w *world) requests(v string) *world {
	version(v)(w.ec)
	return w
}

func (w *world) wantsBack() *world {
	goingBack(w.ec)
	return w
}

func named(w *world, n int64) *world {
	w.ec.Status.MemberNamesUsed, w.ec.Status.MemberBeingAdded = n, w.name(n)
	return w
}

// theirs is where the chart's first member is.
var theirs = members.Endpoint{Address: "my-etcd-0.my-etcd-headless.ns.svc:2379", ServerName: "my-etcd-0.my-etcd-headless.ns.svc"}

func elsewhereAsks(what members.What, n int64) asks {
	return func(w *world) members.Request {
		r := members.Request{What: what, At: theirs, ID: members.ID(n)}
		if what == members.Remove {
			r.Listed = members.IDs(w.list)
		}
		return r
	}
}

func elsewhereAdds(n int64) asks {
	return func(w *world) members.Request {
		return members.Request{What: members.Add, At: theirs, PeerURLs: []string{objects.PeerURLOf(w.ec, w.name(n))}, Learner: true, Listed: []members.ID{100, 101, 102}}
	}
}
