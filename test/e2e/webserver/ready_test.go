//go:build e2e

package webserver

import (
	"fmt"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// TestWebServerReadyIsServed: whichever way a WebServer becomes Ready, a client that connects then is answered.
func TestWebServerReadyIsServed(t *testing.T) {
	ns := e2e.NewNamespace(t, "pod-security.kubernetes.io/enforce=restricted")
	b := e2e.NewBeliever(t, ns, "webservers.v1.my.domain", "web", "web-service", 80)
	for range e2e.Rounds(t) {
		b.After("it is created", func() {
			e2e.Apply(t, ns, "apiVersion: my.domain/v1\nkind: WebServer\nmetadata: {name: web}\nspec: {image: \""+oldNginx+"\", replicas: 2}\n")
		}, b.Ready)
		b.After("it has grown", b.Patched(`{"replicas":3}`), b.Ready)
		b.After("it has another image", b.Patched(`{"image":"`+newNginx+`"}`), b.Ready)
		deleted, replaced := b.DeletePods("webserver_cr=web")
		b.After("all pods are deleted", deleted, replaced)
		b.After("it was scaled to zero", func() {
			b.Patched(`{"replicas":0}`)()
			pace.Eventually(t, time.Minute, func() error {
				if n := b.Get("webserver/web", "{.status.readyReplicas}"); n != "" && n != "0" {
					return fmt.Errorf("%s pods are ready", n)
				}
				return nil
			})
			b.Patched(`{"replicas":1}`)()
		}, b.Ready)
		deleted, replaced = b.DeleteService()
		b.After("its Service is deleted", deleted, replaced)
		b.After("its Service leads elsewhere", func() {
			e2e.Kubectl(t, "patch", "service", "web-service", "-n", ns, "-p", `{"spec":{"selector":{"webserver_cr":"another"}}}`)
		}, func() error {
			if to := b.Get("service/web-service", "{.spec.selector.webserver_cr}"); to != "web" {
				return fmt.Errorf("the Service leads to %q", to)
			}
			return b.Ready()
		})
		e2e.Kubectl(t, "delete", "webserver", "web", "-n", ns, "--cascade=foreground")
	}
}
