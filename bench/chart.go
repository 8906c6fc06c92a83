package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// chart is what tools/dashboards/picture draws. Charts of the same title, by
// several measures, are drawn as one.
type chart struct {
	Title  string
	X, Y   axis
	Series []series
}

type axis struct {
	Label string `json:",omitempty"`
	Unit  string `json:",omitempty"` // one of Grafana's
	Log   bool   `json:",omitempty"`
	// Mark is a bound, 0 for none.
	Mark float64 `json:",omitempty"`
}

type series struct {
	Name   string
	Points []point
}

type point struct{ X, Y float64 }

// distribution is the part of the values that are at most as great as each of them, in seconds.
func distribution(values []time.Duration) []point {
	var points []point
	for i, d := range slices.Sorted(slices.Values(values)) {
		points = append(points, point{X: d.Seconds(), Y: float64(i+1) / float64(len(values))})
	}
	return points
}

// draw writes the charts of a measure as JSON, if they are wanted.
func (b *bench) draw(measure string, charts ...chart) error {
	if b.charts == "" {
		return nil
	}
	data, err := json.MarshalIndent(charts, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(b.charts, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.charts, measure+".json"), append(data, '\n'), 0o644)
}
