package members

import (
	"context"
	"errors"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// Root is etcd's user that may do everything, and the role of those who may.
const Root = "root"

// User is who a client is with authentication on; the zero value is nobody but, with TLS, the common name of the
// certificate.
type User struct{ Name, Password string }

// The keys of a Secret with a user: those of the type kubernetes.io/basic-auth, and root's of Bitnami's chart.
const (
	userKey, passwordKey = "username", "password"
	rootPasswordKey      = "etcd-root-password"
)

// UserOf is the user in a Secret: root, unless that says another one.
func UserOf(data map[string][]byte) (User, error) {
	as := User{Name: Root, Password: string(data[passwordKey])}
	if name := string(data[userKey]); name != "" {
		as.Name = name
	}
	if as.Password == "" && as.Name == Root {
		as.Password = string(data[rootPasswordKey])
	}
	if as.Password == "" {
		return User{}, errors.New("it has no key " + passwordKey + " with a password")
	}
	return as, nil
}

// logsIn makes a request that etcd refuses once more after logging in. What is refused was not carried out. Etcd
// prefers a token to a certificate, so a client has none until it is refused without one. A token is one of the cluster:
// all members know it that run and apply its entry of the log. They forget tokens that are not used for some minutes, and
// when they are started.
func (c *client) logsIn(ctx context.Context, at Endpoint, request func(context.Context) error) error {
	before := c.loggedIn()
	err := request(with(ctx, before))
	if c.as == (User{}) || !errors.Is(err, ErrAuth) {
		return err
	}
	if c.loggedIn() == before { // or else another request has logged in meanwhile
		err := c.LogIn(ctx, at)
		if errors.Is(err, ErrIsLearner) { // which gives no token: any voter's is good
			for _, other := range c.others(at) {
				if err = c.LogIn(ctx, other); err == nil {
					break
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return request(with(ctx, c.loggedIn()))
}

// with has a request tell who makes it.
func with(ctx context.Context, token string) context.Context {
	if token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, token)
}

func (c *client) loggedIn() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token
}

// others are the members that there is a connection to, but for one.
func (c *client) others(than Endpoint) (all []Endpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at := range c.connections {
		if at != than {
			all = append(all, at)
		}
	}
	return all
}

// LogIn has a member give a token, and changes nothing but what members have in memory. It needs a quorum.
func (c *client) LogIn(ctx context.Context, at Endpoint) error {
	var got *pb.AuthenticateResponse
	err := c.once(ctx, at, Patience, func(ctx context.Context, conn grpc.ClientConnInterface) (err error) {
		got, err = pb.NewAuthClient(conn).Authenticate(ctx, &pb.AuthenticateRequest{Name: c.as.Name, Password: c.as.Password})
		return err
	})
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.token = got.GetToken()
	}
	return err
}

// enableAuth turns authentication on. Each request may be repeated: an operator that died in between has done no harm,
// because nothing is refused before the last one, and root is there by then.
func (c *client) enableAuth(ctx context.Context, at Endpoint) error {
	err := c.auth(ctx, "add", "user", at, func(ctx context.Context, users pb.AuthClient) error {
		_, err := users.UserAdd(ctx, &pb.AuthUserAddRequest{Name: c.as.Name, Password: c.as.Password})
		return err
	})
	if errors.Is(err, ErrUserExists) {
		err = c.setPassword(ctx, at)
	}
	if err != nil {
		return err
	}
	if err := c.auth(ctx, "grant", "role", at, func(ctx context.Context, users pb.AuthClient) error {
		_, err := users.UserGrantRole(ctx, &pb.AuthUserGrantRoleRequest{User: c.as.Name, Role: Root})
		return err
	}); err != nil {
		return err
	}
	return c.auth(ctx, "enable", "authentication", at, func(ctx context.Context, users pb.AuthClient) error {
		_, err := users.AuthEnable(ctx, &pb.AuthEnableRequest{})
		return err
	})
}

// setPassword gives the client's user its password.
func (c *client) setPassword(ctx context.Context, at Endpoint) error {
	return c.auth(ctx, "set", "password", at, func(ctx context.Context, users pb.AuthClient) error {
		_, err := users.UserChangePassword(ctx, &pb.AuthUserChangePasswordRequest{Name: c.as.Name, Password: c.as.Password})
		return err
	})
}

func (c *client) auth(ctx context.Context, verb, what string, at Endpoint, request func(context.Context, pb.AuthClient) error) error {
	return c.call(ctx, verb, what, at, ChangePatience, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		return request(ctx, pb.NewAuthClient(conn))
	})
}
