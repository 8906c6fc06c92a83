//go:build apiserver

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"

	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/operators/etcd/members"
)

// each calls do for each member that runs, until it succeeds.
func (n *realNodes) each(timeout time.Duration, do func(ctx context.Context, name string, conn grpc.ClientConnInterface) error) error {
	n.mu.Lock()
	serving := maps.Clone(n.serving)
	maps.DeleteFunc(serving, func(name, _ string) bool { return !n.isServed(name) })
	n.mu.Unlock()
	err := errors.New("no pod runs")
	for _, name := range slices.Sorted(maps.Keys(serving)) {
		if err = at(serving[name], timeout, func(ctx context.Context, conn grpc.ClientConnInterface) error { return do(ctx, name, conn) }); err == nil {
			return nil
		}
	}
	return err
}

// at makes requests to a member, as root where authentication is on.
func at(ip string, timeout time.Duration, do func(context.Context, grpc.ClientConnInterface) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := grpc.NewClient(fmt.Sprintf("passthrough:///%s:%d", ip, members.ClientPort),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(), grpc.WithDisableServiceConfig())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err = do(ctx, conn); !strings.Contains(grpcstatus.Convert(err).Message(), "user name is empty") {
		return err
	}
	got, err := pb.NewAuthClient(conn).Authenticate(ctx, &pb.AuthenticateRequest{Name: rootUser.Name, Password: rootUser.Password})
	if err != nil {
		return err
	}
	return do(metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, got.GetToken()), conn)
}

const keyPrefix = "acknowledged/"

func (n *realNodes) put(*testkit.Run) error {
	n.mu.Lock()
	n.puts++
	key, hasOthers := fmt.Sprintf("%s%06d", keyPrefix, n.puts), len(n.elsewhere) > 0
	n.mu.Unlock()
	if hasOthers {
		if cluster, err := n.putElsewhere(key); err == nil {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.keys, n.by[key] = append(n.keys, key), cluster
			return nil
		}
	}
	return n.each(2*time.Second, func(ctx context.Context, _ string, conn grpc.ClientConnInterface) error {
		done, err := pb.NewKVClient(conn).Put(ctx, &pb.PutRequest{Key: []byte(key), Value: []byte("x")})
		if err != nil {
			return err
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.keys = append(n.keys, key)
		n.by[key] = done.GetHeader().GetClusterId()
		return nil
	})
}

// lost reads with a quorum. What a cluster has acknowledged that was replaced by a restored one is not
// lost.
func (n *realNodes) lost(*testkit.Run) error {
	there, cluster, err := n.read()
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var acknowledged []string
	for _, key := range n.keys {
		switch {
		case n.by[key] == cluster:
			acknowledged = append(acknowledged, key)
		case len(n.backups) == 0:
			return fmt.Errorf("another cluster has acknowledged %s under the same name", key)
		}
	}
	lost := slices.DeleteFunc(acknowledged, func(key string) bool { return there[key] })
	if len(lost) > 0 {
		return fmt.Errorf("%d writes that were acknowledged are lost: %v", len(lost), lost)
	}
	return nil
}

// corrupt changes the name of a key in the file of a member's database, while its etcd runs, and accuses another one: as
// etcd's leader does if it is its own data that is wrong.
func (n *realNodes) corrupt(_ *testkit.Run, member string) error {
	err := n.rename(member)
	for range 50 { // etcd writes to disk a moment after it has acknowledged
		if err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
		err = n.rename(member)
	}
	if err != nil {
		return err
	}
	return n.each(5*time.Second, func(ctx context.Context, name string, conn grpc.ClientConnInterface) error {
		if name == member {
			return errors.New("it is the one that is corrupt")
		}
		c := pb.NewMaintenanceClient(conn)
		status, err := c.Status(ctx, &pb.StatusRequest{})
		if err != nil {
			return err
		}
		_, err = c.Alarm(ctx, &pb.AlarmRequest{
			Action: pb.AlarmRequest_ACTIVATE, MemberID: status.GetHeader().GetMemberId(), Alarm: pb.AlarmType_CORRUPT,
		})
		return err
	})
}

// rename renames the first key that was acknowledged, on the disk of a member with a volume.
func (n *realNodes) rename(member string) error {
	n.mu.Lock()
	key, path := []byte(n.keys[0]), ""
	for uid, claim := range n.claims {
		if claim.Name == member {
			path = filepath.Join(n.folder, "claims", string(uid), "data", "member", "snap", "db")
		}
	}
	n.mu.Unlock()
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	renamed := bytes.ReplaceAll(content, key, bytes.ToUpper(key))
	if bytes.Equal(renamed, content) {
		return fmt.Errorf("%s is not on the disk of %s yet", key, member)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	for at := range content {
		if content[at] != renamed[at] && err == nil {
			_, err = f.WriteAt(renamed[at:at+1], int64(at))
		}
	}
	return errors.Join(err, f.Close())
}

// damage has the loop damage the data of a member.
func (n *realNodes) damage(_ *testkit.Run, member string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.serving[member] == "" {
		return fmt.Errorf("there is no member %s", member)
	}
	n.spoiled[member] = true
	return nil
}

// isSpoiled says, once, that the data of a member is to be damaged.
func (n *realNodes) isSpoiled(member string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	is := n.spoiled[member]
	delete(n.spoiled, member)
	return is
}

// spoil overwrites the pages by which a database is opened.
func (n *realNodes) spoil(p *realPod) {
	err := filepath.WalkDir(p.data, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Name() != "db" {
			return err
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt(make([]byte, 16<<10), 0)
		return errors.Join(err, f.Close())
	})
	if err != nil {
		p.failure = err
	}
}

func (n *realNodes) loseImages(*testkit.Run) error {
	return errors.New("there are programs here, and no images")
}

func (n *realNodes) bloat(*testkit.Run) error {
	return errors.New("a file of that size takes too long to write")
}

// putLarge writes to the same key, so that it is its history that fills the database.
func (n *realNodes) putLarge(size int) error {
	return n.each(5*time.Second, func(ctx context.Context, _ string, conn grpc.ClientConnInterface) error {
		_, err := pb.NewKVClient(conn).Put(ctx, &pb.PutRequest{Key: []byte("large"), Value: make([]byte, size)})
		return err
	})
}

func (n *realNodes) age(*testkit.Run) (err error) {
	// Each takes 32 KiB with its key, so there is room for 512. Of larger values, more is copied than written.
	for range 416 {
		err = errors.Join(err, n.putLarge(31<<10))
	}
	return err
}

func (n *realNodes) fill(*testkit.Run) error {
	if n.quota == "" {
		return errors.New("the database has room for everything")
	}
	for range 1000 {
		err := n.putLarge(256 << 10)
		if grpcstatus.Code(err) == codes.ResourceExhausted {
			return nil
		} else if err != nil {
			return err
		}
	}
	return errors.New("the database is not full")
}

func (n *realNodes) putV2(*testkit.Run) error { return n.askV2(http.MethodPut) }

// dropV2 also writes some keys more than members have without a snapshot of their logs.
func (n *realNodes) dropV2(r *testkit.Run) error {
	err := n.askV2(http.MethodDelete)
	for range 5 {
		err = errors.Join(err, n.put(r))
	}
	return err
}

// askV2 makes a request for a key to the API v2 of the first member that has it.
func (n *realNodes) askV2(method string) error {
	return n.each(5*time.Second, func(ctx context.Context, name string, _ grpc.ClientConnInterface) error {
		n.mu.Lock()
		url := fmt.Sprintf("http://%s:%d/v2/keys/former?value=x", n.serving[name], members.ClientPort)
		n.mu.Unlock()
		req, err := http.NewRequestWithContext(ctx, method, url, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode >= http.StatusBadRequest {
			return fmt.Errorf("%s %s: %s", method, url, resp.Status)
		}
		return nil
	})
}

func (n *realNodes) byHand(*testkit.Run) (members.Client, members.Endpoint, error) {
	c, err := members.Dial(nil, rootUser)
	if err != nil {
		return nil, members.Endpoint{}, err
	}
	n.mu.Lock()
	all := slices.Collect(maps.Values(n.serving))
	for _, m := range n.elsewhere {
		all = append(all, m.ip)
	}
	n.mu.Unlock()
	for _, ip := range all {
		here := members.Endpoint{Address: fmt.Sprintf("%s:%d", ip, members.ClientPort)}
		if s, err := c.Status(context.Background(), here); err == nil && s.ID == s.Leader {
			return c, here, nil
		}
	}
	return c, members.Endpoint{}, errors.New("nobody leads")
}
