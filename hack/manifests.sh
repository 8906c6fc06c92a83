#!/usr/bin/env bash
# Generates the CRDs, the role and the PrometheusRule of each operator that is named, the dashboards, and the health
# checks for Argo CD of all kinds.
#
# Usage: hack/manifests.sh OPERATOR...
set -euo pipefail
shopt -s extglob
cd "$(dirname "$0")/.."

for operator in "$@"; do
	config=operators/$operator/config
	# The API packages that an operator imports are the ones it serves.
	apis=$(go list -f '{{range .Imports}}{{println .}}{{end}}' "./operators/$operator/..." |
		sed -n 's|^example.com/fairlead/\(api/.*\)|./\1|p' | sort -u | paste -sd ';')
	bin/controller-gen crd:generateEmbeddedObjectMeta=true paths="$apis" output:crd:dir="$config/crd"
	bin/crdtrim "$config"/crd/!(kustomization).yaml
	bin/controller-gen rbac:roleName=manager-role paths="./operators/$operator/..." output:rbac:dir="$config/rbac"
	{
		printf '%s\n' '# Made by hack/manifests.sh from rules.yaml: change it there.' \
			'apiVersion: monitoring.coreos.com/v1' 'kind: PrometheusRule' metadata: '  name: rules' spec:
		sed 's/^./  &/' "$config/prometheus/rules.yaml"
	} > "$config/prometheus/prometheusrule.yaml"
done

bin/dashboards

# kinds lists those of all operators, as Argo CD names them.
kinds() {
	for crd in operators/*/config/crd/*_*.yaml; do
		sed -n '/^  group: /{s///;h}; /^    kind: /{s///;H;g;s/\n/_/p;q}' "$crd"
	done
}

{
	printf '%s\n' '# Made by hack/manifests.sh from health.lua: change it there.' \
		'apiVersion: v1' 'kind: ConfigMap' metadata: '  name: argocd-cm' data:
	script='&health |'
	for kind in $(kinds); do
		printf '  resource.customizations.health.%s: %s\n' "$kind" "$script"
		[[ $script == '*health' ]] || sed 's/^./    &/' operators/config/argocd/health.lua
		script='*health'
	done
} > operators/config/argocd/argocd-cm.yaml
