package testkit

import (
	"example.com/fairlead/internal/kit/outside"

	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// aServer counts the writes that arrive, answers them with a pod, and keeps
// watches open with a line every millisecond.
func aServer(t *testing.T) (url string, arrived *atomic.Int32) {
	arrived = &atomic.Int32{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Query().Get("watch") == "true" {
			for req.Context().Err() == nil {
				_, _ = fmt.Fprintln(w, "news")
				w.(http.Flusher).Flush()
				time.Sleep(time.Millisecond)
			}
			return
		}
		if req.Method != http.MethodGet {
			arrived.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`)
	}))
	t.Cleanup(s.Close)
	return s.URL, arrived
}

func aWire(p plan, died func(*instance)) *wire {
	if died == nil {
		died = func(*instance) {}
	}
	return &wire{plan: p, died: died,
		watched: map[string]bool{}, sorts: map[string]bool{}}
}

func anInstance(t *testing.T) *instance {
	life, kill := context.WithCancel(t.Context())
	return &instance{number: 1, life: life, kill: kill}
}

func TestCut(t *testing.T) {
	for _, tc := range []struct {
		cut     string
		arrived int32
	}{{before, 1}, {afterwards, 2}} {
		t.Run(tc.cut, func(t *testing.T) {
			url, arrived := aServer(t)
			deaths := 0
			w, inst := aWire(plan{n: 2, cut: tc.cut}, func(*instance) { deaths++ }), anInstance(t)
			c := &http.Client{Transport: w.wrap(inst)(http.DefaultTransport)}

			watch, err := c.Get(url + "/api/v1/pods?watch=true")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = watch.Body.Close() }()
			post := func() error {
				resp, err := c.Post(url+"/api/v1/namespaces/n/pods", "application/json", nil)
				if err == nil {
					_ = resp.Body.Close()
				}
				return err
			}
			if err := post(); err != nil {
				t.Fatalf("first write: %v", err)
			}
			for range 2 { // the write that is cut, and what comes from the grave
				if err := post(); !errors.Is(err, errKilled) {
					t.Errorf("error %v, want %v", err, errKilled)
				}
			}
			if resp, err := c.Get(url + "/api/v1/pods"); !errors.Is(err, errKilled) {
				_ = resp.Body.Close()
				t.Errorf("a read after death: %v, want %v", err, errKilled)
			}
			if text, err := io.ReadAll(watch.Body); !errors.Is(err, errKilled) || len(text) > 0 {
				t.Errorf("a watch after death gave %q and %v, want nothing and %v", text, err, errKilled)
			}
			if arrived.Load() != tc.arrived || deaths != 1 || inst.life.Err() == nil {
				t.Errorf("%d writes arrived, %d deaths, life %v; want %d, 1, over", arrived.Load(), deaths, inst.life.Err(), tc.arrived)
			}
			if w.hit == nil || w.hit.Number != 2 || w.hit.String() != "create pods" {
				t.Errorf("hit %+v, want write 2, create pods", w.hit)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	cases := map[Fault]struct {
		arrived int32
		is      func(error) bool
	}{
		Conflict:        {0, apierrors.IsConflict},
		TooManyRequests: {0, apierrors.IsTooManyRequests},
		ServerError:     {0, apierrors.IsInternalError},
		Hang:            {0, func(err error) bool { return err != nil }},
		LostAnswer:      {1, func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
	}
	for _, fault := range Faults {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			url, arrived := aServer(t)
			w, inst := aWire(plan{n: 1, fault: fault}, nil), anInstance(t)
			c, err := kubernetes.NewForConfig(&rest.Config{Host: url, WrapTransport: w.wrap(inst)})
			if err != nil {
				t.Fatal(err)
			}
			create := func() error {
				_, err := c.CoreV1().Pods("n").Create(t.Context(), &corev1.Pod{}, metav1.CreateOptions{})
				return err
			}
			if err := create(); !cases[fault].is(err) {
				t.Errorf("unexpected error %T %v", err, err)
			}
			if arrived.Load() != cases[fault].arrived {
				t.Errorf("%d requests arrived, want %d", arrived.Load(), cases[fault].arrived)
			}
			if err := create(); err != nil || inst.life.Err() != nil {
				t.Errorf("the write after the fault: %v", err)
			}
		})
	}
}

func TestLateBody(t *testing.T) {
	const delay = 100 * time.Millisecond
	began := time.Now()
	b := newLateBody(io.NopCloser(strings.NewReader("in order")), delay, nil)
	text, err := io.ReadAll(b)
	if string(text) != "in order" || err != nil {
		t.Errorf("read %q, %v", text, err)
	}
	if took := time.Since(began); took < delay {
		t.Errorf("took %s, want %s at least", took, delay)
	}

	dead := make(chan struct{})
	b = newLateBody(io.NopCloser(strings.NewReader("never delivered")), time.Hour, dead)
	time.AfterFunc(10*time.Millisecond, func() { close(dead) })
	if text, err := io.ReadAll(b); len(text) > 0 || !errors.Is(err, errKilled) {
		t.Errorf("the dead read %q, %v", text, err)
	}
}

func TestCallsOutside(t *testing.T) {
	member, done := outside.Call{Verb: "add", What: "members"}, 0
	do := func() error { done++; return nil }
	w, inst := aWire(plan{n: 2, cut: before}, nil), anInstance(t)
	ctx := outside.With(t.Context(), inst.outside(w))
	for range 2 { // which do not count
		if err := outside.Do(ctx, outside.Call{Verb: "get", What: "members"}, func() error { return nil }); err != nil {
			t.Errorf("a read: %v", err)
		}
	}
	if err := outside.Do(ctx, member, do); err != nil {
		t.Errorf("first write: %v", err)
	}
	for range 2 {
		if err := outside.Do(ctx, member, do); !errors.Is(err, errKilled) {
			t.Errorf("error %v, want %v", err, errKilled)
		}
	}
	if done != 1 {
		t.Errorf("%d writes were done, want 1", done)
	}
	if err := outside.Do(t.Context(), member, do); err != nil || done != 2 {
		t.Errorf("without a sweep: %v, done %d times", err, done)
	}
}

func TestCounter(t *testing.T) {
	url, _ := aServer(t)
	counter := &Counter{}
	c, err := kubernetes.NewForConfig(counter.Wrap(&rest.Config{Host: url}))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, counter.Silence(t.Context(), time.Millisecond), "")

	ctx := t.Context()
	time.AfterFunc(10*time.Millisecond, func() {
		_, _ = c.CoreV1().Pods("n").Create(ctx, &corev1.Pod{}, metav1.CreateOptions{})
		_, _ = c.CoreV1().Pods("n").Get(ctx, "p", metav1.GetOptions{})
		_, _ = c.CoordinationV1().Leases("n").Get(ctx, "l", metav1.GetOptions{})
	})
	if got, want := counter.during(ctx, 500*time.Millisecond), "1 × create pods, 1 × get pods"; got != want {
		t.Errorf("counted %q, want %q", got, want)
	}
}
