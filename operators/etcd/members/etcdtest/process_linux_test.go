package etcdtest

import "testing"

// TestFreeAddress: no address is given twice, although nobody listens at it.
func TestFreeAddress(t *testing.T) {
	given := map[string]bool{}
	for range 500 {
		address := freeAddress(t)
		if given[address] {
			t.Fatalf("%s was given twice", address)
		}
		given[address] = true
	}
}
