//go:build e2e

package etcd

import (
	"fmt"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// TestEtcdVersions: up through two minor versions, and down by one.
func TestEtcdVersions(t *testing.T) {
	t.Parallel()
	e := create(t, "size: 3", "version: "+older)
	e.put("/key", "kept")
	before := e.pods()
	for _, version := range []string{newer, current, patch, current} {
		began := time.Now()
		e.patch(`{"version":"` + version + `"}`)
		pace.Eventually(t, 3*time.Minute, func() error {
			ec, err := e.get()
			if err != nil {
				return err
			}
			for _, m := range ec.Status.MemberList {
				if m.Version != version {
					return fmt.Errorf("not all members have %s: %s", version, status(ec))
				}
			}
			return isReady(ec)
		})
		t.Logf("all members have %s after %.1f s", version, time.Since(began).Seconds())
		e.wantValue("/key", "kept")
	}
	for name, pod := range e.pods() {
		if before[name].UID != pod.UID {
			t.Errorf("pod %s was replaced: without a volume its data is lost then", name)
		}
	}
}

// TestEtcdNoSuchVersion: one member is down at most, and it heals when the version is reverted.
func TestEtcdNoSuchVersion(t *testing.T) {
	t.Parallel()
	e := create(t, "size: 3", "version: "+current)
	e.put("/key", "kept")
	e.patch(`{"version":"3.6.999"}`)
	pace.Eventually(t, time.Minute, func() error {
		ec, err := e.get()
		if err != nil {
			return err
		}
		if ec.Status.ReadyMembers != 2 {
			return fmt.Errorf("no member has been changed: %s", status(ec))
		}
		return nil
	})
	time.Sleep(10 * time.Second)
	ec, err := e.get()
	if err != nil || ec.Status.ReadyMembers != 2 {
		t.Errorf("more than one member is down (%v): %s", err, status(ec))
	}
	e.wantValue("/key", "kept")
	e.patch(`{"version":"` + current + `"}`)
	e.ready()
	e.patch(`{"version":"3.9.1"}`)
	pace.Eventually(t, time.Minute, func() error {
		ec, err := e.get()
		if err != nil {
			return err
		}
		for _, c := range ec.Status.Conditions {
			if c.Type == "Stalled" && c.Reason == "VersionRefused" {
				return nil
			}
		}
		return fmt.Errorf("an upgrade by three minor versions to one that is not known is not refused: %s", status(ec))
	})
	if pods := e.pods(); len(pods) != 3 {
		t.Errorf("there are %d pods", len(pods))
	}
}

// TestEtcdImagesRewritten: where admission rewrites images, as for a mirror, members have what they
// are to have: they are upgraded, and left alone afterwards.
func TestEtcdImagesRewritten(t *testing.T) {
	t.Parallel()
	e := etcd{t, e2e.NewNamespace(t)}
	e.rewriteImages("registry.example.com/etcd", "quay.io/coreos/etcd")
	e.apply("size: 3", "repository: registry.example.com/etcd", "version: "+patch)
	e.ready()
	before := e.pods()
	e.patch(`{"version":"` + current + `"}`)
	e.ready()
	after := e.pods()
	for name, pod := range after {
		if before[name].UID != pod.UID {
			t.Errorf("pod %s was replaced", name)
		}
		if got, want := pod.Spec.Containers[0].Image, "quay.io/coreos/etcd:v"+current; got != want {
			t.Errorf("pod %s has image %s, want %s", name, got, want)
		}
	}
	// Probes of the members that were started last may still be on their way.
	time.Sleep(pace.Scale(5 * time.Second))
	after = e.pods()
	time.Sleep(5 * time.Second)
	for name, pod := range e.pods() {
		if pod.ResourceVersion != after[name].ResourceVersion {
			t.Errorf("pod %s is changed again and again", name)
		}
	}
}
