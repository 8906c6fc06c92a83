package node

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"example.com/fairlead/localcluster/internal/host"
)

func TestRules(t *testing.T) {
	pod := func(name string, ips ...string) End {
		end := End{Name: name}
		for _, ip := range ips {
			end.IPs = append(end.IPs, netip.MustParseAddr(ip))
		}
		return end
	}
	cases := map[string]struct {
		family host.Family
		cut    Cut
		want   []string
	}{
		"pods": {
			host.IPv4, Cut{A: pod("x/a", "10.244.0.3"), B: pod("x/b", "10.244.16.3"), Loss: 100}, []string{
				"INPUT -s 10.244.0.3 -d 10.244.16.3", "POSTROUTING ! --out-interface eth0 -s 10.244.0.3 -d 10.244.16.3",
				"INPUT -s 10.244.16.3 -d 10.244.0.3", "POSTROUTING ! --out-interface eth0 -s 10.244.16.3 -d 10.244.0.3",
			},
		},
		"some packets, to the API server only": {
			host.IPv6, Cut{A: pod("x/a", "fd00:10:244::3", "10.244.0.3"), B: End{Name: "api"}, OneWay: true, Loss: 5}, []string{
				"INPUT -s fd00:10:244::3 -d fd6c::2 --protocol tcp --dport 6443 --match statistic --mode random --probability 0.05",
				"POSTROUTING ! --out-interface eth0 -s fd00:10:244::3 -d fd6c::2 --protocol tcp --dport 6443 --match statistic --mode random --probability 0.05",
				"POSTROUTING --out-interface eth0 -s fd00:10:244::3 -d fd6c::2 --protocol tcp --dport 6443 --match statistic --mode random --probability 0.05",
			},
		},
		"a pod from a node": {
			host.IPv4, Cut{A: End{Name: "localcluster-2"}, B: pod("x/a", "10.244.0.3"), OneWay: true, Loss: 100}, []string{
				"INPUT -s 198.18.0.3 -d 10.244.0.3", "POSTROUTING ! --out-interface eth0 -s 198.18.0.3 -d 10.244.0.3",
				"INPUT -s 10.244.16.0/20 -d 10.244.0.3", "POSTROUTING ! --out-interface eth0 -s 10.244.16.0/20 -d 10.244.0.3",
			},
		},
	}
	for name, tc := range cases {
		text, err := dual.rules(tc.family, "eth0", []Cut{tc.cut})
		var got []string
		for line := range strings.Lines(text) {
			if rule, is := strings.CutPrefix(line, "--append "); is {
				got = append(got, strings.TrimSuffix(rule, " --jump DROP\n"))
			}
		}
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s (%v):\n%s\nwant\n%s", name, err, strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
		}
	}
	if _, err := dual.rules(host.IPv4, "eth0", []Cut{{A: End{Name: "localcluster-7"}, B: End{Name: "api"}}}); err == nil {
		t.Error("a node that is not there can be cut off")
	}
}

func TestWithout(t *testing.T) {
	cuts := []Cut{{A: End{Name: "a"}, B: End{Name: "b"}}, {A: End{Name: "c"}, B: End{Name: "a"}}}
	for ends, want := range map[[2]string]int{{"a", "b"}: 1, {"a", "c"}: 1, {"b", "c"}: 2} {
		if got := without(cuts, ends[0], ends[1]); len(got) != want {
			t.Errorf("without %v there are %d, want %d", ends, len(got), want)
		}
	}
}
