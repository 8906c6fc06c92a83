// Package v1alpha1 is the API cnat.programming-kubernetes.info/v1alpha1: the
// kind At in the group of the book "Programming Kubernetes". Its spec and status
// are those of at.example.com/v1alpha1.
//
// +kubebuilder:object:generate=true
// +groupName=cnat.programming-kubernetes.info
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "cnat.programming-kubernetes.info", Version: "v1alpha1"}

// AddToScheme registers the kinds of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &At{}, &AtList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
