package model

import (
	"crypto/sha1" //nolint:gosec // as etcd makes its IDs
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"example.com/fairlead/operators/etcd/members"
)

// Config is how a process is started.
type Config struct {
	Name string
	// PeerURL is where peers find it, and Address where clients do, as in an endpoint.
	PeerURL, Address string
	Version          string
	// InitialCluster is a list such as a=http://a:2380,b=http://b:2380.
	InitialCluster string
	Existing       bool
	Token          string
	ForceNew       bool
	Disk           *Disk
	// Quota is that of the database in bytes; 0 is 2 GiB.
	Quota int64
}

// Start starts a process. If it exits at once, the text is what etcd says.
func (w *World) Start(config Config) (running bool, exit string) {
	w.Tick()
	if old := w.process(config.Name); old != nil && old.running && old.config.Disk == config.Disk {
		return false, "cannot lock the data folder: resource temporarily unavailable"
	}
	p := &Process{config: config, version: parse(config.Version), up: w.now(), leaderless: w.now()}
	if exit = w.bootstrap(p); exit != "" {
		p.exit = exit
	} else {
		p.running = true
	}
	// A process that has ended says no more once its name has another.
	w.processes = slices.DeleteFunc(w.processes, func(o *Process) bool { return !o.running && o.config.Name == config.Name })
	w.processes = append(w.processes, p)
	w.Tick()
	return p.running, p.exit
}

func (w *World) bootstrap(p *Process) string {
	d := p.config.Disk
	switch {
	case d.corrupt:
		return "failed to recover v3 backend from snapshot: no such data: the database is corrupt"
	case d.head != nil:
		return w.restart(p)
	}
	names, urls := parseInitial(p.config.InitialCluster)
	self := slices.Index(names, p.config.Name)
	if self < 0 {
		return "couldn't find local name " + strconv.Quote(p.config.Name) + " in the initial cluster configuration"
	}
	if p.config.Existing {
		return w.join(p, urls)
	}
	if urls[self] != p.config.PeerURL {
		return "--initial-cluster has " + p.config.Name + "=" + urls[self] + " but missing from --initial-advertise-peer-urls=" + p.config.PeerURL
	}
	first := w.genesis(names, urls, p.config.Token)
	id := first.state.members[slices.IndexFunc(first.state.members, func(m members.Member) bool { return m.Name == p.config.Name })].ID
	if q := w.anyPeer(p, urls); q != nil {
		if m := q.state().member(id); m != nil && len(m.ClientURLs) > 0 {
			return "member " + id.String() + " has already been bootstrapped"
		}
	}
	d.member, d.cluster, d.head, d.term = id, first.state.cluster, first, 1
	d.storage = p.version.minor
	return ""
}

// join follows bootstrapExistingClusterNoWAL.
func (w *World) join(p *Process, urls []string) string {
	q := w.anyPeer(p, urls)
	if q == nil {
		return "cannot fetch cluster info from peer urls: could not retrieve cluster information from the given URLs"
	}
	s := q.state()
	var id members.ID
	var known []string
	for _, m := range s.members {
		known = append(known, m.PeerURLs...)
		if m.PeerURLs[0] == p.config.PeerURL {
			id = m.ID
		}
	}
	if len(known) != len(urls) {
		return "error validating peerURLs: member count is unequal"
	}
	if slices.ContainsFunc(known, func(url string) bool { return !slices.Contains(urls, url) }) {
		return "error validating peerURLs: PeerURLs: no match found for existing member"
	}
	if id == 0 {
		return "error validating peerURLs: PeerURLs: no match found for the local member"
	}
	// As in allowedVersionRange.
	lowest, highest := 0, p.version.minor
	if s.target != 0 {
		lowest, highest = p.version.minor+1, p.version.minor+1
	}
	if s.version < lowest || s.version > highest {
		return "incompatible with current running cluster"
	}
	if l := q.leader; l != nil && slices.Contains(l.matched, id) {
		return "tocommit is out of range [lastIndex(0)]. Was the raft log corrupted, truncated, or lost?"
	}
	d := p.config.Disk
	d.member, d.cluster, d.term, d.storage = id, s.cluster, 0, p.version.minor
	d.head = &entry{state: &state{cluster: s.cluster, members: s.members, version: s.version}}
	return ""
}

func (w *World) restart(p *Process) string {
	d := p.config.Disk
	s := p.state()
	if slices.Contains(s.removed, d.member) {
		return "the member has been permanently removed from the cluster"
	}
	if s.version > p.version.minor {
		return "invalid downgrade; server version is lower than determined cluster version"
	}
	if d.storage > p.version.minor || p.version.minor >= 7 && d.storage < 6 {
		return "storage version is not supported by this version of etcd"
	}
	if w.refusesV2(p) {
		return v2InSnapshot
	}
	if p.config.ForceNew {
		next := *s
		next.members = nil
		for _, m := range s.members {
			if m.ID == d.member {
				m.IsLearner = false
				next.members = append(next.members, m)
			} else {
				next.removed = append(slices.Clip(next.removed), m.ID)
			}
		}
		d.term++
		d.head = d.head.with(d.term, &next)
	}
	return ""
}

// anyPeer is a process at one of the URLs that answers peers and is another one.
func (w *World) anyPeer(p *Process, urls []string) *Process {
	for _, url := range urls {
		if url == p.config.PeerURL {
			continue
		}
		for _, q := range w.processes {
			if q.config.PeerURL == url && q.answersPeers() {
				return q
			}
		}
	}
	return nil
}

// genesis is the first entry of a cluster: the same for the same list and token.
func (w *World) genesis(names, urls []string, token string) *entry {
	key := token + " " + strings.Join(names, ",") + " " + strings.Join(urls, ",")
	if e, ok := w.geneses[key]; ok {
		return e
	}
	s := &state{revision: 1}
	var ids []members.ID
	for i, url := range urls {
		if i > 0 && names[i] == names[i-1] {
			last := &s.members[len(s.members)-1]
			last.PeerURLs = append(last.PeerURLs, url)
			continue
		}
		id := hash(url + token)
		ids = append(ids, id)
		s.members = append(s.members, members.Member{ID: id, Name: names[i], PeerURLs: []string{url}})
	}
	slices.Sort(ids)
	var all []byte
	for _, id := range ids {
		all = binary.BigEndian.AppendUint64(all, uint64(id))
	}
	s.cluster = hash(string(all))
	e := &entry{index: uint64(len(s.members)), term: 1, state: s}
	w.geneses[key] = e
	return e
}

func hash(s string) members.ID {
	sum := sha1.Sum([]byte(s)) //nolint:gosec // as etcd makes its IDs
	return members.ID(binary.BigEndian.Uint64(sum[:8]))
}

// parseInitial is a list's entries, sorted: a member with two URLs has two.
func parseInitial(list string) (names, urls []string) {
	entries := strings.Split(list, ",")
	slices.Sort(entries)
	for _, e := range entries {
		name, url, _ := strings.Cut(e, "=")
		names, urls = append(names, name), append(urls, url)
	}
	return names, urls
}
