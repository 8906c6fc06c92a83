// Package names bounds names and label values, whatever users call their
// objects: cut where they would be too long, with a hash of the whole at the
// end, so that two long names never become one.
package names

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// MaxLabel is how long the value of a label may be, and a DNS label.
const MaxLabel = 63

const hashLength = 10

// LabelValue is the name of an object as the value of a label.
func LabelValue(name string) string { return Bounded(name, MaxLabel) }

// Bounded is name if it is no longer than limit bytes, and otherwise its
// beginning with a hash of the whole. A limit must leave room for the hash.
func Bounded(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	return strings.TrimRight(name[:limit-hashLength-1], "-.") + "-" + Hash(name)
}

// hosts are the names that a Service, and the host of a pod, may have.
var hosts = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// Host is the name of an object if a host may be called that, and otherwise one that begins with the prefix.
func Host(prefix, name string) string {
	if hosts.MatchString(name) {
		return name
	}
	return prefix + strings.ReplaceAll(name, ".", "-") + "-" + Hash(name)
}

// Hash is short, and fit for the end of a name.
func Hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])[:hashLength]
}
