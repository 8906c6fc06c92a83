// Package step is what a step of an EtcdCluster returns: what it does, what status remembers of it, and what it reports, as
// a value. Most is made here of what a step says: writes to objects of members, and requests to the leader.
package step
