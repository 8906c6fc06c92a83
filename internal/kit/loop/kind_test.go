package loop

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"example.com/fairlead/internal/kit/run"
)

// What an install may leave out is known when the controller is made: its workers read that without a lock, and the
// first of them may be at work before it has been told that it has started.
func TestKnowsItsRightsBeforeItStarts(t *testing.T) {
	nobody := func(client.Reader) handler.EventHandler { return handler.Funcs{} }
	kind := Kind[*corev1.Service, string, *Plan]{Operator: "bench", Empty: &corev1.Service{}, Watches: []Watch[*corev1.Service]{
		{Object: &corev1.Node{}, Handler: nobody, Without: "nobody counts nodes"},
		{Object: &corev1.PersistentVolume{}, Handler: nobody, Without: "nobody counts volumes"},
		{Object: &corev1.Secret{}, Handler: nobody},
	}}
	broken := errors.New("the API server is away")
	for name, tt := range map[string]struct {
		seen    string
		err     error
		watched []string
	}{
		"one of two": {seen: "Node", watched: []string{"Service", "Node", "Secret"}},
		"none":       {watched: []string{"Service", "Secret"}},
		"unknown":    {err: broken},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := newController(run.Parts{
				Scheme: clientgoscheme.Scheme, Now: time.Now,
				Events: func(string) recorder.EventRecorder { return events.NewFakeRecorder(1) },
				Sees: func(_ context.Context, obj client.Object, _ string) (bool, error) {
					return KindOf(obj) == tt.seen, tt.err
				},
			}, kind)
			if !errors.Is(err, tt.err) {
				t.Fatalf("the error is %v, want %v", err, tt.err)
			}
			if err != nil {
				return
			}
			var watched []string
			for _, s := range c.Sources {
				watched = append(watched, KindOf(s.Object))
			}
			if !slices.Equal(watched, tt.watched) {
				t.Errorf("it watches %v, want %v", watched, tt.watched)
			}
			made := c.Reconciler.(*loop[*corev1.Service, string, *Plan])
			for _, object := range []string{"Node", "PersistentVolume"} {
				if made.sees[object] != (object == tt.seen) {
					t.Errorf("it sees %s: %t", object, made.sees[object])
				}
			}
		})
	}
}
