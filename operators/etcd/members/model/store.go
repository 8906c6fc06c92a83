package model

import "errors"

// Write is the number of a write. 0 is none.
type Write int

const (
	bytesPerWrite = 1 << 10
	defaultQuota  = 2 << 30
)

// ErrNoAnswer is that of a request of which it is not known what became of it.
var ErrNoAnswer = errors.New("no answer")

// Acknowledged is all writes that were acknowledged.
func (w *World) Acknowledged() []Write { return w.acked }

// Holders is the disks that have a write.
func (w *World) Holders(write Write) []*Disk {
	var all []*Disk
	for _, d := range w.disks {
		if !d.corrupt && d.has(write) {
			all = append(all, d)
		}
	}
	return all
}

func (d *Disk) has(write Write) bool {
	for e := d.head; e != nil; e = e.prev {
		if e.write == write {
			return true
		}
	}
	return false
}

// Lost is the acknowledged writes that no disk has any more.
func (w *World) Lost() []Write {
	held := map[Write]bool{}
	seen := map[*entry]bool{}
	for _, d := range w.disks {
		if d.corrupt {
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
