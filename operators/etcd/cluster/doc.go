// Package cluster is the operator of EtcdClusters: a cluster of etcd members that keeps every
// acknowledged write while a quorum of its disks survives.
//
// # The promise
//
//   - The operator takes no member away that the others cannot do without: before it removes,
//     restarts or replaces one, the rest has quorum.
//   - One thing at a time is changed of the members, and the next when the one before is
//     complete.
//   - A pod that is deleted comes back as the same member, with the same data where there are
//     volumes. A member whose data is lost is replaced. One that is slow, paused, pending or
//     cannot be reached is not lost, whatever the time it takes.
//   - That data is wrong is found out, of a majority, and not believed. A volume whose data is
//     only suspected, by whomever, outlives its member for a week (package membership).
//   - No second cluster begins under the name of one that was there. The loss of a quorum's
//     data is reported, and what happens then is the user's decision.
//   - An upgrade of the operator restarts no member.
//   - No finalizer: owner references delete everything, also when no operator runs.
//     What has joined an etcd that is being taken over stays until the first of its members is removed.
//
// # What is known, and from whom
//
// The members know who is a member: etcd's member list is the truth, and the operator keeps
// no other one (package view). It asks all members, and believes the list of the one that the
// others follow. Names join a member to its pod: the peer URL of a member is the name of its
// pod's host. What the list, status, the pod, its volume and its answer say of a member is
// joined once, and all steps read that. Status remembers what etcd cannot know
// (what a step remembers): the cluster's ID, so that members of another cluster are never taken
// for this one's; how many members were ever named, so that no two have the same name; and
// decisions that were made, before anything is done that depends on them.
//
// # How a cluster is formed
//
// All founders start at once, with an empty disk and the list of all founders. A
// founder whose data is lost must not be created again, because a majority of empty founders
// is a new cluster. So a founder's pod is created with a scheduling gate, status counts it,
// and then the gate is removed: one that status counts, and whose data is not there, is lost.
//
// Nothing is founded while there is a pod or a volume that may be of a cluster of this name
// (membership.SettleExisting).
//
// # The steps
//
// They are functions of these names, in this order (table in decide.go). Each is a function of what is known, and
// returns what it does, as a value (package step); what it remembers, the next one finds in status. The first that has
// anything to do is done, but for Restore, RemoveStrays and DropHistory, which leave the others their turn:
//
//	membership.StartStopped    start members that were stopped, and nothing else, while certificates are missing
//	membership.SettleExisting  wait for the user's word on what may be of a cluster of this name
//	restoring.RestoreBackup    take a restore one step on: the cluster is replaced by one that begins with a backup,
//	                           once that serves
//	membership.Join            claim a running etcd that is to be taken over, once all checks hold
//	membership.Form            form a cluster that has no ID yet
//	membership.RecoverQuorum   report that quorum is lost for good, and do what the user decides
//	membership.Restore         create pods of members that have their data; without quorum, give those an image whose
//	                           own is gone, or too low
//	rollout.TakeBack           give a member the version of the others again that cannot start with a later one, for what
//	                           etcd's API v2 has written
//	membership.RemoveStrays    delete what is left of removed members: pods first, then volumes
//	rollout.DropHistory        drop the older half of the history that takes half of the room, before a database is full
//	rollout.AwaitMaintenance   wait for the compaction or defragmentation that is under way
//	membership.AwaitQuorum     wait for a quorum, and restart members that nobody trusts any more
//	membership.SettleCorrupt   end an alarm CORRUPT: compare the members' data, remove who has other data than a majority
//	rollout.MakeSpace          make room in a full database, with those that are there, as nobody can write
//	membership.GoBack          leave the etcd that was joined, if the user wants that
//	membership.SettleLearner   promote a learner that has caught up, or remove one whose data is lost
//	membership.RemoveLost      remove a member whose data is lost, if the rest has quorum
//	rollout.Authenticate       turn authentication on, if that is requested
//	membership.RemoveSurplus   remove one if there are too many: one that is leaving, or that is down; the leader never,
//	                           it hands over before
//	membership.AddMissing      add one if there are too few, or one is leaving, as a learner, when all members are there,
//	                           and no downgrade is enabled: nobody can join until then
//	membership.TakeOver        lead the etcd that was joined, and remove its members of before, once they have stopped
//	rollout.RollOut            change versions and pods one at a time, the leader last
//	rollout.KeepUp             free space in files, one at a time, the leader last
//
// # Whom clients are led to
//
// The Service for clients selects pods by a label that those of voters have (membership.MarkVoters): the pod of a learner
// is as ready as theirs, and refuses clients. A pod begins with the label if its member votes, and else gets it when the
// member itself knows that it was promoted. Where pods were made before there was the label, the Service leads to all
// until all voters have it.
//
// # Requests to members
//
// What is observed is data, and so is what is decided: also the one request that a member may get in a
// reconcile, after the writes to the API server. It says what is asked, of whom, and for which member list. One
// function makes it (CarryOut of package session): it compares the list, knows which answers mean that it is not time,
// logs and counts.
//
// A compaction or a defragmentation takes minutes where a database is great. Status has which member it is of, and
// by when it is over, before it is requested; it runs in the background, so that no reconcile waits for it. Until it
// is over, nothing else is changed of the members, and one that is being defragmented is not asked for anything: it
// is busy, and not down. An operator that takes over waits for it, too (package session).
//
// # When it is looked again
//
// Of what members do there is no event. What is under way is looked at again in a moment, and the longer
// the same is waited for, the later: after an eighth of that time, and at most as seldom as a cluster at rest
// (wake.go). So one that cannot be scheduled, or has no quorum for a night, costs little.
//
// # Members that leave their nodes
//
// Where members cannot take their data to another node, as they have no volume, or one of that node only, one whose node
// is cordoned is leaving; so is one whose pod has the annotation for that. There is to be one member more then: it is
// added as any that is missing, the scheduler finds it another node, and when it votes, and all others serve, the one that
// is leaving is removed as any surplus. Meanwhile, and before, the PodDisruptionBudget lets nobody go: kubectl drain
// waits until the operator has deleted the pod. If the node is uncordoned before, the new one is the surplus. It takes
// the right to see Nodes and PersistentVolumes (observenodes.go); what is leaving is in leaving.go of package view.
//
// # Changes in the pod
//
// A pod without a volume is its data, so what can be is changed in the pod: the image, upon
// which the kubelet restarts the container, and everything else that etcd needs to know at its
// next start by annotations, of which its environment is made. Everything that etcd is told is
// told by its environment, because it ignores variables that it does not know, and refuses
// flags that it does not know: the same pod runs all versions.
//
// A container is stopped by an image of its own registry with a tag that cannot be: the kubelet
// kills it and pulls nothing. Where admission refuses that too, because it reads the whole name,
// restarts stand still, and `Ready` has the refusal.
package cluster
