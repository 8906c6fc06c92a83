// Package restoring has the step of an EtcdCluster that replaces it by one which begins with a backup: its seed, the switch,
// and what becomes of the members before.
package restoring
