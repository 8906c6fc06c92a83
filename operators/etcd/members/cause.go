package members

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc/credentials"
)

// cause is why the last attempt to connect failed: gRPC has only a text, with ports in it that
// are others each time.
type cause struct{ err atomic.Pointer[error] }

func (c *cause) set(err error) { c.err.Store(&err) }

func (c *cause) get() error {
	if err := c.err.Load(); err != nil {
		return *err
	}
	return nil
}

// handshake keeps the error of a handshake. With TLS 1.3, the other side refuses a certificate only
// after it. So it is over when the first byte has come: a server of HTTP/2 begins with its settings.
// Whoever sends something before may be told no more than that the connection is closed.
type handshake struct {
	credentials.TransportCredentials
	cause *cause
}

func (h *handshake) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := h.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		h.cause.set(err)
		return nil, nil, err
	}
	w := &watched{Conn: conn, cause: h.cause}
	if info.AuthType() == "tls" {
		if err := w.await(ctx); err != nil {
			h.cause.set(err)
			return nil, nil, errors.Join(err, conn.Close())
		}
	}
	return w, info, nil
}

func (h *handshake) Clone() credentials.TransportCredentials {
	return &handshake{TransportCredentials: h.TransportCredentials.Clone(), cause: h.cause}
}

// watched is a connection that keeps the error of the last read.
type watched struct {
	net.Conn
	cause *cause
	// first is what was read before anybody asked for it.
	first []byte
}

// await waits for the first byte.
func (w *watched) await(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok {
		if err := w.SetReadDeadline(deadline); err != nil {
			return err
		}
	}
	w.first = make([]byte, 1)
	if _, err := w.Conn.Read(w.first); err != nil {
		return err
	}
	return w.SetReadDeadline(time.Time{})
}

func (w *watched) Read(into []byte) (int, error) {
	if len(w.first) > 0 {
		n := copy(into, w.first)
		w.first = w.first[n:]
		return n, nil
	}
	n, err := w.Conn.Read(into)
	if err != nil {
		w.cause.set(err)
	}
	return n, err
}

// unreachable says why in few words, which are the same as long as the reason is.
func unreachable(err error) error {
	var (
		invalid x509.CertificateInvalidError
		unknown x509.UnknownAuthorityError
		remote  *net.OpError
	)
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("%w: it closes the connection", ErrUnreachable)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, net.ErrClosed):
		// Closed is what this side does when it has waited for long enough.
		return also{fmt.Errorf("%w: no answer", ErrUnreachable), context.DeadlineExceeded}
	case errors.As(err, &invalid):
		return expiry(invalid)
	case errors.As(err, &remote) && remote.Op == "remote error":
		return also{fmt.Errorf("%w: it refuses the connection: %w", ErrUnreachable, remote.Err), ErrNotTrusted}
	case errors.As(err, &unknown):
		return also{fmt.Errorf("%w: %w", ErrUnreachable, innermost(err)), ErrNotTrusted}
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, innermost(err))
}

// expiry is about a certificate that is not valid, without the time of the attempt.
func expiry(err x509.CertificateInvalidError) error {
	if err.Reason == x509.Expired && err.Cert != nil {
		return fmt.Errorf("%w: its certificate is valid only from %s to %s", ErrUnreachable,
			err.Cert.NotBefore.UTC().Format(time.RFC3339), err.Cert.NotAfter.UTC().Format(time.RFC3339))
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

// innermost is an error without the addresses and the system call.
func innermost(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		err = op.Err
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		err = call.Err
	}
	return err
}
