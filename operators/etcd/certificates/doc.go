// Package certificates reads the Secrets with the certificates of EtcdClusters with TLS, says what is wrong with them, and
// makes those that the spec wants generated. What has to be written is data: the operator writes it.
package certificates
