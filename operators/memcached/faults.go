package memcached

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

// This file knows by which faults of memcached a client can end a server, with its items.

// reasonFixedLater is the reason of the condition KnownFaults.
const reasonFixedLater = "FixedInLaterVersion"

// fault is what is wrong with memcached before a version.
type fault struct {
	fixed   []int
	matters func(*v1alpha1.Memcached) bool
	words   string
}

// faults are from memcached's release notes: those of the text protocol, which all servers
// speak, and of what the spec has a field for. That of logging in was tried with 1.6.38.
var faults = []fault{
	{[]int{1, 6, 42}, func(*v1alpha1.Memcached) bool { return true }, "a client can end a server with a malformed request"},
	{[]int{1, 6, 44}, func(mc *v1alpha1.Memcached) bool { return mc.Spec.Auth != nil }, "with auth, whoever can connect can end a server without logging in"},
}

// knownFaults says what is wrong with a version in a pool; empty if nothing is known, as of
// an image whose tag is no version.
func knownFaults(mc *v1alpha1.Memcached, version string) string {
	var words []string
	var fixed string
	for _, f := range faults {
		if f.matters(mc) && pool.IsBefore(version, f.fixed...) {
			fixed = fmt.Sprintf("%d.%d.%d", f.fixed[0], f.fixed[1], f.fixed[2])
			words = append(words, fmt.Sprintf("%s (fixed in %s)", f.words, fixed))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return fmt.Sprintf("memcached %s has known faults: %s. Set spec.version to %s or later, unless the image has the fixes", version, strings.Join(words, "; "), fixed)
}

// reportFaults sets the condition KnownFaults, of the version that the servers have or are
// to get.
func reportFaults(mc *v1alpha1.Memcached, st *v1alpha1.MemcachedStatus, conditions status.Conditions) {
	for _, version := range []string{st.Version, pool.VersionOf(objects.ImageOf(mc))} {
		if words := knownFaults(mc, version); words != "" {
			conditions.Set(v1alpha1.ConditionKnownFaults, true, reasonFixedLater, words)
			return
		}
	}
	meta.RemoveStatusCondition(conditions.List, v1alpha1.ConditionKnownFaults)
}
