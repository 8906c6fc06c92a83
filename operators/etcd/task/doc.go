// Package task is what the operator and its agent tell each other: what is to be done ([Task]), and what became of
// it ([Result]). Both go through the API server as JSON, between programs of different versions: fields are added, and
// one that is renamed is written and read by both names.
//
// It is plain data, and imports nothing of etcd's server or of clouds: the operator's program links this
// package, and neither package agent nor package store.
package task
