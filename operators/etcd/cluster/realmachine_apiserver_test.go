//go:build apiserver

package cluster

import (
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/fairlead/operators/etcd/members/etcdtest"
)

// machine is what all runs have in common: the programs, the addresses of pods, and the name
// service. Each pod has a loopback address of its own, so that the ports are those of a real pod.
// Members find each other by the names of pods, which no resolver knows: they send their requests
// to a proxy, which does. A member that joins resolves the names as well, only to compare them: a
// file of hosts is mounted for it.
type machine struct {
	programs map[string]string // by version
	folder   string
	proxy    string
	runs     sync.WaitGroup

	mu        sync.Mutex
	made      uint32            // addresses so far
	addresses map[string]string // of pods whose etcd runs, by <pod>.<namespace>
}

// newMachine makes a machine with some versions of etcd. It ends with the test, and waits then for
// all that runs on it.
func newMachine(t *testing.T, versions ...string) *machine {
	t.Helper()
	m := &machine{programs: map[string]string{}, folder: t.TempDir(), addresses: map[string]string{}}
	for _, v := range versions {
		m.programs[v] = etcdtest.Program(t, "v"+v)
	}
	// Another process that runs these tests takes other addresses, most likely.
	m.made = uint32(1+rand.IntN(250)) << 16
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.proxy = "http://" + l.Addr().String()
	silent := log.New(io.Discard, "", 0)
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.URL.Host = m.find(r.In.URL.Host) },
		Transport:     &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: 5 * time.Second},
		FlushInterval: -1, // they send each other messages in bodies without an end
		ErrorLog:      silent,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	server := &http.Server{ErrorLog: silent, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.find(r.URL.Host) == "" {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		forward.ServeHTTP(w, r)
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() {
		m.runs.Wait()
		_ = server.Close()
	})
	return m
}

// find is the address of a pod, such as example-abcde.example.shop.svc:2380.
func (m *machine) find(host string) string {
	name, port, _ := net.SplitHostPort(host)
	m.mu.Lock()
	defer m.mu.Unlock()
	if labels := strings.Split(name, "."); len(labels) > 2 {
		if ip := m.addresses[labels[0]+"."+labels[2]]; ip != "" {
			return net.JoinHostPort(ip, port)
		}
	}
	return ""
}

func (m *machine) newAddress() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.made++; m.made&255 == 0 || m.made&255 == 255; {
		m.made++
	}
	return fmt.Sprintf("127.%d.%d.%d", m.made>>16&255, m.made>>8&255, m.made&255)
}

func (m *machine) publish(pod, namespace, ip string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ip == "" {
		delete(m.addresses, pod+"."+namespace)
	} else {
		m.addresses[pod+"."+namespace] = ip
	}
}
