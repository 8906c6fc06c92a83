package report

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// versions are that of the server, and those of Fairlead's kinds. Without an answer of the server there is no report.
func (g *gathering) versions(ctx context.Context, config *rest.Config) (string, error) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", err
	}
	server, err := d.ServerVersion()
	if err != nil {
		return "", err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "Kubernetes %s (%s)\n", server.GitVersion, server.Platform)
	own, _ := reported()
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	for _, resource := range own {
		name := resource.GroupResource().String()
		crd, err := g.objects.Resource(crds).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			g.without("CustomResourceDefinition "+name, err)
			_, err := d.ServerResourcesForGroupVersion(resource.GroupVersion().String())
			fmt.Fprintf(&text, "%s: version %s is served: %t\n", name, resource.Version, err == nil)
			continue
		}
		fmt.Fprintf(&text, "%s: %s\n", name, versionsOf(crd))
	}
	return text.String(), nil
}

// versionsOf are the versions of a CRD, and a hash by which schemas can be told apart.
func versionsOf(crd *unstructured.Unstructured) string {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	var words []string
	for _, item := range versions {
		version, _ := item.(map[string]any)
		schema, _ := json.Marshal(version["schema"])
		hash := sha256.Sum256(schema)
		words = append(words, fmt.Sprintf("%v (served %v, stored %v, schema %x)",
			version["name"], version["served"], version["storage"], hash[:6]))
	}
	stored, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	if slices.Sort(stored); len(stored) > 1 {
		words = append(words, "stored objects of "+strings.Join(stored, ", "))
	}
	return strings.Join(words, "; ")
}
