package model

import (
	"context"
	"crypto/tls"
	"errors"
	"slices"
	"strings"
	"time"

	"example.com/fairlead/internal/kit/outside"
	"example.com/fairlead/operators/etcd/members"
)

// errCorrupt is how requests for keys are answered as long as there is an alarm CORRUPT.
var errCorrupt = errors.New("etcdserver: corrupt cluster")

type client struct {
	w  *World
	as members.User
	// isRoot says that its certificate is root's.
	isRoot bool
}

// Connect is a members.Connect to the members of the world. A certificate is root's.
func (w *World) Connect(config *tls.Config, as members.User) (members.Client, error) {
	return client{w, as, config != nil}, nil
}

func (w *World) at(address string) (*Process, error) {
	w.Tick()
	for _, p := range w.processes {
		if p.running && p.config.Address == address {
			if p.paused || p.isDefragmenting() {
				return nil, ErrNoAnswer
			}
			if p.cut {
				return nil, members.ErrUnreachable
			}
			return p, nil
		}
	}
	return nil, members.ErrUnreachable
}

func (c client) do(ctx context.Context, verb string, at members.Endpoint, needsLeader bool, do func(*Process) error) error {
	return outside.Do(ctx, outside.Call{Verb: verb, What: "members", Name: at.Address}, func() error {
		p, err := c.w.at(at.Address)
		if err != nil {
			return err
		}
		if needsLeader && p.leader == nil {
			return members.ErrNoLeader
		}
		if err := c.isAdmitted(p); err != nil {
			return err
		}
		err = do(p)
		c.w.Tick()
		return err
	})
}

// Put writes something by way of a member. It is acknowledged if there is no error.
func (w *World) Put(address string) (int64, error) {
	p, err := w.at(address)
	if err != nil {
		return 0, err
	}
	if p.leader == nil {
		return 0, members.ErrNoLeader
	}
	next := *p.leader.state()
	if next.hasAlarm(members.Corrupt) {
		return 0, errCorrupt
	}
	if next.hasAlarm(members.NoSpace) {
		return 0, members.ErrNoSpace
	}
	quota := p.config.Quota
	if quota == 0 {
		quota = defaultQuota
	}
	if max(next.dbInUse+bytesPerWrite, p.config.Disk.file) > quota {
		next.alarms = append(slices.Clip(next.alarms), members.Alarm{Member: p.id(), Type: members.NoSpace})
		_ = w.propose(p.leader, &next, 0) // the answer is the same
		return 0, members.ErrNoSpace
	}
	next.revision++
	next.dbInUse += bytesPerWrite
	w.lastWrite++
	if !w.propose(p.leader, &next, w.lastWrite) {
		return 0, ErrNoAnswer
	}
	w.acked = append(w.acked, w.lastWrite)
	w.ackedBy[w.lastWrite] = p.config.Disk.cluster
	return next.revision, nil
}

// Overwrite has a key written so many times, so that its history takes room.
func (w *World) Overwrite(address string, times int64) error {
	p, err := w.at(address)
	if err != nil {
		return err
	}
	if p.leader == nil {
		return members.ErrNoLeader
	}
	next := *p.leader.state()
	next.revision += times
	next.dbInUse += times * bytesPerWrite
	return w.commit(p, &next)
}

// Bloat has the files of all members grow by bytes that are not in use, as after many deletions.
func (w *World) Bloat(address string, bytes int64) error {
	p, err := w.at(address)
	if err != nil {
		return err
	}
	if p.leader == nil {
		return members.ErrNoLeader
	}
	for _, d := range w.disks {
		if d.cluster == p.config.Disk.cluster {
			d.file += bytes
		}
	}
	return nil
}

func (c client) Status(ctx context.Context, at members.Endpoint) (s members.Status, err error) {
	err = c.do(ctx, "get", at, false, func(p *Process) error {
		d, now := p.config.Disk, p.state()
		m := now.member(d.member)
		s = members.Status{
			ClusterID: d.cluster, ID: d.member, Version: p.version.text, IsLearner: m != nil && m.IsLearner,
			RaftTerm: d.term, RaftIndex: d.head.index, Applied: d.head.index, Revision: now.revision,
			DBSize: max(d.file, now.dbInUse), DBSizeInUse: now.dbInUse, Alarms: slices.Clone(now.alarms),
		}
		if p.version.minor >= 6 {
			s.StorageVersion, s.Downgrading = minor(d.storage), minor(now.target)
		}
		if p.leader != nil {
			s.Leader = p.leader.id()
		}
		if p.lie != nil && p.lie.ClusterID != 0 {
			s.ClusterID = p.lie.ClusterID
		}
		return nil
	})
	return s, err
}

func (c client) List(ctx context.Context, at members.Endpoint) (l members.List, err error) {
	err = c.do(ctx, "get", at, false, func(p *Process) error {
		if p.isLearner() {
			return members.ErrIsLearner
		}
		l = members.List{ClusterID: p.config.Disk.cluster, By: p.id(), Members: slices.Clone(p.state().members)}
		if p.lie != nil && p.lie.ClusterID != 0 {
			l.ClusterID = p.lie.ClusterID
		}
		if p.lie != nil && p.lie.Members != nil {
			l.Members = slices.Clone(p.lie.Members)
		}
		return nil
	})
	return l, err
}

func (c client) Serves(ctx context.Context, at members.Endpoint) error {
	return c.do(ctx, "get", at, true, func(p *Process) error {
		switch {
		case p.isLearner():
			return members.ErrIsLearner
		case p.state().hasAlarm(members.Corrupt):
			return errCorrupt
		}
		return nil
	})
}

// Send does what etcd does with a request that changes something.
func (c client) Send(ctx context.Context, r members.Request) error {
	if r.What == members.EnableAuth {
		return c.enableAuth(ctx, r.At)
	}
	verb, _, _ := strings.Cut(string(r.What), " ")
	return c.do(ctx, verb, r.At, r.What != members.Defragment, func(p *Process) error {
		switch r.What {
		case members.Add:
			return c.w.add(p, r.PeerURLs, r.Learner)
		case members.Promote:
			return c.w.promote(p, r.ID)
		case members.Rewrite:
			return c.w.rewrite(p, r.ID, r.PeerURLs)
		case members.Remove:
			return c.w.remove(p, r.ID)
		case members.MoveLeader:
			return c.w.moveLeader(p, r.ID)
		case members.Compact, members.DropHistory:
			return c.w.compact(p, r.Revision)
		case members.Disarm:
			next := *p.leader.state()
			next.alarms = slices.DeleteFunc(slices.Clone(next.alarms), func(a members.Alarm) bool { return a == r.Alarm })
			return c.w.commit(p, &next)
		case members.Downgrade:
			return c.w.downgrade(p, r.Version)
		case members.SetPassword:
			return c.w.setPassword(p, c.as.Password)
		case members.EnableAuth: // is several requests
		case members.Defragment:
			p.defragmented = c.w.now().Add(c.w.DefragmentTakes)
			return PendingError{c.w, p}
		}
		return nil
	})
}

// PendingError is the answer at first to a request that takes its time: who has sent it waits until it is over.
type PendingError struct {
	world   *World
	process *Process
}

func (PendingError) Error() string { return "it is under way" }

var errBroken = errors.New("the connection broke")

// IsOver says whether it is over, and what the answer is then.
func (u PendingError) IsOver() (bool, error) {
	u.world.Tick()
	if !u.process.running {
		return true, errBroken
	}
	return !u.process.isDefragmenting(), nil
}

func (p *Process) isDefragmenting() bool { return p.running && !p.defragmented.IsZero() }

// defragment ends a defragmentation that is due.
func (w *World) defragment(p *Process, now time.Time) bool {
	switch {
	case !p.isDefragmenting():
		return false
	case now.Before(p.defragmented):
		w.wake(p.defragmented)
		return false
	}
	p.config.Disk.file, p.defragmented = p.state().dbInUse, time.Time{}
	return true
}

func (w *World) compact(p *Process, revision int64) error {
	next := *p.leader.state()
	if next.hasAlarm(members.Corrupt) {
		return errCorrupt
	}
	if revision <= next.compacted {
		return members.ErrCompacted
	}
	next.dbInUse -= min(next.dbInUse, (revision-next.compacted)*bytesPerWrite)
	next.compacted = revision
	return w.commit(p, &next)
}

func (w *World) downgrade(p *Process, to string) error {
	next := *p.leader.state()
	switch {
	case p.version.minor < 5 || p.version.minor < 6 && to != "":
		return members.ErrUnsupported
	case to == "" && next.target == 0:
		return members.ErrNoDowngrade
	case to == "":
		next.target = 0
	case next.target != 0 || parse(to).minor != next.version-1:
		return members.ErrDowngradeRefused
	default:
		next.target = parse(to).minor
	}
	return w.commit(p, &next)
}

func (c client) Close() error { return nil }
