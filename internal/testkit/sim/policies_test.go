package sim

import (
	"slices"
	"testing"

	"example.com/fairlead/internal/testkit"
)

// otherwise are the policies that only one of the two lists has, with the reason.
var otherwise = map[string]string{
	"limited-templates": "the simulation's policy limits is for pods and for what makes them",
	"requests":          "memory is what a Memcached computes: limits and limited-templates leave it as it is",
}

// TestPoliciesAreThoseOfTheTestkit: what the simulation has in Go, a real API server gets in CEL.
func TestPoliciesAreThoseOfTheTestkit(t *testing.T) {
	var simulated, served []string
	for _, p := range policies {
		simulated = append(simulated, p.name)
	}
	for _, p := range testkit.Policies {
		served = append(served, p.Name)
	}
	for _, name := range slices.Concat(simulated, served) {
		isBoth := slices.Contains(simulated, name) && slices.Contains(served, name)
		if _, isExcused := otherwise[name]; isBoth == isExcused {
			t.Errorf("policy %s is in both lists: %v; there is a reason why it is not: %v", name, isBoth, isExcused)
		}
	}
	for name := range otherwise {
		if !slices.Contains(slices.Concat(simulated, served), name) {
			t.Errorf("policy %s is in no list any more", name)
		}
	}
}
