// Package versions knows which versions of etcd follow which.
//
// The rules are etcd's own (etcd.io/docs, "Upgrading" and "Downgrading"): one minor version at a
// time, up, and from 3.6 on one down. Two of them have a condition on the patch release: to 3.6
// only from 3.5.26 or later, because what an earlier one keeps about members that were removed
// makes them come back; to 3.7 only from 3.6.11 or later. The number alone does not do: a later 3.5 mends what it keeps
// about a member when that is written anew, see package rollout.
package versions

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// Version is a version of etcd. The zero value is none.
type Version struct {
	minor, patch int
	preRelease   string // such as rc.1
	isSet        bool
}

// newest is the newest patch release that is known of each minor version: what an upgrade goes
// through on its way to another minor version.
var newest = map[int]Version{
	2: of(2, 32), 3: of(3, 27), 4: of(4, 37), 5: of(5, 35), 6: of(6, 16), 7: of(7, 3),
}

// leaves is the patch release from which on a minor version can be upgraded to the next one.
var leaves = map[int]int{5: 26, 6: 11}

const (
	// lowestDowngrade is the lowest minor version that a downgrade can lead to.
	lowestDowngrade = 5
	// highest is the highest minor version that is known: nobody knows what the next one needs.
	highest = 7
)

func of(minor, patch int) Version { return Version{minor: minor, patch: patch, isSet: true} }

// Parse reads a version such as 3.6.16, with or without a leading v.
func Parse(text string) (Version, error) {
	read, err := version.ParseSemantic(text)
	if err != nil || read.Major() != 3 || read.BuildMetadata() != "" {
		return Version{}, fmt.Errorf("%q is no version of etcd: write one such as 3.6.16", text)
	}
	v := of(int(read.Minor()), int(read.Patch()))
	v.preRelease = read.PreRelease()
	return v, nil
}

// MinorOf is the minor version in a text such as 3.6.0 or 3.6: "3.6"; empty if there is none.
func MinorOf(text string) string {
	read, err := version.ParseMajorMinor(text)
	if err != nil {
		return ""
	}
	return read.String()
}

// ParseMinor is the minor version in a text such as 3.6.0 or 3.6: 6.
func ParseMinor(text string) (int, error) {
	read, err := version.ParseGeneric(text)
	if err != nil || read.Major() != 3 {
		return 0, fmt.Errorf("%q is no minor version of etcd", text)
	}
	return int(read.Minor()), nil
}

// String is the version without a v; empty for none.
func (v Version) String() string {
	switch {
	case !v.isSet:
		return ""
	case v.preRelease != "":
		return fmt.Sprintf("3.%d.%d-%s", v.minor, v.patch, v.preRelease)
	default:
		return fmt.Sprintf("3.%d.%d", v.minor, v.patch)
	}
}

// IsZero says whether it is none.
func (v Version) IsZero() bool { return !v.isSet }

// Minor is 6 of 3.6.16.
func (v Version) Minor() int { return v.minor }

// MinorString is 3.6 of 3.6.16.
func (v Version) MinorString() string { return fmt.Sprintf("3.%d", v.minor) }

// Less says whether v comes before w, by semver.org: a release candidate before its release. None comes before all.
func (v Version) Less(w Version) bool {
	if !v.isSet || !w.isSet {
		return w.isSet && !v.isSet
	}
	return version.MustParseSemantic(v.String()).LessThan(version.MustParseSemantic(w.String()))
}

// HasLearners says whether a member can be added as a learner.
func (v Version) HasLearners() bool { return v.minor >= 4 }

// Path are the versions that the members of a cluster go through, one after the other, from one
// version to another. It is empty if they are the same.
func Path(from, to Version) ([]Version, error) {
	switch {
	case from == to:
		return nil, nil
	case to.minor > highest:
		return nil, fmt.Errorf("etcd %s is newer than this operator knows: the newest minor version that it can upgrade to is 3.%d", to, highest)
	case to.minor == from.minor:
		return []Version{to}, nil
	case to.minor < from.minor:
		return down(from, to)
	}
	var path []Version
	for at := from; at.minor < to.minor; {
		if at.patch < leaves[at.minor] {
			at = newest[at.minor]
			path = append(path, at)
		}
		next := to
		if at.minor+1 < to.minor {
			known, ok := newest[at.minor+1]
			if !ok {
				return nil, fmt.Errorf("etcd cannot be upgraded from %s: this operator knows no version 3.%d", at, at.minor+1)
			}
			next = known
		}
		at = next
		path = append(path, at)
	}
	return path, nil
}

// down is the path of a downgrade.
func down(from, to Version) ([]Version, error) {
	switch {
	case from.minor <= lowestDowngrade:
		return nil, fmt.Errorf("etcd %s cannot be downgraded to %s: downgrades are possible from 3.%d on, by one minor version", from, to, lowestDowngrade+1)
	case to.minor < from.minor-1:
		return nil, fmt.Errorf("etcd %s cannot be downgraded to %s: a downgrade is possible by one minor version, to 3.%d. Set spec.version to such a version first", from, to, from.minor-1)
	}
	return []Version{to}, nil
}
