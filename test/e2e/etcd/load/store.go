package load

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Store is a connection to one member. Tests give another than an etcd.
type Store interface {
	// Do carries out the operation and fills in Outcome, Revision and Seen. It returns an error
	// if the outcome is not known; one that wraps errRefused if it was certainly not carried out.
	Do(ctx context.Context, op *Op) error
	Close() error
}

var errRefused = errors.New("refused")

// member is a connection to one member of an etcd.
type member struct{ client *clientv3.Client }

// dial makes the connection to a member. As etcd's client waits for a member that is down until
// the deadline, whether somebody listens is tried first: then the outcome is known.
func dial(ctx context.Context, endpoint string, config *tls.Config, timeout time.Duration) (Store, error) {
	_, address, ok := strings.Cut(endpoint, "://")
	if !ok {
		address = endpoint
	}
	conn, err := (&net.Dialer{Timeout: timeout / 2}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	_ = conn.Close()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{endpoint},
		TLS:       config,
		Logger:    zap.NewNop(),
		// The client repeats a write whose deadline passed on the server, which may
		// then happen twice. One attempt is one operation.
		MaxUnaryRetries:      1,
		DialTimeout:          timeout,
		DialKeepAliveTime:    timeout,
		DialKeepAliveTimeout: timeout,
	})
	if err != nil {
		return nil, err
	}
	return &member{client}, nil
}

func (m *member) Close() error { return m.client.Close() }

func (m *member) Do(ctx context.Context, op *Op) error {
	if err := m.do(ctx, op); err != nil {
		if notSent(err) {
			return errors.Join(errRefused, err)
		}
		return err
	}
	return nil
}

func (m *member) do(ctx context.Context, op *Op) error {
	op.Outcome = Done
	switch op.Kind {
	case Write:
		resp, err := m.client.Put(ctx, op.Key, op.Value, clientv3.WithPrevKV())
		if err != nil {
			return err
		}
		op.Revision, op.Seen = resp.Header.Revision, version(resp.PrevKv)
	case Delete:
		resp, err := m.client.Delete(ctx, op.Key, clientv3.WithPrevKV())
		if err != nil {
			return err
		}
		op.Revision, op.Seen = resp.Header.Revision, version(resp.PrevKvs...)
	case Swap:
		resp, err := m.client.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(op.Key), "=", op.Expect)).
			Then(clientv3.OpPut(op.Key, op.Value, clientv3.WithPrevKV())).
			Else(clientv3.OpGet(op.Key)).
			Commit()
		if err != nil {
			return err
		}
		op.Revision = resp.Header.Revision
		if resp.Succeeded {
			op.Seen = version(resp.Responses[0].GetResponsePut().PrevKv)
		} else {
			op.Outcome, op.Seen = Differs, version(resp.Responses[0].GetResponseRange().Kvs...)
		}
	default:
		resp, err := m.client.Get(ctx, op.Key)
		if err != nil {
			return err
		}
		op.Revision, op.Seen = resp.Header.Revision, version(resp.Kvs...)
	}
	return nil
}

// version is the first of the values; no value if there is none.
func version(kvs ...*mvccpb.KeyValue) Version {
	if len(kvs) == 0 || kvs[0] == nil {
		return Version{}
	}
	return Version{string(kvs[0].Value), kvs[0].ModRevision}
}

// notSent says whether a member turned the request away before it proposed it. In doubt it did
// not.
func notSent(err error) bool { return errors.Is(err, rpctypes.ErrTooManyRequests) }
