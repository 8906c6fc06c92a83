package members

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"example.com/fairlead/internal/kit/outside"
)

// fake is a member whose answers a test gives.
type fake struct {
	pb.UnimplementedMaintenanceServer
	pb.UnimplementedClusterServer
	at      Endpoint
	server  *grpc.Server
	accepts atomic.Int32
	status  func(context.Context) (*pb.StatusResponse, error)
	promote error
}

func (f *fake) Status(ctx context.Context, _ *pb.StatusRequest) (*pb.StatusResponse, error) {
	if f.status == nil {
		return &pb.StatusResponse{}, nil
	}
	return f.status(ctx)
}

func (f *fake) MemberPromote(context.Context, *pb.MemberPromoteRequest) (*pb.MemberPromoteResponse, error) {
	return &pb.MemberPromoteResponse{}, f.promote
}

// counting counts the connections.
type counting struct {
	net.Listener
	accepts *atomic.Int32
}

func (c counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.accepts.Add(1)
	}
	return conn, err
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (f *fake) serve(t *testing.T, address string, options ...grpc.ServerOption) {
	t.Helper()
	l := listen(t, address)
	f.at.Address = l.Addr().String()
	f.server = grpc.NewServer(options...)
	pb.RegisterMaintenanceServer(f.server, f)
	pb.RegisterClusterServer(f.server, f)
	go func() { _ = f.server.Serve(counting{l, &f.accepts}) }()
	t.Cleanup(f.server.Stop)
}

func dialed(t *testing.T, config *tls.Config) *client {
	t.Helper()
	c, err := Dial(config, User{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*client)
}

func TestErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		answer error
		want   error
		text   string
	}{
		"member not found":    {answer: rpctypes.ErrGRPCMemberNotFound, want: ErrMemberNotFound},
		"ID exists":           {answer: rpctypes.ErrGRPCMemberExist, want: ErrMemberExists},
		"peer URL exists":     {answer: rpctypes.ErrGRPCPeerURLExist, want: ErrMemberExists},
		"learner is behind":   {answer: rpctypes.ErrGRPCLearnerNotReady, want: ErrLearnerNotReady},
		"no learner":          {answer: rpctypes.ErrGRPCMemberNotLearner, want: ErrNotLearner},
		"many learners":       {answer: rpctypes.ErrGRPCTooManyLearners, want: ErrTooManyLearners},
		"unhealthy":           {answer: rpctypes.ErrGRPCUnhealthy, want: ErrUnhealthy, text: "unhealthy cluster"},
		"members not started": {answer: rpctypes.ErrGRPCMemberNotEnoughStarted, want: ErrUnhealthy, text: "not enough started members"},
		"the same without a code, as etcd 3.4 to 3.7 send it": {answer: errors.New("etcdserver: re-configuration failed due to not enough started members"), want: ErrUnhealthy},
		"no leader":            {answer: rpctypes.ErrGRPCNoLeader, want: ErrNoLeader},
		"not leader":           {answer: rpctypes.ErrGRPCNotLeader, want: ErrNotLeader},
		"full":                 {answer: rpctypes.ErrGRPCNoSpace, want: ErrNoSpace},
		"compacted":            {answer: rpctypes.ErrGRPCCompacted, want: ErrCompacted},
		"downgrade under way":  {answer: rpctypes.ErrGRPCDowngradeInProcess, want: ErrDowngradeRefused, text: "downgrade job in progress"},
		"downgrade by two":     {answer: rpctypes.ErrGRPCInvalidDowngradeTargetVersion, want: ErrDowngradeRefused, text: "invalid downgrade target version"},
		"no downgrade":         {answer: rpctypes.ErrGRPCNoInflightDowngrade, want: ErrNoDowngrade},
		"not capable":          {answer: rpctypes.ErrGRPCNotCapable, want: ErrUnsupported},
		"no such request":      {answer: status.Error(codes.Unimplemented, "unknown method MemberPromote"), want: ErrUnsupported},
		"only for voters":      {answer: rpctypes.ErrGRPCNotSupportedForLearner, want: ErrIsLearner},
		"no user":              {answer: rpctypes.ErrGRPCUserEmpty, want: ErrAuth},
		"not root":             {answer: rpctypes.ErrGRPCPermissionDenied, want: ErrAuth},
		"an old token":         {answer: rpctypes.ErrGRPCInvalidAuthToken, want: ErrAuth},
		"another password":     {answer: rpctypes.ErrGRPCAuthFailed, want: ErrPassword},
		"leader changed":       {answer: rpctypes.ErrGRPCLeaderChanged, text: "leader changed"},
		"etcd's timeout":       {answer: rpctypes.ErrGRPCTimeout, text: "request timed out"},
		"what nobody expected": {answer: errors.New("surprise"), text: "surprise"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{promote: tc.answer}
			f.serve(t, "127.0.0.1:0")
			err := dialed(t, nil).Send(t.Context(), Request{What: Promote, At: f.at, ID: 1})
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("the error is %v", err)
			}
			for _, one := range meanings {
				if !errors.Is(one, tc.want) && !errors.Is(tc.want, one) && errors.Is(err, one) || errors.Is(err, ErrUnreachable) {
					t.Errorf("the error is also %v", one)
				}
			}
		})
	}
}

func TestStatus(t *testing.T) {
	f := &fake{status: func(context.Context) (*pb.StatusResponse, error) {
		return &pb.StatusResponse{
			Header:  &pb.ResponseHeader{ClusterId: 1, MemberId: 2, Revision: 3},
			Version: "3.6.16", Leader: 4, IsLearner: true, RaftTerm: 5, RaftIndex: 6, RaftAppliedIndex: 7,
			DbSize: 8, DbSizeInUse: 9, DbSizeQuota: 10, StorageVersion: "3.6.0",
			DowngradeInfo: &pb.DowngradeInfo{Enabled: true, TargetVersion: "3.5.0"},
			Errors: []string{
				"etcdserver: no leader", "memberID:18446744073709551615 alarm:NOSPACE ",
				(&pb.AlarmMember{MemberID: 2, Alarm: pb.AlarmType_CORRUPT}).String(),
				"alarm:NOSPACE ", (&pb.AlarmMember{Alarm: pb.AlarmType_CORRUPT}).String(), "memberID:2 alarm:7", "etcdserver: on fire",
			},
		}, nil
	}}
	f.serve(t, "127.0.0.1:0")
	got, err := dialed(t, nil).Status(t.Context(), f.at)
	if err != nil {
		t.Fatal(err)
	}
	want := Status{
		ClusterID: 1, ID: 2, Version: "3.6.16", Leader: 4, IsLearner: true, RaftTerm: 5, RaftIndex: 6, Applied: 7,
		Revision: 3, DBSize: 8, DBSizeInUse: 9, Quota: 10, StorageVersion: "3.6", Downgrading: "3.5",
		Alarms: []Alarm{{Member: 18446744073709551615, Type: NoSpace}, {Member: 2, Type: Corrupt}, {Type: NoSpace}, {Type: Corrupt}},
		Errors: []string{"memberID:2 alarm:7", "etcdserver: on fire"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Status() (-want +got):\n%s", diff)
	}
}

// TestConnections is about when connections are made and closed.
func TestConnections(t *testing.T) {
	f := &fake{}
	f.serve(t, "127.0.0.1:0")
	c := dialed(t, nil)
	now := time.Now()
	c.now = func() time.Time { return now }
	ask := func() error {
		_, err := c.Status(t.Context(), f.at)
		return err
	}
	for range 3 {
		if err := ask(); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.accepts.Load(); n != 1 {
		t.Errorf("three requests made %d connections", n)
	}

	// A member that restarts is reached again at once.
	f.server.Stop()
	if err := ask(); err == nil { // it may be on its way when the end of the connection arrives
		t.Error("a member that is stopped answers")
	}
	for range 3 {
		before := time.Now()
		err := ask()
		if !errors.Is(err, ErrUnreachable) || err.Error() != "cannot be reached: connection refused" {
			t.Errorf("the error of a member that is stopped is %v", err)
		}
		if took := time.Since(before); took > time.Second {
			t.Errorf("a refused connection took %s", took)
		}
	}
	f.serve(t, f.at.Address)
	if err := ask(); err != nil {
		t.Errorf("the member runs again, and the error is %v", err)
	}

	// Nobody asks this one any more.
	now = now.Add(idleAfter + time.Second)
	other := &fake{}
	other.serve(t, "127.0.0.1:0")
	if _, err := c.Status(t.Context(), other.at); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.connections[f.at]; ok || len(c.connections) != 1 {
		t.Errorf("after %s without a request, there are still %d connections", idleAfter, len(c.connections))
	}

	_ = c.Close()
	if err := ask(); !errors.Is(err, ErrUnreachable) {
		t.Errorf("the error after Close is %v", err)
	}
}

// TestPatience has a member that accepts connections and does not answer.
func TestPatience(t *testing.T) {
	silent := listen(t, "127.0.0.1:0")
	t.Cleanup(func() { _ = silent.Close() })
	_, err := dialed(t, nil).Status(t.Context(), Endpoint{Address: silent.Addr().String()})
	if !errors.Is(err, ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) || err.Error() != "cannot be reached: no answer" {
		t.Errorf("the error of a member that says nothing is %v", err)
	}

	f := &fake{status: func(ctx context.Context) (*pb.StatusResponse, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	f.serve(t, "127.0.0.1:0")
	c := dialed(t, nil)
	before := time.Now()
	_, err = c.Status(t.Context(), f.at)
	if errors.Is(err, ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error of a request without an answer is %v", err)
	}
	if took := time.Since(before); took > Patience+2*time.Second {
		t.Errorf("it took %s", took)
	}
	if len(c.connections) != 0 {
		t.Error("the connection on which nothing came is used again")
	}
}

func TestCertificates(t *testing.T) {
	right, other := certificate(t, "a.example", time.Now().Add(time.Hour)), certificate(t, "a.example", time.Now().Add(time.Hour))
	expired := certificate(t, "a.example", time.Now().Add(-time.Minute))
	trusting := func(c tls.Certificate) *x509.CertPool {
		pool := x509.NewCertPool()
		pool.AddCert(c.Leaf)
		return pool
	}
	for name, tc := range map[string]struct {
		server tls.Certificate
		name   string
		config *tls.Config
		want   string
		// isDistrust says that one of the two does not trust the other.
		isDistrust bool
	}{
		"all is well":                  {server: right, name: "a.example", config: &tls.Config{RootCAs: trusting(right), Certificates: []tls.Certificate{right}}},
		"another name":                 {server: right, name: "b.example", config: &tls.Config{RootCAs: trusting(right), Certificates: []tls.Certificate{right}}, want: "a.example, not b.example"},
		"another authority":            {server: right, name: "a.example", config: &tls.Config{RootCAs: trusting(other)}, want: "unknown authority", isDistrust: true},
		"expired":                      {server: expired, name: "a.example", config: &tls.Config{RootCAs: trusting(expired)}, want: "its certificate is valid only from"},
		"the client has none":          {server: right, name: "a.example", config: &tls.Config{RootCAs: trusting(right)}, want: "it refuses the connection: tls: certificate required", isDistrust: true},
		"the member wants TLS":         {server: right, name: "a.example", want: "it closes the connection"},
		"the client's is of no worth":  {server: right, name: "a.example", config: &tls.Config{RootCAs: trusting(right), Certificates: []tls.Certificate{other}}, want: "it refuses the connection: tls: ", isDistrust: true},
		"the client's is out of date ": {server: right, name: "a.example", config: &tls.Config{RootCAs: trusting(right), Certificates: []tls.Certificate{expired}}, want: "it refuses the connection: tls: ", isDistrust: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{at: Endpoint{ServerName: tc.name}}
			f.serve(t, "127.0.0.1:0", grpc.Creds(credentials.NewTLS(&tls.Config{
				Certificates: []tls.Certificate{tc.server}, ClientCAs: trusting(right), ClientAuth: tls.RequireAndVerifyClientCert,
			})))
			var texts []string
			for range 2 {
				_, err := dialed(t, tc.config).Status(t.Context(), f.at)
				if (err == nil) != (tc.want == "") || err != nil && (!errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), tc.want)) {
					t.Errorf("the error is %v, want %q", err, tc.want)
				}
				if errors.Is(err, ErrNotTrusted) != tc.isDistrust {
					t.Errorf("that %v is of distrust is not %t", err, tc.isDistrust)
				}
				if err != nil {
					texts = append(texts, err.Error())
				}
			}
			if len(texts) == 2 && texts[0] != texts[1] {
				t.Errorf("the text differs from time to time: %q", texts)
			}
		})
	}
}

// certificate is one that signed itself, for clients and servers.
func certificate(t *testing.T, name string, until time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
		IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// TestWay has a test get in between.
func TestWay(t *testing.T) {
	f := &fake{}
	f.serve(t, "127.0.0.1:0")
	refused := errors.New("refused")
	var calls []outside.Call
	ctx := outside.With(t.Context(), func(_ context.Context, call outside.Call, _ func() error) error {
		calls = append(calls, call)
		return refused
	})
	if err := dialed(t, nil).Send(ctx, Request{What: Promote, At: f.at, ID: 1}); !errors.Is(err, refused) {
		t.Errorf("the error is %v", err)
	}
	want := []outside.Call{{Verb: "promote", What: "members", Name: f.at.Address}}
	if diff := cmp.Diff(want, calls); diff != "" || f.accepts.Load() != 0 {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}
