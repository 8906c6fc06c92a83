package objects

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/operators/etcd/annotation"
)

// environmentOf is the environment of a member, by name. A variable that is there twice counts as
// Kubernetes has it: the last.
func environmentOf(p *corev1.Pod) map[string]string {
	all := map[string]string{}
	for _, v := range p.Spec.Containers[0].Env {
		all[v.Name] = v.Value
		if v.ValueFrom != nil {
			all[v.Name] = v.ValueFrom.FieldRef.FieldPath
		}
	}
	return all
}

func TestAFounder(t *testing.T) {
	want := map[string]string{
		"ETCD_NAME":                        "example-abcde",
		"ETCD_DATA_DIR":                    "/var/etcd/data",
		"ETCD_LISTEN_PEER_URLS":            "http://0.0.0.0:2380",
		"ETCD_LISTEN_CLIENT_URLS":          "http://0.0.0.0:2379",
		"ETCD_LISTEN_METRICS_URLS":         "http://0.0.0.0:2381",
		"ETCD_INITIAL_ADVERTISE_PEER_URLS": "http://example-abcde.example.shop.svc:2380",
		"ETCD_ADVERTISE_CLIENT_URLS":       "http://example-abcde.example.shop.svc:2379",
		"ETCD_INITIAL_CLUSTER":             "metadata.annotations['etcd.database.coreos.com/initial-cluster']",
		"ETCD_INITIAL_CLUSTER_STATE":       "new",
		"ETCD_INITIAL_CLUSTER_TOKEN":       "t",
		"ETCD_STRICT_RECONFIG_CHECK":       "true",
		"ETCD_FORCE_NEW_CLUSTER":           "metadata.annotations['etcd.database.coreos.com/force-new-cluster']",
	}
	p := aPod(aCluster())
	if got, want := p.Annotations[annotation.InitialCluster], "example-abcde=http://example-abcde.example.shop.svc:2380,example-fghjk=http://example-fghjk.example.shop.svc:2380"; got != want {
		t.Errorf("the members are %s, want %s", got, want)
	}
	if diff := cmp.Diff(want, environmentOf(p)); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	etcd := p.Spec.Containers[0]
	if etcd.Image != "quay.io/coreos/etcd:v3.6.16" || len(etcd.Args) != 0 || len(etcd.Command) != 1 {
		t.Errorf("image %s, command %v, arguments %v", etcd.Image, etcd.Command, etcd.Args)
	}
	if p.Spec.Hostname != "example-abcde" || p.Spec.Subdomain != "example" || p.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		t.Errorf("host %s.%s, restart policy %s", p.Spec.Hostname, p.Spec.Subdomain, p.Spec.RestartPolicy)
	}
	if p.Annotations["etcd.version"] != "3.6.16" || len(p.Spec.SchedulingGates) != 1 || p.Annotations[annotation.ForceNewCluster] != "" {
		t.Errorf("annotations %v, gates %v", p.Annotations, p.Spec.SchedulingGates)
	}
}

func TestAMemberIsScraped(t *testing.T) {
	p := aPod(aCluster())
	if err := testkit.CheckPodMonitor("../config/prometheus/podmonitor.yaml", corev1.PodTemplateSpec{ObjectMeta: p.ObjectMeta, Spec: p.Spec}); err != nil {
		t.Error(err)
	}
}

func TestAMemberThatJoins(t *testing.T) {
	p := Pod(aCluster(), "example-abcde", "3.6.16", Start{Token: "t", Initial: founding.Initial}, Certificates{})
	if got := Variable(p, "ETCD_INITIAL_CLUSTER_STATE"); got != "existing" || len(p.Spec.SchedulingGates) != 0 {
		t.Errorf("state %q, gates %v", got, p.Spec.SchedulingGates)
	}
	if got := Variable(p, "ETCD_NO_SUCH"); got != "" {
		t.Errorf("a variable that is not there: %q", got)
	}
}

func TestAMemberThatStartsAlone(t *testing.T) {
	p := Pod(aCluster(), "example-abcde", "3.6.16", Start{Force: true}, Certificates{})
	if p.Annotations[annotation.ForceNewCluster] != "true" {
		t.Errorf("annotations %v", p.Annotations)
	}
}

// TestVersions: what is particular about a version.
func TestVersions(t *testing.T) {
	for version, tc := range map[string]struct {
		probe, logger, metrics bool
		retention              string
	}{
		"3.2.13": {retention: "2"},
		"3.3.27": {probe: true, metrics: true, retention: "90m"},
		"3.4.37": {probe: true, metrics: true, retention: "90m", logger: true},
		"3.5.33": {probe: true, metrics: true, retention: "90m"},
		"3.7.0":  {probe: true, metrics: true, retention: "90m"},
		"3.10.0": {probe: true, metrics: true, retention: "90m"},
	} {
		p := Pod(aCluster(keeping(90*time.Minute)), "example-abcde", version, founding, Certificates{})
		etcd, env := p.Spec.Containers[0], environmentOf(p)
		for kind, probe := range map[string]*corev1.Probe{"startup": etcd.StartupProbe, "readiness": etcd.ReadinessProbe} {
			if (probe.HTTPGet != nil) != tc.probe || (probe.TCPSocket != nil) == tc.probe {
				t.Errorf("%s: %s probe %+v", version, kind, probe.ProbeHandler)
			}
		}
		_, serves := env["ETCD_LISTEN_METRICS_URLS"]
		if serves != tc.metrics || (env["ETCD_LOGGER"] == "zap") != tc.logger || env["ETCD_AUTO_COMPACTION_RETENTION"] != tc.retention {
			t.Errorf("%s: environment %v", version, env)
		}
		if etcd.LivenessProbe != nil || etcd.StartupProbe.PeriodSeconds != 1 || etcd.ReadinessProbe.PeriodSeconds != 1 || etcd.ReadinessProbe.FailureThreshold != 10 {
			t.Errorf("%s: probes %+v, %+v, %+v", version, etcd.LivenessProbe, etcd.StartupProbe, etcd.ReadinessProbe)
		}
	}
}

// TestUsersVariables: those that the operator decides about are left out, all others count.
func TestUsersVariables(t *testing.T) {
	p := aPod(aCluster(withVariables(
		"ETCD_QUOTA_BACKEND_BYTES", "8", "ETCD_NAME", "theirs", "ETCD_CONFIG_FILE", "theirs", "ETCD_DISCOVERY_SRV", "theirs",
		"ETCD_CERT_FILE", "theirs", "ETCD_AUTO_COMPACTION_RETENTION", "1", "GODEBUG", "x=1",
	)))
	if first := p.Spec.Containers[0].Env[0]; first.Name != "ETCD_QUOTA_BACKEND_BYTES" || first.Value != "8" {
		t.Errorf("the first variable is %+v", first)
	}
	env := environmentOf(p)
	for variable, want := range map[string]string{"ETCD_NAME": "example-abcde", "ETCD_CONFIG_FILE": "", "ETCD_DISCOVERY_SRV": "", "ETCD_CERT_FILE": "", "ETCD_AUTO_COMPACTION_RETENTION": "1", "GODEBUG": "x=1"} {
		if env[variable] != want {
			t.Errorf("%s is %q, want %q", variable, env[variable], want)
		}
	}
	p = aPod(aCluster(keeping(time.Hour), withVariables("ETCD_AUTO_COMPACTION_RETENTION", "1", "ETCD_AUTO_COMPACTION_MODE", "revision")))
	if env := environmentOf(p); env["ETCD_AUTO_COMPACTION_RETENTION"] != "60m" || env["ETCD_AUTO_COMPACTION_MODE"] != "periodic" || len(usersVariables(aCluster(keeping(time.Hour)))) != 0 {
		t.Errorf("spec.keepHistory does not count: %v", env)
	}
}

func TestCertificatesOfPods(t *testing.T) {
	p := aPod(aCluster(withTLS))
	env := environmentOf(p)
	for variable, want := range map[string]string{
		"ETCD_LISTEN_CLIENT_URLS": "https://0.0.0.0:2379", "ETCD_LISTEN_PEER_URLS": "https://0.0.0.0:2380",
		"ETCD_ADVERTISE_CLIENT_URLS": "https://example-abcde.example.shop.svc:2379", "ETCD_LISTEN_METRICS_URLS": "http://0.0.0.0:2381",
		"ETCD_PEER_CLIENT_CERT_AUTH": "true", "ETCD_CLIENT_CERT_AUTH": "true",
		"ETCD_PEER_CERT_FILE": "/etc/etcdtls/member/peer-tls/peer.crt", "ETCD_PEER_KEY_FILE": "/etc/etcdtls/member/peer-tls/peer.key",
		"ETCD_PEER_TRUSTED_CA_FILE": "/etc/etcdtls/member/peer-tls/peer-ca.crt", "ETCD_CERT_FILE": "/etc/etcdtls/member/server-tls/tls.crt",
		"ETCD_KEY_FILE": "/etc/etcdtls/member/server-tls/tls.key", "ETCD_TRUSTED_CA_FILE": "/etc/etcdtls/member/server-tls/ca.crt",
	} {
		if env[variable] != want {
			t.Errorf("%s is %q, want %q", variable, env[variable], want)
		}
	}
	secrets := map[string]string{}
	for i, v := range p.Spec.Volumes {
		if v.Secret != nil {
			secrets[p.Spec.Containers[0].VolumeMounts[i].MountPath] = v.Secret.SecretName
			if *v.Secret.DefaultMode != 0o440 {
				t.Errorf("files of %s have mode %o", v.Secret.SecretName, *v.Secret.DefaultMode)
			}
		}
	}
	if diff := cmp.Diff(map[string]string{peerTLSPath: "peers", serverTLSPath: "servers"}, secrets); diff != "" {
		t.Errorf("Secrets (-want +got):\n%s", diff)
	}
	if p.Annotations[annotation.CA] != "1234" {
		t.Errorf("annotations %v", p.Annotations)
	}
}

// TestPodsAreUnprivileged: they meet the restricted Pod Security Standard, unless the spec says
// otherwise for the pod.
func TestPodsAreUnprivileged(t *testing.T) {
	spec := aPod(aCluster()).Spec
	if s := spec.SecurityContext; !*s.RunAsNonRoot || *s.RunAsUser != 65532 || *s.FSGroup != 65532 || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("security context of the pod %+v", s)
	}
	if *spec.AutomountServiceAccountToken || *spec.EnableServiceLinks {
		t.Error("etcd has a token of the service account, or variables that are named after Services")
	}
	theirs := &corev1.PodSecurityContext{RunAsUser: new(int64(1000))}
	own := aPod(aCluster(withTLS, withPolicy(func(p *policy) { p.SecurityContext = theirs }))).Spec
	if diff := cmp.Diff(theirs, own.SecurityContext); diff != "" || own.Volumes[1].Secret.DefaultMode != nil {
		t.Errorf("with a security context of the user's (-want +got):\n%s", diff)
	}
	for _, c := range append(spec.Containers, own.Containers...) {
		if s := c.SecurityContext; *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || s.Capabilities.Drop[0] != "ALL" {
			t.Errorf("security context of the container %+v", s)
		}
	}
}

func TestPlacement(t *testing.T) {
	theirs := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
	constraints := []corev1.TopologySpreadConstraint{
		{MaxSkew: 1, TopologyKey: "rack", WhenUnsatisfiable: corev1.DoNotSchedule},
		{MaxSkew: 1, TopologyKey: "row", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}},
	}
	for name, tc := range map[string]struct {
		set     func(*policy)
		spread  string // over what, and by which labels
		zones   bool
		excepts bool
	}{
		"nothing said":      {func(*policy) {}, "kubernetes.io/hostname etcd_cluster=example", true, false},
		"affinity":          {func(p *policy) { p.Affinity = theirs }, "", false, false},
		"anti-affinity":     {func(p *policy) { p.AntiAffinity = true }, "", true, true},
		"both":              {func(p *policy) { p.Affinity, p.AntiAffinity = theirs, true }, "", false, true},
		"constraints":       {func(p *policy) { p.TopologySpreadConstraints = constraints }, "rack etcd_cluster=example, row a=b", false, false},
		"and anti-affinity": {func(p *policy) { p.TopologySpreadConstraints, p.AntiAffinity = constraints[1:], true }, "row a=b", false, true},
	} {
		ec := aCluster(withPolicy(tc.set))
		before := ec.DeepCopy()
		spec := aPod(ec).Spec
		var spread []string
		for _, c := range spec.TopologySpreadConstraints {
			labels := maps.Clone(c.LabelSelector.MatchLabels)
			delete(labels, "app")
			spread = append(spread, c.TopologyKey+" "+k8slabels.FormatLabels(labels))
		}
		var zones, excepts bool
		if spec.Affinity != nil && spec.Affinity.PodAntiAffinity != nil {
			zones = len(spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) == 1
			excepts = len(spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) == 1
		}
		if got := strings.Join(spread, ", "); got != tc.spread || zones != tc.zones || excepts != tc.excepts {
			t.Errorf("%s: spread over %q, other zones preferred %v, kept off the same node %v", name, got, zones, excepts)
		}
		if ec.Spec.Pod.Affinity != nil && spec.Affinity.NodeAffinity == nil {
			t.Errorf("%s: the user's affinity is lost", name)
		}
		if diff := cmp.Diff(before, ec); diff != "" {
			t.Errorf("%s: the spec was changed: %s", name, diff)
		}
	}
}

// TestZoneOfTheMemberThatLeaves: a member that takes the place of another may have its zone, which has that one still. The
// others count, also those without the label.
func TestZoneOfTheMemberThatLeaves(t *testing.T) {
	ec := aCluster()
	counts := func(s Start, member string) bool {
		p := Pod(ec, "example-zzzzz", "3.6.16", s, Certificates{})
		selector, err := metav1.LabelSelectorAsSelector(p.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm.LabelSelector)
		if err != nil {
			t.Fatal(err)
		}
		return selector.Matches(k8slabels.Set(labels(ec, member)))
	}
	const leaving, staying = "example-abcde", "example-fghij"
	for s, want := range map[*Start]bool{{}: true, {InPlaceOf: leaving}: false} {
		if !counts(*s, staying) || counts(*s, leaving) != want {
			t.Errorf("in place of %q: %s counts %v, %s counts %v, want %v", s.InPlaceOf, staying, counts(*s, staying), leaving, counts(*s, leaving), want)
		}
	}
}

// TestPodOfThePolicy: what a policy says of pods is every pod's, also of one that begins with a backup.
func TestPodOfThePolicy(t *testing.T) {
	ec := aCluster(withPolicy(func(p *policy) {
		p.PriorityClassName, p.ServiceAccountName = "high", "pulls"
		p.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
		p.DNSConfig = &corev1.PodDNSConfig{Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: new("1")}}}
	}))
	spec := aPod(ec).Spec
	if spec.PriorityClassName != "high" || spec.ServiceAccountName != "pulls" || *spec.AutomountServiceAccountToken ||
		len(spec.ImagePullSecrets) != 1 || len(spec.DNSConfig.Options) != 1 {
		t.Errorf("%+v", spec)
	}
	for named, want := range map[string]string{"": "pulls", "cloud": "cloud"} {
		r := aRestoring()
		r.Source.ServiceAccountName = named
		seed, err := SeedPod(ec, r, "3.6.16", 41, "agent", Certificates{})
		if err != nil {
			t.Fatal(err)
		}
		if seed.Spec.PriorityClassName != "high" || seed.Spec.ServiceAccountName != want {
			t.Errorf("the seed of an EtcdRestore with the account %q has %q: %+v", named, seed.Spec.ServiceAccountName, seed.Spec)
		}
	}
}

func TestDataVolumes(t *testing.T) {
	if v := aPod(aCluster()).Spec.Volumes[0]; v.EmptyDir == nil || v.Name != "etcd-data" {
		t.Errorf("without volumes: %+v", v)
	}
	if v := aPod(aCluster(withVolumes)).Spec.Volumes[0]; v.PersistentVolumeClaim == nil || v.PersistentVolumeClaim.ClaimName != "example-abcde" {
		t.Errorf("with volumes: %+v", v)
	}
}

// TestTemplateHash: pods are replaced for what they cannot take over while they run, and for
// nothing else.
func TestTemplateHash(t *testing.T) {
	request := func(memory string) clusterOption {
		return withPolicy(func(p *policy) {
			p.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
		})
	}
	for name, tc := range map[string]struct {
		before, after *etcdCluster
		replaces      bool
	}{
		"nothing":                    {aCluster(), aCluster(withPolicy(func(*policy) {})), false},
		"version, image, size":       {aCluster(), aCluster(func(ec *etcdCluster) { ec.Spec.Version, ec.Spec.Repository, ec.Spec.Size = "3.7.0", "r", 5 }), false},
		"history":                    {aCluster(), aCluster(keeping(time.Hour)), false},
		"a larger volume":            {aCluster(withPolicy(func(*policy) {})), aCluster(withVolumes), false},
		"fields of no effect":        {aCluster(), aCluster(withPolicy(func(p *policy) { p.BusyboxImage, p.DNSTimeoutInSecond = "b", 5 })), false},
		"another name for as much":   {aCluster(request("1024Mi")), aCluster(request("1Gi")), false},
		"resources":                  {aCluster(request("1Gi")), aCluster(request("2Gi")), true},
		"variables":                  {aCluster(), aCluster(withVariables("ETCD_QUOTA_BACKEND_BYTES", "8")), true},
		"labels":                     {aCluster(), aCluster(withPolicy(func(p *policy) { p.Labels = map[string]string{"a": "b"} })), true},
		"annotations":                {aCluster(), aCluster(withPolicy(func(p *policy) { p.Annotations = map[string]string{"a": "b"} })), true},
		"tolerations":                {aCluster(), aCluster(withPolicy(func(p *policy) { p.Tolerations = []corev1.Toleration{{Key: "a"}} })), true},
		"anti-affinity":              {aCluster(), aCluster(withPolicy(func(p *policy) { p.AntiAffinity = true })), true},
		"the domain of its own name": {aCluster(), aCluster(inDomain("k.local")), true},
	} {
		if replaces := TemplateHash(tc.before) != TemplateHash(tc.after); replaces != tc.replaces {
			t.Errorf("a change of %s replaces pods: %v", name, replaces)
		}
	}
	// Written down, so that it is noticed when another version of the operator would replace pods.
	for hash, ec := range map[string]*etcdCluster{"9acca9082e": aCluster(), "db62cd6657": aCluster(request("1Gi"), withVariables("A", "b"))} {
		if got := TemplateHash(ec); got != hash {
			t.Errorf("template hash %s, was %s", got, hash)
		}
	}
}

// TestSettings: what spec says of etcd itself counts, and replaces pods. That pods without stay is in TestTemplateHash.
func TestSettings(t *testing.T) {
	ec := aCluster(withVariables("ETCD_QUOTA_BACKEND_BYTES", "8", "ETCD_ELECTION_TIMEOUT", "5000"))
	before := TemplateHash(ec)
	ec.Spec.QuotaBackendBytes, ec.Spec.HeartbeatInterval = new(resource.MustParse("1Gi")), &metav1.Duration{Duration: 300 * time.Millisecond}
	env := environmentOf(aPod(ec))
	for variable, want := range map[string]string{"ETCD_QUOTA_BACKEND_BYTES": "1073741824", "ETCD_HEARTBEAT_INTERVAL": "300", "ETCD_ELECTION_TIMEOUT": "5000"} {
		if env[variable] != want {
			t.Errorf("%s is %q, want %q", variable, env[variable], want)
		}
	}
	after := TemplateHash(ec)
	ec.Spec.QuotaBackendBytes = new(resource.MustParse("1024Mi"))
	if after == before || TemplateHash(ec) != after {
		t.Errorf("the hash is %s without settings, %s with, and %s with the same in other words", before, after, TemplateHash(ec))
	}
}
