package testkit

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/testkit/pace"
)

// Scenario is a story: what a user does, what must come of it, and what must
// hold whatever dies on the way. Its functions run for many runs at once, so
// they keep nothing outside their [Run]; nor do they sleep, start goroutines or
// look at the clock: what they wait for is polled, and the time is [Run.Now].
type Scenario struct {
	// Name names the subtests.
	Name string

	// Pods says what becomes of pods; see [StartKubelet] for nil.
	Pods func(*corev1.Pod) Outcome

	// OwnNodes says that the story has nodes of its own, which run its pods: there is no kubelet besides.
	OwnNodes bool

	// Before makes what is there before the operator starts; nil for nothing.
	Before func(ctx context.Context, r *Run) error

	// Arrange is what the user does first; nil for nothing. The operator starts meanwhile.
	Arrange func(ctx context.Context, r *Run) error

	// Steps are what the user does later, one after the other.
	Steps []Step

	// Settled returns nil once all that should happen has happened, and until then what
	// is still missing. It is polled. A run continues for a moment after that, so Settled
	// need not wait for the last write.
	Settled func(ctx context.Context, r *Run) error

	// Check returns what is wrong at the end of a run.
	Check func(ctx context.Context, r *Run) error

	// Admit, if set, is what admission makes of a write, or why it refuses it; old is nil for a new object. Only a
	// simulation has it.
	Admit func(r *Run, old, obj client.Object) error

	policy *Policy // that is enforced in the namespace of a run

	// EachLate adds the variants in which one kind of objects alone is late. Without
	// has variants that are not played, and meddling that does not happen in a simulation,
	// each with the reason why.
	EachLate bool
	// Repeats is for a story in which the operator tries the same again and again: how often
	// depends on how fast the cluster is, and is not compared.
	Repeats bool
	Without map[string]string

	// Timeout is how long a run may take until it is settled; 30 s if 0.
	Timeout time.Duration
}

// Step is something that the user does once it is time to.
type Step struct {
	Name string
	// When returns nil when it is time, and until then what it waits for. A
	// nil When is time at once.
	When func(ctx context.Context, r *Run) error
	Do   func(ctx context.Context, r *Run) error
}

// Run is one playing of a scenario.
type Run struct {
	// Namespace is this run's own.
	Namespace string
	// Client is the user's: nothing happens to its requests, and they do not
	// count. It reads from the API server, not from a cache.
	Client client.Client
	// Config makes further clients of that kind.
	Config *rest.Config
	// Kubelet runs the namespace's pods.
	Kubelet *Kubelet
	// Own is what a test adds to the run's cluster, such as a kubelet for more than this
	// one does.
	Own any

	wire *wire
	now  func() time.Time // nil: the clock's
}

// Now is the time of the run's cluster. Stories take it from here, because a simulated
// cluster has a time of its own.
func (r *Run) Now() time.Time {
	if r.now == nil {
		return time.Now()
	}
	return r.now()
}

// Seconds is n for a deadline that nothing which goes wrong is to exceed: more where the
// machine is slow, see [pace.Seconds], and weeks in a simulation, where operators may stay
// dead for hours.
func (r *Run) Seconds(n int64) int64 {
	if r.now == nil {
		return pace.Seconds(n)
	}
	const week = 7 * 24 * 60 * 60
	return n * week
}

// Writes are what the operators have written so far, in order.
func (r *Run) Writes() []Write { return r.wire.history() }
