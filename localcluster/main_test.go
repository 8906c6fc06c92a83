package main

import (
	"strings"
	"testing"
)

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

func TestCheckNetwork(t *testing.T) {
	cases := map[string]struct {
		family, domain string
		ok             bool
	}{
		"the usual":     {"ipv4", "cluster.local", true},
		"IPv6 first":    {"ipv6,ipv4", "k8s.example-1.internal", true},
		"one label":     {"dual", "internal", true},
		"no family":     {"ipv5", "cluster.local", false},
		"in capitals":   {"ipv4", "Cluster.Local", false},
		"with a dot":    {"ipv4", "cluster.local.", false},
		"a long label":  {"ipv4", strings.Repeat("a", 64), false},
		"a long domain": {"ipv4", strings.Repeat("a.", 50) + "a", false},
		"no domain":     {"ipv4", "", false},
	}
	for name, tc := range cases {
		if _, err := checkNetwork(tc.family, tc.domain); (err == nil) != tc.ok {
			t.Errorf("%s: checkNetwork() = %v", name, err)
		}
	}
}
