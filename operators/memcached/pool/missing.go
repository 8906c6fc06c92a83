package pool

import (
	"fmt"
	"time"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/operators/memcached/objects"
)

// mostLost bounds how many are looked for at a time.
const mostLost = 10

// MissingServers are the names of the servers of a StatefulSet that the cache
// does not show.
func MissingServers(mc *v1alpha1.Memcached, seen Observation) []string {
	s := seen.StatefulSet()
	if !objects.IsStable(mc) || !objects.IsOwned(s, mc) || s.DeletionTimestamp != nil {
		return nil
	}
	shown := map[string]bool{}
	for _, pod := range seen.Pods {
		shown[pod.Name] = true
	}
	var missing []string
	for i := range *mc.Spec.Size {
		if name := fmt.Sprintf("%s-%d", objects.PoolName(mc), i); !shown[name] && len(missing) < mostLost {
			missing = append(missing, name)
		}
	}
	return missing
}

// MissingLasts is for how long servers may be missing until that is reported, and
// looked into. A variable, so that tests need not wait.
var MissingLasts = 15 * time.Second

// UntilReported is how long to wait for that: 0 or less once it is time.
func UntilReported(seen Observation) time.Duration {
	return seen.MissingSince.Add(MissingLasts).Sub(seen.Now)
}
