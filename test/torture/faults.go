package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"
)

// lasts is for how long a fault that can be undone lasts: several times etcd's election timeout.
const lasts = 10 * time.Second

// fault is what goes wrong. It returns when it is over, and not only when all is as requested again.
type fault struct {
	name   string
	inject func(ctx context.Context, c *cluster) error
}

// firstNode has the control plane, and cannot be switched off.
const firstNode = "localcluster"

var faults = []fault{
	{"the leader's process killed", killLeader},
	{"all pods deleted", deletePods},
	{"the leader paused", pauseLeader},
	{"another member paused", pauseOther},
	{"a node switched off", switchOff},
	{"a node paused", pauseNode},
	{"a node drained", drain},
	{"the leader cut off", cutLeader(true, true)},
	{"what the leader sends dropped", cutLeader(true, false)},
	{"what is sent to the leader dropped", cutLeader(false, true)},
	{"the leader and one member cut from each other", cutOne},
	{"30 % of packets between members lost", lossy},
	{"the manager killed", killManager},
	{"the manager cut off from all members", cutManager},
	{"resized from 3 to 5 and back", resize},
	{"another version and back", changeVersion},
}

func killLeader(ctx context.Context, c *cluster) error {
	leader, _, err := c.leader(ctx)
	if err != nil {
		return err
	}
	pid, _, err := process(leader.name)
	if err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

func deletePods(ctx context.Context, c *cluster) error {
	_, err := kubectl(ctx, "delete", "pods", "-l", "etcd_cluster="+c.name, "--force", "--grace-period=0")
	return err
}

func pauseLeader(ctx context.Context, c *cluster) error {
	leader, _, err := c.leader(ctx)
	if err != nil {
		return err
	}
	return pause(leader)
}

func pauseOther(ctx context.Context, c *cluster) error {
	_, others, err := c.leader(ctx)
	if err != nil {
		return err
	}
	return pause(others[0])
}

func pause(m member) error {
	pid, _, err := process(m.name)
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	time.Sleep(lasts)
	return syscall.Kill(pid, syscall.SIGCONT)
}

// away is a node with a member that is not the first node, the leader's if that is one.
func (c *cluster) away(ctx context.Context) (string, error) {
	leader, others, err := c.leader(ctx)
	if err != nil {
		return "", err
	}
	for _, m := range append([]member{leader}, others...) {
		if m.node != firstNode {
			return m.node, nil
		}
	}
	return "", errors.New("all members are on the first node")
}

func switchOff(ctx context.Context, c *cluster) error { return onNode(ctx, c, "off", "on") }
func pauseNode(ctx context.Context, c *cluster) error { return onNode(ctx, c, "pause", "resume") }

func onNode(ctx context.Context, c *cluster, do, undo string) error {
	node, err := c.away(ctx)
	if err != nil {
		return err
	}
	if err := localcluster(ctx, "node", node, do); err != nil {
		return err
	}
	time.Sleep(lasts)
	return localcluster(ctx, "node", node, undo)
}

func drain(ctx context.Context, c *cluster) error {
	node, err := c.away(ctx)
	if err != nil {
		return err
	}
	_, err = kubectl(ctx, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=5m")
	_, uncordoned := kubectl(ctx, "uncordon", node)
	return errors.Join(err, uncordoned)
}

// cutLeader drops what the leader sends to the other members, what they send to it, or both.
func cutLeader(sends, receives bool) func(context.Context, *cluster) error {
	return func(ctx context.Context, c *cluster) error {
		leader, others, err := c.leader(ctx)
		if err != nil {
			return err
		}
		var cuts [][]string
		for _, m := range others {
			ends := []string{namespace + "/" + leader.name, namespace + "/" + m.name}
			if !sends {
				slices.Reverse(ends)
			}
			if !sends || !receives {
				ends = append([]string{"--one-way"}, ends...)
			}
			cuts = append(cuts, ends)
		}
		return cut(ctx, cuts...)
	}
}

func cutOne(ctx context.Context, c *cluster) error {
	leader, others, err := c.leader(ctx)
	if err != nil {
		return err
	}
	return cut(ctx, []string{namespace + "/" + leader.name, namespace + "/" + others[0].name})
}

func lossy(ctx context.Context, c *cluster) error {
	members, err := c.members(ctx)
	if err != nil {
		return err
	}
	var cuts [][]string
	for i, m := range members {
		cuts = append(cuts, []string{"--loss", "30", namespace + "/" + m.name, namespace + "/" + members[(i+1)%len(members)].name})
	}
	return cut(ctx, cuts...)
}

func cut(ctx context.Context, cuts ...[]string) error {
	var errs []error
	for _, c := range cuts {
		errs = append(errs, localcluster(ctx, "cut", c...))
	}
	time.Sleep(lasts)
	return errors.Join(append(errs, localcluster(ctx, "heal"))...)
}

const (
	managers      = "etcd-operator-system"
	managerLabels = "control-plane=controller-manager"
)

func killManager(ctx context.Context, _ *cluster) error {
	_, err := kubectl(ctx, "delete", "pod", "-n", managers, "-l", managerLabels, "--force", "--grace-period=0")
	return err
}

func cutManager(ctx context.Context, c *cluster) error {
	members, err := c.members(ctx)
	if err != nil {
		return err
	}
	manager, err := kubectl(ctx, "get", "pod", "-n", managers, "-l", managerLabels, "-o", "jsonpath={.items[0].metadata.name}")
	if err != nil {
		return err
	}
	var cuts [][]string
	for _, m := range members {
		cuts = append(cuts, []string{managers + "/" + manager, namespace + "/" + m.name})
	}
	return cut(ctx, cuts...)
}

// resize copies the logs before members leave with theirs, which may be the only ones that begin at the beginning.
func resize(ctx context.Context, c *cluster) error {
	for _, size := range []int{5, 3} {
		if err := c.copyLogs(ctx); err != nil {
			return err
		}
		if err := c.set(ctx, fmt.Sprintf(`{"size":%d}`, size)); err != nil {
			return err
		}
	}
	return nil
}

func changeVersion(ctx context.Context, c *cluster) error {
	other := versions[(slices.Index(versions, c.version)+1)%len(versions)]
	for _, version := range []string{other, c.version} {
		if err := c.set(ctx, `{"version":"`+version+`"}`); err != nil {
			return err
		}
	}
	return nil
}

// deck deals the faults out in an order of chance, each once before one comes again.
type deck struct {
	rand *rand.Rand
	left []fault
}

func (d *deck) next() fault {
	if len(d.left) == 0 {
		d.left = slices.Clone(faults)
		d.rand.Shuffle(len(d.left), func(i, j int) { d.left[i], d.left[j] = d.left[j], d.left[i] })
	}
	f := d.left[0]
	d.left = d.left[1:]
	return f
}
