//go:build cluster

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Two nodes with each choice of families, under another domain: pods reach each other, Services at their names, and
// the host NodePorts, at every address that there is.
func TestFamilies(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		family string
		begin  []string // of pods' addresses
	}{
		"IPv6": {"ipv6", []string{"fd00:"}}, "dual": {"dual", []string{"10.", "fd00:"}}, "IPv6 first": {"ipv6,ipv4", []string{"fd00:", "10."}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster(t)
			c.up("--family", tc.family, "--domain", "example.internal", "--nodes", "2", "--zones", "a,b")
			c.apply(strings.Replace(spread, "spec: {type: NodePort,", "spec: {type: NodePort, ipFamilyPolicy: PreferDualStack,", 1))
			c.wait(time.Minute, "rollout", "status", "deployment/spread")
			pods, service := c.addresses("pods", "app=spread", "status.podIPs[*].ip"), c.addresses("services", "", "spec.clusterIPs[*]")
			for name, ips := range pods {
				if !slices.EqualFunc(ips, tc.begin, strings.HasPrefix) {
					t.Errorf("%s has the addresses %v, want such as begin with %v", name, ips, tc.begin)
				}
				from := pod{name: name}
				for to, ips := range pods {
					for _, ip := range ips {
						eventually(t, fmt.Sprintf("%s reaches %s at %s", name, to, ip), func() bool { return c.fetch(from, urlHost(ip)) == to })
					}
				}
				for _, host := range append(service["spread"], "spread.default.svc.example.internal", "spread") {
					eventually(t, name+" reaches the Service at "+host, func() bool { return strings.HasPrefix(c.fetch(from, urlHost(host)), "spread-") })
				}
			}
			for n := range 2 {
				for _, address := range c.entry().NodeAddresses(n) {
					eventually(t, address.String()+" has the NodePort", func() bool { return c.nodePort(address.Addr().String()) })
				}
			}
			entry := c.entry()
			c.down()
			c.nothingLeft(entry)
		})
	}
}

// addresses are those of objects, by name.
func (c *testCluster) addresses(kind, label, field string) map[string][]string {
	c.t.Helper()
	all := map[string][]string{}
	each := `{range .items[*]}{.metadata.name} {.` + field + `}{"\n"}{end}`
	for line := range strings.Lines(c.kubectl("get", kind, "-l", label, "-o", "jsonpath="+each)) {
		fields := strings.Fields(line)
		all[fields[0]] = fields[1:]
	}
	return all
}

// urlHost is a name, or an address, as it is in a URL.
func urlHost(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}
