package pool

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/services"
	"example.com/fairlead/internal/kit/status"
)

// Observation is all that the steps depend on, besides the Memcached.
type Observation struct {
	Now time.Time
	// Children are the children by kind; an empty object where there is none.
	Children loop.Children
	// Pods are those of the servers, by name, also those that are ending. One that is
	// over, because it was evicted for example, is none: a Deployment leaves it there, a
	// StatefulSet creates it again.
	Pods []corev1.Pod
	// Unmounted are the Secrets that pods mount and that are not there.
	Unmounted []pods.Mount
	// Reached are the pods that the Service leads to.
	Reached services.Targets
	// Pulls are the pods that only pull an image.
	Pulls []corev1.Pod
	// Copies are the copies of Secrets that are there.
	Copies []metav1.PartialObjectMetadata
	// Resizes is true when the cluster can resize running pods.
	Resizes bool
	// Limits are of the servers that are not known to have the memory that they
	// were given, by name.
	Limits map[string]Limit
	// Missing are names of servers that the cache does not show, and have been
	// missing since then.
	Missing      []string
	MissingSince time.Time
	// Lost are servers without their labels, and BlockedBy is a pod that has the
	// name of a server and is none.
	Lost      []*corev1.Pod
	BlockedBy string
	// Budgets are PodDisruptionBudgets of others that select pods, too.
	Budgets []string
	// Inputs are what the pods are given from Secrets.
	Inputs Inputs
}

// Deployment is the Deployment; an empty one if there is none.
func (o Observation) Deployment() *appsv1.Deployment {
	return loop.The[*appsv1.Deployment](o.Children)
}

// StatefulSet is the StatefulSet; an empty one if there is none.
func (o Observation) StatefulSet() *appsv1.StatefulSet {
	return loop.The[*appsv1.StatefulSet](o.Children)
}

// Budget is the PodDisruptionBudget; an empty one if there is none.
func (o Observation) Budget() *policyv1.PodDisruptionBudget {
	return loop.The[*policyv1.PodDisruptionBudget](o.Children)
}

// Limit is what is known about the memory of a server.
type Limit struct {
	Wanted, Has int64 // in mebibytes; Has is 0 where it could not be read
	Since       time.Time
	Next        time.Time // when to query again
}

// Inputs are the Secrets as they are.
type Inputs struct {
	// Hash is of the contents of all copies, as they are or are to be; empty
	// without Secrets.
	Hash string
	// Stale are the copies that are to be written.
	Stale []StaleCopy
	// Missing are the roles of which a copy cannot be made and there is none yet.
	Missing []string
	// Problem is what is wrong with the first Secret that has something wrong.
	Problem *status.Problem
}

// StaleCopy is a copy, and what it is to hold.
type StaleCopy struct {
	Role string
	Seen *corev1.Secret
	Data map[string][]byte
}
