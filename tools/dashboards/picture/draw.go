package main

import (
	"fmt"
	"image/color"
	"math"
	"regexp"
	"sort"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
)

var (
	background = rgb(0xf4f5f5)
	paper      = rgb(0xffffff)
	ink        = rgb(0x24292e)
	faint      = rgb(0xd8dade)
	gray       = rgb(0x6e7680)
	white      = rgb(0xffffff)
)

// named are Grafana's colors, and palette those of its series.
var (
	named   = map[string]color.RGBA{"green": rgb(0x56a64b), "yellow": rgb(0xd8a403), "orange": rgb(0xe8710a), "red": rgb(0xd0021b), "blue": rgb(0x3274d9)}
	palette = []color.RGBA{rgb(0x56a64b), rgb(0xf2a900), rgb(0x3274d9), rgb(0xe0752d), rgb(0xc4162a), rgb(0x8f3bb8), rgb(0x14a3a8), rgb(0x6b4f2a), rgb(0xe02f93), rgb(0x5c6b7a)}
)

func rgb(hex uint32) color.RGBA {
	return color.RGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 255}
}

func plain(size vg.Length, c color.Color) text.Style {
	return text.Style{Color: c, Font: font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size), Handler: plot.DefaultTextHandler}
}

func bold(size vg.Length, c color.Color) text.Style {
	style := plain(size, c)
	style.Font.Weight = 2
	return style
}

func write(c vgdraw.Canvas, style text.Style, x, y vg.Length, s string) {
	c.FillText(style, vg.Point{X: x, Y: y}, s)
}

// fit cuts a text to a width.
func fit(style text.Style, s string, width vg.Length) string {
	for cut := s; ; cut = cut[:len(cut)-1] {
		shown := cut
		if cut != s {
			shown += "…"
		}
		if cut == "" || style.Width(shown) <= width {
			return shown
		}
	}
}

func fill(c vgdraw.Canvas, with color.Color) {
	c.FillPolygon(with, []vg.Point{c.Min, {X: c.Max.X, Y: c.Min.Y}, c.Max, {X: c.Min.X, Y: c.Max.Y}})
}

var inLegend = regexp.MustCompile(`{{(\w+)}}`)

func legend(format string, labels map[string]string) string {
	return inLegend.ReplaceAllStringFunc(format, func(name string) string { return labels[name[2:len(name)-2]] })
}

// human is a value in a unit of Grafana's.
func human(value float64, unit string) string {
	number := func(v float64) string { return fmt.Sprintf("%.3g", v) }
	switch unit {
	case "percentunit":
		return number(value*100) + "%"
	case "s", "dtdurations":
		for _, u := range []struct {
			seconds float64
			name    string
		}{{86400, "days"}, {3600, "hours"}, {60, "min"}, {1, "s"}, {1e-3, "ms"}} {
			if math.Abs(value) >= u.seconds {
				return number(value/u.seconds) + " " + u.name
			}
		}
		return number(value) + " s"
	case "bytes":
		for _, u := range []string{"B", "KiB", "MiB", "GiB"} {
			if math.Abs(value) < 1024 {
				return number(value) + " " + u
			}
			value /= 1024
		}
		return number(value) + " TiB"
	case "ops", "reqps":
		return number(value) + "/s"
	case "opm":
		return number(value) + "/min"
	}
	if math.Abs(value) >= 1000 {
		return fmt.Sprintf("%.4g k", value/1000)
	}
	return number(value)
}

// figure draws a number on the color of its threshold.
func (k kept) figure(c, area vgdraw.Canvas, d dashboard, p panel, worst float64) {
	all, _ := k.answers(d, p)
	shown, shade := p.FieldConfig.Defaults.NoValue, gray
	for _, s := range all {
		if value, has := s.at(worst); has {
			shown = human(value, p.FieldConfig.Defaults.Unit)
			for _, step := range p.FieldConfig.Defaults.Thresholds.Steps {
				if step.Value == nil || value >= *step.Value {
					shade = named[step.Color]
				}
			}
		}
	}
	fill(area, shade)
	write(area, bold(11, white), area.Min.X+8, area.Max.Y-16, fit(bold(11, white), p.Title, area.Max.X-area.Min.X-12))
	style := bold(30, white)
	style.XAlign = text.XCenter
	write(c, style, (c.Min.X+c.Max.X)/2, (c.Min.Y+c.Max.Y)/2-14, shown)
}

// table draws the lines that there were at the moment, those with the greatest value first.
func (k kept) table(c vgdraw.Canvas, d dashboard, p panel, worst float64) {
	type line struct {
		value  float64
		labels map[string]string
	}
	var lines []line
	all, _ := k.answers(d, p)
	for _, s := range all {
		if value, has := s.at(worst); has {
			lines = append(lines, line{value, s.Metric})
		}
	}
	sort.SliceStable(lines, func(i, j int) bool { return lines[i].value > lines[j].value })
	columns := make([]string, len(p.Transformations[0].Options.IndexByName))
	for label, i := range p.Transformations[0].Options.IndexByName {
		columns[i] = label
	}
	width, y := (c.Max.X-c.Min.X)/vg.Length(len(columns)), c.Max.Y-14
	for i, label := range columns {
		write(c, bold(10, ink), c.Min.X+vg.Length(i)*width, y, p.Transformations[0].Options.RenameByName[label])
	}
	for n, l := range lines {
		if y -= 17; y < c.Min.Y+17 && n < len(lines)-1 {
			write(c, plain(10, gray), c.Min.X, y, fmt.Sprintf("and %d more", len(lines)-n))
			return
		}
		c.StrokeLine2(vgdraw.LineStyle{Color: faint, Width: 1}, c.Min.X, y+13, c.Max.X, y+13)
		for i, label := range columns {
			shown, style := l.labels[label], plain(10, ink)
			switch {
			case label == "Value":
				shown = human(l.value, p.FieldConfig.Defaults.Unit)
			case label == "runbook" || label == "alertname" || label == "operator" && p.Transformations[0].Options.RenameByName[label] == "Dashboard":
				style.Color = named["blue"]
			case shown == "False" || shown == "critical":
				style = bold(10, named["red"])
			case shown == "warning" || shown == "Unknown":
				style = bold(10, named["orange"])
			}
			write(c, style, c.Min.X+vg.Length(i)*width, y, fit(style, shown, width-6))
		}
	}
}

// course draws lines, and what they are called.
func (k kept) course(c vgdraw.Canvas, d dashboard, p panel, worst float64) {
	all, names := k.answers(d, p)
	plt := plot.New()
	plt.BackgroundColor = color.Transparent
	unit := p.FieldConfig.Defaults.Unit
	plt.X.Min, plt.X.Max, plt.Y.Min = 0, k.End.Sub(k.Start).Seconds(), 0
	moment := worst - float64(k.Start.Unix())
	stacked := p.FieldConfig.Defaults.Custom.Stacking.Mode == "normal"
	below, most := map[float64]float64{}, 0.0
	for i, s := range all {
		var run plotter.XYs
		last := math.Inf(-1)
		draw := func() {
			if len(run) == 0 {
				return
			}
			if len(run) == 1 {
				run = append(run, plotter.XY{X: run[0].X + 5, Y: run[0].Y})
			}
			if line, err := plotter.NewLine(run); err == nil {
				line.Color, line.Width = palette[i%len(palette)], 1.3
				plt.Add(line)
			}
			run = nil
		}
		for _, v := range s.Values {
			at, _ := v[0].(float64)
			value, ok := s.at(at)
			if !ok || math.IsInf(value, 0) {
				continue
			}
			if at-last > 12 {
				draw() // a gap
			}
			last = at
			if stacked {
				below[at] += value
				value = below[at]
			}
			most = math.Max(most, value)
			plt.Y.Min = math.Min(plt.Y.Min, value)
			run = append(run, plotter.XY{X: at - float64(k.Start.Unix()), Y: value})
		}
		draw()
	}
	if plt.Y.Max = most * 1.05; most == 0 {
		plt.Y.Max = 1
	}
	if unit == "percentunit" {
		plt.Y.Max = math.Max(1, most)
	}
	if strings.Contains(p.FieldConfig.Defaults.Custom.ThresholdsStyle.Mode, "dashed") {
		for _, step := range p.FieldConfig.Defaults.Thresholds.Steps {
			if step.Value != nil && *step.Value <= plt.Y.Max {
				across(plt, *step.Value, named[step.Color])
			}
		}
	}
	if line, err := plotter.NewLine(plotter.XYs{{X: moment, Y: plt.Y.Min}, {X: moment, Y: plt.Y.Max}}); err == nil {
		line.Color, line.Width, line.Dashes = gray, 0.7, []vg.Length{2, 3}
		plt.Add(line)
	}
	axes(plt, k.Start, unit)
	plt.Draw(vgdraw.Crop(c, 0, 0, legends(c, names), 0))
}

func across(plt *plot.Plot, y float64, c color.Color) {
	if line, err := plotter.NewLine(plotter.XYs{{X: plt.X.Min, Y: y}, {X: plt.X.Max, Y: y}}); err == nil {
		line.Color, line.Width, line.Dashes = c, 1, []vg.Length{5, 4}
		plt.Add(line)
	}
}

// axes have few ticks: the time of day, and values in the unit.
func axes(plt *plot.Plot, start time.Time, unit string) {
	for _, axis := range []*plot.Axis{&plt.X, &plt.Y} {
		axis.Tick.Label = plain(9, gray)
		axis.Width, axis.Tick.Width, axis.Padding = 0, 0, 2
	}
	plt.X.Tick.Label.XAlign, plt.X.Tick.Label.YAlign = text.XCenter, text.YTop
	plt.Y.Tick.Label.XAlign, plt.Y.Tick.Label.YAlign = text.XRight, text.YCenter
	plt.X.Tick.Marker = plot.TickerFunc(func(low, high float64) (ticks []plot.Tick) {
		step := math.Max(60, math.Ceil((high-low)/5/60)*60)
		for at := step - math.Mod(float64(start.Unix()), 60); at < high; at += step {
			ticks = append(ticks, plot.Tick{Value: at, Label: start.Add(time.Duration(at * float64(time.Second))).UTC().Format("15:04")})
		}
		return ticks
	})
	plt.Y.Tick.Marker = plot.TickerFunc(func(low, high float64) (ticks []plot.Tick) {
		for _, tick := range (plot.DefaultTicks{}).Ticks(low, high) {
			if tick.Label != "" {
				ticks = append(ticks, plot.Tick{Value: tick.Value, Label: human(tick.Value, unit)})
			}
		}
		return ticks
	})
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = faint, faint
	grid.Vertical.Width, grid.Horizontal.Width = 0.5, 0.5
	plt.Add(grid)
}

// legends writes the names below, as many as have room, and returns how high that is.
func legends(c vgdraw.Canvas, names []string) vg.Length {
	const size, lineHeight, most = 9, 12, 3
	style := plain(size, gray)
	width := c.Max.X - c.Min.X
	lines := make([][]int, 1, most)
	x := vg.Length(0)
	for i, name := range names {
		w := style.Width(fit(style, name, width/2)) + 20
		if x+w > width {
			if len(lines) == most {
				break
			}
			lines, x = append(lines, nil), 0
		}
		lines[len(lines)-1], x = append(lines[len(lines)-1], i), x+w
	}
	for row, line := range lines {
		x, y := c.Min.X, c.Min.Y+lineHeight*vg.Length(len(lines)-1-row)
		for _, i := range line {
			name := fit(style, names[i], width/2)
			c.StrokeLine2(vgdraw.LineStyle{Color: palette[i%len(palette)], Width: 2}, x, y+4, x+8, y+4)
			write(c, style, x+11, y+1, name)
			x += style.Width(name) + 20
		}
	}
	return lineHeight*vg.Length(len(lines)) + 2
}
