// Package restore is the operator of EtcdRestores. It does nothing of a restore itself: the loop of
// the EtcdCluster does (operators/etcd/restoring), because nobody else may change its
// members. That one remembers in the EtcdCluster's status.restoring which restore is under way, and
// in status.restored what became of the last one; here it becomes the status of the EtcdRestore.
//
// An EtcdRestore that is Complete or Failed stays so, whatever becomes of the cluster. No other is
// begun before the last one says so: status.restored has but one.
//
// Which EtcdCluster it is of, an EtcdRestore decides once: it writes the UID of the first one of the name that it sees, and
// only that one begins it. When that one is gone it has failed: it would else restore old data into whatever is created
// under that name some day.
package restore
