package cluster

import (
	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/job"
	"example.com/fairlead/operators/etcd/task"
)

// mostCrashes is how often etcd may end until it is clear that it cannot be started with the backup.
const mostCrashes = 5

// seedWords are what is known of the seed.
type seedWords struct {
	// isLost says that its data is not what was recorded.
	isLost bool
	// failed says why it will never serve, by a reason and a message, and problem why it does not yet.
	failed, problem string
	// fetched is what its data was made of, and serves says that it leads a cluster of itself, with
	// that data.
	fetched *task.Fetched
	serves  bool
}

// readSeed reads what the seed's pod says, and what its etcd answers.
func (p *plan) readSeed(ec *v1beta2.EtcdCluster, seen observation, r *v1beta2.Restoring) seedWords {
	said := seedWords{}
	pod, data := seen.seed.pod, seen.seed.data(ec)
	if r.SeedData != "" && (data != r.SeedData || pod != nil && isOver(pod) && !hasVolumes(ec)) || seen.seed.claim != nil && isEnding(seen.seed.claim) {
		said.isLost = true
		return said
	}
	if pod == nil || isEnding(pod) {
		return said
	}
	out := job.ReadFetch(pod)
	if out.Problem != nil {
		said.problem = wordsOf(out.Problem)
		if !out.Problem.Passes {
			said.failed = wordsOf(out.Problem)
			return said
		}
	}
	if out.State != job.Ended || out.Result == nil || out.Result.Fetched == nil {
		if words := problemOf(&member{name: pod.Name, pod: pod, claim: seen.seed.claim}, seen); said.problem == "" && words != problemStarting {
			said.problem = words
		}
		return said
	}
	said.fetched = out.Result.Fetched
	a, asked := seen.answers[pod.Name]
	said.serves = asked && a.hasList() && len(a.list.Members) == 1 && a.status.Leader == a.status.ID &&
		a.status.ClusterID.String() == said.fetched.ClusterID && a.status.Revision >= said.fetched.Revision
	if said.serves {
		return said
	}
	m := &member{name: pod.Name, pod: pod, claim: seen.seed.claim, answer: &a}
	said.problem = problemOf(m, seen)
	_, isCrash := problemOfContainers(m, seen.now)
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == containerName && c.State.Running == nil && c.RestartCount >= mostCrashes && isCrash {
			said.failed = "NotServing: the backup is whole, but etcd does not start with it: " + said.problem
		}
	}
	return said
}

// wordsOf is a problem in one line.
func wordsOf(p *task.Problem) string { return status.Shortened(p.Reason + ": " + p.Message) }
