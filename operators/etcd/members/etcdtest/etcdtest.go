// Package etcdtest runs real members of etcd on loopback addresses, for tests.
package etcdtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Member is a member: its addresses and its data stay the same while its process comes and goes.
// All of it ends with the test.
type Member struct {
	// Name is the member's name.
	Name string
	// Version is that of the program that the next Start starts, such as v3.6.16.
	Version string
	// Client and Peer are the addresses, such as 127.0.0.1:20001.
	Client, Peer string
	// Data is the data folder. It exists from the first start on.
	Data string
	// Flags are added to those that say the name, the addresses and the data folder.
	Flags []string
	// Env are variables such as ETCD_INITIAL_CLUSTER=a=http://127.0.0.1:20002.
	Env []string

	program string
	process *exec.Cmd
	ended   chan struct{} // closed when the process has ended
	log     lockedBuffer
}

// New is a member that is not started yet.
func New(t testing.TB, name, version string) *Member {
	t.Helper()
	m := &Member{
		Name: name, Version: version, Data: filepath.Join(t.TempDir(), "data"),
		Client: freeAddress(t), Peer: freeAddress(t),
	}
	t.Cleanup(func() {
		m.end(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("the end of the log of member %s:\n%s", m.Name, m.log.tail())
		}
	})
	return m
}

// NewCluster is n members, a, b, c and so on, that are to form a cluster together. None of them
// is started.
func NewCluster(t testing.TB, n int, version string) []*Member {
	t.Helper()
	var all []*Member
	for i := range n {
		all = append(all, New(t, string(rune('a'+i)), version))
	}
	for _, m := range all {
		m.Env = []string{"ETCD_INITIAL_CLUSTER=" + InitialCluster(all...), "ETCD_INITIAL_CLUSTER_STATE=new"}
	}
	return all
}

// InitialCluster is the list of members that a member is started with.
func InitialCluster(all ...*Member) string {
	var entries []string
	for _, m := range all {
		entries = append(entries, m.Name+"="+m.PeerURL())
	}
	return strings.Join(entries, ",")
}

// PeerURL is where other members find it.
func (m *Member) PeerURL() string { return "http://" + m.Peer }

// ClientURL is where clients find it.
func (m *Member) ClientURL() string { return "http://" + m.Client }

// Start starts the process. It does not wait until the member serves: a member waits for others.
func (m *Member) Start(t testing.TB) {
	t.Helper()
	if m.IsRunning() {
		t.Fatalf("member %s runs already", m.Name)
	}
	m.program = Program(t, m.Version)
	flags := append([]string{
		"--name=" + m.Name,
		"--data-dir=" + m.Data,
		"--listen-client-urls=" + m.ClientURL(), "--advertise-client-urls=" + m.ClientURL(),
		"--listen-peer-urls=" + m.PeerURL(), "--initial-advertise-peer-urls=" + m.PeerURL(),
	}, m.Flags...)
	cmd := exec.CommandContext(context.Background(), m.program, flags...) // the clean-up ends it
	cmd.Env = append(os.Environ(), m.Env...)
	cmd.Stdout, cmd.Stderr = &m.log, &m.log
	cmd.SysProcAttr = EndsWithParent()
	if err := cmd.Start(); err != nil {
		t.Fatalf("start member %s: %v", m.Name, err)
	}
	ended := make(chan struct{})
	m.process, m.ended = cmd, ended
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(ended)
	}()
}

// Stop ends the process as a kubelet does: with a signal, which it answers by handing over and
// closing its files.
func (m *Member) Stop(t testing.TB) {
	t.Helper()
	if !m.end(syscall.SIGTERM) {
		t.Errorf("member %s did not stop within 20 seconds", m.Name)
	}
}

// Kill ends the process as a power failure does.
func (m *Member) Kill(t testing.TB) {
	t.Helper()
	if !m.end(syscall.SIGKILL) {
		t.Errorf("member %s cannot be killed", m.Name)
	}
}

// Pause has the process stand still: connections are accepted, and nothing is answered.
func (m *Member) Pause(t testing.TB) {
	t.Helper()
	m.signal(t, syscall.SIGSTOP)
	Eventually(t, 10*time.Second, "member "+m.Name+" stands still", func() error { return standsStill(m.process.Process.Pid) })
}

// Resume ends a pause.
func (m *Member) Resume(t testing.TB) { m.signal(t, syscall.SIGCONT) }

// Wipe deletes the data of a member that is not running.
func (m *Member) Wipe(t testing.TB) {
	t.Helper()
	if m.IsRunning() {
		t.Fatalf("member %s runs", m.Name)
	}
	if err := os.RemoveAll(m.Data); err != nil {
		t.Fatal(err)
	}
}

// IsRunning says whether the process runs, or is paused.
func (m *Member) IsRunning() bool {
	if m.ended == nil {
		return false
	}
	select {
	case <-m.ended:
		return false
	default:
		return true
	}
}

// Ends waits until the process has ended by itself.
func (m *Member) Ends(t testing.TB, within time.Duration) {
	t.Helper()
	select {
	case <-m.ended:
	case <-time.After(within):
		t.Errorf("member %s still runs after %s", m.Name, within)
	}
}

// Log is all that the member's processes have written.
func (m *Member) Log() string { return m.log.String() }

// Eventually calls done until it returns nil.
func Eventually(t testing.TB, within time.Duration, what string, done func() error) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		err := done()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, within, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (m *Member) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := m.process.Process.Signal(s); err != nil {
		t.Fatalf("send %s to member %s: %v", s, m.Name, err)
	}
}

func (m *Member) end(s syscall.Signal) bool {
	if !m.IsRunning() {
		return true
	}
	if err := m.process.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return false
	}
	select {
	case <-m.ended:
		return true
	case <-time.After(20 * time.Second):
		return false
	}
}

// freeAddress is an address that nobody listens at, and that no other test gets while this process lives: a member may be
// started later, or again. Its port is below those that the kernel gives to outgoing connections, so that none of them
// takes it.
func freeAddress(t testing.TB) string {
	t.Helper()
	var err error
	for range 100 {
		port := 15000 + rand.IntN(15000)
		if err = reserve(port); err != nil {
			continue
		}
		address := fmt.Sprintf("127.0.0.1:%d", port)
		var l net.Listener
		if l, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", address); err == nil {
			_ = l.Close() // nothing was written
			return address
		}
	}
	t.Fatal(err)
	return ""
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	lock sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.text.Write(text)
}

func (b *lockedBuffer) String() string {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.text.String()
}

func (b *lockedBuffer) tail() string {
	text := b.String()
	return text[max(0, len(text)-8<<10):]
}
