//go:build e2e

package moving

import (
	"bytes"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// printed is what the application has printed.
type printed struct {
	writes []written
	// voting is how many members had a vote, each time that one of its pods saw another number.
	voting []int
}

// written is a write that was acknowledged.
type written struct {
	at  time.Time // of the node
	key string
}

// lacks are the keys of writes that the store has not.
func (s store) lacks(writes []written) (keys []string) {
	for _, w := range writes {
		if _, ok := s[w.key]; !ok {
			keys = append(keys, w.key)
		}
	}
	return keys
}

// follow reads what the application prints until its pods are gone.
func (m *moved) follow() func() printed {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), "kubectl", "logs", "-n", m.namespace, "-l", "app=application", "--follow", "--timestamps", "--tail=-1")
	var out, refused bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &refused
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	return sync.OnceValue(func() (all printed) {
		if err := cmd.Wait(); err != nil { // it has ended with the pods
			m.t.Logf("kubectl logs: %v\n%s", err, refused.String())
		}
		for line := range strings.Lines(out.String()) {
			stamp, text, _ := strings.Cut(line, " ")
			at, err := time.Parse(time.RFC3339Nano, stamp)
			text, isWhole := strings.CutSuffix(text, "\n")
			if err != nil || !isWhole {
				continue
			}
			if n, ok := strings.CutPrefix(text, "voting members: "); ok {
				if n, err := strconv.Atoi(n); err == nil {
					all.voting = append(all.voting, n)
				}
			} else if strings.HasPrefix(text, "/application/") {
				all.writes = append(all.writes, written{at, text})
			}
		}
		return all
	})
}

// gaps is how long clients wrote, and the longest time for which none of them had a write acknowledged, and for which one
// of them had none.
func gaps(writes []written) (took, none, ofOne time.Duration) {
	slices.SortStableFunc(writes, func(a, b written) int { return a.at.Compare(b.at) })
	last := map[string]time.Time{}
	for i, w := range writes {
		if i > 0 {
			none = max(none, w.at.Sub(writes[i-1].at))
		}
		client := w.key[:strings.LastIndex(w.key, "/")]
		if before, ok := last[client]; ok {
			ofOne = max(ofOne, w.at.Sub(before))
		}
		last[client] = w.at
		took = w.at.Sub(writes[0].at)
	}
	return took, none, ofOne
}
