// Package model is a model of etcd for simulations: processes, disks, raft and the store, as far
// as they matter to an operator. It has no goroutines and no clock of its own.
//
// It follows the source of etcd's server module, version 3.6: etcdserver/bootstrap.go for starts,
// etcdserver/server.go (mayAddMember, mayRemoveMember, mayPromoteMember) and
// etcdserver/api/membership/cluster.go for the rules of membership, etcdserver/version for
// versions. Where it is simpler than etcd:
//
//   - An entry is committed at the moment of its proposal or not at all: there are no entries that
//     are neither. A leader that loses its quorum stops leading at once, not after a second.
//   - A disk that was lost and is started as "existing" is refused with the text of raft's panic,
//     as long as the leader lives that remembers what it had sent there. Another leader takes it.
//   - Storage 3.5 is storage 3.6 as soon as the cluster version is. A 3.7 does not start on older
//     data than 3.6; snapshots of the write-ahead log are not modelled.
//   - What the API v2 has written is one bit, which is gone when World.DropV2 has deleted it: 3.6 ends with it. Keys, and
//     that snapshots are taken one by one, are not modelled.
//   - A defragmentation takes World.DefragmentTakes: the member answers no client meanwhile, and its peers as
//     ever. Real ones do it in the time that their disks need, and an etcd 3.5 answers for its status.
//   - The sizes of the database are counts of writes times a constant.
//   - Disk.Corrupt keeps a process from starting. The alarm CORRUPT is raised by World.Diverge,
//     which compares nothing, and ends with the request to disarm it.
//   - Disk.Restore makes of a Snapshot what etcdutl does, with an ID of the cluster that is no etcd's.
//   - Nothing is modelled of users, leases, watches, TLS, and of keys but their writes' numbers.
package model
