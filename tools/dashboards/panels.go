package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// wide is a whole line of a dashboard.
const wide = 24

// classic is a dashboard in the format that every Grafana imports. The SDK prefers the next one, which older ones refuse.
type classic = dashboard.DashboardBuilder //nolint:staticcheck // see above

// newDashboard is one without panels, with a data source to select, and links to the others.
func newDashboard(title, what string, variables ...*dashboard.QueryVariableBuilder) *classic {
	d := dashboard.NewDashboardBuilder(title). //nolint:staticcheck // see classic
							Description(what).
							Tags([]string{"fairlead"}).
							Readonly().
							Time("now-3h", "now").
							Refresh("30s").
							Tooltip(dashboard.DashboardCursorSyncCrosshair).
							Link(dashboard.NewDashboardLinkBuilder("Fairlead").Type(dashboard.DashboardLinkTypeDashboards).
								Tags([]string{"fairlead"}).KeepTime(true)).
							WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Prometheus").Type("prometheus"))
	for _, v := range variables {
		d.WithVariable(v)
	}
	return d.WithVariable(dashboard.NewConstantVariableBuilder("runbooks").Label("Runbooks").
		Value(dashboard.StringOrMap{String: cog.ToPtr("https://fairlead.example.com/docs/runbooks")}))
}

func fromPrometheus() common.DataSourceRef {
	return common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}
}

// variable is one with the values of a label, of which the reader selects some, or all.
func variable(name, title, query string) *dashboard.QueryVariableBuilder {
	text := func(s string) dashboard.StringOrArrayOfString {
		return dashboard.StringOrArrayOfString{String: &s}
	}
	return dashboard.NewQueryVariableBuilder(name).Label(title).
		Datasource(fromPrometheus()).
		Query(dashboard.StringOrMap{String: &query}).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
		Sort(dashboard.VariableSortAlphabeticalAsc).
		Multi(true).IncludeAll(true).AllValue(".*").
		Current(dashboard.VariableOption{Text: text("All"), Value: text("$__all")})
}

// query is one of a panel, and what its series are called.
type query struct{ expr, legend string }

func (q query) build() *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Datasource(fromPrometheus()).Expr(q.expr).LegendFormat(q.legend).EditorMode(prometheus.QueryEditorModeCode)
}

// refs tell the queries of a panel apart.
const refs = "ABCDEF"

// steps are a color, and others from a value on.
type steps []dashboard.Threshold

func from(color string) steps { return steps{{Color: color}} }

func (s steps) at(value float64, color string) steps {
	return append(s, dashboard.Threshold{Value: &value, Color: color})
}

func (s steps) build() *dashboard.ThresholdsConfigBuilder {
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(s)
}

const green, yellow, orange, red, blue = "green", "yellow", "orange", "red", "blue"

var (
	neutral  = from(blue)
	noneIsOK = from(green).at(1, red)
	fewIsOK  = from(green).at(1, orange)
)

// figure is a number now, with its course behind it. Nothing is shown as none.
func figure(title, what, unit, none string, thresholds steps, q query) *stat.PanelBuilder {
	return stat.NewPanelBuilder().Title(title).Description(what).Unit(unit).NoValue(none).
		Datasource(fromPrometheus()).
		WithTarget(q.build().RefId("A")).
		Thresholds(thresholds.build()).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdThresholds)).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})).
		ColorMode(common.BigValueColorModeBackground).
		GraphMode(common.BigValueGraphModeArea).
		Height(4).Span(4)
}

// course is how values went.
func course(title, what, unit string, queries ...query) *timeseries.PanelBuilder {
	p := timeseries.NewPanelBuilder().Title(title).Description(what).Unit(unit).
		Datasource(fromPrometheus()).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdPaletteClassic)).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).ShowLegend(true)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)).
		FillOpacity(10).LineWidth(1).ShowPoints(common.VisibilityModeNever).AxisSoftMin(0).
		Height(8).Span(8)
	if unit == units.PercentUnit {
		p.Min(0).Max(1)
	}
	for i, q := range queries {
		p.WithTarget(q.build().Range().RefId(refs[i : i+1]))
	}
	return p
}

// stacked has the series on top of each other: they are parts of a whole.
func stacked(p *timeseries.PanelBuilder) *timeseries.PanelBuilder {
	return p.FillOpacity(50).Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A"))
}

// limit draws lines at thresholds.
func limit(p *timeseries.PanelBuilder, thresholds steps) *timeseries.PanelBuilder {
	return p.Thresholds(thresholds.build()).
		ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
}

// column is one of a table: a label, or Value.
type column struct {
	label, title string
	properties   []dashboard.DynamicConfigValue
}

// list is a table with a line for each series, by what its value is, the greatest first.
func list(title, what, none, expr string, columns ...column) *table.PanelBuilder {
	order, names := map[string]int{}, map[string]string{}
	p := table.NewPanelBuilder().Title(title).Description(what).NoValue(none).Unit(units.DurationSeconds).
		Datasource(fromPrometheus()).
		WithTarget(query{expr: expr}.build().Instant().Format(prometheus.PromQueryFormatTable).RefId("A")).
		Filterable(true).
		Height(9).Span(wide)
	for i, c := range columns {
		order[c.label], names[c.label] = i, c.title
		if c.label == "Value" {
			p.SortBy([]cog.Builder[common.TableSortByFieldState]{common.NewTableSortByFieldStateBuilder().DisplayName(c.title).Desc(true)})
		}
		if c.properties != nil {
			p.OverrideByName(c.title, c.properties)
		}
	}
	return p.WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
		"excludeByName": map[string]bool{"Time": true, "__name__": true, "group": true},
		"indexByName":   order,
		"renameByName":  names,
	}})
}

// linked is a column of which the values lead somewhere.
func linked(title, url string) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{{Id: "links", Value: []map[string]any{{"title": title, "url": url, "targetBlank": true}}}}
}

// colored is a column of which the background depends on the value.
func colored(colors map[string]string) []dashboard.DynamicConfigValue {
	options := map[string]any{}
	for value, color := range colors {
		options[value] = map[string]any{"color": color, "text": value}
	}
	return []dashboard.DynamicConfigValue{
		{Id: "custom.cellOptions", Value: map[string]any{"type": "color-background"}},
		{Id: "mappings", Value: []map[string]any{{"type": "value", "options": options}}},
	}
}

// notReady is the table of objects with a problem, those first that have it longest, each with its page.
func notReady(runbooks []runbook, selector string) *table.PanelBuilder {
	return list("Objects that are not Ready, and their runbooks",
		"Objects with a problem, up to 500 of a kind: why, for how long, and what to do. A runbook is there also before its alert fires. "+
			"The last column leads to the dashboard about the object.", "No object has a problem", problems(runbooks, selector),
		column{"kind", "Kind", nil},
		column{"namespace", "Namespace", nil},
		column{"name", "Name", nil},
		column{"reason", "Reason", nil},
		column{"available", "Available", colored(map[string]string{"False": red, "Unknown": orange})},
		column{"Value", "Not Ready for", nil},
		column{"runbook", "Runbook", linked("Open the runbook", "${runbooks}/${__value.raw}.md")},
		column{"operator", "Dashboard", linked("Open the dashboard",
			"/d/fairlead-${__value.raw}?var-namespace=${__data.fields.Namespace}&var-object=${__data.fields.Name}&${datasource:queryparam}&${__url_time_range}")},
	)
}

// repairs is how often children were put right.
func repairs(kinds string) *timeseries.PanelBuilder {
	return course("Repairs", "Children that somebody else had deleted or changed, and that the operator put right.", units.Short,
		query{`sum by (kind, child) (increase(fairlead_repairs_total{kind=~"` + kinds + `"}[$__rate_interval]))`, "{{child}} of {{kind}}"})
}

// row is a heading.
func row(title string) *dashboard.RowBuilder { return dashboard.NewRowBuilder(title) }
