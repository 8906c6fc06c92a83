//go:build cluster

package main

import (
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// cuts are steps of TestNodes: the network between a pod on each of three nodes.
func (c *testCluster) cuts(first, second, third pod) {
	reaches := func(from, to pod) bool { return c.fetch(from, urlHost(to.ip)) == to.name }
	c.t.Run("two pods are cut from each other, and from nobody else", func(t *testing.T) {
		c.run("cut", "--dir", c.dir, "default/"+first.name, "default/"+second.name)
		if reaches(first, second) || reaches(second, first) {
			t.Error("one reaches the other")
		}
		if !reaches(first, third) || !reaches(third, second) {
			t.Error("the third one is cut off, too")
		}
		c.run("heal", "--dir", c.dir, "default/"+second.name, "default/"+first.name)
		eventually(t, "they reach each other later", func() bool { return reaches(first, second) && reaches(second, first) })
	})
	c.t.Run("cut in one direction, packets arrive in the other", func(t *testing.T) {
		c.run("cut", "--dir", c.dir, "--one-way", "default/"+first.name, "default/"+second.name)
		defer c.run("heal", "--dir", c.dir)
		for from, want := range map[pod]bool{first: false, second: true} {
			to := map[pod]pod{first: second, second: first}[from]
			asked := make(chan bool, 1)
			go func() { asked <- reaches(from, to) }()
			// The server has the first packet, and its answer has not been answered.
			half := "" // open connections
			eventually(t, "the question has been asked", func() bool {
				out, _ := c.command("exec", to.name, "--", "netstat", "-tn").Output()
				half += string(out)
				select {
				case answered := <-asked:
					if answered {
						t.Errorf("%s has an answer", from.name)
					}
					return true
				default:
					return false
				}
			})
			if arrived := strings.Contains(half, "SYN_RECV"); arrived != want {
				t.Errorf("a packet of %s arrives: %t, want %t", from.name, arrived, want)
			}
		}
	})
	c.t.Run("a share of the packets is lost", func(t *testing.T) {
		c.run("cut", "--dir", c.dir, "--loss", "50", "--one-way", "default/"+first.name, "default/"+second.name)
		defer c.run("heal", "--dir", c.dir)
		out, _ := c.command("exec", first.name, "--", "ping", "-c", "100", "-i", "0.02", "-W", "1", second.ip).CombinedOutput()
		found := regexp.MustCompile(`(\d+) packets received`).FindSubmatch(out)
		if found == nil {
			t.Fatalf("ping says %s", out)
		}
		// Fewer than 25, or more than 75, of 100 are less likely than one in a million.
		if received, _ := strconv.Atoi(string(found[1])); received < 25 || received > 75 {
			t.Errorf("of 100 packets %d arrive, want about 50", received)
		}
	})
	c.t.Run("a node is cut from another one, and both not from the API server", func(t *testing.T) {
		c.run("cut", "--dir", c.dir, "localcluster-3", "localcluster-2")
		if reaches(second, third) || reaches(third, second) || !reaches(second, first) || !reaches(first, third) {
			t.Error("not just these two are cut from each other")
		}
		for _, p := range []pod{second, third} {
			eventually(t, p.name+" asks the API server", func() bool { return c.asksAPI(p) })
		}
		c.run("cut", "--dir", c.dir, "localcluster-3", "api")
		if c.asksAPI(third) || !c.asksAPI(second) {
			t.Error("not just localcluster-3 is cut from the API server")
		}
		c.run("heal", "--dir", c.dir, "localcluster-3", "api")
		if !c.asksAPI(third) {
			t.Error("it still is")
		}
	})
	c.t.Run("what cannot be cut", func(t *testing.T) {
		for _, args := range []string{"localcluster-9 api", "api api", "default/nosuch api"} {
			cmd := exec.Command(program, append([]string{"cut", "--dir", c.dir}, strings.Fields(args)...)...)
			if out, err := cmd.CombinedOutput(); err == nil {
				t.Errorf("cut %s: %s", args, out)
			}
		}
	})
}

// asksAPI says whether the API server answers a pod, which it does in plain text
// that it wants TLS.
func (c *testCluster) asksAPI(from pod) bool {
	answer, _ := c.command("exec", from.name, "--", "timeout", "2", "wget", "-qO-", "http://kubernetes.default.svc.cluster.local:443").CombinedOutput()
	return strings.Contains(string(answer), "400 Bad Request")
}
