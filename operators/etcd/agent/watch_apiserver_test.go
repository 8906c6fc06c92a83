//go:build apiserver

package agent

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/fairlead/operators/etcd/members/etcdtest"
	"example.com/fairlead/operators/etcd/task"
)

// heard is what a watcher has heard.
type heard struct {
	revision int64 // of an event
	err      error // which makes it list again
}

// watch has a client of its own watch a key from a revision on, as each informer of a controller does; 0 for the next one.
func watch(t *testing.T, url string, from int64) <-chan heard {
	t.Helper()
	all := make(chan heard, 1000)
	c := connect(t, nil, url)
	go func() {
		for got := range c.Watch(clientv3.WithRequireLeader(t.Context()), "key", clientv3.WithRev(from)) {
			for _, event := range got.Events {
				all <- heard{revision: event.Kv.ModRevision}
			}
			if got.CompactRevision != 0 {
				all <- heard{err: got.Err()}
			}
		}
	}()
	return all
}

// hears waits for something that a watcher hears.
func hears(t *testing.T, what string, all <-chan heard, wanted func(heard) bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case h := <-all:
			if wanted(h) {
				return
			}
		case <-deadline:
			t.Errorf("%s: silent", what)
			return
		}
	}
}

func listsAgain(h heard) bool { return errors.Is(h.err, rpctypes.ErrCompacted) }

func event(revision int64) func(heard) bool {
	return func(h heard) bool { return h.revision == revision }
}

// TestWatchersListAgain: whoever watched before a restore, or begins to while nothing serves, is told to list again; whoever
// lists afterwards sees what is written from then on. A second restore, of a backup from before the first, is no different, nor
// a third of one from after it.
func TestWatchersListAgain(t *testing.T) {
	for _, version := range builtVersions {
		t.Run(version, func(t *testing.T) {
			w := aWorld(t, 1, version, false)
			ctx, url := t.Context(), w.urls()[0]
			w.put(15)
			saved := w.mustSave()
			w.put(40)
			last, running := int64(40), w.members[0]
			for n := range 3 {
				what := func(text string) string { return fmt.Sprintf("restore %d, %s", n+1, text) }
				if n == 2 {
					saved = w.mustSave()
				}
				before, behind := watch(t, url, 0), watch(t, url, last-1)
				hears(t, what("a watcher that is behind"), behind, event(last))
				etcdtest.Eventually(t, time.Minute, "the watcher has begun", func() error {
					put, err := w.client.Put(ctx, "key", "more")
					must(t, err)
					last = put.Header.Revision
					select {
					case <-before:
						return nil
					case <-time.After(time.Second):
						return errors.New("it is silent")
					}
				})

				m := newcomer(t, version)
				m.Client = running.Client
				todo := w.fetchTask(saved.Key, m)
				todo.Member.After = last
				r := w.do(ctx, todo)
				begins := last + task.RevisionsAhead
				if r.Problem != nil {
					t.Fatalf("fetch: %+v", r.Problem)
				}
				if r.Fetched.Revision != saved.Revision || r.Fetched.Revision+r.Fetched.Offset != begins {
					t.Errorf("fetched %+v", r.Fetched)
				}
				running.Stop(t)
				meanwhile := watch(t, url, last+1)
				m.Start(t)
				running = m
				c := connect(t, nil, url)
				etcdtest.Eventually(t, time.Minute, "it serves", func() error { return answers(t, c) })
				listed, err := c.Get(ctx, "key")
				must(t, err)
				if listed.Header.Revision != begins || len(listed.Kvs) != 1 || n < 2 && listed.Kvs[0].ModRevision != 15 {
					t.Errorf("%s: %+v", what("listed"), listed)
				}
				after := watch(t, url, begins+1)
				_, err = c.Put(ctx, "key", "after")
				must(t, err)
				hears(t, what("a watcher of before"), before, listsAgain)
				hears(t, what("a watcher of before, which was behind"), behind, listsAgain)
				hears(t, what("one that began while nothing served"), meanwhile, listsAgain)
				hears(t, what("one that has listed"), after, event(begins+1))
				if _, err := c.Get(ctx, "key", clientv3.WithRev(last)); !errors.Is(err, rpctypes.ErrCompacted) {
					t.Errorf("%s: %v", what("a revision of before"), err)
				}
				last = begins + 1
			}
		})
	}
}

// TestRevisionsOfNothing: a backup whose last changes are compacted away begins above what they were, too.
func TestRevisionsOfNothing(t *testing.T) {
	w := aWorld(t, 1, version, false)
	w.put(20)
	done, err := w.client.Delete(t.Context(), "key")
	must(t, err)
	last := done.Header.Revision
	_, err = w.client.Compact(t.Context(), last, clientv3.WithCompactPhysical())
	must(t, err)
	saved := w.mustSave()
	m := newcomer(t, version)
	r := w.do(t.Context(), w.fetchTask(saved.Key, m))
	if r.Problem != nil || r.Fetched.Revision != last || r.Fetched.Offset != task.RevisionsAhead {
		t.Fatalf("fetched %+v: %+v", r.Fetched, r.Problem)
	}
	m.Start(t)
	c := connect(t, nil, m.ClientURL())
	etcdtest.Eventually(t, time.Minute, "it serves", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		got, err := c.Get(ctx, "key")
		if err == nil && got.Header.Revision != last+task.RevisionsAhead {
			t.Errorf("it is at revision %d", got.Header.Revision)
		}
		return err
	})
}
