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

{{- /* The content of a file, with the documentation at the address that the values have. Its argument is a list: the root, and
the file's path. */ -}}
{{- define "file" -}}
{{- $root := index . 0 -}}
{{- $address := ($root.Files.Get "files/values.yaml" | fromYaml).documentation -}}
{{- $root.Files.Get (index . 1) | replace $address ($root.Values.documentation | default $address | trimSuffix "/") }}
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

{{- /* Completes the values: with --reuse-values they are those of an older version in place of this one's. What that
version did not have gets its default. What is missing otherwise, a user has removed with null: a map is empty then. It
comes first in each template that reads values. */ -}}
{{- define "defaults" -}}
{{- $defaults := .Files.Get "files/values.yaml" | fromYaml }}
{{- include "complete" (list .Values $defaults "" (int .Values.valuesVersion)) }}
{{- $_ := set .Values "valuesVersion" $defaults.valuesVersion }}
{{- end }}

{{- /* The values that came after the first release, with the valuesVersion since which they, and all in them, are there. */ -}}
{{- define "since" -}}
admissionPolicy: 1
documentation: 1
metrics.dashboards: 1
metrics.podMonitor: 1
metrics.prometheusRule: 1
metrics.serviceMonitor: 1
networkPolicy: 1
nodesRole: 1
{{- end }}

{{- /* Its argument is a list: values, their defaults, where they are, and their valuesVersion; -1 where all is new. */ -}}
{{- define "complete" -}}
{{- $values := index . 0 }}
{{- $where := index . 2 }}
{{- $version := index . 3 }}
{{- $since := include "since" . | fromYaml }}
{{- range $name, $default := index . 1 }}
{{- $later := gt (index $since (print $where $name) | int) $version }}
{{- if and $later (not (hasKey $values $name)) }}
{{- $_ := set $values $name $default }}
{{- else if kindIs "map" $default }}
{{- if kindIs "invalid" (index $values $name) }}
{{- $_ := set $values $name (dict) }}
{{- end }}
{{- if or (empty $default) (has $name (list "resources" "labels")) }}
{{- include "removeNulls" (index $values $name) }}
{{- else }}
{{- include "complete" (list (index $values $name) $default (print $where $name ".") (ternary -1 $version $later)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Removes the nulls from a map whose content is the user's choice. */ -}}
{{- define "removeNulls" -}}
{{- range $name, $value := . }}
{{- if kindIs "invalid" $value }}
{{- $_ := unset $ $name }}
{{- else if kindIs "map" $value }}
{{- include "removeNulls" $value }}
{{- end }}
{{- end }}
{{- end }}
