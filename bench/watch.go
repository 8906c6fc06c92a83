package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sightings are when objects were first seen to be in some states, by name:
// the times at which a watch of this process told of them.
type sightings struct {
	mu     sync.Mutex
	times  map[string]map[string]time.Time // by state and name
	latest map[string]client.Object
	failed error
	stop   func()
}

// follow watches the objects of a kind whose names start with prefix. states
// tells which states an object is in.
func (b *bench) follow(ctx context.Context, list client.ObjectList, namespace, prefix string, states func(client.Object) []string) (*sightings, error) {
	// The version to watch from is read with the smallest list there is.
	if err := b.client.List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
		return nil, err
	}
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}}
	ctx, stop := context.WithCancel(ctx)
	s := &sightings{times: map[string]map[string]time.Time{}, latest: map[string]client.Object{}, stop: stop}
	go func() {
		// The API server ends watches that do not keep up with it, which
		// happens when the machine is busy: watch on from where it ended.
		for ctx.Err() == nil {
			watcher, err := b.client.Watch(ctx, list, client.InNamespace(namespace), from)
			if err != nil {
				s.fail(err)
				return
			}
			for event := range watcher.ResultChan() {
				obj, ok := event.Object.(client.Object)
				if event.Type == watch.Error || !ok {
					s.fail(fmt.Errorf("watch: %v", event.Object))
					return
				}
				from.Raw.ResourceVersion = obj.GetResourceVersion()
				if strings.HasPrefix(obj.GetName(), prefix) {
					s.see(event.Type, obj, time.Now(), states)
				}
			}
		}
	}()
	return s, nil
}

func (s *sightings) see(event watch.EventType, obj client.Object, now time.Time, states func(client.Object) []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if event == watch.Deleted {
		delete(s.latest, obj.GetName())
		return
	}
	s.latest[obj.GetName()] = obj
	for _, state := range states(obj) {
		if s.times[state] == nil {
			s.times[state] = map[string]time.Time{}
		}
		if _, seen := s.times[state][obj.GetName()]; !seen {
			s.times[state][obj.GetName()] = now
		}
	}
}

func (s *sightings) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = err
	}
}

// wait waits until n objects have been in a state, and returns when each was.
func (s *sightings) wait(ctx context.Context, patience time.Duration, state string, n int) (map[string]time.Time, error) {
	seen := 0
	err := eventually(ctx, patience, fmt.Sprintf("%d objects %s", n, state), func() (bool, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		seen = len(s.times[state])
		return seen >= n, s.failed
	})
	if err != nil {
		return nil, fmt.Errorf("%w (%d were)", err, seen)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.times[state], nil
}

// object is the object of that name as last seen, nil if it is not there.
func (s *sightings) object(name string) client.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest[name]
}

// The states of pods.
const (
	exists = "exists"
	mayRun = "may run" // no scheduling gate is left
)

// followPods follows pods into the two states that count.
func (b *bench) followPods(ctx context.Context, namespace, prefix string) (*sightings, error) {
	return b.follow(ctx, &corev1.PodList{}, namespace, prefix, func(obj client.Object) []string {
		if len(obj.(*corev1.Pod).Spec.SchedulingGates) > 0 {
			return []string{exists}
		}
		return []string{exists, mayRun}
	})
}
