package job

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/task"
)

var (
	inS3    = v1beta2.BackupSource{S3: &v1beta2.S3Source{Path: "bucket/key", AWSSecret: "aws"}}
	inClaim = v1beta2.BackupSource{PersistentVolumeClaim: &v1beta2.ClaimSource{ClaimName: "backups", Path: "key"}}
)

func aPod(action task.Action, change ...func(*Pod)) Pod {
	p := Pod{
		Namespace: "ns", Name: "nightly-abc", Instance: "nightly", Image: "fairlead:dev", EtcdImage: "etcd:v3.6.16",
		Owner:  metav1.OwnerReference{APIVersion: "etcd.database.coreos.com/v1beta2", Kind: "EtcdBackup", Name: "nightly", UID: "uid", Controller: new(true)},
		Task:   task.Task{Action: action, Owner: "uid", Timeout: time.Minute, Place: task.Place{Type: v1beta2.StorageS3, Bucket: "bucket", Key: "key"}},
		Source: inS3,
	}
	for _, c := range change {
		c(&p)
	}
	return p
}

func withTLS(p *Pod) { p.Task.TLS, p.ClientSecret = true, "client" }

func withUser(p *Pod) { p.Task.User, p.UserSecret = true, "root" }

// taskOf is what a container is told to do.
func taskOf(t *testing.T, c corev1.Container) task.Task {
	t.Helper()
	var todo task.Task
	if !slices.Equal(c.Command, []string{task.Program}) || len(c.Args) != 1 {
		t.Fatalf("%q %q", c.Command, c.Args)
	}
	if err := json.Unmarshal([]byte(c.Args[0]), &todo); err != nil {
		t.Fatal(err)
	}
	return todo
}

func TestSavePod(t *testing.T) {
	p := aPod(task.Save, withTLS, withUser)
	pod := New(p)
	if diff := cmp.Diff(p.Task, taskOf(t, pod.Spec.Containers[0])); diff != "" {
		t.Errorf("the task (-want +got):\n%s", diff)
	}
	if len(pod.Spec.Containers) != 1 || len(pod.Spec.InitContainers) != 0 || pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("%+v", pod.Spec)
	}
	mounts := map[string]string{}
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		mounts[m.Name] = m.MountPath
		if !m.ReadOnly {
			t.Errorf("%s can be written", m.MountPath)
		}
	}
	secrets := map[string]string{}
	for _, v := range pod.Spec.Volumes {
		if v.Secret == nil || !*v.Secret.Optional || *v.Secret.DefaultMode != 0o440 {
			t.Fatalf("volume %+v", v)
		}
		secrets[v.Secret.SecretName] = mounts[v.Name]
	}
	if want := map[string]string{"aws": task.SecretDir, "client": task.CertificateDir, "root": task.UserDir}; !maps.Equal(secrets, want) {
		t.Errorf("Secrets are at %v, want %v", secrets, want)
	}
}

func TestProvePod(t *testing.T) {
	p := aPod(task.Prove, func(p *Pod) {
		p.Task.Saved = &v1beta2.StoredBackup{Key: "key_v7", Revision: 7, Hash: "a"}
	})
	spec := New(p).Spec
	if len(spec.InitContainers) != 2 || len(spec.Containers) != 1 {
		t.Fatalf("%+v", spec)
	}
	fetch, etcd, proof := spec.InitContainers[0], spec.InitContainers[1], spec.Containers[0]
	first, second := taskOf(t, fetch), taskOf(t, proof)
	if fetch.Name != FetchContainer || first.Action != task.Fetch || first.Key != "key_v7" || !first.Member.ThrowAway {
		t.Errorf("%s: %+v", fetch.Name, first)
	}
	if proof.Name != AgentContainer || second.Action != task.Prove || !cmp.Equal(second.Saved, p.Task.Saved) || !cmp.Equal(first.Member, second.Member) {
		t.Errorf("%s: %+v", proof.Name, second)
	}
	if etcd.Name != EtcdContainer || etcd.Image != "etcd:v3.6.16" || etcd.RestartPolicy == nil || *etcd.RestartPolicy != corev1.ContainerRestartPolicyAlways {
		t.Errorf("%+v", etcd)
	}
	env := map[string]string{}
	for _, v := range etcd.Env {
		env[v.Name] = v.Value
	}
	m := first.Member
	if env["ETCD_DATA_DIR"] != m.DataDir || env["ETCD_NAME"] != m.Name || env["ETCD_INITIAL_CLUSTER_TOKEN"] != m.Token ||
		!slices.Equal(second.Endpoints, []string{env["ETCD_LISTEN_CLIENT_URLS"]}) {
		t.Errorf("member %+v, etcd %v, endpoints %v", m, env, second.Endpoints)
	}
	for name, value := range env {
		if strings.Contains(name, "LISTEN") && !strings.HasPrefix(value, "http://127.0.0.1:") {
			t.Errorf("%s=%s: others can reach it", name, value)
		}
	}
	// Credentials are only where they are needed.
	for _, c := range []corev1.Container{etcd, proof} {
		if len(c.VolumeMounts) != 1 || c.VolumeMounts[0].MountPath != proofPath {
			t.Errorf("container %s has %+v", c.Name, c.VolumeMounts)
		}
	}
}

func TestEveryPod(t *testing.T) {
	settings := func(p *Pod) {
		p.Settings = &v1beta2.JobPod{
			ServiceAccountName: "cloud", Labels: map[string]string{"azure.workload.identity/use": "true"},
			PriorityClassName: "high", ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}}, DNSConfig: &corev1.PodDNSConfig{},
			NodeSelector: map[string]string{"disk": "fast"}, Tolerations: []corev1.Toleration{{Key: "backup"}},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}},
		}
	}
	for name, p := range map[string]Pod{
		"save": aPod(task.Save, withTLS, withUser), "prove": aPod(task.Prove), "prune": aPod(task.Prune),
		"with settings": aPod(task.Prove, settings),
		"a long name":   aPod(task.Save, func(p *Pod) { p.Instance = strings.Repeat("n", 200) }),
		"in a claim":    aPod(task.Save, func(p *Pod) { p.Source = inClaim }),
	} {
		t.Run(name, func(t *testing.T) {
			pod := New(p)
			for label, value := range pod.Labels {
				if label == "app" || strings.HasPrefix(label, "etcd_") || len(value) > 63 {
					t.Errorf("label %s=%s", label, value)
				}
			}
			if pod.Labels[ComponentLabel] != strings.ToLower(string(p.Task.Action)) || !cmp.Equal(pod.OwnerReferences, []metav1.OwnerReference{p.Owner}) {
				t.Errorf("labels %v, owners %v", pod.Labels, pod.OwnerReferences)
			}
			s := pod.Spec
			if *s.AutomountServiceAccountToken || !*s.SecurityContext.RunAsNonRoot || s.SecurityContext.SeccompProfile == nil || *s.SecurityContext.FSGroup != user {
				t.Errorf("%+v", s)
			}
			for _, c := range slices.Concat(s.InitContainers, s.Containers) {
				if c.SecurityContext == nil || *c.SecurityContext.AllowPrivilegeEscalation || !*c.SecurityContext.ReadOnlyRootFilesystem || len(c.SecurityContext.Capabilities.Drop) != 1 {
					t.Errorf("container %s: %+v", c.Name, c.SecurityContext)
				}
				if c.Name != EtcdContainer && (c.Image != p.Image || c.TerminationMessagePolicy != corev1.TerminationMessageReadFile || len(c.Env) != 0) {
					t.Errorf("container %+v", c)
				}
				if p.Settings != nil && !cmp.Equal(c.Resources, p.Settings.Resources) {
					t.Errorf("container %s: %+v", c.Name, c.Resources)
				}
			}
			if p.Settings != nil && (s.ServiceAccountName != "cloud" || s.NodeSelector["disk"] != "fast" || len(s.Tolerations) != 1 ||
				s.PriorityClassName != "high" || len(s.ImagePullSecrets) != 1 || s.DNSConfig == nil || pod.Labels["azure.workload.identity/use"] != "true") {
				t.Errorf("the settings are not there: %+v", pod)
			}
		})
	}
}

// TestSettingsOfAPod: a cluster that gives each namespace users of its own, and pods sidecars, is told otherwise.
func TestSettingsOfAPod(t *testing.T) {
	own := &corev1.PodSecurityContext{RunAsNonRoot: new(true)}
	pod := New(aPod(task.Save, withTLS, func(p *Pod) {
		p.Settings = &v1beta2.JobPod{SecurityContext: own, Annotations: map[string]string{"mesh/inject": "false"}}
	}))
	if diff := cmp.Diff(own, pod.Spec.SecurityContext); diff != "" || pod.Annotations["mesh/inject"] != "false" {
		t.Errorf("annotations %v, security context (-want +got):\n%s", pod.Annotations, diff)
	}
	for _, v := range pod.Spec.Volumes {
		if v.Secret != nil && v.Secret.DefaultMode != nil {
			t.Errorf("only a group may read Secret %s, and the pod may have another", v.Secret.SecretName)
		}
	}
	if pod.Spec.NodeSelector["kubernetes.io/os"] != "linux" {
		t.Errorf("it is scheduled to %v", pod.Spec.NodeSelector)
	}
}

func TestFetchContainer(t *testing.T) {
	data := corev1.VolumeMount{Name: "etcd-data", MountPath: "/var/etcd"}
	todo := task.Task{Action: task.Fetch, Timeout: time.Minute, Key: "k", Member: &task.Member{Name: "example-bcdfg", DataDir: "/var/etcd/data"}}
	c, volumes := Fetch("fairlead:dev", todo, inClaim, data)
	if c.Name != FetchContainer || !cmp.Equal(taskOf(t, c), todo) {
		t.Errorf("%+v", c)
	}
	if len(volumes) != 1 || volumes[0].PersistentVolumeClaim.ClaimName != "backups" {
		t.Errorf("%+v", volumes)
	}
	want := []corev1.VolumeMount{{Name: volumes[0].Name, MountPath: task.VolumeDir, ReadOnly: true}, data}
	if diff := cmp.Diff(want, c.VolumeMounts); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	if c, volumes := Fetch("fairlead:dev", todo, v1beta2.BackupSource{S3: &v1beta2.S3Source{}}, data); len(volumes) != 0 || len(c.VolumeMounts) != 1 {
		t.Errorf("with the pod's identity: %+v, %+v", volumes, c.VolumeMounts)
	}
}

func TestImage(t *testing.T) {
	t.Setenv(ImageVariable, "registry.example.com/fairlead:v1")
	if got := Image(); got != "registry.example.com/fairlead:v1" {
		t.Error(got)
	}
	t.Setenv(ImageVariable, "")
	if got := Image(); got != defaultImage {
		t.Error(got)
	}
}

func ended(code int32, reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}}
}

func waits(reason string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "because"}}
}

var runs = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}

const (
	saved  = `{"Saved":{"key":"k","revision":7,"size":1}}`
	denied = `{"Problem":{"Reason":"AccessDenied","Message":"no","Retriable":true}}`
	unfit  = `{"Problem":{"Reason":"ProofNotServed","Message":"It does not serve"}}`
)

func TestRead(t *testing.T) {
	result := &task.Result{Saved: &v1beta2.StoredBackup{Key: "k", Revision: 7, Size: 1}}
	problem := &task.Problem{Reason: "AccessDenied", Message: "no", Retriable: true}
	died := func(message string) Outcome {
		return Outcome{State: Ended, Problem: &task.Problem{Reason: ReasonAgentDied, Message: message, Retriable: true}}
	}
	waiting := func(reason, message string) Outcome {
		return Outcome{State: Waiting, Problem: &task.Problem{Reason: reason, Message: message, Retriable: true}}
	}
	agentIs := func(s corev1.ContainerState) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: AgentContainer, Image: "i", State: s}}}
	}
	fetchIs := func(s corev1.ContainerState) corev1.PodStatus {
		return corev1.PodStatus{
			InitContainerStatuses: []corev1.ContainerStatus{{Name: FetchContainer, State: s}},
			ContainerStatuses:     []corev1.ContainerStatus{{Name: AgentContainer, State: waits("PodInitializing")}},
		}
	}
	for name, tc := range map[string]struct {
		status corev1.PodStatus
		want   Outcome
	}{
		"new":                      {corev1.PodStatus{}, Outcome{State: Waiting}},
		"starting":                 {agentIs(waits("ContainerCreating")), Outcome{State: Waiting}},
		"running":                  {agentIs(runs), Outcome{State: Running}},
		"fetching":                 {fetchIs(runs), Outcome{State: Running}},
		"done":                     {agentIs(ended(0, "Completed", saved)), Outcome{State: Ended, Result: result}},
		"failed":                   {agentIs(ended(1, "Error", denied)), Outcome{State: Ended, Problem: problem}},
		"fetch failed":             {fetchIs(ended(1, "Error", denied)), Outcome{State: Ended, Problem: problem}},
		"fetched":                  {fetchIs(ended(0, "Completed", `{"Fetched":{"Key":"k"}}`)), Outcome{State: Waiting}},
		"out of memory":            {agentIs(ended(137, "OOMKilled", "")), died(`Pod "p" ran out of memory: raise spec.pod.resources, for a restore those of the EtcdCluster`)},
		"killed":                   {agentIs(ended(137, "Error", "")), died(`Pod "p" ended without a result, with exit code 137`)},
		"a panic":                  {agentIs(ended(2, "Error", "panic: oh")), died(`Pod "p" ended without a result, with exit code 2: panic: oh`)},
		"another image":            {agentIs(ended(0, "Completed", "")), died(`Pod "p" ended without a result: image "i" is not this operator's`)},
		"says it did, and did not": {agentIs(ended(1, "Error", saved)), died(`Pod "p" ended without a result, with exit code 1: ` + saved)},
		"evicted": {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource:  memory. "},
			died(`Pod "p" was ended: Evicted: The node was low on resource: memory`)},
		"preempted":   {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Preempting"}, died(`Pod "p" was ended: Preempting`)},
		"never began": {corev1.PodStatus{Phase: corev1.PodFailed}, died(`Pod "p" ended before its agent`)},
		"unschedulable": {corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: `persistentvolumeclaim "backups" not found`,
		}}}, waiting(ReasonUnschedulable, `Pod "p" cannot be scheduled: persistentvolumeclaim "backups" not found`)},
		"no image":     {agentIs(waits("ErrImagePull")), waiting(ReasonNoImage, `Pod "p": the image "i" cannot be pulled`)},
		"cannot start": {agentIs(waits("CreateContainerConfigError")), waiting(ReasonCannotStart, `Pod "p": container "agent" cannot start: because`)},
		"a bad proof": {corev1.PodStatus{
			ContainerStatuses: []corev1.ContainerStatus{{Name: AgentContainer, State: ended(1, "Error", unfit)}},
			InitContainerStatuses: []corev1.ContainerStatus{{Name: EtcdContainer, State: ended(0, "", ""),
				LastTerminationState: ended(1, "Error", "no such version\n")}},
		}, Outcome{State: Ended, Problem: &task.Problem{Reason: "ProofNotServed", Message: "It does not serve: its etcd ended: no such version"}}},
		"an image without an agent": {
			agentIs(ended(128, "StartError", `OCI runtime create failed: exec: "/fairlead-etcd-agent": stat /fairlead-etcd-agent: no such file or directory: unknown`)),
			died(`Pod "p" ended without a result: image "i" is not this operator's`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: tc.status}
			pod.Spec.Containers = []corev1.Container{{Name: AgentContainer, Image: "i"}}
			if diff := cmp.Diff(tc.want, Read(pod)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadFetch(t *testing.T) {
	const done = `{"Fetched":{"Key":"k","Revision":7}}`
	result := &task.Result{Fetched: &task.Fetched{Key: "k", Revision: 7}}
	problem := &task.Problem{Reason: "AccessDenied", Message: "no", Retriable: true}
	for name, tc := range map[string]struct {
		state, last corev1.ContainerState
		phase       corev1.PodPhase
		want        Outcome
	}{
		"new":                             {want: Outcome{State: Waiting}},
		"running":                         {state: runs, want: Outcome{State: Running}},
		"done":                            {state: ended(0, "Completed", done), want: Outcome{State: Ended, Result: result}},
		"done, at the second try":         {state: ended(0, "Completed", done), last: ended(1, "Error", denied), want: Outcome{State: Ended, Result: result}},
		"failed":                          {state: ended(1, "Error", denied), want: Outcome{State: Waiting, Problem: problem}},
		"waits to try again":              {state: waits("CrashLoopBackOff"), last: ended(1, "Error", denied), want: Outcome{State: Waiting, Problem: problem}},
		"tries again":                     {state: runs, last: ended(1, "Error", denied), want: Outcome{State: Running, Problem: problem}},
		"starts again, and says it again": {state: runs, last: ended(0, "Completed", done), want: Outcome{State: Running}},
		"the pod has failed":              {state: ended(1, "Error", denied), phase: corev1.PodFailed, want: Outcome{State: Ended, Problem: problem}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Status: corev1.PodStatus{Phase: tc.phase, InitContainerStatuses: []corev1.ContainerStatus{
				{Name: FetchContainer, State: tc.state, LastTerminationState: tc.last}}}}
			if diff := cmp.Diff(tc.want, ReadFetch(pod)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
