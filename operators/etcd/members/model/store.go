package model

import (
	"context"
	"fmt"

	"example.com/fairlead/operators/etcd/members"
)

// Write is the number of a write. 0 is none.
type Write int

const (
	bytesPerWrite = 1 << 10
	defaultQuota  = 2 << 30
)

// ErrNoAnswer is that of a request of which it is not known what became of it.
var ErrNoAnswer = fmt.Errorf("no answer: %w", context.DeadlineExceeded)

// Acknowledged is all writes that were acknowledged.
func (w *World) Acknowledged() []Write { return w.acked }

// AcknowledgedBy is the cluster that has acknowledged a write.
func (w *World) AcknowledgedBy(write Write) members.ID { return w.ackedBy[write] }

// Holders is the disks that have a write.
func (w *World) Holders(write Write) []*Disk {
	var all []*Disk
	for _, d := range w.disks {
		if !d.corrupt && d.Has(write) {
			all = append(all, d)
		}
	}
	return all
}

// apply takes the log on to an entry. The file grows when all of it is in use, and never shrinks by itself.
func (d *Disk) apply(to *entry) {
	for e := to; e != nil && e != d.head; e = e.prev {
		d.file = max(d.file, e.state.dbInUse)
	}
	d.head = to
}

// Has says whether a write is in the data, as it was made.
func (d *Disk) Has(write Write) bool {
	if d.rot.write == write {
		return false
	}
	for e := d.head; e != nil; e = e.prev {
		if e.write == write {
			return true
		}
	}
	return false
}

// Leading is the disks of the members that lead.
func (w *World) Leading() []*Disk {
	w.Tick()
	var all []*Disk
	for _, p := range w.processes {
		if p.running && p.leads() {
			all = append(all, p.config.Disk)
		}
	}
	return all
}

// Members are the members that the data names; none if it is empty.
func (d *Disk) Members() []members.Member {
	if d.head == nil {
		return nil
	}
	return d.head.state.members
}

// Lost is the acknowledged writes that no disk has any more.
func (w *World) Lost() []Write {
	held := map[Write]bool{}
	seen := map[*entry]bool{}
	for _, d := range w.disks {
		if d.corrupt || d.rot != (rot{}) {
			continue
		}
		for e := d.head; e != nil && !seen[e]; e = e.prev {
			seen[e] = true
			held[e.write] = true
		}
	}
	var lost []Write
	for _, write := range w.acked {
		if !held[write] {
			lost = append(lost, write)
		}
	}
	return lost
}
