//go:build apiserver

package members_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"example.com/fairlead/internal/kit/outside"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/members/etcdtest"
)

// BenchmarkGreatDatabase times what is done to a full database, with 1 GiB of live keys: how fast it is written, which
// says how soon a database can be full (fillsAtMost of package cluster), and how long a compaction and a
// defragmentation take (CompactPatience, DefragmentPatience). BenchmarkRealFull of package cluster has greater ones.
// It runs for many minutes, so no list of tests has it:
//
//	go test -tags apiserver -run - -bench GreatDatabase/1 -benchtime 1x -timeout 1h ./operators/etcd/members
func BenchmarkGreatDatabase(b *testing.B) {
	for _, n := range []int{1, 3} {
		for _, size := range []int{1 << 20, 4 << 10, 1 << 10, 256} {
			b.Run(fmt.Sprintf("%d members, values of %d B", n, size), func(b *testing.B) {
				for b.Loop() {
					greatDatabase(b, n, size)
				}
			})
		}
	}
}

func greatDatabase(b *testing.B, n, size int) {
	ctx := b.Context()
	c, err := members.Dial(nil, members.User{})
	if err != nil {
		b.Fatal(err)
	}
	all := etcdtest.NewCluster(b, n, version)
	for _, m := range all {
		m.Flags = []string{fmt.Sprintf("--quota-backend-bytes=%d", int64(8)<<30), "--log-level=error"}
		m.Start(b)
	}
	for _, m := range all {
		etcdtest.Eventually(b, time.Minute, "serves", func() error { return c.Serves(ctx, at(m)) })
	}
	took := func(what string, do func() error) (seconds float64) {
		began := time.Now()
		if err := do(); err != nil {
			b.Errorf("%s: %v", what, err)
		}
		seconds = time.Since(began).Seconds()
		b.ReportMetric(seconds, what+"-s")
		return seconds
	}
	conn, err := grpc.NewClient(all[0].Client, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	wrote := took("write", func() error { return write(ctx, conn, size) })
	s, err := c.Status(ctx, at(all[0]))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(s.DBSize)/(1<<20)/wrote, "MiB/s")
	// As the operator does it, but for the patience.
	took("compact", func() error {
		_, err := pb.NewKVClient(conn).Compact(ctx, &pb.CompactionRequest{Revision: s.Revision, Physical: true})
		return err
	})
	took("defragment", func() error {
		_, err := pb.NewMaintenanceClient(conn).Defragment(ctx, &pb.DefragmentRequest{})
		return err
	})
	for _, m := range all {
		m.Kill(b)
	}
	_ = c.Close()
	_ = conn.Close()
}

// write writes 1 GiB of values of a size, each with a key of its own, as fast as it goes.
func write(ctx context.Context, conn grpc.ClientConnInterface, size int) error {
	const live, most = 1 << 30, 1 << 20
	value, each := bytes.Repeat([]byte("x"), size), max(1, min(128, most/size))
	var next atomic.Int64
	errs := make([]error, 16)
	outside.Each(ctx, len(errs), func(ctx context.Context, i int) {
		for errs[i] == nil {
			first := int(next.Add(int64(each))) - each
			if first >= live/size {
				return
			}
			txn := &pb.TxnRequest{}
			for k := range each {
				put := &pb.PutRequest{Key: fmt.Appendf(nil, "%08d", first+k), Value: value}
				txn.Success = append(txn.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: put}})
			}
			_, errs[i] = pb.NewKVClient(conn).Txn(ctx, txn)
		}
	})
	return errors.Join(errs...)
}
