package members

import (
	"context"
	"crypto/tls"
	"time"

	"google.golang.org/grpc"
)

// Direct is a [Client] for requests that it has not, too, such as for a snapshot.
type Direct interface {
	Client
	// Do makes requests to one member, all over the same connection.
	Do(ctx context.Context, at Endpoint, patience time.Duration, requests func(context.Context, grpc.ClientConnInterface) error) error
}

// DialDirect is [Dial].
func DialDirect(config *tls.Config, as User) Direct {
	return &client{tls: config, as: as, now: time.Now, connections: map[Endpoint]*connection{}}
}
