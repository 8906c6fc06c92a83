package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.etcd.io/etcd/tests/v3/robustness/client"
	"go.etcd.io/etcd/tests/v3/robustness/identity"
	"go.etcd.io/etcd/tests/v3/robustness/report"
	"go.etcd.io/etcd/tests/v3/robustness/traffic"
	"go.uber.org/zap"
	"golang.org/x/time/rate"
)

// profile is how much is asked of etcd: of more, the histories would be longer than two processors can judge.
var profile = traffic.Profile{
	KeyValue: &traffic.KeyValue{
		MaximalQPS:                     200,
		BurstableQPS:                   200,
		MemberClientCount:              6,
		ClusterClientCount:             2,
		MaxNonUniqueRequestConcurrency: 1, // of writes whose outcome cannot be seen in a log, such as deletions
	},
	Watch:      &traffic.Watch{MemberClientCount: 3, ClusterClientCount: 1, RevisionOffsetRange: traffic.Range{Min: -100, Max: 100}},
	Compaction: &traffic.Compaction{Period: 10 * time.Second},
}

// catchUp is how long watches may take to deliver what was written.
const catchUp = time.Minute

// load are clients of a new etcd: they read and write ten keys and watch them, compact, and record all of it. One more for each
// endpoint watches everything, from the first revision to the last.
type load struct {
	requests, watches *client.ClientSet
	running           sync.WaitGroup
	finish            chan struct{}
	last              chan int64
	watched           chan error
	cancel            context.CancelFunc
}

func startLoad(ctx context.Context, lg *zap.Logger, endpoints []string) (*load, error) {
	ids, base := identity.NewIDProvider(), time.Now()
	l := &load{
		requests: client.NewSet(ids, base), watches: client.NewSet(ids, base),
		finish: make(chan struct{}), last: make(chan int64, 1), watched: make(chan error, 1),
	}
	if err := traffic.CheckEmptyDatabaseAtStart(ctx, lg, endpoints, l.requests); err != nil {
		return nil, err
	}
	ctx, l.cancel = context.WithCancel(ctx)
	go func() {
		l.watched <- client.CollectClusterWatchEvents(ctx, client.CollectClusterWatchEventsParam{
			Lg: lg, Endpoints: endpoints, MaxRevisionChan: l.last, ClientSet: l.watches,
		})
	}()
	kind, keys := traffic.EtcdPutDeleteLease, traffic.NewKeyStore(10, "key")
	limiter := rate.NewLimiter(rate.Limit(profile.KeyValue.MaximalQPS), profile.KeyValue.BurstableQPS)
	return l, errors.Join(
		traffic.SimulateKeyValueTraffic(ctx, &l.running, profile.KeyValue, endpoints, l.requests, kind, traffic.RunTrafficLoopParam{
			QPSLimiter: limiter, IDs: ids, LeaseIDStorage: identity.NewLeaseIDStorage(), KeyStore: keys, Finish: l.finish,
			NonUniqueRequestConcurrencyLimiter: traffic.NewConcurrencyLimiter(profile.KeyValue.MaxNonUniqueRequestConcurrency),
		}),
		traffic.SimulateWatchTraffic(ctx, &l.running, profile.Watch, endpoints, l.requests, kind, traffic.RunWatchLoopParam{
			Config: *profile.Watch, QPSLimiter: limiter, KeyStore: keys, Finish: l.finish, Logger: lg,
		}),
		traffic.SimulateCompactionTraffic(ctx, &l.running, profile.Compaction, endpoints, l.requests, kind, traffic.RunCompactLoopParam{
			Period: profile.Compaction.Period, Finish: l.finish,
		}),
	)
}

// stop ends it, and returns what was recorded. The validators want the last write to be acknowledged.
func (l *load) stop(ctx context.Context, endpoints []string) ([]report.ClientReport, error) {
	defer l.cancel()
	close(l.finish)
	l.running.Wait()
	if err := l.lastWrite(ctx, endpoints); err != nil {
		return nil, err
	}
	requests := l.requests.Reports()
	l.last <- report.OperationsMaxRevision(requests)
	select {
	case err := <-l.watched:
		return slices.Concat(requests, l.watches.Reports()), err
	case <-time.After(catchUp):
		l.cancel()
		return slices.Concat(requests, l.watches.Reports()), fmt.Errorf("after %s a watch has not delivered all revisions", catchUp)
	}
}

func (l *load) lastWrite(ctx context.Context, endpoints []string) error {
	c, err := l.requests.NewClient(endpoints)
	if err != nil {
		return err
	}
	for try := range 10 {
		within, cancel := context.WithTimeout(ctx, 5*time.Second)
		_, err = c.Put(within, "last", strconv.Itoa(try))
		cancel()
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("the last write: %w", err)
}
