package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"example.com/fairlead/localcluster/internal/host"
	"example.com/fairlead/localcluster/internal/images"
	"example.com/fairlead/localcluster/internal/node"
	"example.com/fairlead/localcluster/internal/pace"
)

// Up starts the cluster, or completes it if it is up already. The cluster ends
// when ctx is done before that, or when this process dies. If stay is set, it
// lives on by itself afterwards; if not, it ends with this process.
func (c *Cluster) Up(ctx context.Context, names []string, stay bool) error {
	began := time.Now()
	if err := c.checkDisk(); err != nil {
		return err
	}
	if err := c.parts(ctx); err != nil {
		return err
	}
	archives, err := c.make(ctx, names)
	if err != nil {
		return err
	}
	claim, err := host.Take(host.Entry{
		Dir: c.Dir, Cache: c.Cache, Temporary: c.Temporary, Nodes: c.Nodes, Zones: c.Zones, Families: c.Families, Domain: c.Domain,
	})
	if errors.Is(err, host.ErrAlive) {
		c.say("the cluster is up already, with %s", nodes(claim.Nodes))
		return c.complete(ctx, claim.Entry, archives, began)
	}
	if err != nil {
		return err
	}
	started, err := c.start(claim)
	if err != nil {
		return errors.Join(err, claim.Release())
	}
	if err := c.follow(ctx, claim.Entry, started, archives); err != nil {
		// The keeper ends the cluster when the lifeline ends, and the logs stay.
		_ = started.lifeline.Close()
		return errors.Join(err, c.await(host.Find))
	}
	if err := c.settled(ctx, claim.Entry, began); err != nil {
		return err
	}
	if !stay {
		c.lifeline = started.lifeline // open for as long as this process lives
		return nil
	}
	_, err = started.lifeline.Write([]byte{detach})
	return errors.Join(err, started.lifeline.Close())
}

// checkDisk says that the folder cannot hold the node's disk before anything is
// built for it, and leaves no folder then.
func (c *Cluster) checkDisk() error {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	err := host.CheckDisk(c.Dir)
	if err != nil {
		_ = os.Remove(c.Dir) // unless something is in there
	}
	return err
}

// started is a cluster on its way up.
type started struct {
	at       time.Time
	messages io.ReadCloser
	lifeline *os.File
}

// start starts the keeper over whatever a dead cluster left in the folder.
func (c *Cluster) start(claim *host.Claim) (*started, error) {
	if err := c.removeState(); err != nil {
		return nil, err
	}
	logs := filepath.Join(c.Dir, node.LogDir)
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(logs, "supervisor.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	messages, report, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer report.Close()
	lifeline, life, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer lifeline.Close()

	c.say("starting the cluster: %s, the API server at %s, logs in %s", nodes(claim.Nodes), claim.NodeIP(0), logs)
	keeper := exec.CommandContext(context.Background(), "/proc/self/exe", KeeperCommand) // it outlives the command
	keeper.Args[0] = "localcluster"                                                      // what ps shows
	keeper.Dir = "/"
	keeper.Stdout, keeper.Stderr = log, log
	keeper.ExtraFiles = []*os.File{claim.File, report, lifeline}
	keeper.SysProcAttr = &unix.SysProcAttr{Setsid: true} // out of reach of the terminal's signals
	now := time.Now()
	if err := keeper.Start(); err != nil {
		return nil, fmt.Errorf("start the cluster's keeper: %w", err)
	}
	go func() { _ = keeper.Wait() }() // no zombie if it ends before this process does
	return &started{at: now, messages: messages, lifeline: life}, claim.File.Close()
}

// follow reads the cluster's messages until its nodes are ready, and puts into
// it what it needs as soon as it can take it.
func (c *Cluster) follow(ctx context.Context, entry host.Entry, s *started, archives []*images.Archive) error {
	defer s.messages.Close()
	stop := context.AfterFunc(ctx, func() { _ = s.messages.Close() })
	defer stop()

	results := make(chan error, 2)
	pending := 0
	in := func(f func() error) {
		pending++
		go func() { results <- f() }()
	}
	for messages := json.NewDecoder(s.messages); ; {
		var message node.Message
		if err := messages.Decode(&message); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("the cluster has ended while it was starting: see %s",
				filepath.Join(c.Dir, node.LogDir, "supervisor.log"))
		}
		if message.Error != "" {
			return errors.New(message.Error)
		}
		c.say("  %.1f s: %s", time.Since(s.at).Seconds(), message.Reached)
		switch message.Reached {
		case node.Images:
			in(func() error { return c.load(ctx, archives...) })
		case node.API:
			in(func() error { return c.deploy(ctx, entry) })
		case node.Ready:
			var errs []error
			for range pending {
				errs = append(errs, <-results)
			}
			return errors.Join(errs...)
		}
	}
}

// complete does what a cluster that somebody else started may still lack. It
// may be only starting.
func (c *Cluster) complete(ctx context.Context, entry host.Entry, archives []*images.Archive, began time.Time) error {
	wait := []string{"wait", "--for=condition=Ready"}
	for n := range entry.Nodes {
		wait = append(wait, "node/"+node.NameOf(n))
	}
	if err := c.wait(ctx, 2*time.Minute, wait...); err != nil {
		return err
	}
	if err := c.load(ctx, archives...); err != nil {
		return err
	}
	if err := c.deploy(ctx, entry); err != nil {
		return err
	}
	return c.settled(ctx, entry, began)
}

// settled waits until pods can be created and find each other.
func (c *Cluster) settled(ctx context.Context, entry host.Entry, began time.Time) error {
	err := errors.Join(
		c.wait(ctx, time.Minute, "wait", "--for=create", "serviceaccount/default"),
		c.wait(ctx, 2*time.Minute, "--namespace=kube-system", "rollout", "status", "deployment/coredns"))
	if err != nil {
		return err
	}
	c.say("the cluster is up after %.1f s, its node is at %s\nKUBECONFIG=%s", time.Since(began).Seconds(), entry.NodeIP(0), c.Kubeconfig())
	return nil
}

func nodes(count int) string {
	if count == 1 {
		return "one node"
	}
	return fmt.Sprintf("%d nodes", count)
}

// wait runs a kubectl command that waits for something, until it succeeds, or
// the limit is over, or the cluster has ended. A slow machine is given more.
func (c *Cluster) wait(ctx context.Context, limit time.Duration, args ...string) error {
	deadline := pace.In(limit)
	for {
		_, err := c.kubectl(ctx, nil, append(args, "--timeout=10s")...)
		if err == nil {
			return nil
		}
		if deadline.Passed() {
			return fmt.Errorf("after %s: %w", deadline, err)
		}
		if alive, findErr := host.Find(c.Dir); alive == nil || findErr != nil {
			return errors.Join(err, findErr)
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// removeState removes what belongs to a running cluster.
func (c *Cluster) removeState() error {
	return c.remove(node.Kubeconfig, node.StateDir, node.LogDir)
}

func (c *Cluster) remove(names ...string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, os.RemoveAll(filepath.Join(c.Dir, name)))
	}
	return errors.Join(errs...)
}
