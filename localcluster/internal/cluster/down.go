package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"example.com/fairlead/localcluster/internal/host"
	"example.com/fairlead/localcluster/internal/node"
	"example.com/fairlead/localcluster/internal/pace"
)

// Down ends the cluster and removes its folder. It also sweeps up what any
// dead cluster of the machine left, this one included.
func (c *Cluster) Down() error {
	entry, err := host.Find(c.Dir)
	if err != nil {
		return err
	}
	if entry != nil {
		c.say("ending the cluster of %s", c.Dir)
		if err := c.end(); err != nil {
			return err
		}
	}
	return c.removeAll()
}

// removeAll removes everything that a cluster has in its folder, and the
// folder, unless others have put something there.
func (c *Cluster) removeAll() error {
	if err := c.remove(node.Kubeconfig, node.StateDir, node.LogDir, binDir, debianDir, packagesDir, imagesDir, etcdDir); err != nil {
		return err
	}
	err := os.Remove(c.Dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTEMPTY) {
		return nil
	}
	return err
}

// end asks the keeper to end the cluster, and insists if it does not.
func (c *Cluster) end() error {
	err := c.await(func(dir string) (*host.Entry, error) {
		entry, err := host.Find(dir)
		if entry != nil && entry.Keeper != 0 {
			_ = unix.Kill(entry.Keeper, unix.SIGTERM)
		}
		return entry, err
	})
	if err == nil {
		return nil
	}
	entry, findErr := host.Find(c.Dir)
	if entry == nil || entry.Keeper == 0 {
		return errors.Join(err, findErr)
	}
	c.say("it does not end: killing it")
	if err := unix.Kill(entry.Keeper, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return c.await(host.Find) // finding nothing, it sweeps
}

// await waits until the cluster is not found any more.
func (c *Cluster) await(find func(string) (*host.Entry, error)) error {
	for deadline := pace.In(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		entry, err := find(c.Dir)
		if entry == nil || err != nil {
			return err
		}
		if deadline.Passed() {
			return fmt.Errorf("the cluster of %s (process %d) does not end, after %s", c.Dir, entry.Keeper, deadline)
		}
	}
}
