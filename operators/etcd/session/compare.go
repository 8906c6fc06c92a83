package session

import (
	"context"
	"maps"
	"slices"
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/outside"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
)

// This file finds out for itself what an alarm CORRUPT only says. Etcd's leader compares the others with itself, and
// raises the alarm for them: if it is the leader's data that is wrong, for all that are right. So while there is such an
// alarm, each member is asked for the hash of its keys, all at the same revision. That reads the whole database, so it
// runs in the background, and is repeated now and then. What follows from the hashes is in package view.

const (
	// hashLasts is for how long a hash is taken for the present one, and hashAgain when it is tried again to get one.
	hashLasts = 30 * time.Second
	hashAgain = 5 * time.Second
)

// hashing is the hash of a member, or what is known of one that it is asked for.
type hashing struct {
	of       members.ID
	revision int64
	isAsked  bool
	// had is what it said last: a zero hash if there was an error, or nothing was said yet.
	had members.Hash
	err error
	at  time.Time
}

// isFresh says whether there is no need to ask again, or it is being asked.
func (h *hashing) isFresh(now time.Time) bool {
	if h.err != nil {
		return h.isAsked || now.Sub(h.at) < hashAgain
	}
	return h.isAsked || now.Sub(h.at) < hashLasts
}

// compare adds the hashes that are known to the answers, and asks for those that are missing. There are none unless a
// member of the cluster knows of an alarm CORRUPT.
func (a *Asker) compare(ctx context.Context, ec *v1beta2.EtcdCluster, to func(string) (members.Client, members.Endpoint), answers map[string]Answer) {
	cluster, key := members.ParseID(ec.Status.ClusterID), objects.Key(ec)
	isRaised, revision := false, int64(0)
	for _, answer := range answers {
		if !answer.IsOf(cluster) {
			continue
		}
		isRaised = isRaised || answer.Status.HasAlarm(members.Corrupt)
		if is := answer.Status.Revision; !answer.Status.IsLearner && (revision == 0 || is < revision) {
			revision = is
		}
	}
	if !isRaised {
		a.mu.Lock()
		delete(a.hashes, key)
		a.mu.Unlock()
		return
	}
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		answer := answers[name]
		if !answer.IsOf(cluster) {
			continue
		}
		asked, isNew := a.hashOf(ec, name, answer.Status.ID, revision)
		if isNew {
			client, at := to(name)
			patience := members.HashPatience(answer.Status.DBSize)
			outside.Go(ctx, func(ctx context.Context) {
				had, err := client.Hash(ctx, at, revision, patience)
				a.mu.Lock()
				defer a.mu.Unlock()
				asked.isAsked, asked.had, asked.err, asked.at = false, had, err, a.now()
			})
		}
		a.mu.Lock()
		answer.Hash, answer.HashErr = asked.had, asked.err
		a.mu.Unlock()
		answers[name] = answer
	}
}

// hashOf is what is known of the hash of a member at a revision, and whether it is to be asked for.
func (a *Asker) hashOf(ec *v1beta2.EtcdCluster, name string, of members.ID, revision int64) (h *hashing, isNew bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.hashes[objects.Key(ec)]
	if all == nil {
		all = map[string]*hashing{}
		a.hashes[objects.Key(ec)] = all
	}
	h = all[name]
	if h == nil || h.of != of || h.revision != revision {
		h = &hashing{of: of, revision: revision}
		all[name] = h
	}
	if h.isFresh(a.now()) {
		return h, false
	}
	h.isAsked = true
	return h, true
}
