package operators

import (
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// defaults are the fields to which the API server gives a value, by kind, in the order of the alphabet.
var defaults = map[string][]string{
	"At": {"status"}, "EtcdBackup": {"spec.backupPolicy.timeoutInSecond", "spec.verify", "status"}, "EtcdRestore": {"spec.timeoutInSecond", "status"},
	"EtcdCluster": {"spec", "spec.recoverFrom.timeoutInSecond", "spec.repository", "spec.size", "spec.version", "status", "status.restoring.source.timeoutInSecond"},
	"Memcached": {"spec", "spec.auth.key", "spec.identity", "spec.maxConnections", "spec.maxItemSize", "spec.memory", "spec.metrics.image",
		"spec.metrics.port", "spec.port", "spec.size", "spec.threads", "spec.upgrade", "spec.version", "status"},
	"WebServer": {"spec.autoscaling.minReplicas", "spec.autoscaling.targetCPUUtilizationPercentage", "spec.config.check", "spec.config.path",
		"spec.content.path", "spec.ingress.path", "spec.port", "spec.replicas", "spec.rollout", "spec.rollout.deadlineSeconds",
		"spec.rollout.drainSeconds", "spec.rollout.maxSurge", "spec.service.port", "spec.service.type", "spec.tls.path", "status"},
}

// ofKubernetes are the fields of Kubernetes' own types.
var ofKubernetes = regexp.MustCompile(`\.(podTemplate|env\[\]|etcdEnv\[\]|imagePullSecrets\[\]|grpc)\.`)

// TestNoOtherDefaults: the API server gives a default to what is stored already, too, as soon as the CRD has it, wherever
// the object around it is there. So a new one changes the spec of objects in an upgrade, as enabled in an existing
// disruption once did. Leave the field empty, and let the operator take that for the usual value. A default may come
// into the list with a kind, or with an object that no release has had. That of the status is for objects which no operator
// has seen: they have no status that could say otherwise.
func TestNoOtherDefaults(t *testing.T) {
	files, err := filepath.Glob("*/config/crd/*_*.yaml")
	if err != nil || len(files) < len(defaults) {
		t.Fatalf("%d CRDs, error %v", len(files), err)
	}
	for _, file := range files {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal([]byte(readFile(t, file)), &crd); err != nil {
			t.Fatal(err)
		}
		for _, version := range crd.Spec.Versions {
			var have []string
			findDefaults(version.Schema.OpenAPIV3Schema, "", &have)
			slices.Sort(have)
			if want := defaults[crd.Spec.Names.Kind]; !slices.Equal(have, want) {
				t.Errorf("%s has defaults for\n%q, want\n%q", file, have, want)
			}
		}
	}
}

func findDefaults(schema *apiextensionsv1.JSONSchemaProps, path string, all *[]string) {
	if schema.Default != nil && !ofKubernetes.MatchString(path) {
		*all = append(*all, path[1:])
	}
	for name, field := range schema.Properties {
		findDefaults(&field, path+"."+name, all)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		findDefaults(schema.Items.Schema, path+"[]", all)
	}
}
