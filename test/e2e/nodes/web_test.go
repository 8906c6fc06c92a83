//go:build e2e

package nodes

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// requests are those that were sent to a web server, 100 a second, each over a connection of its own.
type requests struct {
	sent   sync.WaitGroup
	stop   chan struct{}
	mu     sync.Mutex
	done   int
	failed []string
}

// request sends requests until end.
func request(t testing.TB, namespace, name string) *requests {
	t.Helper()
	url := e2e.Kubectl(t, "get", "webserver", name, "-n", namespace, "-o", "jsonpath={.status.url}")
	client := &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for range 20 { // Ready is about pods: the node's kube-proxy follows a moment later
		pace.Eventually(t, 10*time.Second, func() error { return get(client, url) })
	}
	r := &requests{stop: make(chan struct{})}
	r.sent.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-r.stop:
				return
			case <-tick.C:
				r.sent.Go(func() { r.note(time.Now(), get(client, url)) })
			}
		}
	})
	return r
}

func get(client *http.Client, url string) error {
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", resp.Status)
	}
	return nil
}

func (r *requests) note(began time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	if err != nil {
		r.failed = append(r.failed, fmt.Sprintf("%s after %v: %v", began.Format("15:04:05.000"), time.Since(began).Round(time.Millisecond), err))
	}
}

// end ends them, and returns how many there were, and why some of them failed.
func (r *requests) end() (done int, failed []string) {
	close(r.stop)
	r.sent.Wait()
	return r.done, r.failed
}
