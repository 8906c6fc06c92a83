//go:build apiserver

package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/members/etcdtest"
	"example.com/fairlead/operators/etcd/pki"
	"example.com/fairlead/operators/etcd/task"
)

const version = "v3.6.16"

// These variables make the test's program an agent, which can be killed: its task, and the folders.
const (
	taskVariable   = "AGENT_TEST_TASK"
	volumeVariable = "AGENT_TEST_VOLUME"
)

func TestMain(m *testing.M) {
	todo := os.Getenv(taskVariable)
	if todo == "" {
		os.Exit(m.Run())
	}
	limitMemory()
	a := &agent{volumeDir: os.Getenv(volumeVariable), now: time.Now, log: os.Stderr}
	result := a.main(context.Background(), []string{todo})
	_, _ = os.Stdout.Write(message(result))
	if result.Problem != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// process is an agent in a process of its own.
func process(ctx context.Context, t *testing.T, volume string, todo task.Task) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(todo)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), taskVariable+"="+string(text), volumeVariable+"="+volume)
	cmd.Stdout, cmd.Stderr = &bytes.Buffer{}, &bytes.Buffer{}
	return cmd
}

// world is a cluster, a volume for backups, and an agent.
type world struct {
	*agent
	t       *testing.T
	members []*etcdtest.Member
	client  *clientv3.Client
	tls     *tls.Config
	ca      pki.KeyPair
	volume  string
	now     time.Time
	number  int64
}

// aWorld has n members of a version; with TLS if it says so.
func aWorld(t *testing.T, n int, version string, secure bool) *world {
	t.Helper()
	w := &world{t: t, volume: t.TempDir(), now: noon, members: etcdtest.NewCluster(t, n, version)}
	w.agent = &agent{volumeDir: w.volume, certificateDir: t.TempDir(), userDir: t.TempDir(), log: t.Output(), now: func() time.Time { return w.now }}
	if secure {
		w.secure()
	}
	for _, m := range w.members {
		m.Start(t)
	}
	w.connect()
	return w
}

// secure gives clients and members certificates.
func (w *world) secure() {
	w.t.Helper()
	var err error
	w.ca, err = pki.MakeCA(rand.Reader, "test", time.Now(), time.Hour)
	must(w.t, err)
	dir := w.t.TempDir()
	w.certificate(dir, pki.Server, "server", "localhost")
	w.tls, err = pki.ClientConfig(w.certificate(w.certificateDir, pki.Client, "root"))
	must(w.t, err)
	for _, m := range w.members {
		m.Flags = []string{
			"--listen-client-urls=https://" + m.Client, "--advertise-client-urls=https://" + m.Client, "--client-cert-auth",
			"--cert-file=" + filepath.Join(dir, "server.crt"), "--key-file=" + filepath.Join(dir, "server.key"),
			"--trusted-ca-file=" + filepath.Join(dir, "server-ca.crt"),
		}
	}
}

// certificate makes one, as the files of a Secret.
func (w *world) certificate(dir string, role pki.Role, commonName string, names ...string) map[string][]byte {
	w.t.Helper()
	pair, err := w.ca.Issue(rand.Reader, role, commonName, names, time.Now(), time.Hour)
	must(w.t, err)
	data := map[string][]byte{role.Files.Cert: pair.Cert, role.Files.Key: pair.Key, role.Files.CA: w.ca.Cert}
	for name, content := range data {
		must(w.t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	return data
}

func (w *world) connect() {
	w.t.Helper()
	w.client = connect(w.t, w.tls, w.urls()...)
	for _, url := range w.urls() {
		c := connect(w.t, w.tls, url)
		etcdtest.Eventually(w.t, time.Minute, url+" serves", func() error { return answers(w.t, c) })
	}
}

// answers reads something, within a second.
func answers(t *testing.T, c *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := c.Get(ctx, "health")
	return err
}

func connect(t *testing.T, config *tls.Config, urls ...string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: urls, TLS: config, Logger: zap.NewNop(), DialTimeout: 5 * time.Second})
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (w *world) url(m *etcdtest.Member) string {
	if w.tls != nil {
		return "https://" + m.Client
	}
	return m.ClientURL()
}

func (w *world) urls() []string {
	var all []string
	for _, m := range w.members {
		all = append(all, w.url(m))
	}
	return all
}

// leader is the member that leads, and followers are the others.
func (w *world) leader() (leader *etcdtest.Member, followers []*etcdtest.Member) {
	w.t.Helper()
	for _, m := range w.members {
		s, err := w.client.Status(w.t.Context(), w.url(m))
		must(w.t, err)
		if s.Leader == s.Header.MemberId {
			leader = m
		} else {
			followers = append(followers, m)
		}
	}
	return leader, followers
}

// put writes until the store has a revision.
func (w *world) put(revision int64) {
	w.t.Helper()
	for {
		done, err := w.client.Put(w.t.Context(), "key", strings.Repeat("x", 100))
		must(w.t, err)
		if done.Header.Revision >= revision {
			return
		}
	}
}

// fill writes this many MiB.
func (w *world) fill(mib int) {
	w.t.Helper()
	value := make([]byte, 1<<19)
	for i := range mib * 2 {
		_, _ = rand.Read(value)
		_, err := w.client.Put(w.t.Context(), fmt.Sprint("fill/", i), string(value))
		must(w.t, err)
	}
}

func (w *world) task(action task.Action) task.Task {
	w.number++
	return task.Task{
		Action: action, Owner: "uid", Number: w.number, Timeout: 10 * time.Second, Endpoints: w.urls(), TLS: w.tls != nil,
		Place: task.Place{Type: v1beta2.StorageClaim, Bucket: "claim", Key: "etcd/backup"},
	}
}

// save makes a backup that a proof can be made of.
func (w *world) save(change ...func(*task.Task)) task.Result {
	w.t.Helper()
	todo := w.task(task.Save)
	todo.Periodic, todo.Hash = true, true
	for _, c := range change {
		c(&todo)
	}
	return w.do(w.t.Context(), todo)
}

func (w *world) mustSave(change ...func(*task.Task)) *v1beta2.StoredBackup {
	w.t.Helper()
	r := w.save(change...)
	if r.Problem != nil || r.Saved == nil {
		w.t.Fatalf("save: %+v", r.Problem)
	}
	return r.Saved
}

// fetchTask makes a data directory of a backup, for a member that is not started.
func (w *world) fetchTask(key string, m *etcdtest.Member) task.Task {
	todo := w.task(task.Fetch)
	todo.Key = key
	todo.Member = &task.Member{Name: m.Name, PeerURL: m.PeerURL(), Token: "token", DataDir: m.Data}
	return todo
}

// newcomer is a member that is to start as a cluster of its own.
func newcomer(t *testing.T, version string) *etcdtest.Member {
	m := etcdtest.New(t, "seed", version)
	m.Env = []string{"ETCD_INITIAL_CLUSTER=" + etcdtest.InitialCluster(m), "ETCD_INITIAL_CLUSTER_TOKEN=token"}
	return m
}

// files are all files of the volume, with their sizes.
func (w *world) files() map[string]int64 {
	w.t.Helper()
	all := map[string]int64{}
	must(w.t, filepath.WalkDir(w.volume, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(w.volume, path)
		all[name] = info.Size()
		return err
	}))
	return all
}

func (w *world) path(key string) string { return filepath.Join(w.volume, filepath.FromSlash(key)) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantProblem(t *testing.T, what string, r task.Result, reason string) {
	t.Helper()
	if r.Problem == nil || r.Problem.Reason != reason {
		t.Errorf("%s: the problem is %+v, want %s", what, r.Problem, reason)
	}
}
