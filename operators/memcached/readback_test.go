package memcached

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/memcached/objects"
)

// copies is an API server that has only the copies of Secrets.
type copies struct {
	client.Reader
	data map[string]map[string][]byte
}

func (c copies) Get(_ context.Context, at client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	obj.(*corev1.Secret).Data = c.data[at.Name]
	return nil
}

// aMemcached answers stats as memcached does, to those who are logged in.
func aMemcached(t *testing.T, listener net.Listener) {
	t.Helper()
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			lines, isIn := bufio.NewScanner(conn), false
			for lines.Scan() {
				switch line := lines.Text(); {
				case line == "set login 0 0 10" && lines.Scan() && lines.Text() == "me p:a:ss:":
					isIn = true
					_, _ = io.WriteString(conn, "STORED\r\n")
				case line == "stats" && isIn:
					_, _ = io.WriteString(conn, "STAT pid 1\r\nSTAT limit_maxbytes 134217728\r\nEND\r\n")
				case line == "stats":
					_, _ = io.WriteString(conn, "CLIENT_ERROR unauthenticated\r\n")
				}
			}
			conn.Close()
		}
	}()
}

func aCertificate(t *testing.T) (data map[string][]byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}

// TestAskLimit queries with and without encryption, as a user, and takes no certificate
// but the one that the server was given.
func TestAskLimit(t *testing.T) {
	given := aCertificate(t)
	pair, err := tls.X509KeyPair(given[corev1.TLSCertKey], given[corev1.TLSPrivateKeyKey])
	if err != nil {
		t.Fatal(err)
	}
	users := map[string][]byte{objects.UsersFile: []byte("me:p:a:ss:\nyou:x\n")}
	for name, tc := range map[string]struct {
		options []mcOption
		copies  map[string]map[string][]byte
		want    int64 // 0 for an error
	}{
		"a user":              {[]mcOption{stable, withUsers}, map[string]map[string][]byte{"cache-auth": users}, 128},
		"another user":        {[]mcOption{stable, withUsers}, map[string]map[string][]byte{"cache-auth": {objects.UsersFile: []byte("you:x\n")}}, 0},
		"nobody":              {[]mcOption{stable}, nil, 0},
		"encrypted":           {[]mcOption{stable, withUsers, withCertificate}, map[string]map[string][]byte{"cache-auth": users, "cache-tls": given}, 128},
		"another certificate": {[]mcOption{stable, withUsers, withCertificate}, map[string]map[string][]byte{"cache-auth": users, "cache-tls": aCertificate(t)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			mc := aPool(tc.options...)
			if mc.Spec.TLS != nil {
				listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
			}
			aMemcached(t, listener)
			mc.Spec.Port = int32(listener.Addr().(*net.TCPAddr).Port)
			pod := &corev1.Pod{Status: corev1.PodStatus{PodIP: "127.0.0.1"}}
			got, err := askLimit(context.Background(), copies{data: tc.copies}, mc, pod)
			if got != tc.want || (err == nil) != (tc.want > 0) {
				t.Errorf("%d, %v, want %d", got, err, tc.want)
			}
		})
	}
}

// TestMemoryIsReadBack: status reports what servers have, and not what they were given,
// and says when that is not known.
func TestMemoryIsReadBack(t *testing.T) {
	grown := func(pod *corev1.Pod) { pod.Generation = 2 }
	mc := aPool(stable, size(2), memory("128Mi"))
	for name, tc := range map[string]struct {
		pod                     func(*corev1.Pod)
		has                     int64 // 0: it does not answer
		after                   time.Duration
		reason, message, memory string
		reads                   int
		wakes                   time.Duration
	}{
		"was never resized":   {pod: func(*corev1.Pod) {}, reason: reasonReady, message: "All servers are ready", memory: "128Mi"},
		"has it":              {pod: grown, has: 128, reason: reasonReady, message: "All servers are ready", memory: "128Mi", reads: 1},
		"does not yet":        {pod: grown, has: 64, reason: reasonUpgrading, message: "server cache-0 is getting 128Mi for items", memory: "64Mi", reads: 1, wakes: time.Second},
		"does not take it":    {pod: grown, has: 64, after: time.Minute, reason: reasonNotTaken, message: "server cache-0 has 64Mi for items and not 128Mi: memcached has not taken the new limit. To start it with that, and empty, delete the pod", memory: "64Mi", reads: 2, wakes: 15 * time.Second},
		"does not answer yet": {pod: grown, reason: reasonUpgrading, message: "server cache-0 is getting 128Mi for items", reads: 1, wakes: time.Second},
		"cannot be asked":     {pod: grown, after: time.Minute, reason: reasonReady, message: "All servers are ready. The operator cannot connect to server cache-0, so it cannot say whether that has 128Mi for items", reads: 2, wakes: 15 * time.Second},
		"is asked no more":    {pod: grown, after: time.Hour, reason: reasonReady, message: "All servers are ready. The operator cannot connect to server cache-0, so it cannot say whether that has 128Mi for items", reads: 2},
	} {
		t.Run(name, func(t *testing.T) {
			reads, was := 0, readLimit
			readLimit = func(context.Context, client.Reader, *v1alpha1.Memcached, *corev1.Pod) (int64, error) {
				reads++
				if tc.has == 0 {
					return 0, errors.New("i/o timeout")
				}
				return tc.has, nil
			}
			defer func() { readLimit = was }()
			o := &observer{limits: &limits{}}
			seen := somethingSeen(aStatefulSet(mc), aServer(mc, 0, tc.pod), aServer(mc, 1))
			o.observeLimits(context.Background(), &loop.Reader{}, mc, &seen)
			if tc.after > 0 {
				seen.Now = seen.Now.Add(tc.after)
				o.observeLimits(context.Background(), &loop.Reader{}, mc, &seen)
			}
			o.observeLimits(context.Background(), &loop.Reader{}, mc, &seen) // queries nobody again so soon
			next, err := decide(mc, seen)
			if err != nil {
				t.Fatal(err)
			}
			st := summarize(mc, seen, next, nil)
			ready := meta.FindStatusCondition(st.Conditions, status.Ready)
			if ready.Reason != tc.reason || ready.Message != tc.message || st.Memory != tc.memory {
				t.Errorf("%s: %s; memory %q", ready.Reason, ready.Message, st.Memory)
			}
			if reads != tc.reads || next.WakeAfter != tc.wakes {
				t.Errorf("%d reads, want %d; wakes after %v, want %v", reads, tc.reads, next.WakeAfter, tc.wakes)
			}
		})
	}
}

func TestLimitIn(t *testing.T) {
	for text, want := range map[string]int64{
		"STAT limit_maxbytes 67108864\r\nEND\r\n": 64, "STORED\r\nSTAT pid 1\r\nSTAT limit_maxbytes 134217728\r\n": 128, "ERROR\r\n": 0, "": 0,
	} {
		if got, err := limitIn(strings.NewReader(text)); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
}
