// Package annotation has the annotations that the etcd kinds put on pods and volumes.
package annotation

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// prefix is the domain of the API group.
const prefix = "etcd.database.coreos.com/"

// Those of an EtcdCluster's pods.
const (
	// Version has the version that a pod is to run. CoreOS' operator wrote it as well.
	Version = "etcd.version"
	// Template has the hash of what the pod was made of.
	Template = prefix + "template"
	// Image has the image that the container is to have. What it has may be another one: admission webhooks
	// rewrite images, to those of a mirror for example.
	Image = prefix + "image"
	// CA has the hash of the CAs that the pod started with.
	CA = prefix + "ca"
	// InitialCluster has the members that a member starts with.
	InitialCluster = prefix + "initial-cluster"
	// ForceNewCluster is true while a member is to start as a cluster of its own.
	ForceNewCluster = prefix + "force-new-cluster"
	// StoppedFor has, on the pods of members that were stopped for a restore, the name of the seed.
	StoppedFor = prefix + "stopped-for"
)

// Replace is set by users on the pod of a member: true has the member replaced, by one that is there before.
const Replace = prefix + "replace"

// Those of an EtcdCluster's volumes.
const (
	// ClusterUID has the UID of the EtcdCluster that a volume was made for.
	ClusterUID = prefix + "cluster-uid"
	// KeptFor has, on a volume that is kept, the name of the seed that has replaced its member.
	KeptFor = prefix + "kept-for"
	// Suspect has, on the volume of a member whose data is not trusted, why; and KeptSince, since when it is kept although
	// it has no member any more.
	Suspect   = prefix + "suspect"
	KeptSince = prefix + "kept-since"
)

// Those of an EtcdBackup's pods.
const (
	// Generation has the generation of the spec that a pod is made of.
	Generation = prefix + "generation"
	// BackupUID has the UID of the EtcdBackup that a pod was made for: others may take its labels and its owner.
	BackupUID = prefix + "backup-uid"
)

// formerPrefix is that of pods and volumes which commits before 0.1.0 made. They keep it for good: a pod's environment
// is made of its annotations, and cannot be changed.
const formerPrefix = "etcd-operator/"

// On is the name that one of the annotations has on an object.
func On(obj client.Object, name string) string {
	if suffix, is := strings.CutPrefix(name, prefix); is && isFormer(obj) {
		return formerPrefix + suffix
	}
	return name
}

// Of is the value of one of the annotations of an object; empty if it has none.
func Of(obj client.Object, name string) string { return obj.GetAnnotations()[On(obj, name)] }

// Named are values of annotations, which they have by their names here, by the names that they have on an object.
func Named(obj client.Object, values map[string]any) map[string]any {
	named := map[string]any{}
	for name, value := range values {
		named[On(obj, name)] = value
	}
	return named
}

// isFormer says whether an object has the former prefix. Of a member's pod its environment says so, whatever was done
// to its annotations.
func isFormer(obj client.Object) bool {
	if pod, is := obj.(*corev1.Pod); is {
		for _, c := range pod.Spec.Containers {
			for _, v := range c.Env {
				if v.ValueFrom == nil || v.ValueFrom.FieldRef == nil {
					continue
				}
				switch path := v.ValueFrom.FieldRef.FieldPath; {
				case strings.Contains(path, "'"+prefix):
					return false
				case strings.Contains(path, "'"+formerPrefix):
					return true
				}
			}
		}
	}
	for name := range obj.GetAnnotations() {
		if strings.HasPrefix(name, formerPrefix) {
			return true
		}
	}
	return false
}
