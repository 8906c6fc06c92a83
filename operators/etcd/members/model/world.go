package model

import (
	"time"

	"example.com/fairlead/operators/etcd/members"
)

// The delays of the model.
const (
	electionDelay  = time.Second
	catchUpDelay   = 100 * time.Millisecond
	firstSyncDelay = 500 * time.Millisecond
	slowDelay      = 5 * time.Second
	healthInterval = 5 * time.Second // as etcdserver.HealthInterval
	downgradeCheck = 5 * time.Second // as etcd's flag downgrade-check-time
	corruptCheck   = 8 * time.Second // as etcd's flag corrupt-check-time, which is off by default

	// DefragmentTakes is how long a defragmentation takes, unless World says otherwise.
	DefragmentTakes = 40 * time.Second
)

// World is all clusters of a simulation.
type World struct {
	// DefragmentTakes is how long a defragmentation takes.
	DefragmentTakes time.Duration

	now       func() time.Time
	processes []*Process
	disks     []*Disk
	geneses   map[string]*entry
	acked     []Write
	ackedBy   map[Write]members.ID
	lastWrite Write
	rots      uint32
	next      time.Time
}

// New is a world without clusters.
func New(now func() time.Time) *World {
	return &World{DefragmentTakes: DefragmentTakes, now: now, geneses: map[string]*entry{}, ackedBy: map[Write]members.ID{}}
}

// Disk is the data of a member, which outlives its processes.
type Disk struct {
	member, cluster members.ID
	term            uint64
	head            *entry
	storage         int   // the minor version of the data
	file            int64 // how many bytes its file has, in use or not
	corrupt         bool
	rot             rot
}

// NewDisk is an empty disk.
func (w *World) NewDisk() *Disk {
	d := &Disk{}
	w.disks = append(w.disks, d)
	return d
}

// IsEmpty says whether nothing was ever written to it since it was made or wiped.
func (d *Disk) IsEmpty() bool { return d.head == nil }

// Cluster and Member are whose data it holds; 0 if it is empty.
func (d *Disk) Cluster() members.ID { return d.cluster }

// Member is the member that the data is of; 0 if it is empty.
func (d *Disk) Member() members.ID { return d.member }

// Wipe loses the data.
func (d *Disk) Wipe() { *d = Disk{} }

// Corrupt keeps processes from starting with the data.
func (d *Disk) Corrupt() { d.corrupt = true }

// Process is a running etcd, or what is left of one.
type Process struct {
	config  Config
	version version
	up      time.Time // since when it runs and others reach it
	running bool
	exit    string

	paused, cut, isolated, slow bool
	lie                         *Lie

	leader        *Process
	leaderless    time.Time
	syncAt        time.Time
	downgradeDone time.Time
	compares      time.Time    // when a leader compares the others' data with its own; zero if there is no difference
	defragmented  time.Time    // when its defragmentation will be done; zero if it is in none
	matched       []members.ID // of a leader: who had its entries
	hasToken      bool         // whether it knows a token of the operator's
}

// Lie is what a member says instead of the truth.
type Lie struct {
	ClusterID members.ID       // 0 is the right one
	Members   []members.Member // nil are the right ones
}

func (w *World) process(name string) *Process {
	for i := len(w.processes) - 1; i >= 0; i-- {
		if w.processes[i].config.Name == name {
			return w.processes[i]
		}
	}
	return nil
}

// IsRunning says whether the latest process of that name runs, and with what it exited.
func (w *World) IsRunning(name string) (bool, string) {
	w.Tick()
	p := w.process(name)
	if p == nil {
		return false, ""
	}
	return p.running, p.exit
}

// Defragmenting are the names of the processes that are being defragmented.
func (w *World) Defragmenting() []string {
	w.Tick()
	var all []string
	for _, p := range w.processes {
		if p.isDefragmenting() {
			all = append(all, p.config.Name)
		}
	}
	return all
}

// Stop ends a process with SIGTERM: a leader hands over.
func (w *World) Stop(name string) {
	w.Tick()
	if p := w.process(name); p != nil && p.running {
		w.handOver(p)
		w.end(p, "")
	}
}

// Kill ends a process at once.
func (w *World) Kill(name string) {
	w.Tick()
	if p := w.process(name); p != nil && p.running {
		w.end(p, "")
	}
	w.Tick()
}

// Pause has a process stand still until Resume.
func (w *World) Pause(name string) { w.set(name, func(p *Process) { p.paused = true }) }

// Resume ends Pause.
func (w *World) Resume(name string) { w.set(name, func(p *Process) { p.paused = false }) }

// Unreachable cuts a process off: from clients, and also from peers.
func (w *World) Unreachable(name string, clients, peers bool) {
	w.set(name, func(p *Process) { p.cut, p.isolated = clients, peers })
}

// Slow has a member catch up slowly.
func (w *World) Slow(name string, slow bool) { w.set(name, func(p *Process) { p.slow = slow }) }

// SetLie has a member lie until it is nil.
func (w *World) SetLie(name string, lie *Lie) { w.set(name, func(p *Process) { p.lie = lie }) }

func (w *World) set(name string, change func(*Process)) {
	w.Tick()
	p := w.process(name)
	if p == nil {
		return
	}
	wasUp := !p.paused && !p.isolated
	change(p)
	if !wasUp && !p.paused && !p.isolated {
		p.up = w.now()
	}
	w.Tick()
}

func (w *World) end(p *Process, why string) {
	p.running, p.exit, p.leader, p.matched = false, why, nil, nil
}

// wake notes that something changes by itself at a time.
func (w *World) wake(at time.Time) {
	if w.next.IsZero() || at.Before(w.next) {
		w.next = at
	}
}

// Next is when something changes by itself; zero if nothing does.
func (w *World) Next() time.Time {
	w.Tick()
	return w.next
}
