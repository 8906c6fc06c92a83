//go:build apiserver

package at

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/internal/testkit/standalone"
)

// TestIdleAtsCostNothing has Ats in every state that lasts, and counts what the
// operator sends while nothing changes, and again after it was restarted.
func TestIdleAtsCostNothing(t *testing.T) {
	server := testkit.Server(t)
	namespace := server.NewNamespace(t)
	c, err := client.New(server.Config, client.Options{Scheme: standalone.Scheme(Operator)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := testkit.StartKubelet(t.Context(), server.Config, namespace, nil); err != nil {
		t.Fatal(err)
	}
	wants := map[string]atv1alpha1.Phase{"done": atv1alpha1.Done, "missed": atv1alpha1.Missed, "suspended": atv1alpha1.Pending}
	specs := map[string]func(*atv1alpha1.AtSpec){
		"done":      func(*atv1alpha1.AtSpec) {},
		"missed":    func(s *atv1alpha1.AtSpec) { s.StartingDeadlineSeconds = new(int64(1)) },
		"suspended": func(s *atv1alpha1.AtSpec) { s.Suspend = true },
	}
	for i := range 20 {
		name := fmt.Sprintf("pending-%d", i)
		wants[name] = atv1alpha1.Pending
		specs[name] = func(s *atv1alpha1.AtSpec) { s.Schedule = "9999-01-01T00:00:00Z" }
	}
	for name, change := range specs {
		at := anAt(spec(func(s *atv1alpha1.AtSpec) { s.Schedule = "2021-09-09T07:05:59Z" }), spec(change))
		at.Namespace, at.Name, at.UID, at.Status = namespace, name, "", atv1alpha1.AtStatus{}
		if err := c.Create(t.Context(), at); err != nil {
			t.Fatal(err)
		}
	}

	for range 2 {
		counter := &testkit.Counter{}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- standalone.Start(Operator)(ctx, counter.Wrap(server.Config), namespace) }()
		for name, phase := range wants {
			pace.Eventually(t, 20*time.Second, func() error {
				var at atv1alpha1.At
				if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &at); err != nil {
					return err
				}
				if at.Status.Phase != phase || at.Status.ObservedGeneration != 1 {
					return fmt.Errorf("%s is %s, want %s", name, at.Status.Phase, phase)
				}
				return nil
			})
		}
		time.Sleep(time.Second) // the last events are on their way
		if err := counter.Silence(t.Context(), 3*time.Second); err != nil {
			t.Error(err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
