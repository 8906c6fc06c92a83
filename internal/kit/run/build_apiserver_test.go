//go:build apiserver

package run

import (
	"fmt"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/testkit"
)

// TestLeaseSaysWhichBuildRuns, also on a Lease that is there already, with labels of its own. Of a version that is no value
// of a label it says nothing, and there is a leader still.
func TestLeaseSaysWhichBuildRuns(t *testing.T) {
	server := testkit.Server(t)
	c := newClient(t, server.Config)
	for version, want := range map[string]string{"1.2.3": "1.2.3", "1.2.3+mine": "1.2.3_mine", "one two": ""} {
		setBuild(t, version, "abc123")
		lease := &coordinationv1.Lease{}
		lease.Namespace, lease.Name = server.NewNamespace(t), "recorder-operator-leader"
		lease.Labels = map[string]string{"of": "chart"}
		if err := c.Create(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
		t.Run(version, func(t *testing.T) {
			start(t, server.Config, Options{Election: Lease, ElectionNamespace: lease.Namespace}, recording(make(chan string, 2)))
			eventually(t, "labels of the Lease", func() error {
				err := c.Get(t.Context(), client.ObjectKeyFromObject(lease), lease)
				if l := lease.Labels; err != nil || l[VersionLabel] != want || l[CommitLabel] != "abc123" || l["of"] != "chart" {
					return fmt.Errorf("%v, %w", l, err)
				}
				return nil
			})
		})
	}
}

func setBuild(t *testing.T, version, commit string) {
	t.Helper()
	oldVersion, oldCommit := Version, Commit
	Version, Commit = version, commit
	t.Cleanup(func() { Version, Commit = oldVersion, oldCommit })
}
