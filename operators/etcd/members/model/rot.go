package model

import (
	"context"
	"errors"
	"slices"
	"time"

	"example.com/fairlead/operators/etcd/members"
)

// rot is what is wrong in data that etcd takes for right: a write that has another value. No two are the same.
type rot struct {
	write Write
	value uint32
}

// Rot changes the value of the last acknowledged write in a member's data, behind its back.
func (w *World) Rot(name string) error {
	w.Tick()
	p := w.process(name)
	if p == nil {
		return members.ErrUnreachable
	}
	for _, write := range slices.Backward(w.acked) {
		if d := p.config.Disk; d.Has(write) {
			w.rots++
			d.rot = rot{write, w.rots}
			w.Tick()
			return nil
		}
	}
	return errors.New("nothing was acknowledged that it has")
}

// compare has a leader compare the others' data with its own. The first that differs gets the alarm, whose fault it is
// or not: as in etcd's PeriodicCheck.
func (w *World) compare(l *Process, now time.Time) bool {
	for _, p := range w.processes {
		if p == l || p.leader != l || !l.reaches(p) || p.config.Disk.head != l.config.Disk.head || p.config.Disk.rot == l.config.Disk.rot {
			continue
		}
		raised := members.Alarm{Member: p.id(), Type: members.Corrupt}
		switch {
		case slices.Contains(l.state().alarms, raised):
		case l.compares.IsZero(), now.Before(l.compares):
			if l.compares.IsZero() {
				l.compares = now.Add(corruptCheck)
			}
			w.wake(l.compares)
		default:
			l.compares = time.Time{}
			next := *l.state()
			next.alarms = append(slices.Clip(next.alarms), raised)
			return w.propose(l, &next, 0)
		}
		return false
	}
	l.compares = time.Time{}
	return false
}

func (c client) Hash(ctx context.Context, at members.Endpoint, revision int64, _ time.Duration) (h members.Hash, err error) {
	err = c.do(ctx, "get", at, false, func(p *Process) error {
		if p.state().revision < revision {
			return errors.New("etcdserver: mvcc: required revision is a future revision")
		}
		h = members.Hash{Revision: revision, Compacted: p.state().compacted, Sum: uint32(revision)<<8 + p.config.Disk.rot.value}
		return nil
	})
	return h, err
}
