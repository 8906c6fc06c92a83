package members

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// idleAfter is how long a connection is kept that nobody uses. Pods come and go.
const idleAfter = 5 * time.Minute

// Dial makes a client that reaches members by network, with TLS if there is a configuration, and logs in as a user if
// there is one and etcd refuses it otherwise.
//
// It uses etcd's gRPC services directly rather than etcd's client: that one balances, repeats and
// logs. A connection is made by the first request that needs it, and never by itself again.
func Dial(config *tls.Config, as User) (Client, error) { return DialDirect(config, as), nil }

// client has a connection to each member.
type client struct {
	tls *tls.Config
	as  User
	now func() time.Time

	mu          sync.Mutex
	token       string // by which members know the user
	isClosed    bool
	connections map[Endpoint]*connection
}

// connection is one to a member. Its client's lock guards what is not a pointer.
type connection struct {
	*grpc.ClientConn
	cause *cause
	// users are the requests under way. A connection that is retired is closed with the last one.
	users     int
	isRetired bool
	usedAt    time.Time
}

var errClosed = fmt.Errorf("%w: the client is closed", ErrUnreachable)

// Close closes the connections. Requests that are under way are cut.
func (c *client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isClosed = true
	var errs []error
	for at, conn := range c.connections {
		delete(c.connections, at)
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}

// acquire is the connection to a member. Those that have not been used for long are closed.
func (c *client) acquire(at Endpoint) (*connection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed {
		return nil, errClosed
	}
	for other, conn := range c.connections {
		if conn.users == 0 && c.now().Sub(conn.usedAt) > idleAfter {
			delete(c.connections, other)
			_ = conn.Close() // nobody waits for it
		}
	}
	conn, ok := c.connections[at]
	if !ok {
		var err error
		if conn, err = c.connect(at); err != nil {
			return nil, err
		}
		c.connections[at] = conn
	}
	conn.users++
	return conn, nil
}

// release ends the use of a connection. One that has not worked is not used again: gRPC would
// answer the next request with the last one's error, or wait on a network that drops packets.
func (c *client) release(at Endpoint, conn *connection, hasWorked bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	conn.users--
	conn.usedAt = c.now()
	if !hasWorked {
		conn.isRetired = true
		if c.connections[at] == conn {
			delete(c.connections, at)
		}
	}
	if conn.isRetired && conn.users == 0 {
		_ = conn.Close() // nobody waits for it
	}
}

// connect prepares a connection. Nothing is sent yet.
func (c *client) connect(at Endpoint) (*connection, error) {
	why := &cause{}
	secure := insecure.NewCredentials()
	if c.tls != nil {
		config := c.tls.Clone()
		config.ServerName = at.ServerName
		secure = credentials.NewTLS(config)
	}
	conn, err := grpc.NewClient("passthrough:///"+at.Address,
		grpc.WithTransportCredentials(&handshake{TransportCredentials: secure, cause: why}),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			made, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			why.set(err)
			return made, err
		}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 500 * time.Millisecond, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: Patience,
		}),
		// Etcd cuts who sends pings without a request or more often than every 5 seconds.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithIdleTimeout(idleAfter),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(),
	)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return &connection{ClientConn: conn, cause: why, usedAt: c.now()}, nil
}

// awaitReady waits until a request can be sent.
func (c *connection) awaitReady(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		switch state := c.GetState(); state {
		case connectivity.Ready:
			return nil
		case connectivity.TransientFailure, connectivity.Shutdown:
			return unreachable(c.cause.get())
		default:
			c.Connect()
			if !c.WaitForStateChange(ctx, state) {
				return unreachable(ctx.Err())
			}
		}
	}
}

// Do sends a request, and once more if it was refused because the client has to log in.
func (c *client) Do(ctx context.Context, at Endpoint, patience time.Duration, request func(context.Context, grpc.ClientConnInterface) error) error {
	return c.logsIn(ctx, at, func(ctx context.Context) error { return c.once(ctx, at, patience, request) })
}

// once sends a request, once. Whatever fails before that is [ErrUnreachable].
func (c *client) once(ctx context.Context, at Endpoint, patience time.Duration, request func(context.Context, grpc.ClientConnInterface) error) error {
	conn, err := c.acquire(at)
	if err != nil {
		return err
	}
	if err := conn.awaitReady(ctx, min(patience, Patience)); err != nil {
		c.release(at, conn, false)
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = translate(ctx, patience, request(ctx, conn))
	c.release(at, conn, !isTransport(err))
	return err
}
