//go:build apiserver

package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/members/etcdtest"
	"example.com/fairlead/operators/etcd/task"
)

// builtVersions are those that the local cluster has.
var builtVersions = []string{"v3.5.35", "v3.6.16", "v3.7.3"}

// TestRestored: a member of each version serves what was saved by one of its version, as another
// cluster, and says so again when it is asked again.
func TestRestored(t *testing.T) {
	for _, version := range builtVersions {
		t.Run(version, func(t *testing.T) {
			w := aWorld(t, 1, version, false)
			ctx := t.Context()
			_, err := w.client.Put(ctx, "greeting", "hello")
			must(t, err)
			w.put(15)
			saved := w.mustSave()
			_, err = w.client.Delete(ctx, "greeting")
			must(t, err)
			before, err := w.client.Status(ctx, w.urls()[0])
			must(t, err)

			m := newcomer(t, version)
			todo := w.fetchTask(saved.Key, m)
			first := w.do(ctx, todo)
			if first.Problem != nil || first.Fetched.Revision != 15 || first.Fetched.Key != saved.Key || first.Fetched.Size != saved.Size {
				t.Fatalf("fetched %+v: %+v", first.Fetched, first.Problem)
			}
			m.Start(t)
			c := connect(t, nil, m.ClientURL())
			etcdtest.Eventually(t, time.Minute, "the restored member serves", func() error {
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				got, err := c.Get(ctx, "greeting")
				if err == nil && (len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "hello") {
					t.Errorf("it has %v", got.Kvs)
				}
				return err
			})
			now, err := c.Status(ctx, m.ClientURL())
			must(t, err)
			if members.ID(now.Header.ClusterId).String() != first.Fetched.ClusterID || now.Header.ClusterId == before.Header.ClusterId {
				t.Errorf("its cluster is %x, reported was %s, and before it was %x", now.Header.ClusterId, first.Fetched.ClusterID, before.Header.ClusterId)
			}
			if now.Header.Revision != 15+task.RevisionsAhead || first.Fetched.Offset != task.RevisionsAhead || members.ID(now.Header.MemberId).String() != first.Fetched.MemberID {
				t.Errorf("its status is %+v, and reported was %+v", now, first.Fetched)
			}
			_, err = c.Put(ctx, "written", "after")
			must(t, err)

			// The pod starts again: the init container says the same, and touches nothing.
			m.Stop(t)
			must(t, os.RemoveAll(w.volume))
			if again := w.do(ctx, todo); !cmp.Equal(again, first) {
				t.Errorf("again: %+v, want %+v", again.Fetched, first.Fetched)
			}
			m.Start(t)
			etcdtest.Eventually(t, time.Minute, "what was written after is there", func() error {
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				got, err := c.Get(ctx, "written")
				if err == nil && len(got.Kvs) != 1 {
					err = fmt.Errorf("it has %v", got.Kvs)
				}
				return err
			})
			if strings.Contains(m.Log(), "invalid file under data directory") {
				t.Error("etcd complains about its data directory")
			}

			// A member that has lost its data does not begin with the backup again.
			lost := todo
			gone := *todo.Member
			gone.DataDir, lost.Member = filepath.Join(t.TempDir(), "data"), &gone
			w.member = m.Name
			if r := w.do(ctx, lost); r.Problem != nil || r.Fetched != nil {
				t.Errorf("of a member: %+v", r)
			}
			if _, err := os.Stat(gone.DataDir); !os.IsNotExist(err) {
				t.Errorf("the member has data again: %v", err)
			}
			w.member = ""

			// Another restore does not get the folder, and does not harm it.
			other := todo
			another := *todo.Member
			another.Token, other.Member = "another", &another
			wantProblem(t, "another restore", w.do(ctx, other), task.ReasonDataDirInUse)
		})
	}
}

// TestDataDirOfAMember: what was not made of a backup is not touched.
func TestDataDirOfAMember(t *testing.T) {
	w := aWorld(t, 1, version, false)
	saved := w.mustSave()
	wantProblem(t, "the data of a running member", w.do(t.Context(), w.fetchTask(saved.Key, w.members[0])), task.ReasonDataDirInUse)
	w.put(30)
}

// TestFetchIsKilled: at any point; and the next one does it.
func TestFetchIsKilled(t *testing.T) {
	w := aWorld(t, 1, version, false)
	w.fill(24)
	saved := w.mustSave()
	m := newcomer(t, version)
	todo := w.fetchTask(saved.Key, m)
	killed := 0
	for delay := 10 * time.Millisecond; ; delay += delay/4 + 5*time.Millisecond {
		ctx, cancel := context.WithTimeout(t.Context(), delay)
		cmd := process(ctx, t, w.volume, todo)
		err := cmd.Run()
		isKilled := ctx.Err() != nil
		cancel()
		if !isKilled {
			must(t, err)
			break
		}
		killed++
		done, err := fetched(todo.Member)
		if err != nil {
			t.Fatalf("killed after %s: %v", delay, err)
		}
		if done != nil { // killed behind the rename
			t.Logf("killed after %s, when it was complete", delay)
		}
	}
	t.Logf("killed %d times", killed)
	if killed == 0 {
		t.Error("it was never killed")
	}
	r := w.do(t.Context(), todo)
	if r.Problem != nil || r.Fetched.Size != saved.Size {
		t.Fatalf("%+v: %+v", r.Fetched, r.Problem)
	}
	if _, err := os.Stat(besides(todo.Member)); !os.IsNotExist(err) {
		t.Errorf("something is left: %v", err)
	}
	m.Start(t)
	c := connect(t, nil, m.ClientURL())
	etcdtest.Eventually(t, time.Minute, "it serves", func() error { return answers(t, c) })
}

// TestBadObjects: what is no backup, or no whole one, is refused with nothing left.
func TestBadObjects(t *testing.T) {
	w := aWorld(t, 1, version, false)
	saved := w.mustSave()
	good, err := os.ReadFile(w.path(saved.Key))
	must(t, err)
	changed := append([]byte(nil), good...)
	changed[len(good)/2]++
	for name, tc := range map[string]struct {
		data   []byte
		reason string
	}{
		"truncated":            {good[:len(good)/2], task.ReasonObjectDamaged},
		"by a byte":            {good[:len(good)-1], task.ReasonObjectDamaged},
		"without its hash":     {good[:len(good)-32], task.ReasonObjectDamaged},
		"changed":              {changed, task.ReasonObjectDamaged},
		"empty":                {nil, task.ReasonObjectDamaged},
		"a text":               {[]byte("hello\n"), task.ReasonObjectForeign},
		"a database of others": {databaseOfOthers(), task.ReasonNotRestorable},
	} {
		t.Run(name, func(t *testing.T) {
			const key = "etcd/bad"
			must(t, os.WriteFile(w.path(key), tc.data, 0o600))
			m := newcomer(t, version)
			r := w.do(t.Context(), w.fetchTask(key, m))
			wantProblem(t, name, r, tc.reason)
			if r.Problem != nil && (r.Problem.Retriable || !strings.Contains(r.Problem.Message, key)) {
				t.Errorf("it says %+v", r.Problem)
			}
			if _, err := os.Stat(m.Data); !os.IsNotExist(err) {
				t.Errorf("there is a data directory: %v", err)
			}
		})
	}
	wantProblem(t, "absent", w.do(t.Context(), w.fetchTask("etcd/absent", newcomer(t, version))), task.ReasonObjectNotFound)
}

// TestPointInTime: the newest backup at or before a revision, by number.
func TestPointInTime(t *testing.T) {
	w := aWorld(t, 1, version, false)
	keys := map[int64]string{}
	for _, revision := range []int64{9, 10, 99, 100} {
		w.put(revision)
		w.now = noon.Add(time.Duration(revision) * time.Minute)
		keys[revision] = w.mustSave().Key
	}
	for wanted, want := range map[int64]int64{9: 9, 10: 10, 50: 10, 99: 99, 1000: 100} {
		todo := w.fetchTask("", newcomer(t, version))
		todo.Choose = &task.Wanted{Revision: new(wanted)}
		if r := w.do(t.Context(), todo); r.Problem != nil || r.Fetched.Key != keys[want] || r.Fetched.Revision != want {
			t.Errorf("wanted %d, fetched %+v, want %d: %+v", wanted, r.Fetched, want, r.Problem)
		}
	}
	todo := w.fetchTask("", newcomer(t, version))
	todo.Choose = &task.Wanted{Revision: new(int64(8))}
	wantProblem(t, "before the first one", w.do(t.Context(), todo), task.ReasonObjectNotFound)
}

// prove proves a backup as its pod does, and wants it to end with a reason, or well.
func prove(t *testing.T, w *world, saved *v1beta2.StoredBackup, reason string) {
	t.Helper()
	m := newcomer(t, "v"+saved.EtcdVersion)
	m.Flags = []string{"--quota-backend-bytes=-1", "--unsafe-no-fsync"}
	todo := w.fetchTask(saved.Key, m)
	todo.Member.ThrowAway = true
	r := w.do(t.Context(), todo)
	if r.Problem != nil {
		t.Fatalf("fetch: %+v", r.Problem)
	}
	m.Start(t)
	todo.Action, todo.Saved, todo.Endpoints = task.Prove, saved, []string{m.ClientURL()}
	revision := r.Fetched.Revision
	r = w.do(t.Context(), todo)
	switch {
	case reason != "":
		wantProblem(t, "prove", r, reason)
	case r.Problem != nil:
		t.Errorf("prove: %+v", r.Problem)
	case r.Proved.Key != saved.Key || r.Proved.Revision != revision || !r.Proved.Time.Time.Equal(w.now):
		t.Errorf("proved is %+v", r.Proved)
	}
	m.Kill(t)
}

// TestProve proves good backups of all versions, and refuses those that are not what was saved.
func TestProve(t *testing.T) {
	for _, version := range builtVersions {
		t.Run(version, func(t *testing.T) {
			w := aWorld(t, 1, version, false)
			ctx := t.Context()
			for i := range 30 {
				_, err := w.client.Put(ctx, fmt.Sprint("key/", i%7), fmt.Sprint(i))
				must(t, err)
			}
			_, err := w.client.Delete(ctx, "key/3")
			must(t, err)
			_, err = w.client.Compact(ctx, 20)
			must(t, err)
			// One that has a lease which expires in the throw-away etcd.
			lease, err := w.client.Grant(ctx, 1)
			must(t, err)
			_, err = w.client.Put(ctx, "leased", "", clientv3.WithLease(lease.ID))
			must(t, err)
			saved := w.mustSave()
			if saved.CompactRevision != 20 {
				t.Errorf("saved is %+v", saved)
			}
			prove(t, w, saved, "")

			// The cluster was compacted before its hash was taken.
			_, err = w.client.Compact(ctx, 25)
			must(t, err)
			hash, err := w.client.HashKV(ctx, w.urls()[0], saved.Revision)
			must(t, err)
			other := *saved
			other.Hash, other.CompactRevision = fmt.Sprintf("%x", hash.Hash), hash.CompactRevision
			if other.CompactRevision != 25 || other.Hash == saved.Hash {
				t.Errorf("the hash is %s, compacted up to %d", other.Hash, other.CompactRevision)
			}
			prove(t, w, &other, "")

			other = *saved
			other.Hash = "1"
			prove(t, w, &other, task.ReasonProofDiffers)
			other = *saved
			other.Revision += 1000
			prove(t, w, &other, task.ReasonProofDiffers)
			other = *saved
			other.CompactRevision--
			prove(t, w, &other, task.ReasonProofNotComparable)
			other = *saved
			other.Hash = ""
			prove(t, w, &other, task.ReasonProofNotComparable)

			// A backup of the same revision, with another value.
			w2 := aWorld(t, 1, version, false)
			w2.put(saved.Revision)
			foreign := w2.mustSave(func(todo *task.Task) { todo.Place.Key = "etcd/foreign" })
			must(t, os.Rename(w2.path(foreign.Key), w.path("etcd/foreign")))
			other = *saved
			other.Key = "etcd/foreign"
			other.CompactRevision = foreign.CompactRevision
			prove(t, w, &other, task.ReasonProofDiffers)
		})
	}
}

// TestPrune: by number across 9 to 10 and 99 to 100, only what is its own, and never the last one that
// was proved.
func TestPrune(t *testing.T) {
	w := aWorld(t, 1, version, false)
	var own []*v1beta2.StoredBackup
	for i, revision := range []int64{8, 9, 10, 99, 100} {
		w.put(revision)
		w.now = noon.Add(time.Duration(i) * time.Minute)
		own = append(own, w.mustSave())
	}
	// Others' objects under the same prefix, one of them by another EtcdBackup.
	w.now = noon
	others := []string{w.mustSave(func(todo *task.Task) { todo.Owner, todo.Place.Key = "another", "etcd/backup" }).Key}
	for _, name := range []string{"etcd/backup", "etcd/backup_v1_2020-01-01-00:00:00", "etcd/backup_v1_2020-01-01-00:00:00.bak", "etcd/backups/notes"} {
		must(t, os.MkdirAll(filepath.Dir(w.path(name)), 0o700))
		must(t, os.WriteFile(w.path(name), []byte("mine"), 0o600))
		others = append(others, name)
	}
	w.now = noon.Add(time.Hour)
	todo := w.task(task.Prune)
	todo.Keep = &task.Retention{Max: 2, Last: own[4].Key, Proved: own[0].Key}
	r := w.do(t.Context(), todo)
	if r.Problem != nil || r.Pruned != 2 || r.Left != 3 {
		t.Fatalf("pruned %d, left %d: %+v", r.Pruned, r.Left, r.Problem)
	}
	files := w.files()
	for i, want := range []bool{true, false, false, true, true} {
		if _, is := files[own[i].Key]; is != want {
			t.Errorf("%s is there: %v", own[i].Key, is)
		}
	}
	for _, name := range others {
		if _, is := files[name]; !is {
			t.Errorf("%s, which is another's, is gone", name)
		}
	}
	// By age; the last two stay, and the one before is not proved any more.
	todo.Keep = &task.Retention{MaxAge: time.Minute, Proved: own[4].Key}
	if r := w.do(t.Context(), todo); r.Problem != nil || r.Pruned != 1 || r.Left != 2 {
		t.Errorf("by age: pruned %d, left %d: %+v", r.Pruned, r.Left, r.Problem)
	}
	if r := w.do(t.Context(), todo); r.Problem != nil || r.Pruned != 0 || r.Left != 2 {
		t.Errorf("again: pruned %d, left %d: %+v", r.Pruned, r.Left, r.Problem)
	}
}

// TestProcess: an agent reports on its standard output here, what it did or what is wrong.
func TestProcess(t *testing.T) {
	w := aWorld(t, 1, version, false)
	todo := w.task(task.Save)
	cmd := process(t.Context(), t, w.volume, todo)
	out := &strings.Builder{}
	cmd.Stdout = out
	must(t, cmd.Run())
	var r task.Result
	must(t, json.Unmarshal([]byte(out.String()), &r))
	if r.Saved == nil || r.Saved.Key != "etcd/backup" {
		t.Errorf("it says %s", out)
	}
}

// databaseOfOthers begins as one of bbolt, and ends with its hash.
func databaseOfOthers() []byte {
	data := bytes.Repeat([]byte("etcd"), 8*1024)
	binary.LittleEndian.PutUint32(data[16:], 0xED0CDAED)
	sum := sha256.Sum256(data)
	return append(data, sum[:]...)
}
