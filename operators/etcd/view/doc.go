// Package view is a cluster as its members, status and the Kubernetes cluster describe it. All that was observed is
// an [Observation]: data, without a client. [Of] joins what each of five says of a member, etcd's member list, status, the
// pod, its volume and its own answer, to one record, and says who leads, whether there is a quorum, and which pods and
// volumes are nobody's. Everything that is decided is decided by that; nothing here decides.
package view
