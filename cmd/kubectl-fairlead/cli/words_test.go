package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestKnowsZone: a zone that Go takes for UTC without a word is refused.
func TestKnowsZone(t *testing.T) {
	data := filepath.Join(t.TempDir(), "berlin")
	if err := os.WriteFile(data, []byte("no zone"), 0o600); err != nil {
		t.Fatal(err)
	}
	for tz, isKnown := range map[string]bool{
		"": true, "UTC": true, "Europe/Berlin": true, ":Europe/Berlin": true, "EST5EDT": true,
		"UTC+2": false, "CET-1CEST,M3.5.0,M10.5.0/3": false, "<+03>-3": false, "Europe/Berlim": false, "../Berlin": false,
		data: false, data + "-missing": false, "/usr/share/zoneinfo/Europe/Berlin": hasZones(),
	} {
		t.Setenv("TZ", tz)
		err := (&CLI{}).KnowsZone()
		if (err == nil) != isKnown || err != nil && !strings.Contains(err.Error(), "TZ="+tz+",") {
			t.Errorf("%q: %v", tz, err)
		}
		if err := (&CLI{timeZone: "Asia/Kathmandu"}).KnowsZone(); err != nil {
			t.Errorf("%q, with another zone on the command line: %v", tz, err)
		}
		if _, err := time.LoadLocation(strings.TrimPrefix(tz, ":")); err == nil && !isKnown {
			t.Errorf("Go knows %q", tz)
		}
	}
}

// hasZones says whether the machine has the zones.
func hasZones() bool {
	_, err := os.Stat("/usr/share/zoneinfo/Europe/Berlin")
	return err == nil
}
