// Package etcd is the etcd operator: EtcdClusters, in operators/etcd/cluster, and EtcdBackups, in
// operators/etcd/backup. How it talks to members is in members, which versions follow which in
// versions, and its certificates in pki. Packages agent and store are in a program of their own,
// and what both programs know of each other is in task.
package etcd

import (
	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/operators/etcd/backup"
	"example.com/fairlead/operators/etcd/cluster"
	"example.com/fairlead/operators/etcd/restore"
)

// Operator is the etcd operator.
var Operator = run.Operator{
	Name:        "etcd",
	AddToScheme: v1beta2.AddToScheme,
	Kinds:       []run.Kind{cluster.Kind, backup.Kind, restore.Kind},
}
