package testkit

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/fairlead/internal/testkit/pace"
)

var shared struct {
	once    sync.Once
	options Options
	server  *APIServer
	err     error
}

// Main is the whole of a TestMain: it runs the tests and then ends the server, if a test
// requested it.
func Main(m *testing.M, o Options) {
	shared.options = o
	// A killed operator's client libraries complain at length; what the
	// operator itself logs is shown with the run that failed.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())

	code := m.Run()
	if shared.server != nil {
		if err := shared.server.Stop(); err != nil {
			fmt.Fprintf(os.Stderr, "testkit: stop the API server: %v\n", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// Server is the test binary's API server, started at its first use. Without
// the binaries the test fails: it is never skipped.
func Server(t testing.TB) *APIServer {
	t.Helper()
	shared.once.Do(func() { shared.server, shared.err = StartAPIServer(shared.options) })
	if shared.err != nil {
		t.Fatalf("start the API server: %v", shared.err)
	}
	return shared.server
}

// poll calls done every few milliseconds at first, and then less often the longer it takes,
// until it returns nil. Its error is done's last one.
func poll(ctx context.Context, limit time.Duration, done func() error) error {
	const most = 200 * time.Millisecond
	began, next, err := time.Now(), time.Now(), error(nil)
	_, err = pace.Until(ctx, limit, func() error {
		if now := time.Now(); !now.Before(next) {
			err = done()
			next = now.Add(min(now.Sub(began)/8, most))
		}
		return err
	})
	return err
}
