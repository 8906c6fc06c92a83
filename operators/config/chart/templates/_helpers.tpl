{{- define "selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
control-plane: controller-manager
{{- end }}

{{- define "labels" -}}
{{ include "selectorLabels" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: fairlead
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "v%s" .Chart.AppVersion) }}
{{- end }}

{{- /* What the manager runs: one operator, or all. */ -}}
{{- define "operator" -}}
{{ index .Chart.Annotations "fairlead.example.com/operator" }}
{{- end }}

{{- /* The beginning of the names of an operator's roles. Its argument is a list:
the root, and the path of one of the operator's files, files/<operator>/... */ -}}
{{- define "prefix" -}}
{{- $root := index . 0 -}}
{{ $root.Chart.Name }}{{ if eq (include "operator" $root) "all" }}-{{ index (splitList "/" (index . 1)) 1 }}{{ end }}
{{- end }}

{{- /* Gives values that are not there their default: with --reuse-values they are those of the release before, which may
not have known some. It comes first in each template that reads values. */ -}}
{{- define "defaults" -}}
{{- include "complete" (list .Values (.Files.Get "files/values.yaml" | fromYaml)) }}
{{- end }}

{{- /* Its argument is a list: values, and their defaults. What is within resources or labels is the user's choice, and so
is what is missing there. */ -}}
{{- define "complete" -}}
{{- $values := index . 0 }}
{{- range $name, $default := index . 1 }}
{{- $value := index $values $name }}
{{- if kindIs "invalid" $value }}
{{- $_ := set $values $name $default }}
{{- else if and (kindIs "map" $default) (not (has $name (list "resources" "labels"))) }}
{{- include "complete" (list $value $default) }}
{{- end }}
{{- end }}
{{- end }}
