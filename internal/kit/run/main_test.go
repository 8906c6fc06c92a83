package run

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// TestErrorsHaveNoStackTrace: unless the command line requests it.
func TestErrorsHaveNoStackTrace(t *testing.T) {
	for args, want := range map[string]bool{"": false, "--zap-stacktrace-level=error": true} {
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		options := logOptions(flags)
		if err := flags.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		var logged bytes.Buffer
		zap.New(zap.UseFlagOptions(options), zap.WriteTo(&logged)).Error(errors.New("refused"), "Reconciler error")
		if has := strings.Contains(logged.String(), "TestErrorsHaveNoStackTrace"); has != want {
			t.Errorf("with %q: stack trace: %v, in %s", args, has, &logged)
		}
	}
}

// TestWaitsAlive: while there is no API server, the manager must be alive for the
// kubelet, and ready for nobody.
func TestWaitsAlive(t *testing.T) {
	var up atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !up.Load() {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"major":"1"}`))
	}))
	defer server.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	probes := listener.Addr().String()
	listener.Close()

	done := make(chan error)
	go func() {
		done <- waitForServer(context.Background(), logr.Discard(), &rest.Config{Host: server.URL}, probes)
	}()
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable} {
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			response, err := http.Get("http://" + probes + path)
			if err == nil {
				response.Body.Close()
				if response.StatusCode != want {
					t.Errorf("%s answers %s", path, response.Status)
				}
				break
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
	}
	up.Store(true)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if listener, err = net.Listen("tcp", probes); err != nil {
		t.Fatalf("the manager cannot take over: %v", err)
	}
	listener.Close()
}
