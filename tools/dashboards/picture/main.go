// Command picture draws the dashboards, roughly as Grafana shows them, with what the end-to-end test of the alerts was
// answered by Prometheus: make pictures. It is for docs/dashboards.md.
//
// Courses are over the whole test. Figures and tables are of the moment at which most objects had a problem, which is
// the dashed line.
//
// It also draws the charts of the benchmarks, for bench/README.md: make plots.
package main

import (
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"time"

	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// kept is what the test has kept.
type kept struct {
	Start, End time.Time
	Answers    map[string][]series
}

type series struct {
	Metric map[string]string
	Values [][2]any
}

// dashboard is what is drawn of one.
type dashboard struct {
	UID, Title string
	Panels     []panel
}

type panel struct {
	ID          int
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct{ RefID, LegendFormat string }
	FieldConfig struct {
		Defaults struct {
			Unit, NoValue string
			Thresholds    struct {
				Steps []struct {
					Value *float64
					Color string
				}
			}
			Custom struct {
				Stacking        struct{ Mode string }
				ThresholdsStyle struct{ Mode string }
			}
		}
	}
	Transformations []struct {
		Options struct {
			IndexByName  map[string]int
			RenameByName map[string]string
		}
	}
}

func main() {
	var err error
	switch {
	case len(os.Args) > 3 && os.Args[1] == "charts":
		err = drawCharts(os.Args[2], os.Args[3:])
	case len(os.Args) == 3:
		err = run(os.Args[1], os.Args[2])
	default:
		fmt.Fprintln(os.Stderr, "Usage: picture SERIES FOLDER, or picture charts PICTURE CHARTS...")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

func run(file, folder string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var keep kept
	if err := json.Unmarshal(text, &keep); err != nil {
		return err
	}
	all, err := dashboards()
	if err != nil {
		return err
	}
	worst := keep.worst(all)
	for _, d := range all {
		if err := save(filepath.Join(folder, d.UID+".png"), keep.draw(d, worst)); err != nil {
			return err
		}
	}
	return nil
}

func dashboards() (all []dashboard, err error) {
	for _, pattern := range []string{"operators/*/config/grafana/*.json", "operators/config/grafana/common/*.json"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("no dashboards: %s (%w)", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			var d dashboard
			if err := json.Unmarshal(text, &d); err != nil {
				return nil, err
			}
			all = append(all, d)
		}
	}
	return all, nil
}

// worst is when most objects had a problem: each has a series in the fleet's first table.
func (k kept) worst(all []dashboard) float64 {
	counts, best := map[float64]int{}, 0.0
	for _, d := range all {
		for i, p := range d.Panels {
			if d.UID != "fairlead-fleet" || p.Type != "table" || d.Panels[i-1].Type == "table" {
				continue
			}
			table, _ := k.answers(d, p)
			for _, s := range table {
				for _, v := range s.Values {
					at, _ := v[0].(float64)
					if counts[at]++; counts[at] > counts[best] || counts[at] == counts[best] && at < best {
						best = at
					}
				}
			}
		}
	}
	return best
}

// at is the value at a moment.
func (s series) at(when float64) (float64, bool) {
	for _, v := range s.Values {
		if v[0] == when {
			value, err := strconv.ParseFloat(fmt.Sprint(v[1]), 64)
			return value, err == nil && value == value
		}
	}
	return 0, false
}

// The size of a cell of Grafana's grid of 24 columns, and of a heading.
const cellWidth, cellHeight, heading = 50, 30, 30

func (k kept) draw(d dashboard, worst float64) image.Image {
	rows := 0
	for _, p := range d.Panels {
		rows = max(rows, p.GridPos.Y+p.GridPos.H)
	}
	width, height := vg.Length(24*cellWidth), vg.Length(rows*cellHeight+heading)
	img := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(72), vgimg.UseBackgroundColor(background))
	c := vgdraw.New(img)
	write(c, bold(15, ink), 12, height-21, d.Title)
	for _, p := range d.Panels {
		x, top := vg.Length(p.GridPos.X*cellWidth), height-heading-vg.Length(p.GridPos.Y*cellHeight)
		w, h := vg.Length(p.GridPos.W*cellWidth), vg.Length(p.GridPos.H*cellHeight)
		area := vgdraw.Crop(c, x+3, x+w-3-width, top-h+3, top-3-height)
		if p.Type == "row" {
			write(area, bold(12, ink), area.Min.X+8, area.Min.Y+7, p.Title)
			continue
		}
		fill(area, paper)
		write(area, bold(11, ink), area.Min.X+8, area.Max.Y-16, fit(bold(11, ink), p.Title, w-16))
		inner := vgdraw.Crop(area, 8, -8, 6, -22)
		switch p.Type {
		case "stat":
			k.figure(inner, area, d, p, worst)
		case "table":
			k.table(inner, d, p, worst)
		default:
			k.course(inner, d, p, worst)
		}
	}
	return img.Image()
}

// answers are the series of a panel's queries, with what they are called.
func (k kept) answers(d dashboard, p panel) (all []series, names []string) {
	for _, q := range p.Targets {
		for _, s := range k.Answers[fmt.Sprintf("%s/%d/%s", d.UID, p.ID, q.RefID)] {
			all, names = append(all, s), append(names, legend(q.LegendFormat, s.Metric))
		}
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return names[order[i]] < names[order[j]] })
	sorted, sortedNames := make([]series, len(all)), make([]string, len(all))
	for i, from := range order {
		sorted[i], sortedNames[i] = all[from], names[from]
	}
	return sorted, sortedNames
}

// save writes a small picture: with the 256 colors that it mostly has.
func save(file string, img image.Image) error {
	counts := map[color.RGBA]int{}
	bounds := img.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)]++
		}
	}
	colors := make([]color.RGBA, 0, len(counts))
	for c := range counts {
		colors = append(colors, c)
	}
	sort.Slice(colors, func(i, j int) bool {
		if counts[colors[i]] != counts[colors[j]] {
			return counts[colors[i]] > counts[colors[j]]
		}
		return fmt.Sprint(colors[i]) < fmt.Sprint(colors[j])
	})
	palette := color.Palette{}
	for _, c := range colors[:min(len(colors), 256)] {
		palette = append(palette, c)
	}
	paletted := image.NewPaletted(bounds, palette)
	draw.Draw(paletted, bounds, img, bounds.Min, draw.Src)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(out, paletted); err != nil {
		return err
	}
	return out.Close()
}
