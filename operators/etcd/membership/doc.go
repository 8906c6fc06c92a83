// Package membership has the steps of an EtcdCluster that decide which members there are: how it is formed, what of it was
// there before, the loss of quorum, members that are lost, missing or too many, and the pods that they need.
package membership
