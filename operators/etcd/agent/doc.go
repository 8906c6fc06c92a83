// Package agent is what runs in the pods that make, prove and remove backups, and in the init
// container of a member that begins with one: `fairlead-etcd-agent <task as JSON>`. It is a program of its own,
// so that the manager's has neither etcd's server nor the clients of clouds.
//
// All data goes through these pods, and none of it through the operator. The operator says what is
// to be done ([task.Task]), package job makes the pod, and the agent's termination message is what became
// of it ([task.Result]). Credentials are mounted as files; nothing of them is in a task, a result, or
// the log.
//
// # Save
//
// All endpoints are asked at once for their status, so that one that is dead or hangs fails nothing.
// Of those that have a leader, a follower is taken rather than the leader, and the one that has
// applied most first. It has to serve a linearizable read: what was acknowledged before the
// backup began is in it. Its snapshot is streamed into the storage. The last 32 bytes are the
// SHA-256 of all before, which etcd has made: if they are not, the object is never completed. If the
// member fails meanwhile, the next one is tried.
//
// A snapshot does not say its revision. The member is asked before it, and again when the first
// bytes of it have come. The backup has everything up to the first of the two revisions, which
// is the one that is reported and whose hash is taken, and nothing after the second, which is
// the one in the object's name: whoever wants the state at a revision must not get more. While
// nobody writes, both are the same; otherwise they are some milliseconds apart.
//
// # Prove
//
// A pod of three: an init container fetches the object as a member of its own (below), the
// cluster's etcd serves that to the pod alone, and the agent compares revision and hash with those
// that were recorded when it was saved.
//
// # Fetch
//
// The object is downloaded beside the data directory and checked, restored beside it as a new cluster of
// one, whose revisions begin far above those of the cluster before, with all below compacted, and renamed to the data directory, with what there is to be reported in it. So the data
// directory is complete or absent, whenever the agent dies, and one that is there is never touched
// again.
//
// # Prune
//
// What an EtcdBackup has written, and nothing else, is removed where there are more than it keeps.
package agent
