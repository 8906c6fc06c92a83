package testkit

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Counter counts the API requests of an operator, by verb and resource.
type Counter struct {
	mu     sync.Mutex
	counts map[string]int
}

// Wrap returns a copy of the config whose clients are counted.
func (c *Counter) Wrap(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			r := parse(req)
			key := r.Verb + " " + r.Resource
			if r.Subresource != "" {
				key += "/" + r.Subresource
			}
			c.mu.Lock()
			if c.counts == nil {
				c.counts = map[string]int{}
			}
			c.counts[key]++
			c.mu.Unlock()
			return next.RoundTrip(req)
		})
	})
	return cfg
}

// Counts are the requests since the start or the last Reset, such as
// {"patch pods/status": 3}. A watch counts once, when it begins.
func (c *Counter) Counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

// Reset begins again at zero.
func (c *Counter) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.counts)
}

// Silence lets what is under way come to its end, then counts for a while, and
// returns an error that lists what was sent. Watches and leases may be: they are
// what an idle operator lives on.
func (c *Counter) Silence(ctx context.Context, period time.Duration) error {
	const pause, patience = time.Second, 30
	for range patience {
		if sent := c.during(ctx, pause); sent == "" {
			break
		}
	}
	if sent := c.during(ctx, period); sent != "" {
		return fmt.Errorf("not silent for %s: %s", period, sent)
	}
	return ctx.Err()
}

// during lists what is sent in that time.
func (c *Counter) during(ctx context.Context, period time.Duration) string {
	c.Reset()
	sleep(ctx, period)
	var sent []string
	counts := c.Counts()
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		if !strings.HasPrefix(key, "watch ") && !strings.HasSuffix(key, " leases") {
			sent = append(sent, fmt.Sprintf("%d × %s", counts[key], key))
		}
	}
	return strings.Join(sent, ", ")
}
