// Package v1beta2 is the API etcd.database.coreos.com/v1beta2, with the names and fields that
// the CoreOS etcd operator made known, and optional ones beside them: the kinds
// EtcdCluster, a cluster of etcd members that keeps every acknowledged write, EtcdBackup and EtcdRestore.
//
// +kubebuilder:object:generate=true
// +groupName=etcd.database.coreos.com
package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "etcd.database.coreos.com", Version: "v1beta2"}

// AddToScheme registers the kinds of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&EtcdCluster{}, &EtcdClusterList{}, &EtcdBackup{}, &EtcdBackupList{}, &EtcdRestore{}, &EtcdRestoreList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
