// Package objects has what is wanted of an EtcdCluster's objects, and reads what is there: names and labels, the pod of
// a member with what etcd is told by its environment, its volume, the seed of a restore, the Services, the
// PodDisruptionBudget, and which Secrets have the certificates. All of it is made of the spec; nothing here reads
// the Kubernetes cluster or decides anything.
package objects
