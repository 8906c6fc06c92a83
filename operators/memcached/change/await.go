package change

import (
	"time"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/operators/memcached/pool"
)

// AwaitRecovery looks again when a server that has crashed has run for long enough, or one that starts should be
// prepared.
func AwaitRecovery(_ *v1alpha1.Memcached, v *View) (p Plan) {
	for i := range v.Pods {
		if _, until := pods.Unprepared(&v.Pods[i], v.Unmounted, v.Now); !until.IsZero() {
			p.WakeIn(until.Sub(v.Now))
		}
		if crash, is := pool.Crash(&v.Pods[i], v.Observation); is {
			p.WakeIn(crash.Until.Sub(v.Now))
		}
	}
	return p
}

// readLasts is for how long a server is queried without an occasion.
const readLasts = 10 * time.Minute

// AwaitMemory queries again for a while.
func AwaitMemory(_ *v1alpha1.Memcached, v *View) (p Plan) {
	for _, l := range v.Limits {
		if v.Now.Sub(l.Since) < readLasts {
			p.WakeIn(max(l.Next.Sub(v.Now), time.Millisecond))
		}
	}
	return p
}
