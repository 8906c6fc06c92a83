package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// isMain has this test's program be the operators' program.
const isMain = "FAIRLEAD_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(isMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestLinks has what the operators' program must not link: that is the agent's. It makes the program three times as
// large, and all of it would have to be looked at for each vulnerability.
func TestLinks(t *testing.T) {
	t.Parallel()
	foreign := []string{
		"example.com/fairlead/operators/etcd/agent", "example.com/fairlead/operators/etcd/store",
		"github.com/aws/", "github.com/Azure/", "cloud.google.com/", "google.golang.org/api/", "gocloud.dev/",
		"go.etcd.io/bbolt", "go.etcd.io/etcd/server/", "go.etcd.io/etcd/etcdutl/", "go.etcd.io/raft/",
		"golang.org/x/crypto/x509roots/",
	}
	linked := func(program string) []string {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", program).Output()
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for path := range strings.FieldsSeq(string(out)) {
			for _, prefix := range foreign {
				if strings.HasPrefix(path, prefix) {
					found = append(found, path)
				}
			}
		}
		return found
	}
	if found := linked("."); len(found) > 0 {
		t.Errorf("fairlead links %v", found)
	}
	agents := strings.Join(linked("../fairlead-etcd-agent"), " ")
	for _, prefix := range foreign {
		if !strings.Contains(agents, prefix) {
			t.Errorf("nothing is called %s any more: what is it called now?", prefix)
		}
	}
}

// TestAgentOfOlderPods has a pod that was created when the agent was a part of this program.
func TestAgentOfOlderPods(t *testing.T) {
	t.Parallel()
	image := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	agent := "#!/bin/sh\necho \"$0 $# $1 $ETCD_AGENT_MEMBER\"\nexit 7\n"
	for name, content := range map[string]string{"fairlead": string(program), "fairlead-etcd-agent": agent} {
		if err := os.WriteFile(filepath.Join(image, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(image, "fairlead"), "etcd-agent", `{"Action":"Fetch"}`)
	cmd.Env = append(cmd.Environ(), isMain+"=yes", "ETCD_AGENT_MEMBER=example-a")
	out, err := cmd.Output()
	want := filepath.Join(image, "fairlead-etcd-agent") + ` 1 {"Action":"Fetch"} example-a` + "\n"
	if string(out) != want || cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("%q, %v, want %q and exit code 7", out, err, want)
	}
}
