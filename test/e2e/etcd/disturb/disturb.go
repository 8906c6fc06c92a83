// Package disturb is what goes wrong while an etcd cluster is under load: members and the
// operator are killed, and the cluster is scaled, upgraded and given new certificates.
//
// What happens is decided beforehand, from a seed ([Short], [Soak]), and carried out by [Run],
// one step after the other. Before each step the cluster has to be whole, so that no step takes
// more members down than the promise allows: any number if the members' volumes stay, otherwise
// fewer than half.
package disturb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Cluster is an etcd cluster under its operator. A call returns when the change has been
// requested, and does not wait for what the operator makes of it. For one on Kubernetes, members
// are pods.
type Cluster interface {
	// Members are the names of the members' pods that there are now.
	Members(ctx context.Context) ([]string, error)
	// Healthy returns nil if the cluster is as its spec says: all members of the right number and
	// version ready, and the operator ready and done. Otherwise it returns what is missing.
	Healthy(ctx context.Context) error
	// DeletePod deletes the pod, with no time to end in an orderly way.
	DeletePod(ctx context.Context, member string) error
	// KillProcess kills etcd in the pod's container with SIGKILL; the pod stays.
	KillProcess(ctx context.Context, member string) error
	// DeleteVolume deletes the member's claim, with its data, and the pod that uses it.
	DeleteVolume(ctx context.Context, member string) error
	// KillOperator deletes the operator's pod, with no time to end in an orderly way.
	KillOperator(ctx context.Context) error
	// Scale sets spec.size.
	Scale(ctx context.Context, size int) error
	// Upgrade sets spec.version.
	Upgrade(ctx context.Context, version string) error
	// RotateCertificates replaces the certificates in the Secrets that the cluster uses.
	RotateCertificates(ctx context.Context) error
}

// Action is what is done to the cluster.
type Action string

// The actions.
const (
	DeletePod          Action = "delete pod"
	KillProcess        Action = "kill process"
	DeleteVolume       Action = "delete volume"
	KillOperator       Action = "kill operator"
	Scale              Action = "scale"
	Upgrade            Action = "upgrade"
	RotateCertificates Action = "rotate certificates"
)

// Step is what is done at one time.
type Step struct {
	Action Action
	// Members is how many members a kill or a deletion takes, and First which is the first of
	// them: a number, of which the remainder by the number of members counts.
	Members, First int
	// WithOperator says that the operator is killed right after, before it can have finished.
	WithOperator bool
	// Size and Version are what Scale and Upgrade set.
	Size    int
	Version string
}

func (s Step) String() string {
	text := string(s.Action)
	switch s.Action {
	case DeletePod, KillProcess, DeleteVolume:
		text += fmt.Sprintf(" of %d members", s.Members)
	case Scale:
		text += fmt.Sprintf(" to %d", s.Size)
	case Upgrade:
		text += " to " + s.Version
	default: // all is said
	}
	if s.WithOperator {
		text += ", and kill operator"
	}
	return text
}

// Entry is a line of the diary: a step, as it was carried out.
type Entry struct {
	Step Step
	// Victims are the members that were killed or lost their volume.
	Victims []string
	// Begin is when the step began, and Whole when the cluster was whole again; zero if it was
	// not in time.
	Begin, Whole time.Time
	Err          error
}

func (e Entry) String() string {
	text := e.Begin.Format("15:04:05.000") + " " + e.Step.String()
	if len(e.Victims) > 0 {
		text += ": " + strings.Join(e.Victims, ", ")
	}
	if e.Err != nil {
		return text + ": " + e.Err.Error()
	}
	return text + fmt.Sprintf(": whole again after %v", e.Whole.Sub(e.Begin).Round(time.Millisecond))
}

// Diary is what happened, in the order of time.
type Diary struct {
	mu      sync.Mutex
	entries []Entry
}

// Entries are the entries up to now.
func (d *Diary) Entries() []Entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.entries)
}

func (d *Diary) add(e Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, e)
}

func (d *Diary) String() string {
	var lines []string
	for _, e := range d.Entries() {
		lines = append(lines, e.String())
	}
	return strings.Join(lines, "\n")
}

// Config is how a mix is carried out.
type Config struct {
	// Patience is how long the cluster may take to be whole again after a step; 3 min.
	Patience time.Duration
	// Poll is how often the cluster's health is looked at; 1 s.
	Poll time.Duration
	// Notice is how long after a step the health is first looked at, so that what it shows is
	// not from before the step; 2 s.
	Notice time.Duration
	// Log gets each line of the diary as it is written; may be nil.
	Log func(string)
}

// Run carries out a mix. It ends with the first step after which the cluster does not become
// whole. The diary is returned also with an error.
func Run(ctx context.Context, cluster Cluster, mix Mix, config Config) (*Diary, error) {
	if config.Patience == 0 {
		config.Patience = 3 * time.Minute
	}
	if config.Poll == 0 {
		config.Poll = time.Second
	}
	if config.Notice == 0 {
		config.Notice = 2 * time.Second
	}
	if config.Log == nil {
		config.Log = func(string) {}
	}
	r := runner{cluster, mix, config}
	diary := &Diary{}
	if err := r.whole(ctx); err != nil {
		return diary, fmt.Errorf("before the first step: %w", err)
	}
	begin := time.Now()
	for i, step := range mix.Steps {
		// The steps are spread over the time that there is; late ones follow at once.
		if err := sleep(ctx, time.Until(begin.Add(mix.Duration*time.Duration(i)/time.Duration(len(mix.Steps))))); err != nil {
			return diary, err
		}
		entry := r.step(ctx, step)
		diary.add(entry)
		config.Log(entry.String())
		if entry.Err != nil {
			return diary, fmt.Errorf("step %d of %d, %s: %w", i+1, len(mix.Steps), step, entry.Err)
		}
	}
	return diary, sleep(ctx, time.Until(begin.Add(mix.Duration)))
}

type runner struct {
	cluster Cluster
	mix     Mix
	config  Config
}

func (r runner) step(ctx context.Context, step Step) Entry {
	entry := Entry{Step: step, Begin: time.Now()}
	entry.Victims, entry.Err = r.act(ctx, step)
	if entry.Err == nil && step.WithOperator {
		entry.Err = r.cluster.KillOperator(ctx)
	}
	if entry.Err == nil {
		entry.Err = sleep(ctx, r.config.Notice)
	}
	if entry.Err == nil {
		entry.Err = r.whole(ctx)
	}
	if entry.Err == nil {
		entry.Whole = time.Now()
	}
	return entry
}

// act carries out a step, and says which members it took down.
func (r runner) act(ctx context.Context, step Step) (victims []string, err error) {
	switch step.Action {
	case KillOperator:
		return nil, r.cluster.KillOperator(ctx)
	case Scale:
		return nil, r.cluster.Scale(ctx, step.Size)
	case Upgrade:
		return nil, r.cluster.Upgrade(ctx, step.Version)
	case RotateCertificates:
		return nil, r.cluster.RotateCertificates(ctx)
	default:
		return r.kill(ctx, step)
	}
}

// kill takes members down, all at the same time, as when a machine goes down.
func (r runner) kill(ctx context.Context, step Step) (victims []string, err error) {
	kill := map[Action]func(context.Context, string) error{
		DeletePod: r.cluster.DeletePod, KillProcess: r.cluster.KillProcess, DeleteVolume: r.cluster.DeleteVolume,
	}[step.Action]
	if kill == nil {
		return nil, fmt.Errorf("there is no action %q", step.Action)
	}
	members, err := r.cluster.Members(ctx)
	if err != nil {
		return nil, err
	}
	slices.Sort(members)
	// The mix keeps to this; but how many members there are is only known here.
	if most := tolerated(len(members), r.mix.Persistent && step.Action != DeleteVolume); step.Members > most {
		return nil, fmt.Errorf("of %d members, at most %d may be taken at a time", len(members), most)
	}
	for i := range step.Members {
		victims = append(victims, members[(step.First+i)%len(members)])
	}
	var (
		errs  = make([]error, len(victims))
		kills sync.WaitGroup
	)
	for i, victim := range victims {
		kills.Go(func() { errs[i] = kill(ctx, victim) })
	}
	kills.Wait()
	return victims, errors.Join(errs...)
}

// whole waits until the cluster is healthy.
func (r runner) whole(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, r.config.Patience)
	defer cancel()
	for {
		err := r.cluster.Healthy(bounded)
		if err == nil {
			return nil
		}
		if sleep(bounded, r.config.Poll) != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("the cluster is not whole after %v: %w", r.config.Patience, err)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
