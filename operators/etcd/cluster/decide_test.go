package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/rollout"
	"example.com/fairlead/operators/etcd/session"
)

// decision is what is decided in a world.
type decision struct {
	world *world
	want  string
	asks  asks
	// problem is in what status reports.
	problem string
}

func TestDecide(t *testing.T) {
	requireDecisions(t, map[string]decision{
		"new: name the founders": {
			world: healthy(anEtcd(notFormed)), want: "status/founders",
		},
		"named: create them, with a gate": {
			world: healthy(anEtcd(notFormed, func(ec *v1beta2.EtcdCluster) {
				ec.Status.Founders = []string{objects.MemberName(ec, 1), objects.MemberName(ec, 2), objects.MemberName(ec, 3)}
			})),
			want: "create Pod #1; create Pod #2; create Pod #3",
		},
		"as it should be: nothing to do":         {world: healthy(anEtcd(), 1, 2, 3)},
		"one does not answer: nothing to do":     {world: healthy(anEtcd(), 1, 2, 3).silences(3)},
		"no quorum, nothing lost: nothing to do": {world: healthy(anEtcd(), 1, 2, 3).silences(2, 3).leaderless()},
		"a pod is gone, without volumes: remove": {world: healthy(anEtcd(), 1, 2, 3).loses(3), asks: removes(1, 3, 1, 2, 3)},
		"a volume is gone: remove its member":    {world: healthy(anEtcd(onVolumes), 1, 2, 3).loses(3), asks: removes(1, 3, 1, 2, 3)},
		"no quorum, and one is too low: change it back": {
			world: healthy(anEtcd(), 1, 2, 3).silences(2, 3).leaderless().isTooLow(3), want: "patch Pod/image #3",
		},
		"one is lost, another silent: wait":        {world: healthy(anEtcd(), 1, 2, 3).loses(3).silences(2)},
		"the leader's pod is gone, another leads":  {world: healthy(anEtcd(), 2, 1, 3).loses(1), asks: removes(2, 1, 1, 2, 3)},
		"fewer than requested: name one":           {world: healthy(anEtcd(size(4)), 1, 2, 3), want: "status/member"},
		"named: add it":                            {world: healthy(anEtcd(size(4), adding), 1, 2, 3), asks: adds(false)},
		"named, while a downgrade is enabled":      {world: healthy(anEtcd(size(4), adding), 1, 2, 3).downgrades("3.5"), asks: downgradesTo("")},
		"named, by one that does not say whether":  {world: healthy(anEtcd(size(4), adding), 1, 2, 3).lies(1, func(a *session.Answer) { a.Status.Version = "3.5.35" }), asks: adds(true)},
		"fewer than requested, one silent: wait":   {world: healthy(anEtcd(size(4)), 1, 2, 3).silences(3)},
		"more than requested: remove the last":     {world: healthy(anEtcd(size(2)), 1, 2, 3), asks: removes(1, 3, 1, 2, 3)},
		"more than requested: of a zone with most": {world: healthy(anEtcd(size(2)), 1, 2, 3).zones("a", "a", "b"), asks: removes(1, 2, 1, 2, 3)},
		"more than requested: zones are alike":     {world: healthy(anEtcd(size(2)), 1, 2, 3).zones("a", "b", "c"), asks: removes(1, 3, 1, 2, 3)},
		"more than requested: never the leader":    {world: healthy(anEtcd(size(1)), 2, 1), asks: removes(2, 1, 1, 2)},
		"more than requested: first the silent":    {world: healthy(anEtcd(size(2)), 1, 2, 3).silences(2), asks: removes(1, 2, 1, 2, 3)},
		"another version: name one":                {world: healthy(anEtcd(version("3.6.15")), 1, 2, 3), want: "status/change"},
		"another version, named: change it":        {world: healthy(anEtcd(version("3.6.15"), changing(2)), 1, 2, 3), want: "patch Pod/image #2"},
		"another version, the leader: hand over":   {world: healthy(anEtcd(version("3.6.15"), changing(1)), 1, 2, 3), asks: about(members.MoveLeader, 1, 2)},
		"another version, another is silent: wait": {world: healthy(anEtcd(version("3.6.15"), changing(2)), 1, 2, 3).silences(3)},
		"another version, it is silent: change it": {world: healthy(anEtcd(version("3.6.15"), changing(3)), 1, 2, 3).silences(3), want: "patch Pod/image #3"},
		"two minor versions down: refused":         {world: healthy(anEtcd(version("3.4.37")), 1, 2, 3), problem: "VersionRefused: etcd 3.6.16 cannot be downgraded to 3.4.37"},
		"one minor version down: enable it":        {world: healthy(anEtcd(version("3.5.35")), 1, 2, 3), asks: downgradesTo("3.5")},
		"to 3.7: have the data written out":        {world: healthy(anEtcd(version("3.7.3")), 1, 2, 3), asks: downgradesTo("3.5")},
		"to 3.6: each voter is written anew":       {world: healthy(anEtcd(), 1, 2, 3).areOf("3.5.35"), asks: rewrites(1)},
		"to 3.6, one was: the next":                {world: healthy(anEtcd(), 1, 2, 3).areOf("3.5.35").rewritten(1), asks: rewrites(2)},
		"to 3.6, all were: begin":                  {world: healthy(anEtcd(), 1, 2, 3).areOf("3.5.35").rewritten(1, 2, 3), want: "status/change"},
		"to 3.6, one is silent: wait":              {world: healthy(anEtcd(), 1, 2, 3).areOf("3.5.35").silences(3)},
		"to 3.6, by another operator: go on":       {world: healthy(anEtcd(changing(3)), 1, 2, 3).areOf("3.5.35").isChanged(3, "3.6.999"), want: "patch Pod/image #3"},
		"to 3.6 from before 3.5.26: first that":    {world: healthy(anEtcd(changing(3)), 1, 2, 3).areOf("3.5.9"), want: "patch Pod/image #3"},
		"paused: nothing is done":                  {world: healthy(anEtcd(size(5), func(ec *v1beta2.EtcdCluster) { ec.Spec.Paused = true }), 1, 2, 3)},
		"pods without volumes stay as they are":    {world: healthy(anEtcd(), 1, 2, 3).changesPolicy()},
		"pods with volumes are replaced":           {world: healthy(anEtcd(onVolumes, changing(2)), 1, 2, 3).changesPolicy(), want: "delete Pod #2", problem: "RollingOut: Members are changed one after the other, now "},
		"a pod with a volume is created again":     {world: healthy(anEtcd(onVolumes), 1, 2, 3).losesPod(2), want: "create Pod #2"},
		"all pods with volumes are created again":  {world: healthy(anEtcd(onVolumes), 1, 2, 3).losesPod(1, 2, 3), want: "create Pod #1; create Pod #2; create Pod #3"},
		"two of three lost: reported":              {world: healthy(anEtcd(), 1, 2, 3).loses(2, 3).leaderless(), problem: "QuorumLost: Quorum is lost: the data of "},
		"all lost: reported":                       {world: healthy(anEtcd(), 1, 2, 3).loses(1, 2, 3), problem: "QuorumLost: The data of all members is lost"},
		"restored with its status alone: reported": {world: healthy(anEtcd(onVolumes), 1, 2, 3).loses(1, 2, 3).isRestored(), problem: "QuorumLost: The data of all members is lost"},
		"an evicted pod with a volume: delete it":  {world: healthy(anEtcd(onVolumes), 1, 2, 3).evicts(2), want: "delete Pod #2"},
		"what is left of a removed member":         {world: healthy(anEtcd(), 1, 2, 3).leaves(4), want: "delete Pod #4"},
		"a volume is left of a removed member":     {world: healthy(anEtcd(onVolumes), 1, 2, 3).leaves(4).losesPod(4), want: "delete PersistentVolumeClaim #4"},
		"a liar of another cluster is not lost":    {world: healthy(anEtcd(), 1, 2, 3).lies(3, func(a *session.Answer) { a.Status.ClusterID, a.List.ClusterID = 7, 7 })},
		"a liar's member list is not believed":     {world: healthy(anEtcd(), 1, 2, 3).lies(3, func(a *session.Answer) { a.List.Members = a.List.Members[2:] })},
		"a file that is mostly empty: not leader":  {world: healthy(anEtcd(), 1, 2, 3).bloats(1, 2), want: "status/maintenance: Defragmentation of #2"},
		"the leader's file: hand over first":       {world: healthy(anEtcd(), 1, 2, 3).bloats(1), asks: about(members.MoveLeader, 1, 2)},
		"a learner has caught up: promote":         {world: healthy(anEtcd(size(3)), 1, 2, 3).learns(3), asks: about(members.Promote, 1, 3)},
		"an added member gets its pod":             {world: healthy(anEtcd(size(4)), 1, 2, 3).isAdded(4), want: "create Pod #4"},
		"a downgrade keeps it out: cancel that":    {world: healthy(anEtcd(size(4)), 1, 2, 3).isAdded(4).downgrades("3.5"), want: "create Pod #4", asks: downgradesTo("")},
		"an added member is not requested anymore": {world: healthy(anEtcd(), 1, 2, 3).isAdded(4), want: "create Pod #4", asks: removes(1, 4, 1, 2, 3, 4)},
		"status was emptied: take the cluster in":  {world: healthy(anEtcd(), 1, 2, 3).forgets(), want: "status/cluster"},
		"status was emptied, all silent: wait":     {world: healthy(anEtcd(), 1, 2, 3).silences(1, 2, 3).forgets(), problem: "StatusEmptied: Status was emptied, and no member"},
		"status was emptied, volumes: start them":  {world: healthy(anEtcd(onVolumes, adopting), 1, 2, 3).losesPod(1, 2, 3).forgets(), want: "create Pod #2; create Pod #1; create Pod #3", problem: "StatusEmptied"},
		"nobody's pods: the user decides":          {world: healthy(anEtcd(), 1).finds().forgets(), problem: "ExistingMembers: Pod example-"},
		"nobody's pods, to be adopted":             {world: healthy(anEtcd(onVolumes, adopting), 1).finds().forgets(), want: "patch Pod/marks #1; patch PersistentVolumeClaim/marks #1", problem: "ExistingMembers: Taking in"},
		"nobody's pod of a member, to be adopted":  {world: healthy(anEtcd(adopting), 1, 2, 3).taken(3).orphans(3), want: "patch Pod/marks #3", problem: "ExistingMembers: Taking in"},
		"nobody's pod of a member":                 {world: healthy(anEtcd(), 1, 2, 3).taken(3).orphans(3), problem: "NameConflict"},
		"nobody's volumes, for emptyDirs":          {world: healthy(anEtcd(onVolumes, adopting), 1).losesPod(1).finds(noVolumes).forgets(), problem: "ExistingMembers: PersistentVolumeClaim example-"},
		"pods of an earlier cluster end: wait":     {world: healthy(anEtcd(adopting), 1).finds(ofEarlier).forgets(), problem: "ExistingMembers: Waiting"},
		"pods of another kind have the labels":     {world: healthy(anEtcd(adopting), 1).finds(ofStatefulSet).forgets(), problem: "ExistingMembers: The labels"},
		"a webhook rewrites images: nothing to do": {world: healthy(anEtcd(), 1, 2, 3).rewrites("mirror.example.com/etcd:v3.6.16")},
		"users are on: nothing to do":              {world: healthy(anEtcd(size(5)), 1, 2, 3).refuses(1, 2, 3), problem: "AuthenticationRequired: Etcd refuses the operator: authentication is on. Set spec.auth.rootSecret"},
		"authentication is requested: turn it on":  {world: healthy(anEtcd(withAuth), 1, 2, 3).logsIn(members.ErrAuthOff), asks: about(members.EnableAuth, 1, 0), problem: "EnablingAuthentication: Turning authentication on"},
		"it is on":                                 {world: healthy(anEtcd(withAuth), 1, 2, 3).logsIn(nil)},
		"nobody says whether it is on":             {world: healthy(anEtcd(withAuth), 1, 2, 3).logsIn(session.ErrNotAsked), problem: "EnablingAuthentication: It is not known"},
		"another password: the user corrects it":   {world: healthy(anEtcd(withAuth), 1, 2, 3).logsIn(members.ErrPassword), problem: "AuthenticationRequired: Etcd refuses the operator: root's password is not that in Secret \"root\""},
		"another password, and no answers":         {world: healthy(anEtcd(withAuth), 1, 2, 3).refuses(1, 2, 3).logsIn(session.ErrNotAsked), problem: "AuthenticationRequired: Etcd refuses the operator: root's password"},
		"another password, root by certificate":    {world: healthy(anEtcd(withAuth, withTLS), 1, 2, 3).logsIn(members.ErrPassword), asks: about(members.SetPassword, 1, 0), problem: "EnablingAuthentication: Giving root"},
		"no Secret with a password":                {world: healthy(anEtcd(withAuth), 1, 2, 3).hasNoSecret(), problem: "SecretNotFound: "},
		"no Secret, no answers":                    {world: healthy(anEtcd(withAuth), 1, 2, 3).hasNoSecret().refuses(1, 2, 3), problem: "SecretNotFound: "},
		"no Secret, and data is lost: go on":       {world: healthy(anEtcd(withAuth), 1, 2, 3).hasNoSecret().loses(3), asks: removes(1, 3, 1, 2, 3)},
		"data is lost before it is on: first that": {world: healthy(anEtcd(withAuth), 1, 2, 3).logsIn(members.ErrAuthOff).loses(3), asks: removes(1, 3, 1, 2, 3)},
		"the CA was replaced: wait a moment":       {world: distrusting(0), problem: "CertificatesReplaced: "},
		"the CA was replaced: restart one":         {world: distrusting(rollout.DistrustLasts), want: "patch Pod/restart #1", problem: "CertificatesReplaced: "},
		"it runs, and finds nobody: the others": {
			world: distrusting(rollout.DistrustLasts).trusts(2, rollout.JoinsWithin, unanswered), want: "patch Pod/restart #1; patch Pod/restart #3", problem: "CertificatesReplaced: ",
		},
		"it has only just started: wait": {world: distrusting(rollout.DistrustLasts).trusts(2, time.Second, unanswered), problem: "CertificatesReplaced: "},
		"it runs, and has a leader: the next": {
			world: distrusting(0).trusts(2, time.Second, func(*session.Answer) {}), want: "patch Pod/restart #1", problem: "CertificatesReplaced: ",
		},
		"it started too early: another one": {
			world: distrusting(rollout.DistrustLasts).trusts(2, rollout.JoinsWithin, distrusted), want: "patch Pod/restart #1", problem: "CertificatesReplaced: ",
		},
		"it is being stopped: wait": {world: distrusting(rollout.DistrustLasts).trusts(2, rollout.JoinsWithin, distrusted).restarts(2), problem: "CertificatesReplaced: "},
		"the peers' CA alone was replaced": {
			world: distrusting(rollout.DistrustLasts).hears(1, 2, 3).leaderless(), want: "patch Pod/restart #1", problem: "CertificatesReplaced: ",
		},
		"no leader while the operator replaces CAs": {world: distrusting(rollout.DistrustLasts).makesCertificates().hears(1, 2, 3).leaderless()},
		"the others have a quorum again: the third": {world: distrusting(0).hears(1).trusts(2, time.Minute, func(*session.Answer) {}).changes(1), want: "patch Pod/restart #3", problem: "RollingOut: "},
		"nobody is trusted, and no CA was replaced": {world: distrusting(rollout.DistrustLasts).trusts(1, time.Hour, distrusted).trusts(2, time.Hour, distrusted).trusts(3, time.Hour, distrusted)},
		"the CA was replaced, and nobody answers":   {world: distrusting(rollout.DistrustLasts).silences(1, 2, 3)},
		"a member elsewhere does not count":         {world: healthy(anEtcd(), 1, 2, 3).hasForeign(), want: ""},
		"nobody answers: those elsewhere not lost":  {world: healthy(anEtcd(size(1)), 1).hasForeign().remembers("elsewhere", "2a").silences(1)},
	})
}

func requireDecisions(t *testing.T, decisions map[string]decision) {
	t.Helper()
	for name, tc := range decisions {
		t.Run(name, func(t *testing.T) {
			p := decide(tc.world.ec, tc.world.seen)
			if got := tc.world.doing(p); got != tc.want {
				t.Errorf("it does %q, want %q", got, tc.want)
			}
			if diff := tc.world.asked(p, tc.asks); diff != "" {
				t.Errorf("what it asks for (-want +got):\n%s", diff)
			}
			problem := ""
			if p.Problem != nil {
				problem = p.Problem.Reason + ": " + p.Problem.Message
			}
			if tc.problem == "" && problem != "" || !strings.HasPrefix(problem, tc.problem) {
				t.Errorf("it reports %q, want %q", problem, tc.problem)
			}
		})
	}
}

// distrusting is a world in which all Secrets were replaced, and nobody has trusted the members for that long.
func distrusting(since time.Duration) *world {
	w := healthy(anEtcd(func(ec *v1beta2.EtcdCluster) {
		ec.Spec.TLS = &v1beta2.TLSPolicy{Static: &v1beta2.StaticTLS{OperatorSecret: "client", Member: &v1beta2.MemberSecret{PeerSecret: "peer", ServerSecret: "server"}}}
	}), 1, 2, 3)
	w.seen.Certs, w.seen.Leaderless = objects.Certificates{CaHash: "1234"}, noon.Add(-since)
	for n := range int64(3) {
		w.answer(n+1, distrusted)
	}
	return w
}

func distrusted(a *session.Answer) {
	*a = session.Answer{Err: fmt.Errorf("%w: %w", members.ErrUnreachable, members.ErrNotTrusted)}
}

func unanswered(a *session.Answer) {
	*a = session.Answer{Err: fmt.Errorf("%w: no answer", members.ErrUnreachable)}
}

// trusts has a member that has started with the present CAs, so long ago.
func (w *world) trusts(n int64, ago time.Duration, answers func(*session.Answer)) *world {
	w.seen.Pods[w.name(n)].Annotations[annotation.CA] = "1234"
	w.answer(n, answers)
	return w.container(n, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon.Add(-ago))}}, corev1.ContainerState{})
}

// restarts has a member that is being restarted, and has not stopped yet.
func (w *world) restarts(n int64) *world {
	w.seen.Pods[w.name(n)].Annotations[annotation.Image] = objects.NoImage
	return w
}

// hears has members answer.
func (w *world) hears(numbers ...int64) *world {
	for _, n := range numbers {
		w.answer(n, func(*session.Answer) {})
	}
	return w
}

func (w *world) changes(n int64) *world {
	changing(n)(w.ec)
	return w
}

func (w *world) makesCertificates() *world {
	withTLS(w.ec)
	return w
}

// downgrades has a downgrade enabled.
func (w *world) downgrades(to string) *world {
	for name, a := range w.seen.Answers {
		a.Status.Downgrading = to
		w.seen.Answers[name] = a
	}
	return w
}

func changing(n int64) ecOption {
	return func(ec *v1beta2.EtcdCluster) { ec.Status.MemberBeingUpdated = objects.MemberName(ec, n) }
}

func adding(ec *v1beta2.EtcdCluster) {
	ec.Status.MemberNamesUsed, ec.Status.MemberBeingAdded = 4, objects.MemberName(ec, 4)
}

func (w *world) losesPod(numbers ...int64) *world {
	for _, n := range numbers {
		delete(w.seen.Pods, w.name(n))
		delete(w.seen.Answers, w.name(n))
	}
	return w
}

func (w *world) forgets() *world {
	notFormed(w.ec)
	return w
}

func adopting(ec *v1beta2.EtcdCluster) { ec.Spec.AdoptExisting = true }

// finds has what is there be nobody's, or somebody else's.
func (w *world) finds(changes ...func(*world, client.Object)) *world {
	for _, name := range slices.Sorted(maps.Keys(w.seen.Pods)) {
		w.seen.Existing = append(w.seen.Existing, w.seen.Pods[name])
	}
	for _, name := range slices.Sorted(maps.Keys(w.seen.Claims)) {
		w.seen.Existing = append(w.seen.Existing, w.seen.Claims[name])
	}
	clear(w.seen.Pods)
	clear(w.seen.Claims)
	clear(w.seen.Answers)
	for _, obj := range w.seen.Existing {
		obj.SetOwnerReferences(nil)
		for _, change := range changes {
			change(w, obj)
		}
	}
	return w
}

// orphans takes the owner from a pod.
func (w *world) orphans(n int64) *world {
	w.seen.Pods[w.name(n)].OwnerReferences = nil
	return w
}

func noVolumes(w *world, _ client.Object) { w.ec.Spec.Pod = nil }

func ofEarlier(w *world, obj client.Object) {
	earlier := w.ec.DeepCopy()
	earlier.UID = "earlier"
	obj.SetOwnerReferences(objects.ControlledBy(earlier))
}

func ofStatefulSet(_ *world, obj client.Object) {
	obj.SetOwnerReferences([]metav1.OwnerReference{{Kind: "StatefulSet", Name: "example", UID: "set", Controller: new(true)}})
}

// isRestored has a backup tool create the object again.
func (w *world) isRestored() *world {
	w.ec.UID, w.ec.Generation = "another", 1
	return w
}

func (w *world) rewrites(image string) *world {
	for _, pod := range w.seen.Pods {
		pod.Spec.Containers[0].Image = image
	}
	return w
}

func (w *world) changesPolicy() *world {
	policy := v1beta2.PodPolicy{}
	if w.ec.Spec.Pod != nil {
		policy = *w.ec.Spec.Pod
	}
	policy.NodeSelector = map[string]string{"disk": "fast"}
	w.ec.Spec.Pod = &policy
	return w
}

func (w *world) evicts(n int64) *world {
	w.silences(n)
	w.seen.Pods[w.name(n)].Status.Phase = corev1.PodFailed
	return w
}

func (w *world) leaves(n int64) *world {
	w.addPod(n, "3.6.16")
	return w.silences(n)
}

func (w *world) lies(n int64, how func(*session.Answer)) *world {
	w.answer(n, how)
	return w
}

func (w *world) alarms(alarm members.Alarm) *world {
	for name, a := range w.seen.Answers {
		a.Status.Alarms = []members.Alarm{alarm}
		w.seen.Answers[name] = a
	}
	return w
}

// isTooLow has a member have been changed to a version that is lower than the cluster's.
func (w *world) isTooLow(n int64) *world {
	w.addPod(n, "3.5.35")
	return w.crashes(n, `{"level":"panic","msg":"invalid downgrade; server version is lower than determined cluster version"}`)
}

// rewrites is the request to the first member to write anew what is kept about one.
func rewrites(n int64) asks {
	return func(w *world) members.Request {
		return members.Request{What: members.Rewrite, At: w.at(1), ID: members.ID(n), PeerURLs: []string{objects.PeerURLOf(w.ec, w.name(n))}, Listed: []members.ID{1, 2, 3}}
	}
}

// areOf has three members be of a version.
func (w *world) areOf(version string) *world {
	for n := range int64(3) {
		w.addPod(n+1, version)
		w.answer(n+1, func(*session.Answer) {})
		w.ec.Status.MemberList[n].Version = version
	}
	return w
}

func (w *world) rewritten(ids ...members.ID) *world {
	w.seen.Rewritten = ids
	return w
}

// isChanged has a member's pod be of a version that does not start.
func (w *world) isChanged(n int64, version string) *world {
	w.addPod(n, version)
	return w.silences(n)
}

func (w *world) bloats(numbers ...int64) *world {
	for _, n := range numbers {
		w.answer(n, func(a *session.Answer) { a.Status.DBSize = 1 << 30 })
	}
	return w
}

func (w *world) learns(n int64) *world {
	for i := range w.list {
		w.list[i].IsLearner = w.list[i].ID == members.ID(n)
	}
	if pod := w.seen.Pods[w.name(n)]; pod != nil {
		delete(pod.Labels, objects.VoterLabel)
	}
	return w
}

func (w *world) isAdded(n int64) *world {
	return w.joins(members.Member{ID: members.ID(n), PeerURLs: []string{objects.PeerURLOf(w.ec, w.name(n))}, IsLearner: true})
}

func (w *world) hasForeign() *world {
	return w.joins(members.Member{ID: 99, Name: "elsewhere", PeerURLs: []string{"http://192.0.2.7:2380"}})
}

// remembers has status have members that the operator does not run, and only the first of its own.
func (w *world) remembers(foreign ...string) *world {
	w.ec.Status.MemberList = w.ec.Status.MemberList[:1]
	for i, name := range foreign {
		w.ec.Status.MemberList = append(w.ec.Status.MemberList, v1beta2.MemberStatus{Name: name, ID: members.ID(99 + i).String()})
	}
	return w
}

func (w *world) joins(m members.Member) *world {
	w.list = append(w.list, m)
	for name, a := range w.seen.Answers {
		a.List.Members = w.list
		w.seen.Answers[name] = a
	}
	return w
}
