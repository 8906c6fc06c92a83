package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Config is what a load is made of. All but Endpoints has a default.
type Config struct {
	// Endpoints are the addresses of the members that there are now. A client asks for them when
	// it needs another one.
	Endpoints func() []string
	// TLS is the configuration for new connections; nil or a nil result for none. It is a
	// function so that certificates can be rotated under the load.
	TLS func() *tls.Config
	// Rate is how many operations a second there are at most, in all; 200.
	Rate int
	// Timeout is how long an operation may take; 2 s.
	Timeout time.Duration
	// Keys is how many keys there are at a time; 20.
	Keys int
	// Generation is how long the keys are used before new ones are; 30 s.
	Generation time.Duration
	// Prefix is what the keys begin with. By default it is one that no other load has.
	Prefix string
	// Writers, Readers, Swappers and Deleters are how many clients of each sort there are. By
	// default 5, 4, 3 and 1; if one of them or Probes is set, the others are 0 unless set too.
	Writers, Readers, Swappers, Deleters int
	// Probes are more writers, which together begin a write every 100 ms, beyond Rate, also while
	// all others wait for an answer. Without them a gap is only known to within Timeout. By
	// default 20, so that they suffice for the default Timeout; 0 as for the others.
	Probes int
	// Seed chooses keys and first endpoints.
	Seed uint64
	// FinalPatience is how long a final read of a key is tried; 60 s.
	FinalPatience time.Duration
	// Connect is how a member is connected to; by default, as an etcd.
	Connect func(ctx context.Context, endpoint string) (Store, error)
}

func (c Config) withDefaults(now time.Time) (Config, error) {
	if c.Endpoints == nil {
		return c, errors.New("load: Config.Endpoints is not set")
	}
	if c.clients() == 0 {
		c.Writers, c.Readers, c.Swappers, c.Deleters, c.Probes = 5, 4, 3, 1, 20
	}
	defaultTo(&c.Rate, 200)
	defaultTo(&c.Timeout, 2*time.Second)
	defaultTo(&c.Keys, 20)
	defaultTo(&c.Generation, 30*time.Second)
	defaultTo(&c.FinalPatience, time.Minute)
	defaultTo(&c.Prefix, fmt.Sprintf("load-%d/", now.UnixNano()))
	if c.Connect == nil {
		c.Connect = func(ctx context.Context, endpoint string) (Store, error) {
			var config *tls.Config
			if c.TLS != nil {
				config = c.TLS()
			}
			return dial(ctx, endpoint, config, c.Timeout)
		}
	}
	return c, nil
}

// clients is how many clients there are in all.
func (c Config) clients() int { return c.Writers + c.Readers + c.Swappers + c.Deleters + c.Probes }

func defaultTo[T comparable](field *T, value T) {
	if *field == *new(T) {
		*field = value
	}
}

// Running is a load that goes on.
type Running struct {
	config  Config
	start   time.Time
	stop    context.CancelFunc
	clients sync.WaitGroup
	ticks   *time.Ticker
	probes  *time.Ticker
	values  atomic.Int64

	mu  sync.Mutex
	ops []Op
}

// Start begins a load. It goes on until Stop, or until the context ends.
func Start(ctx context.Context, config Config) (*Running, error) {
	start := time.Now()
	config, err := config.withDefaults(start)
	if err != nil {
		return nil, err
	}
	// Operations under way when the load ends come to their own end, so
	// that no more outcomes are unknown than need be.
	requests := context.WithoutCancel(ctx)
	ctx, stop := context.WithCancel(ctx)
	l := &Running{
		config: config, start: start, stop: stop,
		ticks: time.NewTicker(time.Second / time.Duration(config.Rate)), probes: time.NewTicker(100 * time.Millisecond),
	}
	n := 0
	for _, sort := range []struct {
		count int
		turns *time.Ticker
		work  func(context.Context, *client)
	}{
		{config.Writers, l.ticks, write}, {config.Readers, l.ticks, read}, {config.Swappers, l.ticks, swap},
		{config.Deleters, l.ticks, remove}, {config.Probes, l.probes, write},
	} {
		for range sort.count {
			c := l.newClient(n)
			n++
			l.clients.Go(func() {
				defer c.disconnect()
				for turn(ctx, sort.turns) {
					sort.work(requests, c)
				}
			})
		}
	}
	return l, nil
}

// Snapshot is the history up to now, of operations that have ended.
func (l *Running) Snapshot() History {
	l.mu.Lock()
	defer l.mu.Unlock()
	return History{l.start, slices.Clone(l.ops)}
}

// Stop ends the load, waits until no operation can be under way, and reads every key that was
// used. The history is whole also if a final read fails, which is an error.
func (l *Running) Stop(ctx context.Context) (History, error) {
	l.stop()
	l.clients.Wait()
	l.ticks.Stop()
	l.probes.Stop()
	if err := sleep(ctx, l.config.Timeout); err != nil {
		return l.Snapshot(), err
	}
	used := map[string]bool{}
	var keys []string
	for _, op := range l.Snapshot().Ops {
		if !used[op.Key] {
			used[op.Key] = true
			keys = append(keys, op.Key)
		}
	}
	var (
		next    atomic.Int64
		readers sync.WaitGroup
		errs    = make([]error, 8)
	)
	for i := range errs {
		c := l.newClient(l.config.clients() + i)
		readers.Go(func() {
			defer c.disconnect()
			for {
				n := int(next.Add(1)) - 1
				if n >= len(keys) || errs[i] != nil {
					return
				}
				errs[i] = c.finalRead(ctx, keys[n])
			}
		})
	}
	readers.Wait()
	return l.Snapshot(), errors.Join(errs...)
}

func (l *Running) record(op Op) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ops = append(l.ops, op)
}

// client does one operation after the other, over a connection to one member.
type client struct {
	*Running
	id       int
	rand     *rand.Rand
	endpoint int
	store    Store
	// read is what a swap is to follow.
	read *Op
}

func (l *Running) newClient(id int) *client {
	r := rand.New(rand.NewPCG(l.config.Seed, uint64(id)))
	return &client{Running: l, id: id, rand: r, endpoint: r.IntN(1 << 16)}
}

// turn waits until a client may do an operation; false when the load ends.
func turn(ctx context.Context, turns *time.Ticker) bool {
	select {
	case <-ctx.Done():
		return false
	case <-turns.C:
		return ctx.Err() == nil
	}
}

// key is one of the keys of now.
func (c *client) key() string {
	generation := int(time.Since(c.start) / c.config.Generation)
	return fmt.Sprintf("%s%d/%d", c.config.Prefix, generation, c.rand.IntN(c.config.Keys))
}

// value is one that nobody else writes.
func (c *client) value() string { return fmt.Sprint(c.values.Add(1)) }

func write(ctx context.Context, c *client) {
	c.do(ctx, Op{Kind: Write, Key: c.key(), Value: c.value()})
}

func read(ctx context.Context, c *client) { c.do(ctx, Op{Kind: Read, Key: c.key()}) }

func remove(ctx context.Context, c *client) { c.do(ctx, Op{Kind: Delete, Key: c.key()}) }

// swap reads a key, swaps what it saw there, and if that was done, half the time what it wrote.
func swap(ctx context.Context, c *client) {
	op := Op{Kind: Read, Key: c.key()}
	if c.read != nil {
		op = Op{Kind: Swap, Key: c.read.Key, Value: c.value(), Expect: c.read.after().Revision}
	}
	op = c.do(ctx, op)
	c.read = nil
	if op.Outcome == Done && (op.Kind == Read || c.rand.IntN(2) == 0) {
		c.read = &op
	}
}

// do carries out an operation and records it. After a failure the client goes to the next member.
func (c *client) do(ctx context.Context, op Op) Op {
	op.Client = c.id
	op.Call = time.Since(c.start)
	if err := c.connect(ctx); err != nil {
		op.Return, op.Outcome, op.Error = time.Since(c.start), Refused, err.Error()
		c.record(op)
		return op
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	op.Call = time.Since(c.start) // the history is the stricter, the later this is
	err := c.store.Do(ctx, &op)
	op.Return = time.Since(c.start)
	if err != nil {
		op.Outcome, op.Error = Unknown, err.Error()
		if errors.Is(err, errRefused) {
			op.Outcome = Refused
		}
		c.disconnect()
	}
	c.record(op)
	return op
}

func (c *client) connect(ctx context.Context) error {
	if c.store != nil {
		return nil
	}
	endpoints := c.config.Endpoints()
	if len(endpoints) == 0 {
		return errors.New("there are no endpoints")
	}
	store, err := c.config.Connect(ctx, endpoints[c.endpoint%len(endpoints)])
	if err != nil {
		c.endpoint++
		return err
	}
	c.store = store
	return nil
}

// disconnect ends the connection. The next one is to another member.
func (c *client) disconnect() {
	if c.store != nil {
		_ = c.store.Close()
		c.store = nil
		c.endpoint++
	}
}

// finalRead reads a key until it succeeds.
func (c *client) finalRead(ctx context.Context, key string) error {
	deadline := time.Now().Add(c.config.FinalPatience)
	for {
		op := c.do(ctx, Op{Kind: Read, Key: key, Final: true})
		if op.answered() {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the final read of key %s did not succeed within %v: %s", key, c.config.FinalPatience, op.Error)
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("the final read of key %s: %w: %s", key, err, op.Error)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
