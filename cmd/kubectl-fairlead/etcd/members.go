package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1beta2 "example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
	"example.com/fairlead/internal/kit/docs"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/pki"
)

// cluster is an EtcdCluster whose members can be asked.
type cluster struct {
	*etcdv1beta2.EtcdCluster
	k       client.WithWatch
	pods    *cli.Pods
	ask     members.Direct
	members []member
}

// member is a member, and what it said of itself.
type member struct {
	name string
	at   members.Endpoint
	members.Status
	// problem is why it does not serve; nil if it does.
	problem error
}

// reach reads an EtcdCluster, and asks each of its members how it is.
func reach(ctx context.Context, c *cli.CLI, name string) (*cluster, error) {
	e := &cluster{EtcdCluster: &etcdv1beta2.EtcdCluster{}}
	var err error
	if e.k, err = c.Get(ctx, name, e.EtcdCluster); err != nil {
		return nil, err
	}
	if e.pods, err = c.Pods(); err != nil {
		return nil, err
	}
	var config *tls.Config
	if secret := objects.ClientSecret(e.EtcdCluster); secret != "" {
		found, err := e.pods.Core.Secrets(e.Namespace).Get(ctx, secret, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if config, err = pki.ClientConfig(found.Data); err != nil {
			return nil, fmt.Errorf("the Secret %s: %w", secret, err)
		}
	}
	var as members.User
	if auth := e.Spec.Auth; auth != nil {
		found, err := e.pods.Core.Secrets(e.Namespace).Get(ctx, auth.RootSecret, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if as, err = members.UserOf(found.Data); err != nil {
			return nil, fmt.Errorf("the Secret %s: %w", auth.RootSecret, err)
		}
	}
	e.ask = members.DialDirect(config, as)
	for _, at := range objects.ClientURLs(e.EtcdCluster) {
		parsed, err := url.Parse(at)
		if err != nil {
			return nil, err
		}
		name, _, _ := strings.Cut(parsed.Hostname(), ".")
		m := e.look(ctx, name, parsed.Hostname())
		if errors.Is(m.problem, cli.ErrNoForward) { // which says nothing about the cluster
			return nil, m.problem
		}
		e.members = append(e.members, m)
	}
	if len(e.members) == 0 {
		return nil, fmt.Errorf("etcdcluster/%s: its status has no members: is the operator running? %s", name, readyMessage(e.Status.Conditions))
	}
	return e, nil
}

// look asks a member how it is.
func (e *cluster) look(ctx context.Context, name, host string) member {
	m := member{name: name, at: members.Endpoint{ServerName: host}}
	if m.at.Address, m.problem = e.pods.Forward(ctx, name, members.ClientPort); m.problem == nil {
		e.refresh(ctx, &m)
	}
	return m
}

// refresh asks a member again.
func (e *cluster) refresh(ctx context.Context, m *member) {
	if m.Status, m.problem = e.ask.Status(ctx, m.at); m.problem != nil {
		return
	}
	switch isCorrupt := slices.Contains(m.Alarms, members.Alarm{Member: m.ID, Type: members.Corrupt}); {
	case m.IsLearner:
	case m.Leader == 0:
		m.problem = members.ErrNoLeader
	case isCorrupt:
		m.problem = errors.New("it has the alarm CORRUPT")
	default:
		m.problem = e.ask.Serves(ctx, m.at)
	}
}

// again asks a member until it says what is expected, for as long as an election and a bit may take.
func (e *cluster) again(ctx context.Context, m *member, isAsExpected func() bool) error {
	for range 60 {
		if e.refresh(ctx, m); isAsExpected() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
	return cmp.Or(m.problem, errors.New("not within 30 s"))
}

// isLeader says whether the member leads.
func (m member) isLeader() bool { return m.ID != 0 && m.Leader == m.ID }

// canVote says whether the member serves, and is no learner.
func (m member) canVote() bool { return m.problem == nil && !m.IsLearner }

// leader is the member that leads.
func (e *cluster) leader() (member, error) {
	var problems []error
	for _, m := range e.members {
		if m.problem == nil && m.isLeader() {
			return m, nil
		}
		if m.problem != nil {
			problems = append(problems, fmt.Errorf("%s: %w", m.name, m.problem))
		}
	}
	return member{}, fmt.Errorf("etcdcluster/%s has no leader that answers: %w", e.Name, errors.Join(problems...))
}

// named is the member of that name.
func (e *cluster) named(name string) (member, error) {
	var names []string
	for _, m := range e.members {
		if m.name == name {
			return m, nil
		}
		names = append(names, m.name)
	}
	return member{}, fmt.Errorf("etcdcluster/%s has no member %q: it has %s", e.Name, name, strings.Join(names, ", "))
}

// healthy returns an error unless all members are there and serve.
func (e *cluster) healthy() error {
	var problems []string
	for _, m := range e.members {
		switch {
		case m.problem != nil:
			problems = append(problems, fmt.Sprintf("member %s: %v", m.name, m.problem))
		case m.IsLearner:
			problems = append(problems, fmt.Sprintf("member %s is a learner", m.name))
		}
	}
	if missing := int(e.Spec.Size) - len(e.members); missing > 0 {
		problems = append(problems, fmt.Sprintf("%d of %d members are missing", missing, e.Spec.Size))
	}
	if len(problems) > 0 {
		return fmt.Errorf("etcdcluster/%s is not healthy: %s", e.Name, strings.Join(problems, "; "))
	}
	return nil
}

// quiet returns an error while the operator changes the members.
func (e *cluster) quiet() error {
	s := e.Status
	switch {
	case s.Restoring != nil:
		return fmt.Errorf("etcdcluster/%s is being restored: wait until that is done", e.Name)
	case s.QuorumLoss != nil:
		return fmt.Errorf("etcdcluster/%s has lost its quorum: see %s", e.Name, docs.Page("disaster-recovery.md"))
	case s.Join != nil && s.Join.Phase != etcdv1beta2.JoinComplete:
		return fmt.Errorf("etcdcluster/%s is taking over a running etcd: wait until status.join.phase is Complete", e.Name)
	case s.MemberBeingAdded != "":
		return fmt.Errorf("etcdcluster/%s is adding member %s: wait until that is done", e.Name, s.MemberBeingAdded)
	case s.MemberBeingUpdated != "":
		return fmt.Errorf("etcdcluster/%s is changing member %s: wait until that is done", e.Name, s.MemberBeingUpdated)
	case s.Maintenance != nil && s.Maintenance.Deadline.After(time.Now()):
		return fmt.Errorf("etcdcluster/%s has a %s of member %s under way: wait until that is done", e.Name, strings.ToLower(string(s.Maintenance.Type)), s.Maintenance.Member)
	}
	return nil
}

// readyMessage is what the condition Ready says.
func readyMessage(conditions []metav1.Condition) string {
	if ready := meta.FindStatusCondition(conditions, "Ready"); ready != nil {
		return ready.Message
	}
	return ""
}
