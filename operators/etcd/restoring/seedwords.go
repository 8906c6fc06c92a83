package restoring

import (
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/job"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/task"
	"example.com/fairlead/operators/etcd/view"
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
func readSeed(m *view.Member) seedWords {
	said := seedWords{}
	if m.Was.DataUID != "" && (m.Data != m.Was.DataUID || m.Pod != nil && pods.IsOver(m.Pod) && !m.IsOnVolume) || m.Claim != nil && objects.IsEnding(m.Claim) {
		said.isLost = true
		return said
	}
	if m.Pod == nil || objects.IsEnding(m.Pod) {
		return said
	}
	out := job.ReadFetch(m.Pod)
	if out.Problem != nil {
		said.problem = wordsOf(out.Problem)
		if !out.Problem.Retriable {
			said.failed = wordsOf(out.Problem)
			return said
		}
	}
	if out.State != job.Ended || out.Result == nil || out.Result.Fetched == nil {
		if said.problem == "" && !m.PodProblem.IsStarting {
			said.problem = m.PodProblem.Words
		}
		return said
	}
	said.fetched = out.Result.Fetched
	said.serves = m.LeadsAlone() && m.Answer.Status.ClusterID.String() == said.fetched.ClusterID && m.Answer.Status.Revision >= said.fetched.Revision+said.fetched.Offset
	if said.serves {
		return said
	}
	said.problem = m.Problem.Words
	if c := pods.Status(m.Pod, objects.ContainerName); c.State.Running == nil && c.RestartCount >= mostCrashes && m.Problem.IsCrash {
		said.failed = "NotServing: the backup is whole, but etcd does not start with it: " + said.problem
	}
	return said
}

// wordsOf is a problem in one line.
func wordsOf(p *task.Problem) string { return status.Shortened(p.Reason + ": " + p.Message) }
