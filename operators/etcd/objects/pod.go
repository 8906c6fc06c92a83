package objects

import (
	"encoding/json"
	"maps"
	"math"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/names"
	"example.com/fairlead/internal/kit/podsecurity"
	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/members"
)

const (
	// ContainerName is the container that etcd runs in, as users of the CoreOS operator know it.
	ContainerName = "etcd"
	// DataPath is where a member's data is; etcd makes a folder in it.
	DataPath = "/var/etcd"

	volumeName = "etcd-data"
	// etcdUser is the user and group that etcd runs as, unless spec.pod.securityContext says so.
	etcdUser = 65532
	// Gate keeps a founder from being scheduled until status counts it.
	Gate = "etcd-operator/founders"
)

// Pod is the pod of a member.
func Pod(ec *v1beta2.EtcdCluster, member, version string, s Start, certs Certificates) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ec.Namespace, Name: member, OwnerReferences: ControlledBy(ec),
			Labels: labels(ec, member), Annotations: annotations(ec, version, s, certs),
		},
		Spec: corev1.PodSpec{
			Hostname: member, Subdomain: ec.Name,
			RestartPolicy:                 corev1.RestartPolicyAlways,
			TerminationGracePeriodSeconds: new(int64(30)),
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			Containers:                    []corev1.Container{container(ec, member, version, s, certs)},
			Volumes:                       []corev1.Volume{dataVolume(ec, member)},
		},
	}
	if !s.IsLearner {
		p.Labels[VoterLabel] = "true"
	}
	if s.IsNew || s.isGated {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: Gate}}
	}
	setPolicy(ec, &p.Spec, s.InPlaceOf)
	podtemplate.OnLinux(&p.Spec)
	isRestricted := !podsecurity.Restrict(&p.Spec, etcdUser, ContainerName)
	if isRestricted {
		p.Spec.SecurityContext.FSGroup = new(int64(etcdUser))
		// Not at every start: that takes long for much data, and etcd wants its folder to itself.
		p.Spec.SecurityContext.FSGroupChangePolicy = new(corev1.FSGroupChangeOnRootMismatch)
	}
	if ec.Spec.TLS != nil {
		mountCertificates(&p.Spec, certs, isRestricted)
	}
	podtemplate.KeepLastWords(p.Spec.Containers...)
	return p
}

func annotations(ec *v1beta2.EtcdCluster, version string, s Start, certs Certificates) map[string]string {
	all := map[string]string{}
	if ec.Spec.Pod != nil {
		maps.Copy(all, ec.Spec.Pod.Annotations)
		delete(all, annotation.Replace) // it is about one pod
	}
	all[annotation.Version], all[annotation.Template] = version, TemplateHash(ec)
	all[annotation.Image] = ImageOf(ec, version)
	all[annotation.InitialCluster] = s.List()
	if s.Force {
		all[annotation.ForceNewCluster] = "true"
	}
	if certs.CaHash != "" {
		all[annotation.CA] = certs.CaHash
	}
	return all
}

// container is the container of etcd. It has no liveness probe: what a restart could mend, etcd
// ends itself for, and while there is no quorum a restart would only take one more member away.
func container(ec *v1beta2.EtcdCluster, member, version string, s Start, certs Certificates) corev1.Container {
	c := corev1.Container{
		Name: ContainerName, Image: ImageOf(ec, version), ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{"/usr/local/bin/etcd"},
		Env:     variables(ec, member, version, s, certs),
		Ports: []corev1.ContainerPort{
			{Name: clientPortName, ContainerPort: members.ClientPort, Protocol: corev1.ProtocolTCP},
			{Name: peerPortName, ContainerPort: members.PeerPort, Protocol: corev1.ProtocolTCP},
		},
		VolumeMounts: []corev1.VolumeMount{{Name: volumeName, MountPath: DataPath}},
		// A member that is new may need long for the data of the others, and one that was restarted
		// for its log. One that has no leader for the time of an election stays among those that clients find.
		StartupProbe:   probe(version, math.MaxInt32),
		ReadinessProbe: probe(version, 10),
	}
	if ServesMetrics(version) {
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: metricsPortName, ContainerPort: metricsPort, Protocol: corev1.ProtocolTCP})
	}
	if ec.Spec.Pod != nil {
		podtemplate.SetResources(&c, ec.Spec.Pod.Resources)
	}
	return c
}

// probe asks whether a member serves: reads, with a quorum. A full database serves reads. The
// images have no shell, and before 3.3 etcd needs a client certificate to tell. Clients find it a second
// after it serves, the shortest time that Kubernetes has.
func probe(version string, failures int32) *corev1.Probe {
	p := &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 1, FailureThreshold: failures}
	if ServesMetrics(version) {
		p.HTTPGet = &corev1.HTTPGetAction{Path: "/health?exclude=NOSPACE", Port: intstr.FromInt32(metricsPort)}
	} else {
		p.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromInt32(members.ClientPort)}
	}
	return p
}

// setPolicy sets what spec.pod says about where the pod runs, and as what. The zone of the pod whose place it takes is
// as good as one without a member: otherwise drains would gather a majority in one zone, while all have room.
func setPolicy(ec *v1beta2.EtcdCluster, spec *corev1.PodSpec, inPlaceOf string) {
	policy := ec.Spec.Pod.DeepCopy()
	if policy == nil {
		policy = &v1beta2.PodPolicy{}
	}
	spec.NodeSelector, spec.Tolerations, spec.PriorityClassName = policy.NodeSelector, policy.Tolerations, policy.PriorityClassName
	spec.ServiceAccountName, spec.ImagePullSecrets, spec.DNSConfig = policy.ServiceAccountName, policy.ImagePullSecrets, policy.DNSConfig
	spec.Affinity, spec.SecurityContext = policy.Affinity, policy.SecurityContext
	spec.TopologySpreadConstraints = policy.TopologySpreadConstraints
	others := &metav1.LabelSelector{MatchLabels: Selector(ec)}
	for i := range spec.TopologySpreadConstraints {
		if c := &spec.TopologySpreadConstraints[i]; c.LabelSelector == nil {
			c.LabelSelector = others
		}
	}
	isLeftToUs := SpreadsItself(ec)
	if isLeftToUs {
		staying := others.DeepCopy()
		if inPlaceOf != "" {
			staying.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: NodeLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{inPlaceOf}}}
		}
		podtemplate.PreferOtherZones(spec, staying)
	}
	switch {
	case policy.AntiAffinity:
		podtemplate.RequireOtherNodes(spec, others)
	case isLeftToUs:
		podtemplate.SpreadOverNodes(spec, others)
	}
}

// SpreadsItself says whether members are spread by the operator, as spec.pod says nothing of where they are to be.
func SpreadsItself(ec *v1beta2.EtcdCluster) bool {
	return ec.Spec.Pod == nil || ec.Spec.Pod.Affinity == nil && len(ec.Spec.Pod.TopologySpreadConstraints) == 0
}

func dataVolume(ec *v1beta2.EtcdCluster, member string) corev1.Volume {
	v := corev1.Volume{Name: volumeName}
	if HasVolumes(ec) {
		v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(member)}
	} else {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	return v
}

// TemplateHash is the hash of what of spec a running pod cannot take over. It is made of the
// spec and not of the pod, so that another version of the operator, which makes other pods, does
// not replace those that are there.
func TemplateHash(ec *v1beta2.EtcdCluster) string {
	policy := ec.Spec.Pod.DeepCopy()
	if policy == nil {
		policy = &v1beta2.PodPolicy{}
	}
	// What no pod is made of. A volume that grows does so while it is mounted.
	policy.PersistentVolumeClaimSpec, policy.BusyboxImage, policy.DNSTimeoutInSecond = nil, "", 0
	data, _ := json.Marshal(struct { // of plain data, and the same as of the policy alone where there are no settings
		*v1beta2.PodPolicy
		Settings []corev1.EnvVar `json:"settings,omitempty"`
	}{policy, settings(ec)})
	return names.Hash(string(data))
}

// Claim requests the volume of a member. Another EtcdCluster of the same name does not take it.
func Claim(ec *v1beta2.EtcdCluster, member string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ec.Namespace, Name: claimName(member), OwnerReferences: ControlledBy(ec),
			Labels: labels(ec, member), Annotations: map[string]string{annotation.ClusterUID: string(ec.UID)},
		},
		Spec: *ec.Spec.Pod.PersistentVolumeClaimSpec.DeepCopy(),
	}
	if len(c.Spec.AccessModes) == 0 {
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	if c.Spec.VolumeMode == nil {
		c.Spec.VolumeMode = new(corev1.PersistentVolumeFilesystem)
	}
	return c
}
