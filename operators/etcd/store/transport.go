package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"time"
)

// caKey is the key of a Secret with the CA of its endpoint.
const caKey = "ca.crt"

// newTransport is how servers are reached: with the CA of the Secret beside those that are known, and
// with every byte told to the watch.
func newTransport(s *secret, w *watch) (*http.Transport, error) {
	dialer := &net.Dialer{Timeout: min(w.timeout, 15*time.Second), KeepAlive: 15 * time.Second}
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return conn{Conn: c, watch: w}, nil
		},
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   8,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   min(w.timeout, 15*time.Second),
		ExpectContinueTimeout: time.Second,
		WriteBufferSize:       64 << 10,
		ReadBufferSize:        64 << 10,
	}
	ca, err := s.read(caKey)
	if err != nil || len(ca) == 0 {
		return t, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(ca) {
		return nil, s.invalid("key %s has no certificate in PEM format", caKey)
	}
	t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return t, nil
}
