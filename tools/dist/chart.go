package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// writeCharts packs a chart per operator, and one for all, as files and for a registry.
func (r *release) writeCharts() error {
	names, err := r.installs()
	if err != nil {
		return err
	}
	for _, name := range names {
		content, chart, err := r.chart(name)
		if err != nil {
			return fmt.Errorf("chart of %s: %w", name, err)
		}
		packed, err := content.tgz()
		if err != nil {
			return err
		}
		if err := r.write(fmt.Sprintf("charts/%s-%s.tgz", chart, r.version), packed); err != nil {
			return err
		}
		if err := r.writeChartImage(chart, content[chart+"/Chart.yaml"].content, packed); err != nil {
			return err
		}
	}
	about, err := r.texts(all)
	if err != nil {
		return err
	}
	repository, err := about.hubRepository()
	if err != nil {
		return err
	}
	return r.write("charts/artifacthub-repo.yml", repository)
}

// chart is the chart of an operator, or of all, with what a release adds: its
// version, its image, and the texts that the bundle has, too.
func (r *release) chart(operator string) (files, string, error) {
	texts, err := r.texts(operator)
	if err != nil {
		return nil, "", err
	}
	source, err := r.chartSource(operator)
	if err != nil {
		return nil, "", err
	}
	repository, tag := splitImage(r.image)
	if tag == "v"+r.version {
		tag = "" // the chart's default
	}
	hub, err := r.hubAnnotations(operator, texts, source)
	if err != nil {
		return nil, "", err
	}
	annotations, err := yaml.Marshal(hub)
	if err != nil {
		return nil, "", err
	}
	for _, put := range []struct{ file, where, what string }{
		{"Chart.yaml", "0.0.0-dev", r.version},
		{"Chart.yaml", "\nhome:", "\nicon: " + texts.iconURL() + "\nhome:"},
		{"Chart.yaml", "\nannotations:\n", "\nannotations:\n  " + strings.TrimSpace(strings.ReplaceAll(string(annotations), "\n", "\n  ")) + "\n"},
		{"values.yaml", "repository: fairlead\n", "repository: " + strconv.Quote(repository) + "\n"},
		{"values.yaml", "tag: dev ", "tag: " + strconv.Quote(tag) + " "},
	} {
		text := string(source[put.file].content)
		if !strings.Contains(text, put.where) {
			return nil, "", fmt.Errorf("%s/%s has no %q, where the release's goes", chartOf(operator), put.file, put.where)
		}
		source[put.file] = file{mode: 0o644, content: []byte(strings.ReplaceAll(text, put.where, put.what))}
	}
	source["files/values.yaml"] = source["values.yaml"] // for the templates, by themselves Helm does not show it to them
	table, err := valuesTable(source["values.yaml"].content, source["values.schema.json"].content)
	if err != nil {
		return nil, "", err
	}
	readme := "# " + texts.DisplayName + "\n\n" + strings.TrimSpace(texts.Description) + "\n\n## Values\n\n" + table
	source["README.md"] = file{mode: 0o644, content: []byte(readme)}

	content := files{}
	for name, file := range source {
		content[texts.Chart+"/"+name] = file
	}
	return content, texts.Chart, nil
}

// chartSource is a chart as it is checked in. A commit that has none, because it
// is older than they are, gets today's, with its own CRDs and roles.
func (r *release) chartSource(operator string) (files, error) {
	folder := chartOf(operator)
	own, err := readFiles(filepath.Join(r.tree, folder))
	if _, ok := own["Chart.yaml"]; ok || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return own, err
	}
	today, err := readFiles(filepath.Join(r.repo, folder))
	if err != nil {
		return nil, err
	}
	for name := range today {
		if strings.HasPrefix(name, "files/") {
			delete(today, name)
		}
	}
	maps.Copy(today, own)
	operators := []string{operator}
	if operator == all {
		if operators, err = r.operators(); err != nil {
			return nil, err
		}
	}
	for _, operator := range operators {
		for _, part := range []string{"crd", "rbac"} {
			content, err := readFiles(filepath.Join(r.tree, configOf(operator), part))
			if err != nil {
				return nil, err
			}
			for name, file := range content {
				today[path.Join("files", operator, part, name)] = file
			}
		}
	}
	return today, nil
}

// chartOf is the chart's folder of an operator, or of all.
func chartOf(operator string) string {
	if operator == all {
		return "operators/config/chart"
	}
	return path.Join("operators", operator, "chart")
}

func splitImage(image string) (repository, tag string) {
	if colon := strings.LastIndex(image, ":"); colon > strings.LastIndex(image, "/") {
		return image[:colon], image[colon+1:]
	}
	return image, "latest"
}
