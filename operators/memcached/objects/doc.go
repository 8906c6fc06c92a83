// Package objects has what is wanted of a Memcached's objects: their names, labels and annotations, the pod template
// with how memcached is started and stopped, the workloads, the Service, the PodDisruptionBudget, and the copies of
// Secrets. All of it is made of the spec. Nothing here knows what is there, decides, or imports another package of the
// operator.
package objects
