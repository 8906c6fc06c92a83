package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// chart is what a benchmark has measured: bench/chart.go writes it.
type chart struct {
	Title  string
	X, Y   axis
	Series []struct {
		Name   string
		Points plotter.XYs
	}
}

type axis struct {
	Label, Unit string
	Log         bool
	Mark        float64 // a bound, 0 for none
}

const chartWidth, chartHeight = 400, 260

// drawCharts draws the charts in files beside each other, those of one title in
// one. Names are below all of them: a name has the same color everywhere.
func drawCharts(file string, from []string) error {
	var charts []chart
	var names []string
	for _, name := range from {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var more []chart
		if err := json.Unmarshal(data, &more); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, c := range more {
			for _, s := range c.Series {
				if !slices.Contains(names, s.Name) {
					names = append(names, s.Name)
				}
			}
			if i := slices.IndexFunc(charts, func(other chart) bool { return other.Title == c.Title }); i >= 0 {
				charts[i].Series = append(charts[i].Series, c.Series...)
				continue
			}
			charts = append(charts, c)
		}
	}
	if len(charts) == 0 {
		return fmt.Errorf("no charts in %q", from)
	}
	width := vg.Length(len(charts) * chartWidth)
	canvas := vgsvg.NewWith(vgsvg.UseWH(width, chartHeight))
	c := vgdraw.New(canvas)
	fill(c, paper)
	below := legends(vgdraw.Crop(c, 12, -12, 8, 0), names) + 18
	for i, one := range charts {
		left := vg.Length(i * chartWidth)
		area := vgdraw.Crop(c, left+12, left+chartWidth-width-16, below, -8)
		write(area, bold(11, ink), area.Min.X, area.Max.Y-12, one.Title)
		if err := one.draw(vgdraw.Crop(area, 0, 0, 4, -20), names); err != nil {
			return err
		}
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	// Whoever looks at it may not have the font that it was laid out with.
	text := bytes.ReplaceAll(svg.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif"))
	return os.WriteFile(file, text, 0o644)
}

func (o chart) draw(c vgdraw.Canvas, names []string) error {
	plt := plot.New()
	plt.BackgroundColor = paper
	for _, s := range o.Series {
		line, points, err := plotter.NewLinePoints(s.Points)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", o.Title, s.Name, err)
		}
		shade := palette[slices.Index(names, s.Name)%len(palette)]
		line.Color, line.Width = shade, 1.5
		points.Color, points.Shape, points.Radius = shade, vgdraw.CircleGlyph{}, 2.5
		plt.Add(line)
		if len(s.Points) < 20 {
			plt.Add(points)
		}
	}
	plt.Y.Min, plt.Y.Max = 0, plt.Y.Max*1.05
	if o.Y.Unit == "percentunit" {
		plt.Y.Max = 1
	}
	for _, a := range []struct {
		axis *plot.Axis
		of   axis
	}{{&plt.X, o.X}, {&plt.Y, o.Y}} {
		a.axis.Width, a.axis.Tick.Width, a.axis.Padding = 0, 0, 2
		a.axis.Tick.Label = plain(9, gray)
		a.axis.Label.Text, a.axis.Label.TextStyle = a.of.Label, plain(9, gray)
		a.axis.Tick.Marker = ticks(a.of)
		if a.of.Log {
			a.axis.Scale = plot.LogScale{}
		}
	}
	plt.X.Tick.Label.XAlign, plt.X.Tick.Label.YAlign = text.XCenter, text.YTop
	plt.X.Label.TextStyle.XAlign, plt.X.Label.TextStyle.YAlign = text.XCenter, text.YTop
	plt.Y.Tick.Label.XAlign, plt.Y.Tick.Label.YAlign = text.XRight, text.YCenter
	if o.X.Mark > 0 {
		plt.X.Max = math.Max(plt.X.Max, o.X.Mark)
		mark, err := plotter.NewLine(plotter.XYs{{X: o.X.Mark, Y: plt.Y.Min}, {X: o.X.Mark, Y: plt.Y.Max}})
		if err != nil {
			return err
		}
		mark.Color, mark.Width, mark.Dashes = named["red"], 1, []vg.Length{5, 4}
		plt.Add(mark)
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = faint, faint
	plt.Add(grid)
	plt.Draw(c)
	return nil
}

// ticks have their unit. Those of a logarithmic axis are powers of ten, and what is 2 and 5 times them if it is short; of bytes
// the step is a power of two.
func ticks(a axis) plot.TickerFunc {
	return func(low, high float64) (ticks []plot.Tick) {
		if a.Log {
			digits := []float64{1}
			if high < 100*low {
				digits = []float64{1, 2, 5}
			}
			for p := math.Floor(math.Log10(low)); p <= math.Log10(high); p++ {
				for _, digit := range digits {
					if at := digit * math.Pow(10, p); at >= low*(1-1e-9) && at <= high*(1+1e-9) {
						ticks = append(ticks, plot.Tick{Value: at, Label: human(at, a.Unit)})
					}
				}
			}
			return ticks
		}
		if a.Unit == "bytes" {
			step := math.Pow(2, math.Ceil(math.Log2((high-low)/5)))
			for y := math.Ceil(low/step) * step; y <= high; y += step {
				ticks = append(ticks, plot.Tick{Value: y, Label: human(y, a.Unit)})
			}
			return ticks
		}
		for _, tick := range (plot.DefaultTicks{}).Ticks(low, high) {
			if tick.Label != "" {
				ticks = append(ticks, plot.Tick{Value: tick.Value, Label: human(tick.Value, a.Unit)})
			}
		}
		return ticks
	}
}
