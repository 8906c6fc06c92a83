// Package v1 is the API my.domain/v1: the kind WebServer, a web server that
// scales, upgrades without a failed request, rolls back automatically, and repairs
// changes that others make to its objects.
//
// +kubebuilder:object:generate=true
// +groupName=my.domain
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "my.domain", Version: "v1"}

// AddToScheme registers the kinds of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &WebServer{}, &WebServerList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
