//go:build apiserver

package etcdtest

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"
)

// TestMember starts three members, and does to one of them what can be done.
func TestMember(t *testing.T) {
	all := NewCluster(t, 3, "v3.6.16")
	for _, m := range all {
		m.Start(t)
	}
	m := all[0]
	Eventually(t, time.Minute, "healthy", m.health)

	m.Pause(t)
	if err := m.health(); err == nil {
		t.Error("a paused member answers")
	}
	m.Resume(t)
	Eventually(t, time.Minute, "healthy after a pause", m.health)

	m.Stop(t)
	if m.IsRunning() || m.health() == nil {
		t.Error("a stopped member runs")
	}
	m.Start(t)
	Eventually(t, time.Minute, "healthy after a restart", m.health)

	m.Kill(t)
	m.Wipe(t)
	m.Flags = []string{"--no-such-flag"}
	m.Start(t)
	m.Ends(t, time.Minute)
	if m.Log() == "" {
		t.Error("there is no log")
	}
}

func (m *Member) health() error {
	client := http.Client{Timeout: time.Second}
	answer, err := client.Get(m.ClientURL() + "/health")
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return err
}
