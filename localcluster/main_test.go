package main

import "testing"

func TestCheckNodes(t *testing.T) {
	cases := map[string]struct {
		nodes int
		zones []string
		ok    bool
	}{
		"one":                  {nodes: 1, ok: true},
		"three in three zones": {nodes: 3, zones: []string{"a", "b", "eu-1.c"}, ok: true},
		"three in two zones":   {nodes: 3, zones: []string{"a", "b"}, ok: true},
		"none":                 {nodes: 0},
		"too many":             {nodes: 17},
		"a zone without nodes": {nodes: 2, zones: []string{"a", "b", "c"}},
		"an empty zone":        {nodes: 2, zones: []string{"a", ""}},
		"no value of a label":  {nodes: 1, zones: []string{"a=b"}},
	}
	for name, tc := range cases {
		if err := checkNodes(tc.nodes, tc.zones); (err == nil) != tc.ok {
			t.Errorf("%s: checkNodes() = %v", name, err)
		}
	}
}
