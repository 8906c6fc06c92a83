#!/usr/bin/env bash
# Names the known vulnerabilities that the code of each module reaches. Without
# a database of them nothing is checked, and that is said.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

db=$(hack/vulnerabilities.sh) || exit 1
found=0
for module in . localcluster tools tools/dist tools/olm tools/dashboards test/torture; do
	echo "== $module"
	out=$(cd "$module" && "$OLDPWD/bin/govulncheck" -db "$db" ./... 2>&1)
	case $? in
	0 | 3) ;;
	*)
		printf '%s\nvulncheck: %s was not checked, see above\n' "$out" "$module" >&2
		exit 1
		;;
	esac
	echo "$out"
	grep -q '^Your code is affected' <<<"$out" && found=1
done
exit $found
