package main

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

// TestChartsInARegistry: what Helm pulls from there is the chart that was made.
func TestChartsInARegistry(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	o := options{repo: repo, out: t.TempDir(), version: current, base: host + "/you/fairlead", operator: all}
	r, err := open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	if err := r.writeCharts(); err != nil {
		t.Fatal(err)
	}
	if err := o.push("*-chart-v" + current + ".tar"); err != nil {
		t.Fatal(err)
	}
	helm, to := pinnedHelm(t), t.TempDir()
	for _, chart := range []string{"at-operator", "fairlead"} {
		helm(t, "pull", "oci://"+host+"/you/fairlead/charts/"+chart, "--version", current, "--plain-http", "--destination", to)
		file := chart + "-" + current + ".tgz"
		made, err := os.ReadFile(filepath.Join(r.out, "charts", file))
		if err != nil {
			t.Fatal(err)
		}
		if pulled, err := os.ReadFile(filepath.Join(to, file)); err != nil || !bytes.Equal(pulled, made) {
			t.Errorf("%s: Helm pulls %d bytes of %d: %v", chart, len(pulled), len(made), err)
		}
		if says := helm(t, "show", "chart", "oci://"+host+"/you/fairlead/charts/"+chart, "--version", current, "--plain-http"); !strings.Contains(says, "name: "+chart+"\n") {
			t.Errorf("Helm shows %s", says)
		}
	}
}
