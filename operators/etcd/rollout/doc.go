// Package rollout has the steps of an EtcdCluster that change what its members are: their version, their pods and images, the
// certificates that they trust, and the files of their databases. One member at a time, the leader last; which members there
// are is not its concern.
package rollout
