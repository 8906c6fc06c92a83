package main

import (
	"context"
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/cache/v1alpha1"
)

const (
	ringKeys    = 100_000
	ringServers = 3
	// ringPoints is how many points of the ring each server has, and
	// pointsEach how many come of one digest, as ketama has it.
	ringPoints, pointsEach = 160, 4
)

// remapped counts the keys that a ketama client looks for elsewhere when a pool
// grows by one, and when it is back: by the servers in its status.
func remapped(ctx context.Context, b *bench) ([]figure, error) {
	const namespace = "bench-ring"
	remove, err := b.scratch(ctx, namespace)
	if err != nil {
		return nil, err
	}
	mc := &v1alpha1.Memcached{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ring"},
		Spec:       v1alpha1.MemcachedSpec{Size: new(int32(ringServers)), Identity: v1alpha1.StableIdentity, Version: newVersion},
	}
	if err := b.pool(ctx, mc); err != nil {
		return nil, err
	}
	before := ketama(mc.Status.Servers)
	has := func(n int) func(*v1alpha1.Memcached) bool {
		return func(mc *v1alpha1.Memcached) bool { return len(mc.Status.Servers) == n }
	}
	if err := b.patchPool(ctx, mc, fmt.Sprintf(`{"spec":{"size":%d}}`, ringServers+1), has(ringServers+1)); err != nil {
		return nil, err
	}
	grown := ketama(mc.Status.Servers)
	if err := b.patchPool(ctx, mc, fmt.Sprintf(`{"spec":{"size":%d}}`, ringServers), has(ringServers)); err != nil {
		return nil, err
	}
	back := ketama(mc.Status.Servers)

	moved, movedFor := 0, 0
	for i := range ringKeys {
		key := fmt.Sprintf("key-%07d", i)
		if before.server(key) != grown.server(key) {
			moved++
		}
		if before.server(key) != back.server(key) {
			movedFor++
		}
	}
	part, ideal := float64(moved)/ringKeys, 1.0/(ringServers+1)
	return []figure{
		{measure: "ketama ring", what: fmt.Sprintf("keys elsewhere, %d to %d servers", ringServers, ringServers+1), value: fmt.Sprintf("%.1f %%", 100*part),
			spread: fmt.Sprintf("%d of %d keys; 1/(N+1) is %.1f %%", moved, ringKeys, 100*ideal), bound: fmt.Sprintf("≤ %.1f %%", 120*ideal), missed: part > 1.2*ideal},
		{measure: "ketama ring", what: "keys elsewhere, there and back", value: fmt.Sprint(movedFor), bound: "0", missed: movedFor > 0},
	}, remove(ctx)
}

// ring places keys on servers as ketama does: 160 points for each, from MD5 of
// its name with a number.
type ring struct {
	points  []uint32
	servers map[uint32]string
}

func ketama(servers []string) ring {
	r := ring{servers: map[uint32]string{}}
	for _, server := range servers {
		for i := range ringPoints / pointsEach {
			digest := md5.Sum(fmt.Appendf(nil, "%s-%d", server, i))
			for j := range pointsEach {
				point := binary.LittleEndian.Uint32(digest[4*j:])
				r.points = append(r.points, point)
				r.servers[point] = server
			}
		}
	}
	slices.Sort(r.points)
	return r
}

func (r ring) server(key string) string {
	digest := md5.Sum([]byte(key))
	at := binary.LittleEndian.Uint32(digest[:])
	i := sort.Search(len(r.points), func(i int) bool { return r.points[i] >= at })
	return r.servers[r.points[i%len(r.points)]]
}
