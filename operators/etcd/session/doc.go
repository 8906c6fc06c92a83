// Package session is how the operator talks to the members of its EtcdClusters. It keeps a client for each cluster, asks
// all members how they are and whom they have for members, remembers what they said, and makes the requests that were
// decided on: one that may take minutes, a compaction or a defragmentation, in the background.
//
// No reconcile waits for those:
//
//	status names the member, and a deadline    nothing else is changed of the members until it is over
//	the request is made in the background      by the operator that has written that, within some seconds or not at all
//	its end is found by the next look          of that operator. Another one waits for the deadline, and then takes
//	                                           it for not done
//
// A member that is being defragmented does not serve, and is not asked for anything: it is busy, not down. If its
// etcd ends meanwhile, the defragmentation is over, and not done.
package session
