//go:build e2e

package nodes

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/internal/testkit/stall"
	"example.com/fairlead/test/e2e"
)

// apart is a WebServer of which no two pods may be on one node, with as many pods as there are nodes.
var apart = `
apiVersion: my.domain/v1
kind: WebServer
metadata: {name: apart}
spec:
  image: nginx:1.22.1
  replicas: 3
  rollout: {deadlineSeconds: ` + fmt.Sprint(pace.Seconds(5)) + `}
  podTemplate:
    spec:
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {webserver_cr: apart}}}
`

// TestRoom rolls out where no node takes one more pod: the rollout waits, says what makes room, and is not given up; with
// room it goes on, and no request fails.
func TestRoom(t *testing.T) { stall.Judge(t, "the rollout", rollOutApart, nil) }

func rollOutApart(t testing.TB) {
	threeNodes(t)
	namespace := e2e.NewNamespace(t)
	e2e.Apply(t, namespace, apart)
	e2e.Kubectl(t, "wait", "-n", namespace, e2e.Patience, "--for=condition=Ready", "webserver/apart")
	sent := request(t, namespace, "apart")
	patch := func(spec string) {
		e2e.Kubectl(t, "patch", "webserver/apart", "-n", namespace, "--type=merge", "-p", `{"spec":`+spec+`}`)
	}
	is := func(path string) string {
		return e2e.Kubectl(t, "get", "webserver/apart", "-n", namespace, "-o", "jsonpath="+path)
	}

	patch(`{"image":"nginx:1.26.3"}`)
	e2e.Kubectl(t, "wait", "-n", namespace, e2e.Patience, `--for=jsonpath={.status.conditions[?(@.type=="Progressing")].reason}=ProgressDeadlineExceeded`, "deployment/apart")
	time.Sleep(3 * time.Second) // it would be rolled back at once
	said := is(`{.status.conditions[?(@.type=="Ready")].reason}: {.status.conditions[?(@.type=="Ready")].message}`)
	t.Logf("without room: %s", said)
	for _, word := range []string{"Unschedulable: ", "anti-affinity", "rollout.maxUnavailable"} {
		if !strings.Contains(said, word) {
			t.Errorf("%q is not in %q", word, said)
		}
	}
	if failed := is("{.status.failedRollout}"); failed != "" {
		t.Errorf("it was given up: %s", failed)
	}

	began := time.Now()
	patch(`{"rollout":{"maxUnavailable":1}}`)
	e2e.Kubectl(t, "wait", "-n", namespace, e2e.Patience, "--for=jsonpath={.status.image}=nginx:1.26.3", "webserver/apart")
	e2e.Kubectl(t, "wait", "-n", namespace, e2e.Patience, "--for=condition=Ready", "webserver/apart")
	done, failed := sent.end()
	t.Logf("rolled out %v after there was room: %d requests, %d failed", time.Since(began).Round(time.Second), done, len(failed))
	if len(failed) > 0 {
		t.Errorf("%d of %d requests failed:\n%s", len(failed), done, strings.Join(failed[:min(len(failed), 10)], "\n"))
	}
}
