//go:build apiserver

package members_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/members/etcdtest"
	"example.com/fairlead/operators/etcd/pki"
)

const version = "v3.6.16"

func at(m *etcdtest.Member) members.Endpoint { return members.Endpoint{Address: m.Client} }

func dialed(t *testing.T) members.Client {
	t.Helper()
	c, err := members.Dial(nil, members.User{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func wants(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: the error is %v, want %v", what, err, want)
	}
}

// TestReal makes every request to a real cluster.
func TestReal(t *testing.T) {
	ctx, c := t.Context(), dialed(t)
	all := etcdtest.NewCluster(t, 3, version)
	_, err := c.Status(ctx, at(all[0]))
	wants(t, "a member that has not started", err, members.ErrUnreachable)
	ids := map[string]members.ID{}
	for _, m := range all {
		m.Start(t)
	}
	for _, m := range all {
		etcdtest.Eventually(t, time.Minute, "serves", func() error { return c.Serves(ctx, at(m)) })
	}
	for _, m := range all {
		s, err := c.Status(ctx, at(m))
		if err != nil || s.ID == 0 || s.Leader == 0 || "v"+s.Version != version || s.DBSize == 0 {
			t.Fatalf("the status of %s is %+v (%v)", m.Name, s, err)
		}
		ids[m.Name] = s.ID
	}
	var leader, follower *etcdtest.Member
	for _, m := range all {
		if s, err := c.Status(ctx, at(m)); err == nil && s.Leader == s.ID {
			leader = m
		} else {
			follower = m
		}
	}

	wants(t, "a follower that is to hand over", c.Send(ctx, members.Request{What: members.MoveLeader, At: at(follower), ID: ids[follower.Name]}), members.ErrNotLeader)
	if err := c.Send(ctx, members.Request{What: members.MoveLeader, At: at(leader), ID: ids[follower.Name]}); err != nil {
		t.Errorf("hand over: %v", err)
	}
	leader, follower = follower, leader

	// A learner that does not run is not in sync, and there is only one at a time.
	extra, other := etcdtest.New(t, "x", version), etcdtest.New(t, "y", version)
	err = c.Send(ctx, members.Request{What: members.Add, At: at(leader), PeerURLs: []string{all[0].PeerURL()}, Learner: true})
	if !errors.Is(err, members.ErrUnhealthy) {
		wants(t, "a peer URL that is known", err, members.ErrMemberExists)
	}
	etcdtest.Eventually(t, 30*time.Second, "add a learner", func() error {
		err := c.Send(ctx, members.Request{What: members.Add, At: at(leader), PeerURLs: []string{extra.PeerURL()}, Learner: true})
		if err != nil && !errors.Is(err, members.ErrUnhealthy) {
			t.Fatal(err)
		}
		return err
	})
	err = c.Send(ctx, members.Request{What: members.Add, At: at(leader), PeerURLs: []string{extra.PeerURL()}, Learner: true})
	wants(t, "the peer URL of the learner", err, members.ErrMemberExists)
	err = c.Send(ctx, members.Request{What: members.Add, At: at(leader), PeerURLs: []string{other.PeerURL()}, Learner: true})
	wants(t, "a second learner", err, members.ErrTooManyLearners)
	list, err := c.List(ctx, at(leader))
	if err != nil {
		t.Fatal(err)
	}
	added := list.Members[slices.IndexFunc(list.Members, func(m members.Member) bool { return m.IsLearner })]
	wants(t, "a learner that does not run", c.Send(ctx, members.Request{What: members.Promote, At: at(leader), ID: added.ID}), members.ErrLearnerNotReady)
	wants(t, "a voter", c.Send(ctx, members.Request{What: members.Promote, At: at(leader), ID: ids[leader.Name]}), members.ErrNotLearner)
	wants(t, "nobody", c.Send(ctx, members.Request{What: members.Promote, At: at(leader), ID: 1}), members.ErrMemberNotFound)

	extra.Env = []string{
		"ETCD_INITIAL_CLUSTER=" + etcdtest.InitialCluster(append(all, extra)...), "ETCD_INITIAL_CLUSTER_STATE=existing",
	}
	extra.Start(t)
	etcdtest.Eventually(t, time.Minute, "the learner's status", func() error {
		s, err := c.Status(ctx, at(extra))
		if err == nil && !s.IsLearner {
			t.Errorf("the learner is a voter: %+v", s)
		}
		return err
	})
	_, err = c.List(ctx, at(extra))
	wants(t, "the list of a learner", err, members.ErrIsLearner)
	wants(t, "a read of a learner", c.Serves(ctx, at(extra)), members.ErrIsLearner)
	etcdtest.Eventually(t, time.Minute, "promote", func() error {
		return c.Send(ctx, members.Request{What: members.Promote, At: at(follower), ID: added.ID})
	})
	if list, err := c.List(ctx, at(leader)); err != nil || len(list.Members) != 4 || list.By != ids[leader.Name] || list.ClusterID == 0 {
		t.Errorf("the list is %+v (%v)", list, err)
	}

	wants(t, "nobody", c.Send(ctx, members.Request{What: members.Rewrite, At: at(leader), ID: 1, PeerURLs: []string{extra.PeerURL()}}), members.ErrMemberNotFound)
	if err := c.Send(ctx, members.Request{What: members.Rewrite, At: at(leader), ID: added.ID, PeerURLs: []string{extra.PeerURL()}}); err != nil {
		t.Errorf("rewrite: %v", err)
	}
	if list, err := c.List(ctx, at(leader)); err != nil || slices.ContainsFunc(list.Members, func(m members.Member) bool { return m.IsLearner || len(m.PeerURLs) != 1 }) {
		t.Errorf("what is rewritten changes the list to %+v (%v)", list, err)
	}

	extra.Kill(t)
	etcdtest.Eventually(t, 30*time.Second, "remove", func() error { return c.Send(ctx, members.Request{What: members.Remove, At: at(leader), ID: added.ID}) })
	wants(t, "one that is removed", c.Send(ctx, members.Request{What: members.Remove, At: at(leader), ID: added.ID}), members.ErrMemberNotFound)

	wants(t, "a downgrade by two", c.Send(ctx, members.Request{What: members.Downgrade, At: at(leader), Version: "3.4"}), members.ErrDowngradeRefused)
	wants(t, "no downgrade", c.Send(ctx, members.Request{What: members.Downgrade, At: at(leader)}), members.ErrNoDowngrade)
	if err := c.Send(ctx, members.Request{What: members.Downgrade, At: at(leader), Version: "3.5"}); err != nil {
		t.Errorf("enable a downgrade: %v", err)
	}
	if s, err := c.Status(ctx, at(leader)); err != nil || s.Downgrading != "3.5" {
		t.Errorf("the status during a downgrade is %+v (%v)", s, err)
	}
	wants(t, "a second downgrade", c.Send(ctx, members.Request{What: members.Downgrade, At: at(leader), Version: "3.5"}), members.ErrDowngradeRefused)
	if err := c.Send(ctx, members.Request{What: members.Downgrade, At: at(leader)}); err != nil {
		t.Errorf("cancel a downgrade: %v", err)
	}
	if s, err := c.Status(ctx, at(leader)); err != nil || s.Downgrading != "" {
		t.Errorf("the status after a downgrade is %+v (%v)", s, err)
	}
	if err := c.Send(ctx, members.Request{What: members.Defragment, At: at(leader)}); err != nil {
		t.Errorf("defragment: %v", err)
	}

	// Without quorum, a member still says what it has. A member that is paused does not.
	all[1].Kill(t)
	all[2].Pause(t)
	if _, err := c.Status(ctx, at(all[2])); err == nil {
		t.Error("a paused member answers")
	}
	all[2].Kill(t)
	etcdtest.Eventually(t, 30*time.Second, "no leader", func() error {
		s, err := c.Status(ctx, at(all[0]))
		if err == nil && s.Leader != 0 {
			err = fmt.Errorf("%s leads", s.Leader)
		}
		return err
	})
	if list, err := c.List(ctx, at(all[0])); err != nil || len(list.Members) != 3 {
		t.Errorf("without quorum, the list is %+v (%v)", list, err)
	}
	if err := c.Serves(ctx, at(all[0])); err == nil {
		t.Error("a member without quorum serves")
	}
	if err := c.Send(ctx, members.Request{What: members.Remove, At: at(all[0]), ID: ids["c"]}); err == nil {
		t.Error("a member is removed without quorum")
	}
}

// TestRealAlarm fills a database.
func TestRealAlarm(t *testing.T) {
	ctx, c := t.Context(), dialed(t)
	m := etcdtest.NewCluster(t, 1, version)[0]
	m.Flags = []string{"--quota-backend-bytes=1000000"}
	m.Start(t)
	etcdtest.Eventually(t, time.Minute, "serves", func() error { return c.Serves(ctx, at(m)) })
	conn, err := grpc.NewClient(m.Client, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	put := func(ctx context.Context) (*pb.PutResponse, error) {
		return pb.NewKVClient(conn).Put(ctx, &pb.PutRequest{Key: []byte("k"), Value: []byte(strings.Repeat("x", 100_000))})
	}
	var revision int64
	for range 100 {
		done, err := put(ctx)
		if err != nil {
			break
		}
		revision = done.GetHeader().GetRevision()
	}
	s, err := c.Status(ctx, at(m))
	if err != nil || len(s.Alarms) != 1 || s.Alarms[0] != (members.Alarm{Member: s.ID, Type: members.NoSpace}) {
		t.Fatalf("the status of a full member is %+v (%v)", s, err)
	}
	if err := c.Send(ctx, members.Request{What: members.Compact, At: at(m), Revision: revision}); err != nil {
		t.Errorf("compact: %v", err)
	}
	wants(t, "a compacted revision", c.Send(ctx, members.Request{What: members.Compact, At: at(m), Revision: revision}), members.ErrCompacted)
	// What is in use is known only after the next write, which a full member refuses. A compaction
	// goes on after its answer.
	before := s.DBSize
	etcdtest.Eventually(t, time.Minute, "defragment", func() error {
		if err := c.Send(ctx, members.Request{What: members.Defragment, At: at(m)}); err != nil {
			return err
		}
		if s, err = c.Status(ctx, at(m)); err == nil && s.DBSize > before/2 {
			err = fmt.Errorf("the database still has %d bytes of %d", s.DBSize, before)
		}
		return err
	})
	if err := c.Send(ctx, members.Request{What: members.Disarm, At: at(m), Alarm: members.Alarm{Member: s.ID, Type: members.NoSpace}}); err != nil {
		t.Errorf("disarm: %v", err)
	}
	if s, err = c.Status(ctx, at(m)); err != nil || len(s.Alarms) != 0 || s.DBSize >= before {
		t.Errorf("the status afterwards is %+v (%v)", s, err)
	}
	if _, err := put(ctx); err != nil {
		t.Errorf("write: %v", err)
	}
}

// TestRealDowngrade: while a downgrade is enabled nobody can join, whatever the version, until it is
// cancelled. Members of 3.5 do not say that one is, and say that there is none to cancel.
func TestRealDowngrade(t *testing.T) {
	ctx, c := t.Context(), dialed(t)
	older := etcdtest.NewCluster(t, 1, "v3.5.35")[0]
	first := etcdtest.NewCluster(t, 1, version)[0]
	for _, m := range []*etcdtest.Member{older, first} {
		m.Start(t)
		etcdtest.Eventually(t, time.Minute, "serves", func() error { return c.Serves(ctx, at(m)) })
	}
	wants(t, "no downgrade", c.Send(ctx, members.Request{What: members.Downgrade, At: at(older)}), members.ErrNoDowngrade)

	etcdtest.Eventually(t, time.Minute, "downgrade", func() error {
		return c.Send(ctx, members.Request{What: members.Downgrade, At: at(first), Version: "3.5"})
	})
	etcdtest.Eventually(t, time.Minute, "the data is in the format of 3.5", func() error {
		s, err := c.Status(ctx, at(first))
		if err == nil && s.StorageVersion != "3.5" {
			err = fmt.Errorf("it is in that of %s", s.StorageVersion)
		}
		return err
	})
	second := etcdtest.New(t, "b", version)
	second.Env = []string{"ETCD_INITIAL_CLUSTER=" + etcdtest.InitialCluster(first, second), "ETCD_INITIAL_CLUSTER_STATE=existing"}
	etcdtest.Eventually(t, time.Minute, "add", func() error {
		return c.Send(ctx, members.Request{What: members.Add, At: at(first), PeerURLs: []string{second.PeerURL()}, Learner: true})
	})
	for _, v := range []string{version, "v3.5.35"} {
		second.Version = v
		second.Start(t)
		second.Ends(t, time.Minute)
	}
	if n := strings.Count(second.Log(), "incompatible with current running cluster"); n < 2 {
		t.Errorf("the log says %d times that it is not compatible", n)
	}
	if err := c.Send(ctx, members.Request{What: members.Downgrade, At: at(first)}); err != nil {
		t.Errorf("cancel: %v", err)
	}
	second.Wipe(t)
	second.Start(t)
	etcdtest.Eventually(t, time.Minute, "joins", func() error {
		s, err := c.Status(ctx, at(second))
		if err == nil && s.Leader == 0 {
			err = members.ErrNoLeader
		}
		return err
	})
}

// secured gives members certificates of a new CA, as files, and returns a client of theirs.
func secured(t *testing.T, dir string, all []*etcdtest.Member) members.Client {
	t.Helper()
	ca, err := pki.MakeCA(rand.Reader, "test", time.Now(), time.Hour)
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	data := map[string][]byte{}
	for _, role := range []pki.Role{pki.Peer, pki.Server, pki.Client} {
		pair, err := ca.Issue(rand.Reader, role, "root", []string{"localhost"}, time.Now(), time.Hour)
		must(err)
		data[role.Files.Cert], data[role.Files.Key], data[role.Files.CA] = pair.Cert, pair.Key, ca.Cert
	}
	for name, content := range data {
		must(os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	for _, m := range all {
		_, port, _ := strings.Cut(m.Peer, ":")
		m.Flags = []string{
			"--listen-client-urls=https://" + m.Client, "--advertise-client-urls=https://" + m.Client, "--client-cert-auth",
			"--cert-file=" + filepath.Join(dir, "server.crt"), "--key-file=" + filepath.Join(dir, "server.key"), "--trusted-ca-file=" + filepath.Join(dir, "server-ca.crt"),
			"--listen-peer-urls=https://" + m.Peer, "--initial-advertise-peer-urls=https://localhost:" + port, "--peer-client-cert-auth",
			"--peer-cert-file=" + filepath.Join(dir, "peer.crt"), "--peer-key-file=" + filepath.Join(dir, "peer.key"), "--peer-trusted-ca-file=" + filepath.Join(dir, "peer-ca.crt"),
		}
	}
	config, err := pki.ClientConfig(data)
	must(err)
	c, err := members.Dial(config, members.User{})
	must(err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestRealReplacedCA: with certificates of another CA nobody can talk to members until they are
// started again. One that is does not answer, because it finds nobody, until a majority is.
func TestRealReplacedCA(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	all := etcdtest.NewCluster(t, 3, version)
	c := secured(t, dir, all)
	var entries []string
	on := func(m *etcdtest.Member) members.Endpoint {
		return members.Endpoint{Address: m.Client, ServerName: "localhost"}
	}
	for _, m := range all {
		_, port, _ := strings.Cut(m.Peer, ":")
		entries = append(entries, m.Name+"=https://localhost:"+port)
	}
	for _, m := range all {
		m.Env = []string{"ETCD_INITIAL_CLUSTER=" + strings.Join(entries, ","), "ETCD_INITIAL_CLUSTER_STATE=new"}
		m.Start(t)
	}
	for _, m := range all {
		etcdtest.Eventually(t, time.Minute, "serves", func() error { return c.Serves(ctx, on(m)) })
	}
	c = secured(t, dir, all)
	for _, m := range all {
		_, err := c.Status(ctx, on(m))
		wants(t, "the status of one that trusts another CA", err, members.ErrNotTrusted)
	}
	restart := func(m *etcdtest.Member) {
		m.Stop(t)
		m.Start(t)
	}
	restart(all[0])
	time.Sleep(5 * time.Second)
	if s, err := c.Status(ctx, on(all[0])); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the only one that trusts the new CA has the status %+v (%v)", s, err)
	}
	restart(all[1])
	restart(all[2])
	for _, m := range all {
		etcdtest.Eventually(t, time.Minute, "serves again", func() error { return c.Serves(ctx, on(m)) })
	}
}
