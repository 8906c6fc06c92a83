package view

import (
	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/versions"
)

// Lowest is the lowest version of the members, as far as they have one.
func (v *View) Lowest() versions.Version {
	var lowest versions.Version
	for _, m := range v.Members {
		if !m.Version.IsZero() && (lowest.IsZero() || m.Version.Less(lowest)) {
			lowest = m.Version
		}
	}
	return lowest
}

// Highest is the highest version of the members.
func (v *View) Highest() versions.Version {
	var highest versions.Version
	for _, m := range v.Members {
		if highest.Less(m.Version) {
			highest = m.Version
		}
	}
	return highest
}

// Downgrading is the version that a downgrade is enabled to; empty if none is.
func (v *View) Downgrading() string {
	if m := v.LeadingAnywhere(); m != nil {
		return m.Answer.Status.Downgrading
	}
	return ""
}

// IsStoredAs says whether all members have their data in the format of a minor version.
func (v *View) IsStoredAs(minor string) bool {
	return v.Find(func(m *Member) bool {
		return !m.HasAnswered() || versions.MinorOf(m.Answer.Status.StorageVersion) != minor
	}) == nil
}

// Alarms are the alarms of a type, as the leader has them.
func (v *View) Alarms(kind string) []members.Alarm {
	var all []members.Alarm
	if m := v.LeadingAnywhere(); m != nil {
		for _, alarm := range m.Answer.Status.Alarms {
			if alarm.Type == kind {
				all = append(all, alarm)
			}
		}
	}
	return all
}

// Joining is how a member starts that belongs to a cluster which is there.
func (v *View) Joining(ec *v1beta2.EtcdCluster) objects.Start {
	s := objects.Start{Token: string(ec.UID)}
	for _, m := range v.Members {
		switch {
		case m.IsForeign():
			for _, url := range m.PeerURLs { // etcd compares all of them
				s.Initial = append(s.Initial, objects.Founder{Name: m.Name, PeerURL: url})
			}
		default:
			s.Initial = append(s.Initial, objects.Founder{Name: m.PodName, PeerURL: objects.PeerURLOf(ec, m.PodName)})
		}
	}
	return s
}

// VersionFor is the version that a member is created with: the one that it had, or that the
// others have.
func (v *View) VersionFor(ec *v1beta2.EtcdCluster, m *Member) versions.Version {
	if !m.Version.IsZero() {
		return m.Version
	}
	if v, err := versions.Parse(ec.Status.CurrentVersion); err == nil {
		return v
	}
	return v.Wanted
}
