package run

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Labels of a leader's Lease. They say what runs, which the tag of an image does not: it may be of another build since.
const (
	VersionLabel = "fairlead.example.com/version"
	CommitLabel  = "fairlead.example.com/commit"
)

// BuildLabels are those that this program puts on its Lease. What is no value of a label is left out, because the API
// server would refuse the Lease, and there would be no leader.
func BuildLabels() map[string]string {
	labels := map[string]string{VersionLabel: strings.ReplaceAll(Version, "+", "_"), CommitLabel: commit()}
	maps.DeleteFunc(labels, func(_, value string) bool { return len(validation.IsValidLabelValue(value)) > 0 })
	return labels
}
