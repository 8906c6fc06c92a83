package cluster

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/operators/etcd/agent"
	"example.com/fairlead/operators/etcd/job"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/store"
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
		"named: create it":                         {world: healthy(anEtcd(), 1, 2, 3).verifies(), want: "create Pod #4", problem: lostBefore},
		"named, with volumes: both":                {world: healthy(anEtcd(onVolumes), 1, 2, 3).verifies(), want: "create PersistentVolumeClaim #4; create Pod #4"},
		"created: record its data":                 {world: healthy(anEtcd(), 1, 2, 3).verifies().hasSeed(unrecorded, gated), want: "status/seeded"},
		"recorded: let it go":                      {world: healthy(anEtcd(), 1, 2, 3).verifies().hasSeed(gated), want: "patch Pod/gate #4"},
		"it fetches: keep the cluster":             {world: healthy(anEtcd(size(4)), 1, 2, 3).verifies().hasSeed(), want: "status/member"},
		"it cannot fetch for now: wait":            {world: healthy(anEtcd(), 1, 2, 3).verifies().hasSeed(cannotFetch(true)), problem: `Restoring: EtcdRestore "mine" is under way: reading and checking the backup, while the cluster goes on as it is; Why: because`},
		"it never can: failed":                     {world: healthy(anEtcd(), 1, 2, 3).verifies().hasSeed(cannotFetch(false)), want: "status/restored"},
		"another seed's data: lost":                {world: healthy(anEtcd(), 1, 2, 3).verifies().hasSeed(otherData), want: "status/seed"},
		"the seed is gone: another":                {world: healthy(anEtcd(), 1, 2, 3).verifies().hasSeed(gone), want: "status/seed"},
		"it is of the backup, and does not serve":  {world: healthy(anEtcd(), 1, 2, 3).verifies().hasSeed(fetched)},
		"it serves: switch":                        {world: healthy(anEtcd(), 1, 2, 3).verifies().hasSeed(fetched, serving), want: "status/switching"},
		"it serves less than the backup: wait":     {world: healthy(anEtcd(), 1, 2, 3).verifies().hasSeed(fetched, serving, behind)},
		"it serves, a member hangs: wait":          {world: healthy(anEtcd(), 1, 2, 3).verifies().hasSeed(fetched, serving).silences(3).runs(3), problem: "Restoring: "},
		"it serves, a member is gone: switch":      {world: healthy(anEtcd(onVolumes), 1, 2, 3).verifies().hasSeed(fetched, serving).losesPod(3), want: "status/switching"},
		"the EtcdRestore is deleted: cancelled":    {world: healthy(anEtcd(), 1, 2, 3).verifies().hasSeed(fetched, serving).unwants(), want: "status/restored"},
		"switching: stop all":                      {world: healthy(anEtcd(), 1, 2, 3).switches().hasSeed(fetched, serving), want: "patch Pod/stop #2; patch Pod/stop #1; patch Pod/stop #3"},
		"one has not stopped yet: wait":            {world: healthy(anEtcd(), 1, 2, 3).switches().hasSeed(fetched, serving).stops(1, 2, 3).runs(2)},
		"stopped for another restore: stop it":     {world: healthy(anEtcd(), 1, 2, 3).switches().hasSeed(fetched, serving).stops(1, 2, 3).stoppedFor(2, "another"), want: "patch Pod/stop #2"},
		"all have stopped: the cluster is it":      {world: healthy(anEtcd(), 1, 2, 3).switches().hasSeed(fetched, serving).stops(1, 2, 3), want: "status/switched"},
		"all have stopped, the seed is silent":     {world: healthy(anEtcd(), 1, 2, 3).switches().hasSeed(fetched).stops(1, 2, 3)},
		"the seed is lost while switching":         {world: healthy(anEtcd(), 1, 2, 3).switches().hasSeed(gone).stops(1, 2), want: "status/seed"},
		"it takes too long: not now":               {world: healthy(anEtcd(), 1, 2, 3).switches().hasSeed(fetched).stops(1, 2, 3).passes(switchPatience), want: "status/seed"},
		"not now: start them":                      {world: healthy(anEtcd(), 1, 2, 3).verifies().stops(1, 2, 3), want: "create Pod #4; patch Pod/start #1; patch Pod/start #2; patch Pod/start #3"},
		"switched: label it, and delete the rest":  {world: healthy(anEtcd(), 1, 2, 3).stops(1, 2, 3).switched(), want: "patch Pod/labels #4; delete Pod #2; delete Pod #1; delete Pod #3; status/member"},
		"switched, one runs again: not yet":        {world: healthy(anEtcd(), 1, 2, 3).stops(1, 3).switched(), want: "delete Pod #2; delete Pod #1; delete Pod #3; status/member"},
		"switched: the volumes stay":               {world: healthy(anEtcd(onVolumes), 1, 2, 3).losesPod(1, 2, 3).switched(), want: "patch Pod/labels #4; status/member"},
		"complete":                                 {world: healthy(anEtcd(onVolumes, size(1)), 1, 2, 3).losesPod(1, 2, 3).switched().isMember(), want: "status/restored"},
		"complete: keep the volumes":               {world: healthy(anEtcd(onVolumes, size(1)), 1, 2, 3).losesPod(1, 2, 3).switched(keepsOld).isMember(), want: "patch PersistentVolumeClaim/kept #2; patch PersistentVolumeClaim/kept #1; patch PersistentVolumeClaim/kept #3"},
		"over: the volumes go":                     {world: healthy(anEtcd(onVolumes, size(1)), 1, 2, 3).losesPod(1, 2, 3).switched().isMember().isOver(), want: "delete PersistentVolumeClaim #2; delete PersistentVolumeClaim #1; delete PersistentVolumeClaim #3"},
		"a seed is left: delete it":                {world: healthy(anEtcd(), 1, 2, 3).hasOldSeed(5), want: "delete Pod #5"},
		"it failed for a new cluster: do not begin": {
			world: healthy(anEtcd(notFormed)).hasFailed(), problem: `RestoreFailed: EtcdRestore "mine", with which the cluster is to begin, has failed: Why: because`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := decide(tc.world.ec, tc.world.seen)
			if err != nil {
				t.Fatal(err)
			}
			if got := tc.world.doing(p); got != tc.want {
				t.Errorf("it does %q, want %q", got, tc.want)
			}
			st := tc.world.ec.Status.DeepCopy()
			if first := firstProblem(tc.world.ec, p, st, nil); tc.problem != "" && (first == nil || !strings.HasPrefix(first.reason+": "+first.message, tc.problem)) {
				t.Errorf("it reports %v, want %q", first, tc.problem)
			}
		})
	}
}

func TestSwitchedStatus(t *testing.T) {
	w := healthy(anEtcd(adding, changing(2)), 1, 2, 3).switches().hasSeed(fetched, serving).stops(1, 2, 3)
	p, err := decide(w.ec, w.seen)
	if err != nil {
		t.Fatal(err)
	}
	st := summarize(w.ec, w.seen, p, nil)
	if st.ClusterID != "5eed" || st.Adding != "" || st.Changing != "" || len(st.Founders) != 0 || st.Restoring.Phase != v1beta2.RestoreCompleting {
		t.Errorf("%+v", st)
	}
	if len(st.MemberList) != 1 || st.MemberList[0].Name != w.name(4) || st.MemberList[0].DataUID != "pod-4" || st.MemberList[0].ID == "" {
		t.Errorf("members: %+v", st.MemberList)
	}
	if want := []string{w.name(1), w.name(2), w.name(3)}; !slices.Equal(st.Restoring.Replaced, slices.Sorted(slices.Values(want))) {
		t.Errorf("replaced: %v, want %v", st.Restoring.Replaced, want)
	}
}

func TestSeedPod(t *testing.T) {
	for name, ec := range map[string]*v1beta2.EtcdCluster{"without volumes": anEtcd(), "with volumes": anEtcd(onVolumes), "with TLS": anEtcd(withTLS)} {
		t.Run(name, func(t *testing.T) {
			w := healthy(ec).verifies()
			w.ec.Status.Restoring.Source.ServiceAccountName, w.ec.Status.Restoring.Source.Newest = "cloud", true
			pod, err := seedPod(ec, ec.Status.Restoring, "3.6.16", "agent:1", certificates{})
			if err != nil {
				t.Fatal(err)
			}
			for label := range pod.Labels {
				if label == appLabel || strings.HasPrefix(label, "etcd_") {
					t.Errorf("it has the label %s, by which Services find members", label)
				}
			}
			if pod.Labels[run.ManagedByLabel] != managedBy || !isGated(pod) || pod.Spec.ServiceAccountName != "cloud" || len(pod.Spec.InitContainers) != 1 {
				t.Errorf("%+v", pod)
			}
			var task agent.Task
			fetch := pod.Spec.InitContainers[0]
			if err := json.Unmarshal([]byte(fetch.Args[1]), &task); err != nil {
				t.Fatal(err)
			}
			if task.Action != agent.Fetch || task.Choose == nil || task.Member.DataDir != environment(pod, "ETCD_DATA_DIR") || task.Member.Name != environment(pod, "ETCD_NAME") ||
				task.Member.PeerURL != environment(pod, "ETCD_INITIAL_ADVERTISE_PEER_URLS") || task.Member.Token == string(ec.UID) {
				t.Errorf("%+v", task)
			}
			if fetch.Image != "agent:1" || fetch.SecurityContext == nil || *fetch.SecurityContext.AllowPrivilegeEscalation || pod.Annotations[initialAnnotation] != sealed {
				t.Errorf("%+v, %v", fetch, pod.Annotations)
			}
		})
	}
}

// anEtcdRestore is one of the cluster.
func anEtcdRestore() *v1beta2.EtcdRestore {
	return &v1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: "ns", UID: "uid-of-mine"}, Spec: v1beta2.RestoreSpec{
		EtcdCluster: v1beta2.ClusterReference{Name: "example"},
		RestoreSource: v1beta2.RestoreSource{
			BackupStorageType: v1beta2.StorageS3, BackupSource: v1beta2.BackupSource{S3: &v1beta2.S3Source{Path: "bucket/key", AWSSecret: "aws"}}, TimeoutInSecond: 60,
		},
	}}
}

func (w *world) wants() *world {
	w.seen.restore = anEtcdRestore()
	w.seen.restores = []*v1beta2.EtcdRestore{w.seen.restore}
	return w
}

func (w *world) unwants() *world {
	w.seen.restores = nil
	return w
}

// verifies is a world in which a restore has begun, with the fourth member for its seed.
func (w *world) verifies() *world {
	w.wants()
	w.seen.restore, w.ec.Status.Made = nil, 4
	w.ec.Status.Restoring = &v1beta2.Restoring{ID: "uid-of-mine", Name: "mine", Source: anEtcdRestore().Spec.RestoreSource, Seed: w.name(4), Phase: v1beta2.RestoreVerifying}
	return w
}

func (w *world) switches() *world {
	w.verifies()
	r := w.ec.Status.Restoring
	r.Phase, r.SwitchTime, r.Key, r.ClusterID, r.SeedData = v1beta2.RestoreSwitching, timeOf(noon), "key", "5eed", "pod-4"
	return w
}

type seedOption func(w *world, pod *corev1.Pod)

// hasSeed has the seed's pod be there, and recorded.
func (w *world) hasSeed(options ...seedOption) *world {
	pod, err := seedPod(w.ec, w.ec.Status.Restoring, "3.6.16", "agent", certificates{})
	if err != nil {
		panic(err)
	}
	pod.UID, pod.Status.PodIP, pod.Spec.NodeName, pod.Spec.SchedulingGates = "pod-4", "10.0.0.4", "node", nil
	w.seen.seed.pod = pod
	if hasVolumes(w.ec) {
		w.seen.seed.claim = seedClaim(w.ec, w.ec.Status.Restoring)
		w.seen.seed.claim.UID = "pod-4"
	}
	w.ec.Status.Restoring.SeedData = "pod-4"
	w.seen.answers[pod.Name] = answer{err: errors.New("refused")}
	for _, option := range options {
		option(w, pod)
	}
	return w
}

func unrecorded(w *world, _ *corev1.Pod) { w.ec.Status.Restoring.SeedData = "" }

func gated(_ *world, pod *corev1.Pod) {
	pod.Spec.NodeName, pod.Spec.SchedulingGates = "", []corev1.PodSchedulingGate{{Name: gate}}
}

func otherData(_ *world, pod *corev1.Pod) { pod.UID = "pod-99" }

func gone(w *world, _ *corev1.Pod) { w.seen.seed = seed{} }

func says(pod *corev1.Pod, code int32, r agent.Result) {
	text, _ := json.Marshal(r)
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: job.FetchContainer, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: string(text)},
	}}}
}

func cannotFetch(passes bool) seedOption {
	return func(_ *world, pod *corev1.Pod) {
		says(pod, 1, agent.Result{Problem: &store.Problem{Reason: "Why", Message: "because", Passes: passes}})
	}
}

func fetched(_ *world, pod *corev1.Pod) {
	says(pod, 0, agent.Result{Fetched: &agent.Fetched{Key: "key", Revision: 30, ClusterID: "5eed"}})
}

func serving(w *world, pod *corev1.Pod) {
	w.seen.answers[pod.Name] = answer{
		status: members.Status{ClusterID: 0x5eed, ID: 4, Version: "3.6.16", Leader: 4, RaftTerm: 2, Revision: 30, StorageVersion: "3.6.0"},
		list:   members.List{ClusterID: 0x5eed, By: 4, Members: []members.Member{{ID: 4, Name: pod.Name, PeerURLs: []string{peerURLOf(w.ec, pod.Name)}}}},
	}
}

func behind(w *world, pod *corev1.Pod) {
	a := w.seen.answers[pod.Name]
	a.status.Revision = 29
	w.seen.answers[pod.Name] = a
}

// runs has a container run, whatever its pod is to do.
func (w *world) runs(n int64) *world {
	w.seen.pods[w.name(n)].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerName, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	return w
}

// stops has members be stopped for the restore.
func (w *world) stops(numbers ...int64) *world {
	for _, n := range numbers {
		pod := w.seen.pods[w.name(n)]
		pod.Spec.Containers[0].Image, pod.Annotations[imageAnnotation] = noImage, noImage
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerName, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "InvalidImageName"}}}}
		w.stoppedFor(n, w.name(4)).silences(n)
	}
	return w
}

func (w *world) stoppedFor(n int64, seed string) *world {
	w.seen.pods[w.name(n)].Annotations[stoppedAnnotation] = seed
	return w
}

func (w *world) passes(d time.Duration) *world {
	w.seen.now = w.seen.now.Add(d)
	return w
}

func keepsOld(w *world) { w.ec.Status.Restoring.KeepOld = true }

// switched has the cluster be the seed's, which has no labels of a member yet.
func (w *world) switched(options ...func(*world)) *world {
	w.switches().hasSeed(fetched, serving)
	r, st := w.ec.Status.Restoring, &w.ec.Status
	r.Phase, r.Replaced = v1beta2.RestoreCompleting, slices.Sorted(slices.Values([]string{w.name(1), w.name(2), w.name(3)}))
	st.ClusterID, st.Founders = "5eed", nil
	st.MemberList = []v1beta2.MemberStatus{{Name: r.Seed, ID: "4", DataUID: "pod-4", Version: "3.6.16"}}
	pod := w.seen.seed.pod
	w.seen.pods[r.Seed] = pod
	if hasVolumes(w.ec) {
		w.seen.claims[r.Seed] = w.seen.seed.claim
	}
	w.seen.unlabelled = append(w.seen.unlabelled, pod)
	for _, option := range options {
		option(w)
	}
	return w
}

func (w *world) isMember() *world {
	w.seen.unlabelled = nil
	return w
}

func (w *world) isOver() *world {
	w.ec.Status.Restored = &v1beta2.Restored{ID: w.ec.Status.Restoring.ID, Name: "mine"}
	w.ec.Status.Restoring, w.seen.seed = nil, seed{}
	return w
}

func (w *world) hasOldSeed(n int64) *world {
	w.seen.seeds = append(w.seen.seeds, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: w.name(n), UID: "old"}})
	return w
}

func (w *world) hasFailed() *world {
	w.wants()
	w.seen.restore = nil
	w.ec.Status.Restored = &v1beta2.Restored{ID: "uid-of-mine", Name: "mine", Failed: "Why: because"}
	return w
}
