package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// figure is a line of the table.
type figure struct {
	measure string
	what    string
	value   string
	spread  string // of the single rounds, or what else there is to know
	bound   string // empty if there is none
	missed  bool
}

// ratio is a figure that may be at most bound.
func ratio(measure, what string, value, bound float64, rounds []float64) figure {
	return figure{
		measure: measure, what: what,
		value:  fmt.Sprintf("%.2f ×", value),
		spread: "rounds: " + spread(rounds, func(v float64) string { return fmt.Sprintf("%.2f", v) }),
		bound:  fmt.Sprintf("≤ %g ×", bound),
		missed: value > bound,
	}
}

func allMet(figures []figure) bool {
	return !slices.ContainsFunc(figures, func(f figure) bool { return f.missed })
}

// table shows figures as Markdown that can be read as it is.
func table(figures []figure) string {
	rows := [][]string{{"measure", "figure", "value", "spread or detail", "bound", ""}, nil}
	for _, f := range figures {
		verdict := ""
		switch {
		case f.missed:
			verdict = "MISSED"
		case f.bound != "":
			verdict = "met"
		}
		rows = append(rows, []string{f.measure, f.what, f.value, f.spread, f.bound, verdict})
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	for _, row := range rows {
		out.WriteString("|")
		for i, width := range widths {
			if row == nil {
				out.WriteString(" " + strings.Repeat("-", max(width, 3)) + " |")
				continue
			}
			fmt.Fprintf(&out, " %-*s |", max(width, 3), row[i])
		}
		out.WriteString("\n")
	}
	return out.String()
}

// median is the middle value, or the mean of the two in the middle.
func median[T float64 | time.Duration](values []T) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// percentile is the smallest value that p percent of the values do not exceed.
func percentile(values []time.Duration, p float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(float64(len(sorted))*p/100 + 0.999999)
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// spread is lowest / median / highest.
func spread[T float64 | time.Duration](values []T, format func(T) string) string {
	if len(values) == 0 {
		return ""
	}
	return format(slices.Min(values)) + " / " + format(median(values)) + " / " + format(slices.Max(values))
}

// quotients divides pairwise.
func quotients(values, by []time.Duration) []float64 {
	var result []float64
	for i := range min(len(values), len(by)) {
		result = append(result, values[i].Seconds()/by[i].Seconds())
	}
	return result
}

func inSeconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func inMillis(d time.Duration) string {
	return fmt.Sprintf("%.0f ms", float64(d.Microseconds())/1000)
}

// rate is how many of n come in a second, when all take d.
func rate(n int, d time.Duration) float64 { return float64(n) / d.Seconds() }
