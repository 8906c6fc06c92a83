// Package series reads what collectors say, in tests.
package series

import (
	"bytes"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

// Of are the series of a collector as a scrape has them, in its order: `name{label="value"} 1`.
func Of(t testing.TB, c prometheus.Collector) []string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			t.Fatal(err)
		}
	}
	var all []string
	for line := range strings.Lines(text.String()) {
		if !strings.HasPrefix(line, "#") {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all
}
