package objects

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/versions"
)

// This file has what etcd is told by its environment. There are no flags: the image of a member
// is changed in place between versions, and etcd refuses to start with a flag that it does not
// know, but only warns about such a variable. A value that a version does not understand keeps it
// from starting, though. Of the variables here that is ETCD_AUTO_COMPACTION_RETENTION, which takes
// nothing but hours before 3.3.

// Start is how a member starts that has no data yet, and whether one with data starts alone.
type Start struct {
	// IsNew is true for a founder: the members of initial make a new cluster.
	IsNew bool
	// Initial are all members, this one among them.
	Initial []Founder
	// Token keeps members apart that were founded as different clusters.
	Token string
	// IsSealed says that it has started before, see [Sealed].
	IsSealed bool
	// isGated keeps it from being scheduled until status has recorded what has its data.
	isGated bool
	// Force makes a cluster of this member alone, with its data.
	Force bool
	// IsLearner says that it does not vote yet.
	IsLearner bool
	// InPlaceOf is the pod of the member whose place it takes, and which leaves when this one votes; empty if there is none.
	InPlaceOf string
}

// Founder is a member in the list that a member starts with.
type Founder struct{ Name, PeerURL string }

// List is the members as ETCD_INITIAL_CLUSTER has them.
func (s Start) List() string {
	if s.IsSealed {
		return Sealed
	}
	var all []string
	for _, f := range s.Initial {
		all = append(all, f.Name+"="+f.PeerURL)
	}
	return strings.Join(all, ",")
}

// reserved are the variables that a user cannot set: those that the operator sets in any case or
// as the spec says, those that have etcd not read its environment at all, and those that have it
// look for its members elsewhere.
var reserved = []string{
	"ETCD_NAME", "ETCD_DATA_DIR", "ETCD_LISTEN_PEER_URLS", "ETCD_LISTEN_CLIENT_URLS", "ETCD_LISTEN_METRICS_URLS",
	"ETCD_INITIAL_ADVERTISE_PEER_URLS", "ETCD_ADVERTISE_CLIENT_URLS",
	"ETCD_INITIAL_CLUSTER", "ETCD_INITIAL_CLUSTER_STATE", "ETCD_INITIAL_CLUSTER_TOKEN", "ETCD_FORCE_NEW_CLUSTER",
	"ETCD_FORCE_NEW_CLUSTER_BUMP_AMOUNT", "ETCD_STRICT_RECONFIG_CHECK", "ETCD_LOGGER",
	"ETCD_CERT_FILE", "ETCD_KEY_FILE", "ETCD_TRUSTED_CA_FILE", "ETCD_CLIENT_CERT_AUTH", "ETCD_AUTO_TLS",
	"ETCD_PEER_CERT_FILE", "ETCD_PEER_KEY_FILE", "ETCD_PEER_TRUSTED_CA_FILE", "ETCD_PEER_CLIENT_CERT_AUTH", "ETCD_PEER_AUTO_TLS",
	"ETCD_CONFIG_FILE", "ETCD_PROXY",
}

// isReserved says whether the operator decides about a variable.
func isReserved(ec *v1beta2.EtcdCluster, variable string) bool {
	isField := slices.ContainsFunc(settings(ec), func(is corev1.EnvVar) bool { return is.Name == variable })
	return isField || slices.Contains(reserved, variable) || strings.HasPrefix(variable, "ETCD_DISCOVERY") ||
		keepsHistory(ec) > 0 && strings.HasPrefix(variable, "ETCD_AUTO_COMPACTION_")
}

// settings are the variables of what spec says of etcd itself, and of which a pod has to be made anew.
func settings(ec *v1beta2.EtcdCluster) (all []corev1.EnvVar) {
	if quota := ec.Spec.QuotaBackendBytes; quota != nil {
		all = append(all, corev1.EnvVar{Name: "ETCD_QUOTA_BACKEND_BYTES", Value: strconv.FormatInt(quota.Value(), 10)})
	}
	if every := ec.Spec.HeartbeatInterval; every != nil {
		all = append(all, corev1.EnvVar{Name: "ETCD_HEARTBEAT_INTERVAL", Value: strconv.FormatInt(every.Milliseconds(), 10)})
	}
	if after := ec.Spec.ElectionTimeout; after != nil {
		all = append(all, corev1.EnvVar{Name: "ETCD_ELECTION_TIMEOUT", Value: strconv.FormatInt(after.Milliseconds(), 10)})
	}
	return all
}

// CompactsItself says whether etcd drops history by itself, by a variable in spec.pod.etcdEnv.
func CompactsItself(ec *v1beta2.EtcdCluster) bool {
	return slices.ContainsFunc(usersVariables(ec), func(is corev1.EnvVar) bool {
		return is.Name == "ETCD_AUTO_COMPACTION_RETENTION" && is.Value != "" && is.Value != "0"
	})
}

// usersVariables are those of spec.pod.etcdEnv that count.
func usersVariables(ec *v1beta2.EtcdCluster) []corev1.EnvVar {
	if ec.Spec.Pod == nil {
		return nil
	}
	var all []corev1.EnvVar
	for _, v := range ec.Spec.Pod.EtcdEnv {
		if !isReserved(ec, v.Name) {
			all = append(all, *v.DeepCopy())
		}
	}
	return all
}

// variables are the environment of a member.
func variables(ec *v1beta2.EtcdCluster, member, version string, s Start, certs Certificates) []corev1.EnvVar {
	state := "existing"
	if s.IsNew {
		state = "new"
	}
	everywhere := func(port int) string { return fmt.Sprintf("%s://0.0.0.0:%d", scheme(ec), port) }
	all := append(usersVariables(ec), []corev1.EnvVar{
		{Name: "ETCD_NAME", Value: member},
		{Name: "ETCD_DATA_DIR", Value: DataPath + "/data"},
		{Name: "ETCD_LISTEN_PEER_URLS", Value: everywhere(members.PeerPort)},
		{Name: "ETCD_LISTEN_CLIENT_URLS", Value: everywhere(members.ClientPort)},
		{Name: "ETCD_INITIAL_ADVERTISE_PEER_URLS", Value: PeerURLOf(ec, member)},
		{Name: "ETCD_ADVERTISE_CLIENT_URLS", Value: fmt.Sprintf("%s://%s:%d", scheme(ec), HostOf(ec, member), members.ClientPort)},
		fromAnnotation("ETCD_INITIAL_CLUSTER", annotation.InitialCluster),
		{Name: "ETCD_INITIAL_CLUSTER_STATE", Value: state},
		{Name: "ETCD_INITIAL_CLUSTER_TOKEN", Value: s.Token},
		{Name: "ETCD_STRICT_RECONFIG_CHECK", Value: "true"},
		fromAnnotation("ETCD_FORCE_NEW_CLUSTER", annotation.ForceNewCluster),
	}...)
	if ServesMetrics(version) {
		all = append(all, corev1.EnvVar{Name: "ETCD_LISTEN_METRICS_URLS", Value: fmt.Sprintf("http://0.0.0.0:%d", metricsPort)})
	}
	if versions.MinorOf(version) == "3.4" {
		// Later versions have no other logger, and 3.4 writes what status looks for on many lines.
		all = append(all, corev1.EnvVar{Name: "ETCD_LOGGER", Value: "zap"})
	}
	if kept := keepsHistory(ec); kept > 0 {
		all = append(all, compaction(kept, version)...)
	}
	all = append(all, settings(ec)...)
	if ec.Spec.TLS != nil {
		all = append(all, tlsVariables(certs)...)
	}
	return all
}

// fromAnnotation is a variable that may have another value when the container is started again.
// Without the annotation it is empty, which for etcd is as if it were not there.
func fromAnnotation(variable, annotation string) corev1.EnvVar {
	return corev1.EnvVar{Name: variable, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
		APIVersion: "v1", FieldPath: "metadata.annotations['" + annotation + "']",
	}}}
}

func keepsHistory(ec *v1beta2.EtcdCluster) time.Duration {
	if ec.Spec.KeepHistory == nil {
		return 0
	}
	return ec.Spec.KeepHistory.Duration
}

// compaction has etcd drop what is older. Before 3.3 it counts in whole hours, and knows no mode.
func compaction(kept time.Duration, version string) []corev1.EnvVar {
	if !ServesMetrics(version) {
		hours := (kept + time.Hour - 1) / time.Hour
		return []corev1.EnvVar{{Name: "ETCD_AUTO_COMPACTION_RETENTION", Value: strconv.Itoa(int(hours))}}
	}
	return []corev1.EnvVar{
		{Name: "ETCD_AUTO_COMPACTION_MODE", Value: "periodic"},
		{Name: "ETCD_AUTO_COMPACTION_RETENTION", Value: fmt.Sprintf("%dm", kept/time.Minute)},
	}
}

// ServesMetrics says whether a version can serve metrics and health at an address of their own:
// 3.3 and later.
func ServesMetrics(version string) bool {
	minor, err := versions.ParseMinor(version)
	return err == nil && minor >= 3
}

// Variables are those of the container etcd in a pod.
func Variables(pod *corev1.Pod) []corev1.EnvVar {
	for _, c := range pod.Spec.Containers {
		if c.Name == ContainerName {
			return c.Env
		}
	}
	return nil
}

// Variable is the value of a variable of the container etcd in a pod.
func Variable(pod *corev1.Pod, variable string) string {
	for _, v := range Variables(pod) {
		if v.Name == variable {
			return v.Value
		}
	}
	return ""
}

// Sealed is a list of members without the member. The list that a member starts with is an annotation of its pod, and once
// it has started it is sealed: replaced by one without the member. With data etcd does not look at it;
// without, it does not start. So a member whose disk was emptied does not come back as one that
// has forgotten what it had acknowledged, nor take part in founding another cluster.
const Sealed = "data-lost=http://data-lost:2380"
