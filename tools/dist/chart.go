package main

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"path"
	"regexp"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

//go:embed all:chart
var chartFiles embed.FS

// writeCharts writes a chart per operator, and one for all.
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
		archive, err := content.tar()
		if err != nil {
			return err
		}
		var packed bytes.Buffer
		zip := gzip.NewWriter(&packed)
		if _, err := zip.Write(archive); err != nil {
			return err
		}
		if err := zip.Close(); err != nil {
			return err
		}
		if err := r.write(fmt.Sprintf("charts/%s-%s.tgz", chart, r.version), packed.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// chart makes a chart of what kustomize makes: the same objects, with values
// in the places where people want to have a say.
func (r *release) chart(operator string) (files, string, error) {
	objects, err := r.build(path.Join(configOf(operator), "default"))
	if err != nil {
		return nil, "", err
	}
	texts, err := r.texts(operator)
	if err != nil {
		return nil, "", err
	}
	chart := chartName(operator)
	content := files{}
	add := func(name, text string) {
		content[chart+"/"+name] = file{mode: 0o644, content: []byte(text)}
	}

	var crds []string
	templates := map[string]string{}
	values := map[string]string{"Name": chart, "VersionAnnotation": versionAnnotation, "Next": texts.next}
	for _, object := range objects {
		switch object.GetKind() {
		case "Namespace":
		case "CustomResourceDefinition":
			crds = append(crds, object.GetName())
			setAnnotation(object, "helm.sh/resource-policy", "keep")
			text, err := yaml.Marshal(object.Object)
			if err != nil {
				return nil, "", err
			}
			add("files/crds/"+object.GetName()+".yaml", string(text))
		default:
			if object.GetKind() == "Deployment" {
				if values["Resources"], err = resourcesOf(object); err != nil {
					return nil, "", err
				}
			}
			name, text, err := templateOf(object, operator)
			if err != nil {
				return nil, "", err
			}
			templates[name] += text
		}
	}
	values["CRDs"] = strings.Join(crds, " ")
	values["Repository"], values["Tag"] = splitImage(r.image)
	if values["Tag"] == "v"+r.version {
		values["Tag"] = ""
	}

	for name, text := range templates {
		add("templates/"+name, text)
	}
	for from, to := range map[string]string{
		"_helpers.tpl": "templates/_helpers.tpl", "lease.yaml": "templates/lease.yaml", "crds.yaml": "templates/crds.yaml", "NOTES.txt": "templates/NOTES.txt",
		"values.yaml": "values.yaml", "values.schema.json": "values.schema.json",
	} {
		text, err := fill(from, values)
		if err != nil {
			return nil, "", err
		}
		add(to, text)
	}
	about, err := yaml.Marshal(map[string]any{
		"apiVersion": "v2", "type": "application", "name": chart, "version": r.version, "appVersion": r.version,
		"description": texts.Summary, "keywords": texts.Keywords, "icon": texts.iconURL(),
		"kubeVersion": ">=" + texts.MinKubeVersion + "-0", "home": texts.Links[0]["url"], "maintainers": texts.Maintainers,
	})
	add("Chart.yaml", string(about))
	add("README.md", "# "+texts.DisplayName+"\n\n"+strings.TrimSpace(texts.Description)+"\n")
	return content, chart, err
}

// chartName is the chart's name, and the beginning of its objects' names.
func chartName(operator string) string {
	if operator == all {
		return "fairlead"
	}
	return operator + "-operator"
}

// fill puts the values into one of the embedded files, where [[.Name]] is.
func fill(name string, values map[string]string) (string, error) {
	parsed, err := template.New(name).Delims("[[", "]]").Option("missingkey=error").ParseFS(chartFiles, "chart/"+name)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	err = parsed.Execute(&text, values)
	return text.String(), err
}

func splitImage(image string) (repository, tag string) {
	if colon := strings.LastIndex(image, ":"); colon > strings.LastIndex(image, "/") {
		return image[:colon], image[colon+1:]
	}
	return image, "latest"
}

func resourcesOf(deployment *unstructured.Unstructured) (string, error) {
	var text string
	err := eachContainer(deployment, func(container map[string]any) {
		out, _ := yaml.Marshal(container["resources"]) // it came from YAML
		text = "  " + strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", "\n  ") + "\n"
	})
	return text, err
}

// templateOf makes a template of an object, and says which file it belongs to.
// Cluster-scoped names end with the release's namespace: in a namespace there
// can be one release, and installs in others must not take its rights away.
func templateOf(object *unstructured.Unstructured, operator string) (name, text string, err error) {
	managerRole := strings.HasSuffix(object.GetName(), "manager-role") || strings.HasSuffix(object.GetName(), "manager-rolebinding")
	object.SetLabels(chartLabels(object.GetLabels()))
	cluster := strings.HasPrefix(object.GetKind(), "Cluster")
	if cluster {
		err = clusterScoped(object)
	} else {
		object.SetNamespace("@@namespace@@")
		err = bindHere(object)
	}
	if err != nil {
		return "", "", err
	}

	condition := ""
	switch {
	case object.GetKind() == "Deployment":
		text, err = deploymentTemplate(object, operator)
		return "manager.yaml", text, err
	case managerRole:
		text, err = managerRoleTemplate(object)
		return "rbac.yaml", text, err
	case object.GetKind() == "Service":
		condition, name = ".Values.metrics.enabled", "metrics.yaml"
		object.Object["spec"].(map[string]any)["selector"] = map[string]any{"@@include selectorLabels@@": ""}
	case strings.Contains(object.GetName(), "metrics-"):
		condition, name = ".Values.metrics.enabled", "metrics.yaml"
	case cluster:
		condition, name = ".Values.userRoles", "users.yaml"
	default:
		name = "rbac.yaml"
	}
	text, err = render(object)
	if condition != "" {
		text = "{{- if " + condition + " }}\n" + text + "{{- end }}\n"
	}
	return name, text, err
}

var (
	mergeLine   = regexp.MustCompile(`(?m)^( *)'@@merge (\w+)@@': ""\n`)
	setLine     = regexp.MustCompile(`(?m)^( *)'@@set (\w+)@@': ""\n`)
	includeLine = regexp.MustCompile(`(?m)^( *)'@@include (\w+)@@': ""\n`)
)

// inline are marks that become part of a line.
var inline = strings.NewReplacer(
	"'@@namespace@@'", "{{ $.Release.Namespace }}",
	"@@namespace@@", "{{ $.Release.Namespace }}",
	"'@@watched@@'", "{{ $watched }}",
	"'@@replicas@@'", "{{ $.Values.replicas }}",
	"'@@image@@'", `"{{ $.Values.image.repository }}:{{ $.Values.image.tag | default (printf "v%s" $.Chart.AppVersion) }}"`,
	"'@@pullPolicy@@'", "{{ $.Values.image.pullPolicy }}",
	"'@@watchNamespaces@@'", `{{ join "," $.Values.watchNamespaces | quote }}`,
	"'@@resources@@'", "{{- toYaml $.Values.resources | nindent 10 }}",
)

// render is an object as YAML with its marks replaced by template actions.
func render(object *unstructured.Unstructured) (string, error) {
	out, err := yaml.Marshal(object.Object)
	if err != nil {
		return "", err
	}
	text := inline.Replace("---\n" + string(out))
	text = includeLine.ReplaceAllStringFunc(text, func(line string) string {
		part := includeLine.FindStringSubmatch(line)
		return fmt.Sprintf("%s{{- include %q $ | nindent %d }}\n", part[1], part[2], len(part[1]))
	})
	text = mergeLine.ReplaceAllStringFunc(text, func(line string) string {
		part := mergeLine.FindStringSubmatch(line)
		return fmt.Sprintf("%s{{- with $.Values.%s }}\n%s{{- toYaml . | nindent %d }}\n%s{{- end }}\n", part[1], part[2], part[1], len(part[1]), part[1])
	})
	text = setLine.ReplaceAllStringFunc(text, func(line string) string {
		part := setLine.FindStringSubmatch(line)
		return fmt.Sprintf("%s{{- with $.Values.%s }}\n%s%s: {{ toJson . }}\n%s{{- end }}\n", part[1], part[2], part[1], part[2], part[1])
	})
	return text, nil
}
