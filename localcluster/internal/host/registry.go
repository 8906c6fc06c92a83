// Package host is what a cluster has outside of its own namespaces: an entry
// in a registry of the machine's clusters, an address, a veth pair and a
// cgroup folder, and how all of that is taken away again.
//
// The registry is a folder, /run/localcluster, with one file per cluster. A
// cluster holds a file lock on its entry for as long as it lives. The kernel
// lets go of it however the cluster dies, so "is it alive" is never a guess
// and an entry whose lock is free is the list of what there is to sweep up.
package host

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const registryDir = "/run/localcluster"

// Entry is what the registry knows of a cluster.
type Entry struct {
	// ID names everything the cluster has on the host. It is derived from Dir,
	// so that one folder is one cluster.
	ID string `json:"id"`
	// Dir is the cluster's folder.
	Dir string `json:"dir"`
	// Cache is the folder that its parts come from.
	Cache string `json:"cache,omitempty"`
	// Temporary says that Dir was made for this cluster and goes with it.
	Temporary bool `json:"temporary,omitempty"`
	// Nodes is how many it has, and Zones are dealt out to them in turn.
	Nodes int      `json:"nodes"`
	Zones []string `json:"zones,omitempty"`
	// Domain is what names of Services end in.
	Domain string `json:"domain"`
	// Families are those of the nodes' addresses, and of their pods' and
	// Services', the preferred one first. Nets are the networks of the host and
	// the nodes, one of each: the first address is the host's, those after it
	// are the nodes'.
	Families []Family       `json:"families"`
	Nets     []netip.Prefix `json:"nets"`
	// Keeper and Init are the cluster's two outermost processes, as the host
	// numbers them; 0 before they have started.
	Keeper int     `json:"keeper,omitempty"`
	Init   Process `json:"init,omitzero"`
}

// HostAddresses are those of the host's end of the veth pair, with the sizes of
// their networks.
func (e Entry) HostAddresses() []netip.Prefix { return e.addresses(1) }

// NodeAddresses are the nth node's, from 0 on.
func (e Entry) NodeAddresses(n int) []netip.Prefix { return e.addresses(n + 2) }

// NodeIP is the nth node's preferred one: NodePorts answer there, and with the
// first node the API server.
func (e Entry) NodeIP(n int) netip.Addr { return e.NodeAddresses(n)[0].Addr() }

// addresses are the nth of each network.
func (e Entry) addresses(n int) []netip.Prefix {
	var all []netip.Prefix
	for _, network := range e.Nets {
		ip := network.Addr()
		for range n {
			ip = ip.Next()
		}
		all = append(all, netip.PrefixFrom(ip, network.Bits()))
	}
	return all
}

// Link is the name of the host's end of the veth pair.
func (e Entry) Link() string { return "lc-" + e.ID }

// Cgroup is the nth node's folder in every cgroup hierarchy.
func (e Entry) Cgroup(n int) string {
	if n == 0 {
		return "localcluster-" + e.ID
	}
	return fmt.Sprintf("localcluster-%s-%d", e.ID, n+1)
}

// Claim is a hold on an entry. The hold is File's lock and is shared by every
// process that inherits File.
type Claim struct {
	Entry
	File *os.File
}

// ErrAlive says that the folder's cluster is running.
var ErrAlive = errors.New("the cluster is up already")

// Take claims the entry of the cluster in a folder and chooses its addresses,
// after sweeping up what dead clusters have left. The error is ErrAlive, with
// the entry, if somebody holds it already.
func Take(entry Entry) (*Claim, error) {
	unlock, err := lockRegistry()
	if err != nil {
		return nil, err
	}
	defer unlock()
	alive, err := sweep()
	if err != nil {
		return nil, err
	}
	entry.ID = id(entry.Dir)
	var taken []netip.Prefix
	for _, other := range alive {
		if other.ID == entry.ID {
			return &Claim{Entry: other}, ErrAlive
		}
		taken = append(taken, other.Nets...)
	}
	inUse, err := networksInUse()
	if err != nil {
		return nil, err
	}
	for _, family := range entry.Families {
		network, err := chooseNet(family, entry.ID, entry.Nodes, append(taken, inUse...))
		if err != nil {
			return nil, err
		}
		entry.Nets = append(entry.Nets, network)
	}

	file, err := os.OpenFile(entryPath(entry.ID), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", file.Name(), err), file.Close())
	}
	claim := &Claim{Entry: entry, File: file}
	return claim, claim.Write()
}

// Adopt takes over a claim whose file was inherited.
func Adopt(file *os.File) (*Claim, error) {
	claim := &Claim{File: file}
	data, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err != nil {
		return nil, err
	}
	return claim, json.Unmarshal(data, &claim.Entry)
}

// Write stores the entry.
func (c *Claim) Write() error {
	data, err := json.Marshal(c.Entry)
	if err != nil {
		return err
	}
	// In place: a new file would not have the lock.
	if err := c.File.Truncate(0); err != nil {
		return err
	}
	_, err = c.File.WriteAt(append(data, '\n'), 0)
	return err
}

// Release takes away what the cluster has on the host, and its entry.
func (c *Claim) Release() error {
	unlock, err := lockRegistry()
	if err != nil {
		return err
	}
	defer unlock()
	return errors.Join(clean(c.Entry), c.File.Close())
}

// Find looks for the cluster of a folder. It is nil if none is alive.
func Find(dir string) (*Entry, error) {
	entries, err := Alive()
	for _, entry := range entries {
		if entry.ID == id(dir) {
			return &entry, err
		}
	}
	return nil, err
}

// Alive lists the running clusters, after sweeping up after those that died.
func Alive() ([]Entry, error) {
	if _, err := os.Stat(registryDir); errors.Is(err, os.ErrNotExist) {
		return nil, nil // do not make the folder only to look into it
	}
	unlock, err := lockRegistry()
	if err != nil {
		return nil, err
	}
	defer unlock()
	return sweep()
}

// sweep cleans up after every dead cluster and returns those that live.
func sweep() ([]Entry, error) {
	files, err := filepath.Glob(entryPath("*"))
	if err != nil {
		return nil, err
	}
	var alive []Entry
	var errs []error
	for _, path := range files {
		entry, held, err := look(path)
		switch {
		case err != nil:
			errs = append(errs, err)
		case held:
			alive = append(alive, entry)
		default:
			errs = append(errs, clean(entry))
		}
	}
	return alive, errors.Join(errs...)
}

// look reads an entry and tells whether somebody holds it.
func look(path string) (entry Entry, held bool, err error) {
	file, err := os.Open(path)
	if err != nil {
		return entry, false, err
	}
	defer file.Close()
	err = unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	held = errors.Is(err, unix.EWOULDBLOCK)
	if err != nil && !held {
		return entry, false, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := json.NewDecoder(file).Decode(&entry); err != nil {
		// Died between making the file and writing it: nothing to clean but it.
		entry = Entry{}
	}
	entry.ID = strings.TrimSuffix(filepath.Base(path), ".json")
	return entry, held, nil
}

// clean removes what a dead cluster has on the host, its entry last: were this
// to die in between, the next sweep would go on.
func clean(entry Entry) error {
	errs := []error{
		entry.Init.kill(),
		RemoveLink(entry.Link()),
		removeCgroups(entry.Cgroup(0)),
	}
	if entry.Temporary && entry.Dir != "" {
		errs = append(errs, os.RemoveAll(entry.Dir))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("clean up after the cluster of %s: %w", entry.Dir, err)
	}
	return os.Remove(entryPath(entry.ID))
}

// lockRegistry makes the registry's folder and locks it against other
// processes. Unlocking removes the folder when no cluster is left in it.
func lockRegistry() (unlock func(), err error) {
	for {
		if err := os.MkdirAll(registryDir, 0o755); err != nil {
			return nil, err
		}
		folder, err := os.Open(registryDir)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(folder.Fd()), unix.LOCK_EX); err != nil {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", registryDir, err), folder.Close())
		}
		// Whoever had the lock may have removed the folder since.
		if same(folder, registryDir) {
			return func() {
				_ = os.Remove(registryDir) // fails, as it should, while there are entries
				_ = folder.Close()
			}, nil
		}
		_ = folder.Close()
	}
}

func same(file *os.File, path string) bool {
	mine, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(mine, there)
}

func entryPath(id string) string { return filepath.Join(registryDir, id+".json") }

// id is short enough for the name of a network interface (15 characters), and
// long enough that two folders of one machine do not meet.
func id(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:4])
}
