//go:build e2e

package etcd

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestEtcdClientsMeetVoters: while members are added, who connects anew for each request is never led to a learner, which
// would refuse it.
func TestEtcdClientsMeetVoters(t *testing.T) {
	t.Parallel()
	e := create(t, "size: 1")
	e.put("/key", "value")
	address := e.exposed()()[0]
	stop, refused := make(chan struct{}), make(chan []string)
	served := 0
	go func() {
		var all []string
		defer func() { refused <- all }()
		anew := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
			answer, err := anew.Post("http://"+address+"/v3/kv/range", "application/json", bytes.NewReader([]byte(`{"key":"L2tleQ=="}`)))
			if err != nil {
				continue // of the network, which clients try again
			}
			said, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			switch {
			case strings.Contains(string(said), "learner"):
				all = append(all, string(said))
			case answer.StatusCode == http.StatusOK:
				served++
			}
		}
	}()
	e.patch(`{"size":3}`)
	e.ready()
	close(stop)
	if all := <-refused; len(all) > 0 {
		t.Errorf("%d requests were refused by a learner: %s", len(all), all[0])
	}
	if t.Logf("%d requests were served", served); served < 100 {
		t.Errorf("%d requests were served, want at least 100", served)
	}
}
