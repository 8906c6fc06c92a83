package node

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"example.com/fairlead/localcluster/internal/host"
)

// The API server, as an end of a cut.
const apiEnd = "api"

// An End is what a network can be cut at: a node with its pods, a pod, or the
// API server.
type End struct {
	Name string
	// IPs are a pod's.
	IPs []netip.Addr `json:",omitempty"`
}

func (e End) isPod() bool { return strings.Contains(e.Name, "/") }

// A Cut drops packets between two ends, so that connections stay open until
// either side gives up.
type Cut struct {
	A, B   End
	OneWay bool // only those from A to B
	Loss   int  // how many of a hundred packets; 100 for all
}

func (c Cut) isBetween(a, b string) bool {
	return c.A.Name == a && c.B.Name == b || c.A.Name == b && c.B.Name == a
}

// cutsFile is what iptables-restore reads.
const cutsFile = "/run/cuts"

// cut makes a cut, in place of one between the same ends.
func (s *supervisor) cut(made Cut) error {
	for _, end := range []End{made.A, made.B} {
		if _, err := s.spec.matches(end, s.spec.Families[0], "s"); err != nil {
			return err
		}
	}
	if made.A.Name == made.B.Name {
		return fmt.Errorf("%s cannot be cut from itself", made.A.Name)
	}
	before := s.cuts
	s.cuts = append(without(before, made.A.Name, made.B.Name), made)
	if err := s.restoreAll(); err != nil {
		s.cuts = before
		return errors.Join(err, s.restoreAll())
	}
	return nil
}

// heal undoes the cut between two ends, or all.
func (s *supervisor) heal(ends []string) error {
	var rest []Cut
	if len(ends) == 2 {
		if rest = without(s.cuts, ends[0], ends[1]); len(rest) == len(s.cuts) {
			return fmt.Errorf("%s and %s are not cut from each other", ends[0], ends[1])
		}
	}
	s.cuts = rest
	return s.restoreAll()
}

func without(cuts []Cut, a, b string) []Cut {
	return slices.DeleteFunc(slices.Clone(cuts), func(c Cut) bool { return c.isBetween(a, b) })
}

// restoreAll has all nodes that run drop what the cuts say.
func (s *supervisor) restoreAll() error {
	if err := s.restoreCuts(os.Getpid(), s.spec.Link); err != nil {
		return err
	}
	for _, n := range s.further {
		if pid := n.running(); pid != 0 {
			if err := s.restoreCuts(pid, n.spec.Link); err != nil {
				return err
			}
		}
	}
	return nil
}

// restoreCuts sets the rules of the node with that PID 1, and that device to the
// other nodes.
func (s *supervisor) restoreCuts(pid int, link string) error {
	for _, family := range s.spec.Families {
		rules, err := s.spec.rules(family, link, s.cuts)
		if err != nil {
			return err
		}
		if err := os.WriteFile(cutsFile, []byte(rules), 0o600); err != nil {
			return err
		}
		// --wait takes what comes after it for seconds, unless that is an option.
		if err := s.processes.run("iptables", "nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", pid),
			iptables(family)+"-restore", "--wait", "--noflush", cutsFile); err != nil {
			return fmt.Errorf("drop packets: %w; %s", err, s.log("iptables"))
		}
	}
	return nil
}

// rules are those of a family for iptables-restore. In these two chains, which
// nothing else uses, packets to a Service already have the address of its pod,
// and kube-proxy's rules, which let pass what is of an open connection, come
// later. A packet is dropped once, or a share of them would be a greater one:
// where it arrives, in a pod or at the node itself. Only what a pod sends to
// another node is dropped where it leaves, as it leaves with its node's address.
func (s Spec) rules(family host.Family, link string, cuts []Cut) (string, error) {
	text := "*mangle\n--flush POSTROUTING\n--flush INPUT\n"
	for _, cut := range cuts {
		ways := [][2]End{{cut.A, cut.B}}
		if !cut.OneWay {
			ways = append(ways, [2]End{cut.B, cut.A})
		}
		share := ""
		if cut.Loss < 100 {
			share = fmt.Sprintf(" --match statistic --mode random --probability %.2f", float64(cut.Loss)/100)
		}
		for _, way := range ways {
			sources, err := s.matches(way[0], family, "s")
			if err != nil {
				return "", err
			}
			destinations, err := s.matches(way[1], family, "d")
			if err != nil {
				return "", err
			}
			for _, source := range sources {
				for _, destination := range destinations {
					drop := source.conditions + destination.conditions + share + " --jump DROP\n"
					text += "--append INPUT" + drop + "--append POSTROUTING ! --out-interface " + link + drop
					if destination.isNode && way[0].isPod() {
						text += "--append POSTROUTING --out-interface " + link + drop
					}
				}
			}
		}
	}
	return text + "COMMIT\n", nil
}

// A match is of packets that come from an end, or go there.
type match struct {
	conditions string
	isNode     bool // the node itself, and not its pods
}

// matches are those of an end as the source (s) or the destination (d).
func (s Spec) matches(end End, family host.Family, side string) ([]match, error) {
	of := slices.Index(s.Families, family)
	if end.Name == apiEnd {
		return []match{{fmt.Sprintf(" -%s %s --protocol tcp --%sport %s", side, s.first().Addresses[of].Addr(), side, apiPort), true}}, nil
	}
	if end.isPod() {
		var all []match
		for _, ip := range end.IPs {
			if ip.Is6() == (family == host.IPv6) {
				all = append(all, match{conditions: fmt.Sprintf(" -%s %s", side, ip)})
			}
		}
		return all, nil
	}
	var names []string
	for _, node := range s.Nodes {
		if node.Name == end.Name {
			return []match{
				{fmt.Sprintf(" -%s %s", side, node.Addresses[of].Addr()), true},
				{fmt.Sprintf(" -%s %s", side, node.Pods[of]), false},
			}, nil
		}
		names = append(names, node.Name)
	}
	return nil, fmt.Errorf("there is no node %q, there are %s; a pod is NAMESPACE/NAME, and the API server is %s",
		end.Name, strings.Join(names, ", "), apiEnd)
}
