package model

import (
	"slices"

	"example.com/fairlead/operators/etcd/members"
)

// Snapshot is a backup of the store.
type Snapshot struct {
	head    *entry
	storage int
}

// Snapshot makes a backup by way of the member at an address.
func (w *World) Snapshot(address string) (*Snapshot, error) {
	p, err := w.at(address)
	if err != nil {
		return nil, err
	}
	if p.leader == nil {
		return nil, members.ErrNoLeader
	}
	return &Snapshot{head: p.config.Disk.head, storage: p.config.Disk.storage}, nil
}

// Revision is that of the store.
func (s *Snapshot) Revision() int64 { return s.head.state.revision }

// IsFor says whether a version knows the format of the data.
func (s *Snapshot) IsFor(version string) bool { return s.storage <= parse(version).minor }

// Has says whether a write is in the backup.
func (s *Snapshot) Has(write Write) bool { return (&Disk{head: s.head}).Has(write) }

// Restore makes of an empty disk that of the only member of a new cluster, as etcdutl does: the keys
// are those of the backup, and nothing else is. The log begins anew, and revisions begin with the given one, with all
// below compacted.
func (d *Disk) Restore(s *Snapshot, name, peerURL, token string, begins int64) {
	member := hash(peerURL + token)
	state := &state{
		cluster:  hash(string(slices.Concat([]byte(token), []byte(member.String())))),
		members:  []members.Member{{ID: member, Name: name, PeerURLs: []string{peerURL}}},
		revision: begins, compacted: begins,
		dbInUse: s.head.state.dbInUse,
	}
	d.member, d.cluster, d.term, d.storage = member, state.cluster, 1, s.storage
	d.head = &entry{prev: s.head, index: s.head.index + 1, term: 1, state: state}
	d.file = state.dbInUse
}
