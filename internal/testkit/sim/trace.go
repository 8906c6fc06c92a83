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
// because the operator did not know yet what is there.
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
			if a, b := slices.Compact(simulated), slices.Compact(onServer); !slices.Equal(a, b) {
				t.Errorf("in the simulation:\n%q\non the real API server:\n%q", a, b)
			}
		})
	}
}

// counts says whether a write is to be at the same place in the simulation and on a real
// server.
func (s *Simulation) counts(part string) bool { return s.Reports == "" || part != s.Reports }
