//go:build apiserver

package agent

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/members/etcdtest"
	"example.com/fairlead/operators/etcd/task"
)

// TestNewerBackup: what etcd has written in the format of a later minor version than the cluster runs is refused with nothing
// left, and what is of its own or an earlier one is not. Etcd says the format once all members run the version.
func TestNewerBackup(t *testing.T) {
	for i, written := range builtVersions {
		w := aWorld(t, 1, written, false)
		var saved *v1beta2.StoredBackup
		etcdtest.Eventually(t, time.Minute, "a backup is in the format of "+written, func() error {
			saved = w.mustSave()
			has, err := contentOf(w.path(saved.Key))
			if err == nil && i > 0 && "v"+has.format[:min(3, len(has.format))] != written[:4] {
				err = fmt.Errorf("it is in that of %q", has.format)
			}
			return err
		})
		for j, runs := range builtVersions {
			t.Run(written+" at "+runs, func(t *testing.T) {
				m := newcomer(t, runs)
				todo := w.fetchTask(saved.Key, m)
				todo.Member.Version = strings.TrimPrefix(runs, "v")
				r := w.do(t.Context(), todo)
				if i <= j {
					if r.Problem != nil {
						t.Errorf("%+v", r.Problem)
					}
					return
				}
				wantProblem(t, "newer", r, task.ReasonObjectTooNew)
				if p := r.Problem; p != nil && (p.Retriable || !strings.Contains(p.Message, saved.Key) || !strings.Contains(p.Message, todo.Member.Version)) {
					t.Errorf("it says %+v", p)
				}
				if _, err := os.Stat(m.Data); !os.IsNotExist(err) {
					t.Errorf("there is a data directory: %v", err)
				}
			})
		}
	}
}
