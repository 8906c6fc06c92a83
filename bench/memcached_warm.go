package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/cache/v1alpha1"
)

const (
	warmItems   = 100_000 // in each server
	warmServers = 3
	// gapBound is how long a server may be away, hitsBound the part of the
	// items that it must keep.
	gapBound  = 2500 * time.Millisecond
	hitsBound = 0.99
	probeRest = 10 * time.Millisecond
)

// warm upgrades three filled servers in place, and counts what is left in them
// and for how long each was away, as a client sees it.
func warm(ctx context.Context, b *bench) ([]figure, error) {
	const namespace = "bench-warm"
	remove, err := b.scratch(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var gaps []time.Duration
	hits, asked := 0, 0
	for round := range b.rounds {
		mc := &v1alpha1.Memcached{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("warm-%d", round)},
			Spec: v1alpha1.MemcachedSpec{
				Size: new(int32(warmServers)), Identity: v1alpha1.StableIdentity, Upgrade: v1alpha1.WarmUpgrade, Version: oldVersion,
			},
		}
		away, kept, err := b.upgradeWarm(ctx, mc)
		if err != nil {
			return nil, err
		}
		b.say("round %d: %d of %d items kept, away for %v", round+1, kept, warmServers*warmItems, away)
		gaps, hits, asked = append(gaps, away...), hits+kept, asked+warmServers*warmItems
		if err := b.client.Delete(ctx, mc); err != nil {
			return nil, err
		}
	}
	part := float64(hits) / float64(asked)
	longest := percentile(gaps, 100)
	what := fmt.Sprintf("%d servers of %d items, %s to %s", warmServers, warmItems, oldVersion, newVersion)
	return []figure{
		{measure: "warm upgrade", what: "items kept, " + what, value: fmt.Sprintf("%.3f %%", 100*part),
			spread: fmt.Sprintf("%d of %d", hits, asked), bound: "≥ 99 %", missed: part < hitsBound},
		{measure: "warm upgrade", what: "a server is away for", value: inSeconds(median(gaps)),
			spread: "each: " + spread(gaps, inSeconds), bound: "≤ " + inSeconds(gapBound), missed: longest > gapBound},
	}, remove(ctx)
}

// upgradeWarm fills a pool, upgrades it, and asks for everything again.
func (b *bench) upgradeWarm(ctx context.Context, mc *v1alpha1.Memcached) (gaps []time.Duration, hits int, err error) {
	if err := b.pool(ctx, mc); err != nil {
		return nil, 0, err
	}
	var addresses []string
	for i := range warmServers {
		address, err := b.exposed(ctx, mc.Namespace, fmt.Sprintf("%s-%d", mc.Name, i))
		if err != nil {
			return nil, 0, err
		}
		if err := eventually(ctx, time.Minute, "server "+address, func() (bool, error) {
			_, err := askMemcached(ctx, address)
			return err == nil, nil
		}); err != nil {
			return nil, 0, err
		}
		if err := fillMemcached(ctx, address); err != nil {
			return nil, 0, err
		}
		addresses = append(addresses, address)
	}
	if err := b.quiet(ctx); err != nil {
		return nil, 0, err
	}
	probing, stop := context.WithCancel(ctx)
	var probes sync.WaitGroup
	away := make([]time.Duration, warmServers)
	for i, address := range addresses {
		probes.Go(func() { away[i] = probeMemcached(probing, address) })
	}
	err = b.patchPool(ctx, mc, `{"spec":{"version":"`+newVersion+`"}}`, func(mc *v1alpha1.Memcached) bool { return mc.Status.Version == newVersion })
	stop()
	probes.Wait()
	if err != nil {
		return nil, 0, err
	}
	for i, address := range addresses {
		if answer, err := askMemcached(ctx, address); answer != "VERSION "+newVersion {
			return nil, 0, fmt.Errorf("server %d answers %q (%w)", i, answer, err)
		}
		if away[i] == 0 {
			return nil, 0, fmt.Errorf("server %d was never away: it was not looked at closely enough", i)
		}
		kept, err := countMemcached(ctx, address)
		if err != nil {
			return nil, 0, err
		}
		hits += kept
	}
	return away, hits, nil
}

// probeMemcached asks a server again and again, over a connection of its own
// each time, until ctx ends. It returns the time from the last answer before it
// was away until the first one after, all such times together.
func probeMemcached(ctx context.Context, address string) time.Duration {
	var away time.Duration
	last, failing := time.Now(), false
	for ctx.Err() == nil {
		_, err := askMemcached(context.WithoutCancel(ctx), address)
		now := time.Now()
		if err == nil {
			if failing {
				away += now.Sub(last)
			}
			last = now
		}
		failing = err != nil
		time.Sleep(probeRest)
	}
	return away
}

// askMemcached asks a server for its version, over a connection of its own.
func askMemcached(ctx context.Context, address string) (string, error) {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprint(conn, "version\r\n"); err != nil {
		return "", err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(answer), err
}

func warmItem(i int) (key, value string) {
	return fmt.Sprintf("key-%07d", i), fmt.Sprintf("value-%07d", i)
}

// fillMemcached stores the items.
func fillMemcached(ctx context.Context, address string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	w := bufio.NewWriter(conn)
	for i := range warmItems {
		key, value := warmItem(i)
		fmt.Fprintf(w, "set %s 0 0 %d noreply\r\n%s\r\n", key, len(value), value)
	}
	fmt.Fprint(w, "version\r\n")
	if err := w.Flush(); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && !strings.HasPrefix(answer, "VERSION") {
		err = fmt.Errorf("a server answers %q when it is filled", answer)
	}
	return err
}

// countMemcached asks for all items, and counts those that are as they were
// stored.
func countMemcached(ctx context.Context, address string) (int, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	sent := make(chan error, 1)
	go func() {
		w := bufio.NewWriter(conn)
		for i := range warmItems {
			key, _ := warmItem(i)
			fmt.Fprintf(w, "get %s\r\n", key)
		}
		sent <- w.Flush()
	}()
	hits := 0
	r := bufio.NewScanner(conn)
	for i := 0; i < warmItems && r.Scan(); {
		line := strings.TrimSpace(r.Text())
		key, want := warmItem(i)
		switch {
		case line == "END":
			i++
		case strings.HasPrefix(line, "VALUE "+key+" "):
			if r.Scan(); strings.TrimSpace(r.Text()) == want {
				hits++
			}
		}
	}
	if err := r.Err(); err != nil {
		return hits, err
	}
	return hits, <-sent
}
