//go:build apiserver

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/fairlead/operators/etcd/members/etcdtest"
	"example.com/fairlead/operators/etcd/pki"
	"example.com/fairlead/operators/etcd/store"
	"example.com/fairlead/operators/etcd/task"
)

// TestSave: one endpoint is dead and one hangs, the members have TLS, and a follower is taken.
func TestSave(t *testing.T) {
	w := aWorld(t, 3, version, true)
	w.put(20)
	leader, followers := w.leader()
	// 127.0.0.1:1 is dead, and the hanging one is a member that stands still.
	followers[1].Pause(t)
	saved := w.mustSave(func(todo *task.Task) { todo.Endpoints = append([]string{"https://127.0.0.1:1"}, todo.Endpoints...) })
	if saved.Member != w.url(followers[0]) {
		t.Errorf("it is from %s, want the follower %s; the leader is %s", saved.Member, w.url(followers[0]), w.url(leader))
	}
	if saved.Revision != 20 || "v"+saved.EtcdVersion != version || saved.Hash == "" || saved.StartTime == nil {
		t.Errorf("saved is %+v", saved)
	}
	if want := "etcd/backup_v20_2026-01-02-12:00:00"; saved.Key != want {
		t.Errorf("the key is %s, want %s", saved.Key, want)
	}
	if size := w.files()[saved.Key]; size != saved.Size || size%512 != 32 {
		t.Errorf("the file has %d bytes, and %d are reported", size, saved.Size)
	}

	// Without quorum nothing is saved: it might be less than what was acknowledged.
	followers[1].Resume(t)
	for _, m := range followers {
		m.Kill(t)
	}
	etcdtest.Eventually(t, time.Minute, "no leader", func() error {
		r := w.save()
		if r.Problem == nil {
			return errors.New("it is saved")
		}
		if r.Problem.Reason != task.ReasonEtcdUnhealthy || !r.Problem.Retriable {
			return fmt.Errorf("%s: %+v", r.Problem.Reason, r)
		}
		return nil
	})
	if files := w.files(); files[saved.Key] == 0 {
		t.Errorf("the backup is gone: %v", files)
	}
}

// TestSaveByService: one endpoint leads to the leader, which knows where the others are.
func TestSaveByService(t *testing.T) {
	w := aWorld(t, 3, version, false)
	leader, _ := w.leader()
	saved := w.mustSave(func(todo *task.Task) { todo.Endpoints, todo.Periodic = []string{w.url(leader)}, false })
	if saved.Member == w.url(leader) || saved.Key != "etcd/backup" {
		t.Errorf("saved is %+v; the leader is %s", saved, w.url(leader))
	}
	// A backup that is made once is replaced by its own EtcdBackup, and by no other one.
	w.put(30)
	if again := w.mustSave(func(todo *task.Task) { todo.Periodic = false }); again.Revision != 30 || again.Key != saved.Key {
		t.Errorf("saved again is %+v", again)
	}
	r := w.save(func(todo *task.Task) { todo.Periodic, todo.Owner = false, "another" })
	wantProblem(t, "the path of another", r, task.ReasonObjectOfAnother)
	// No member of the cluster is given up for what is the storage's.
	if n := len(w.files()); n > 2 {
		t.Errorf("there are %d files: %v", n, w.files())
	}
}

// proxy leads to a member, until it is cut or stopped.
type proxy struct {
	limit int64 // bytes from the member, after which it is cut or hangs
	hangs bool
}

func aProxy(t *testing.T, to string, limit int64, hangs bool) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	p := &proxy{limit: limit, hangs: hangs}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go p.carry(t.Context(), from, to)
		}
	}()
	return "http://" + l.Addr().String()
}

func (p *proxy) carry(ctx context.Context, from net.Conn, to string) {
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
	if err != nil {
		_ = from.Close()
		return
	}
	go func() { _, _ = io.Copy(server, from) }()
	_, _ = io.CopyN(from, server, p.limit)
	if p.hangs {
		<-ctx.Done()
	}
	_ = from.Close()
	_ = server.Close()
}

// TestMemberFailsInTheMiddle: the connection to the first member is cut, that to the second hangs,
// and the third one gives the snapshot. Nothing is left of those before.
func TestMemberFailsInTheMiddle(t *testing.T) {
	w := aWorld(t, 3, version, false)
	w.fill(8)
	leader, followers := w.leader()
	const half = 4 << 20
	cut, hangs := aProxy(t, followers[0].Client, half, false), aProxy(t, followers[1].Client, half, true)
	saved := w.mustSave(func(todo *task.Task) {
		todo.Endpoints, todo.Timeout = []string{cut, hangs, w.url(leader)}, 2*time.Second
	})
	if saved.Member != w.url(leader) {
		t.Errorf("it is from %s", saved.Member)
	}
	if files := w.files(); files[saved.Key] != saved.Size || len(files) > 2 {
		t.Errorf("there are %v", files)
	}
	// If none is left, nothing is.
	must(t, os.RemoveAll(w.path("etcd")))
	r := w.save(func(todo *task.Task) { todo.Endpoints, todo.Timeout = []string{cut, hangs}, 2*time.Second })
	// The leader is known to them, and is where it ends.
	if r.Problem != nil || r.Saved.Member == cut || r.Saved.Member == hangs {
		wantProblem(t, "two members that fail", r, task.ReasonSnapshotFailed)
	}
}

// TestMemberIsKilledInTheMiddle: the process of the only member that answers.
func TestMemberIsKilledInTheMiddle(t *testing.T) {
	w := aWorld(t, 1, version, false)
	w.fill(64)
	done := make(chan task.Result)
	slow := aProxyWith(t, w.members[0].Client, 8<<20)
	go func() { done <- w.save(func(todo *task.Task) { todo.Endpoints = []string{slow.url} }) }()
	<-slow.reached
	w.members[0].Kill(t)
	slow.goOn()
	r := <-done
	wantProblem(t, "a member that was killed", r, task.ReasonSnapshotFailed)
	if !r.Problem.Retriable {
		t.Error("the problem is said not to pass")
	}
	if files := w.files(); len(files) != 0 {
		t.Errorf("there are %v", files)
	}
	w.members[0].Start(t)
	w.connect()
	w.mustSave()
}

// TestInterrupted: an agent that is told to stop leaves nothing, and says so.
func TestInterrupted(t *testing.T) {
	w := aWorld(t, 1, version, false)
	w.fill(16)
	ctx, stop := context.WithCancel(t.Context())
	slow, done := aProxyWith(t, w.members[0].Client, 4<<20), make(chan task.Result)
	go func() {
		todo := w.task(task.Save)
		todo.Endpoints = []string{slow.url}
		done <- w.do(ctx, todo)
	}()
	<-slow.reached
	stop()
	wantProblem(t, "an agent that is stopped", <-done, task.ReasonInterrupted)
	slow.goOn()
	if files := w.files(); len(files) != 0 {
		t.Errorf("there are %v", files)
	}
}

// mostMiB is how much memory of its own an agent may have.
const mostMiB = 64

// TestMemory: however much it saves, an agent has no more memory of its own.
func TestMemory(t *testing.T) {
	w := aWorld(t, 1, version, false)
	w.fill(databaseMiB(t))
	todo := w.task(task.Save)
	todo.Timeout = time.Minute
	cmd := process(t.Context(), t, w.volume, todo)
	must(t, cmd.Start())
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }()
	var peak int64
	began := time.Now()
	for {
		select {
		case err := <-ended:
			must(t, err)
			t.Logf("%d bytes in %s; at most %d KiB are the agent's own", w.files()["etcd/backup"], time.Since(began).Round(time.Millisecond), peak)
			if peak == 0 || peak > mostMiB<<10 {
				t.Errorf("the agent had %d KiB", peak)
			}
			return
		case <-time.After(10 * time.Millisecond):
			peak = max(peak, ownKiB(cmd.Process.Pid))
		}
	}
}

// databaseMiB is how much is saved: AGENT_TEST_MIB, or little enough for every day.
func databaseMiB(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("AGENT_TEST_MIB"), "128"))
	must(t, err)
	return n
}

// ownKiB is the memory of a process that is not a file's; 0 if it has ended.
func ownKiB(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), "RssAnon:")
	number, _, _ := strings.Cut(strings.TrimSpace(after), " ")
	n, _ := strconv.ParseInt(number, 10, 64)
	return n
}

// gate stands still in the middle.
type gate struct {
	url     string
	reached chan struct{}
	open    chan struct{}
}

func (g *gate) goOn() { close(g.open) }

func aProxyWith(t *testing.T, to string, limit int64) *gate {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	g := &gate{url: "http://" + l.Addr().String(), reached: make(chan struct{}), open: make(chan struct{})}
	go func() {
		from, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = from.Close() }()
		server, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", to)
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(server, from) }()
		_, _ = io.CopyN(from, server, limit)
		close(g.reached)
		<-g.open
		_, _ = io.Copy(from, server)
	}()
	return g
}

// TestSaveWhileItIsWritten: the key has no smaller revision than the backup, which has no smaller one
// than is reported.
func TestSaveWhileItIsWritten(t *testing.T) {
	w := aWorld(t, 1, version, false)
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for ctx.Err() == nil {
				_, _ = w.client.Put(ctx, "key", "value")
			}
		})
	}
	w.put(50)
	for i := range 5 {
		saved := w.mustSave(func(todo *task.Task) { todo.Place.Key = fmt.Sprint("etcd/", i) })
		m := newcomer(t, version)
		r := w.do(t.Context(), w.fetchTask(saved.Key, m))
		if r.Problem != nil {
			t.Fatalf("fetch: %+v", r.Problem)
		}
		named, _, ok := store.ParseKey(fmt.Sprint("etcd/", i), saved.Key)
		if !ok || r.Fetched.Revision < saved.Revision || named < r.Fetched.Revision {
			t.Errorf("reported is revision %d, the backup has %d, and its name %d", saved.Revision, r.Fetched.Revision, named)
		}
		t.Logf("reported %d, has %d, named %d", saved.Revision, r.Fetched.Revision, named)
	}
	cancel()
	writers.Wait()
}

// TestUsers: where authentication is on, the client's certificate has to be that of root.
func TestUsers(t *testing.T) {
	w := aWorld(t, 1, version, true)
	ctx := t.Context()
	_, err := w.client.UserAddWithOptions(ctx, "root", "", &clientv3.UserAddOptions{NoPassword: true})
	must(t, err)
	_, err = w.client.UserGrantRole(ctx, "root", "root")
	must(t, err)
	w.put(5)
	_, err = w.client.AuthEnable(ctx)
	must(t, err)
	saved := w.mustSave()
	prove(t, w, saved, "")

	// The certificate of nobody whom etcd knows.
	w.certificateDir = t.TempDir()
	w.certificate(w.certificateDir, pki.Client, "nobody")
	r := w.save()
	wantProblem(t, "a client without rights", r, task.ReasonEtcdRefuses)
	if r.Problem != nil && !strings.Contains(r.Problem.Message, "role root") {
		t.Errorf("it says %q", r.Problem.Message)
	}
}

// TestPassword: where authentication is on, and there is no certificate, a user with the role root may take a snapshot.
func TestPassword(t *testing.T) {
	w := aWorld(t, 3, version, false)
	ctx := t.Context()
	_, err := w.client.UserAdd(ctx, "keeper", "secret")
	must(t, err)
	_, err = w.client.UserGrantRole(ctx, "keeper", "root")
	must(t, err)
	_, err = w.client.UserAdd(ctx, "root", "another")
	must(t, err)
	_, err = w.client.UserGrantRole(ctx, "root", "root")
	must(t, err)
	w.put(5)
	_, err = w.client.AuthEnable(ctx)
	must(t, err)
	asUser := func(todo *task.Task) { todo.User = true }
	for name, content := range map[string]string{"username": "keeper", "password": "secret"} {
		must(t, os.WriteFile(filepath.Join(w.userDir, name), []byte(content), 0o600))
	}
	saved := w.mustSave(asUser)
	prove(t, w, saved, "")

	wantProblem(t, "nobody", w.save(), task.ReasonEtcdRefuses)
	must(t, os.WriteFile(filepath.Join(w.userDir, "password"), []byte("wrong"), 0o600))
	wantProblem(t, "another password", w.save(asUser), task.ReasonEtcdRefuses)
	must(t, os.WriteFile(filepath.Join(w.userDir, "password"), nil, 0o600))
	wantProblem(t, "no password", w.save(asUser), task.ReasonUserInvalid)

	// As Bitnami's chart has it.
	must(t, os.Remove(filepath.Join(w.userDir, "username")))
	must(t, os.WriteFile(filepath.Join(w.userDir, "etcd-root-password"), []byte("another"), 0o600))
	w.mustSave(asUser)
}
