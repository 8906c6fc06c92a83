package job

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/names"
	"example.com/fairlead/internal/kit/podsecurity"
	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/operators/etcd/task"
)

// The names of the volumes.
const (
	secretVolume      = "storage-secret"
	claimVolume       = "storage"
	certificateVolume = "client-tls"
	userVolume        = "user"
	proofVolume       = "proof"
)

// New is the pod of a task.
func New(p Pod) *corev1.Pod {
	made := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name,
			Labels: p.labels(), Annotations: p.annotations(), OwnerReferences: []metav1.OwnerReference{p.Owner},
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			// What is complete is complete, and what is not is aborted in a moment.
			TerminationGracePeriodSeconds: new(int64(5)),
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
		},
	}
	if p.Task.Action == task.Prove {
		p.prove(&made.Spec)
	} else {
		p.run(&made.Spec)
	}
	p.set(&made.Spec)
	podtemplate.OnLinux(&made.Spec)
	if !podsecurity.Restrict(&made.Spec, user, AgentContainer, FetchContainer, EtcdContainer) {
		made.Spec.SecurityContext.FSGroup = new(int64(user))
		// Not at every start: that takes long where there are many backups.
		made.Spec.SecurityContext.FSGroupChangePolicy = new(corev1.FSGroupChangeOnRootMismatch)
	}
	return made
}

// labels are not those that users of the CoreOS operator select members by.
func (p Pod) labels() map[string]string {
	all := map[string]string{}
	if p.Settings != nil {
		maps.Copy(all, p.Settings.Labels)
	}
	maps.Copy(all, map[string]string{
		"app.kubernetes.io/name":     "etcd-backup",
		"app.kubernetes.io/instance": names.LabelValue(p.Instance),
		ComponentLabel:               componentOf(p.Task.Action),
		run.ManagedByLabel:           run.ManagedBy("etcd"),
	})
	return all
}

func (p Pod) annotations() map[string]string {
	all := map[string]string{}
	if p.Settings != nil {
		maps.Copy(all, p.Settings.Annotations)
	}
	return all
}

// run has the agent do its task.
func (p Pod) run(spec *corev1.PodSpec) {
	c := container(AgentContainer, p.Image, p.Task)
	mode := p.secretMode()
	c.VolumeMounts, spec.Volumes = mounts(p.Source, false, mode)
	if p.Task.TLS {
		spec.Volumes = append(spec.Volumes, secretVolumeOf(certificateVolume, p.ClientSecret, mode))
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: certificateVolume, MountPath: task.CertificateDir, ReadOnly: true})
	}
	if p.Task.User {
		spec.Volumes = append(spec.Volumes, secretVolumeOf(userVolume, p.UserSecret, mode))
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: userVolume, MountPath: task.UserDir, ReadOnly: true})
	}
	spec.Containers = []corev1.Container{c}
}

// secretMode is who may read the Secrets: the group of the pod; everybody in it, if it has a security context of the
// user's, which may have no group for volumes.
func (p Pod) secretMode() *int32 {
	if p.Settings != nil && p.Settings.SecurityContext != nil {
		return nil
	}
	return new(int32(0o440))
}

// prove has an etcd serve a backup, and the agent read it. That etcd is an init container that does
// not end, so that the pod ends with the agent.
func (p Pod) prove(spec *corev1.PodSpec) {
	member := task.Member{
		Name: "proof", PeerURL: proofPeerURL, Token: string(p.Owner.UID) + "/" + p.Name,
		DataDir: proofPath + "/data", ThrowAway: true,
	}
	data := corev1.VolumeMount{Name: proofVolume, MountPath: proofPath}

	fetch := p.Task
	fetch.Action, fetch.Member = task.Fetch, &member
	fetch.Saved = nil
	if p.Task.Saved != nil {
		fetch.Key = p.Task.Saved.Key
	}
	f, volumes := Fetch(p.Image, fetch, p.Source, data)
	volumes = append(volumes, corev1.Volume{Name: proofVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})

	served := p.Task
	served.Member, served.Endpoints = &member, []string{proofClientURL}
	a := container(AgentContainer, p.Image, served)
	data.ReadOnly = true
	a.VolumeMounts = []corev1.VolumeMount{data}

	spec.InitContainers = []corev1.Container{f, throwAway(p.EtcdImage, member)}
	spec.Containers = []corev1.Container{a}
	spec.Volumes = volumes
}

// throwAway is an etcd that nobody outside of its pod can reach. What it writes need not last.
func throwAway(image string, m task.Member) corev1.Container {
	return corev1.Container{
		Name: EtcdContainer, Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
		Command:       []string{"/usr/local/bin/etcd"},
		Env: []corev1.EnvVar{
			{Name: "ETCD_NAME", Value: m.Name},
			{Name: "ETCD_DATA_DIR", Value: m.DataDir},
			{Name: "ETCD_LISTEN_CLIENT_URLS", Value: proofClientURL},
			{Name: "ETCD_ADVERTISE_CLIENT_URLS", Value: proofClientURL},
			{Name: "ETCD_LISTEN_PEER_URLS", Value: m.PeerURL},
			{Name: "ETCD_INITIAL_ADVERTISE_PEER_URLS", Value: m.PeerURL},
			{Name: "ETCD_INITIAL_CLUSTER", Value: m.Name + "=" + m.PeerURL},
			{Name: "ETCD_INITIAL_CLUSTER_TOKEN", Value: m.Token},
			{Name: "ETCD_QUOTA_BACKEND_BYTES", Value: "-1"},
			{Name: "ETCD_UNSAFE_NO_FSYNC", Value: "true"},
		},
		VolumeMounts:             []corev1.VolumeMount{{Name: proofVolume, MountPath: proofPath}},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

// set sets what spec.pod says.
func (p Pod) set(spec *corev1.PodSpec) {
	if p.Settings == nil {
		return
	}
	s := p.Settings.DeepCopy()
	spec.ServiceAccountName, spec.NodeSelector, spec.Tolerations = s.ServiceAccountName, s.NodeSelector, s.Tolerations
	spec.PriorityClassName, spec.ImagePullSecrets, spec.DNSConfig = s.PriorityClassName, s.ImagePullSecrets, s.DNSConfig
	spec.SecurityContext = s.SecurityContext
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			podtemplate.SetResources(&containers[i], s.Resources)
		}
	}
}

// Fetch is the init container [FetchContainer] of a member that begins with a backup, and the volumes
// that it needs beside the one of data, which has the task's data directory. What the pod's security
// context is, and that of the container, is the caller's.
func Fetch(image string, t task.Task, s v1beta2.BackupSource, data corev1.VolumeMount) (corev1.Container, []corev1.Volume) {
	c := container(FetchContainer, image, t)
	at, volumes := mounts(s, true, nil)
	c.VolumeMounts = slices.Concat(at, []corev1.VolumeMount{data})
	return c, volumes
}

// container is one in which the agent runs. It has nothing but its task from the operator: the
// variables of the cloud's identity are set by whoever admits the pod.
func container(name, image string, t task.Task) corev1.Container {
	text, _ := json.Marshal(t) // of plain data
	return corev1.Container{
		Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{task.Program}, Args: []string{string(text)},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
		}},
		TerminationMessagePath:   task.MessagePath,
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
}

// mounts are where the agent sees the credentials, and the claim.
func mounts(s v1beta2.BackupSource, readOnly bool, mode *int32) (at []corev1.VolumeMount, volumes []corev1.Volume) {
	if name := secretOf(s); name != "" {
		volumes = append(volumes, secretVolumeOf(secretVolume, name, mode))
		at = append(at, corev1.VolumeMount{Name: secretVolume, MountPath: task.SecretDir, ReadOnly: true})
	}
	if claim := s.PersistentVolumeClaim; claim != nil {
		volumes = append(volumes, corev1.Volume{Name: claimVolume, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.ClaimName},
		}})
		at = append(at, corev1.VolumeMount{Name: claimVolume, MountPath: task.VolumeDir, ReadOnly: readOnly})
	}
	return at, volumes
}

// secretVolumeOf is a volume that is empty while there is no such Secret: the kubelet would wait for it,
// without a word in the pod's status.
func secretVolumeOf(volume, name string, mode *int32) corev1.Volume {
	return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: name, DefaultMode: mode, Optional: new(true)},
	}}
}
