package sim

import (
	"slices"
	"testing"

	"example.com/fairlead/internal/testkit"
)

// Trace plays a story with nothing going wrong, and returns what the operator wrote. It
// starts after the user has arranged, as that of [testkit.Sweep.Trace] does.
func (s *Simulation) Trace(t *testing.T, sc testkit.Scenario) []Write {
	t.Helper()
	s.prepare(t)
	h := s.playAs(&sc, told(nil), nil, nil, true)
	if h.Err != nil {
		t.Error(s.tell(t, &sc, h))
	}
	return h.Writes
}

// Compare plays stories in the simulation and, by a sweep, on a real API server, with
// nothing going wrong, and wants the operator to write the same to both, in the same order.
//
// What depends on how fast the cluster is does not count: how often the same is written
// again and again, such as a status that follows what a kubelet does, and what is refused
// because the operator did not know yet what is there; nor, where the story says so, how often
// a series of writes is repeated.
func (s *Simulation) Compare(t *testing.T, sweep *testkit.Sweep, scenarios ...testkit.Scenario) {
	t.Helper()
	s.prepare(t)
	for _, sc := range scenarios {
		if sc.Without["plain"] != "" {
			continue
		}
		t.Run(sc.Name, func(t *testing.T) {
			t.Parallel()
			var simulated, onServer []string
			for _, w := range s.Trace(t, sc) {
				if !w.TooLate && s.counts(w.Part) {
					simulated = append(simulated, w.Sort())
				}
			}
			for _, w := range sweep.Trace(t, sc) {
				if !w.IsTooLate() && s.counts(w.Part) {
					onServer = append(onServer, w.Sort())
				}
			}
			a, b := slices.Compact(simulated), slices.Compact(onServer)
			if sc.Repeats {
				a, b = once(a), once(b)
			}
			if !slices.Equal(a, b) {
				t.Errorf("in the simulation:\n%q\non the real API server:\n%q", a, b)
			}
		})
	}
}

// once leaves one of each series of writes that repeats the one before.
func once(writes []string) []string {
	for length := 1; 2*length <= len(writes); length++ {
		for i := 0; i+2*length <= len(writes); {
			if slices.Equal(writes[i:i+length], writes[i+length:i+2*length]) {
				writes = slices.Delete(writes, i, i+length)
			} else {
				i++
			}
		}
	}
	return writes
}

// counts says whether a write is to be at the same place in the simulation and on a real
// server.
func (s *Simulation) counts(part string) bool { return s.Reports == "" || part != s.Reports }
