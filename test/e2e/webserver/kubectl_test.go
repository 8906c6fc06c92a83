//go:build e2e

package webserver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// TestKubectlFairleadWeb rolls back an image that does not exist, looks at it, and retries it.
func TestKubectlFairleadWeb(t *testing.T) {
	ns := e2e.NewNamespace(t)
	e2e.Apply(t, ns, "apiVersion: my.domain/v1\nkind: WebServer\nmetadata: {name: site}\nspec: {image: \""+oldNginx+"\", rollout: {deadlineSeconds: 10}}\n")
	webURL(t, ns, "site")
	e2e.Fairlead(t, ns, "current, last good", "web", "history", "site")
	e2e.FairleadRefuses(t, ns, "no rollout was rolled back", "web", "retry", "site")

	e2e.Kubectl(t, "patch", "webserver", "site", "-n", ns, "--type=merge", "-p", `{"spec":{"image":"nginx:none"}}`)
	failed := func() string {
		return e2e.Kubectl(t, "get", "webserver", "site", "-n", ns, "-o", "jsonpath={.status.failedRollout.time}")
	}
	rolledBackAfter := func(before string) string {
		pace.Eventually(t, 2*time.Minute, func() error {
			if now := failed(); now == "" || now == before {
				return fmt.Errorf("it was not rolled back: %q", now)
			}
			return nil
		})
		return failed()
	}
	first := rolledBackAfter("")
	e2e.Fairlead(t, ns, "rolled back: ", "web", "history", "site")
	out := e2e.FairleadRefuses(t, ns, "  - image: "+oldNginx, "web", "diff", "site") // exit code 1: they differ
	if !strings.Contains(out, "\n+") || !strings.Contains(out, "image: nginx:none\n") {
		t.Errorf("the difference does not show the image:\n%s", out)
	}
	e2e.Fairlead(t, ns, "site retried\nRevision ", "web", "retry", "site")
	rolledBackAfter(first)
}
