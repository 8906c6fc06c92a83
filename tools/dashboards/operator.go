package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// locks are the Leases of the managers.
const locks = `name=~"(at|memcached|webserver|etcd)-operator-leader|fairlead-leader"`

// operator is about the managers themselves.
func operator() *classic {
	const manager, instance = `namespace=~"$manager"`, "{{namespace}}, {{instance}}"
	const writes = `fairlead_writes_total{namespace=~"$manager"`
	slowest := func(histogram, by string) string {
		return "histogram_quantile(0.99, sum by (le, " + by + ") (rate(" + histogram + "_bucket{" + manager + "}[$__rate_interval])))"
	}
	return newDashboard("Fairlead / Operator", "The managers: do they lead, do they get on, and what do they cost?",
		// Other operators have the same metrics of controller-runtime: these are the namespaces of Fairlead's.
		variable("manager", "Namespace of the manager", "label_values(fairlead_rights_missing, namespace)").AllValue("")).
		WithPanel(figure("Replicas", "Managers that are scraped.", units.Short, "none", from(red).at(1, blue), query{"count(fairlead_rights_missing{" + manager + "})", "replicas"})).
		WithPanel(figure("Managers without a leader", "Nothing is done for any object while it is so.", units.Short, "no manager", noneIsOK,
			query{"sum(1 - max by (name) (leader_election_master_status{" + locks + "," + manager + "}))", "managers"})).
		WithPanel(figure("Rights missing", "Rights without which a manager cannot watch what it works for. Its log names them.", units.Short, "none", noneIsOK,
			query{"sum(max by (namespace) (fairlead_rights_missing{" + manager + "}))", "rights"})).
		WithPanel(figure("Errors", "Steps that failed and are tried again, in the last minutes.", units.OpsPerMinute, "0", from(green).at(1, orange),
			query{"60 * sum(rate(controller_runtime_reconcile_errors_total{" + manager + "}[$__rate_interval]))", "errors"})).
		WithPanel(figure("Writes refused", "By the API server, admission or another server, in the last minutes. The objects say by whom, and why.", units.OpsPerMinute, "0", from(green).at(1, orange),
			query{"60 * sum(rate(" + writes + `,result="refused"}[$__rate_interval]))`, "writes"})).
		WithPanel(figure("Waiting in queues", "Objects that are to be looked at. It is not for long.", units.Short, "0", from(green).at(100, yellow).at(1000, orange),
			query{"sum(workqueue_depth{" + manager + "})", "objects"})).
		WithRow(row("Leaders and rights")).
		WithPanel(course("Leaders", "1: some replica leads.", units.Short, query{"max by (name) (leader_election_master_status{" + locks + "," + manager + "})", "{{name}}"})).
		WithPanel(course("Rights missing", "By manager.", units.Short, query{"max by (namespace) (fairlead_rights_missing{" + manager + "})", "{{namespace}}"})).
		WithPanel(course("Errors", "Steps that failed and are tried again.", units.OpsPerSecond,
			query{"sum by (controller) (rate(controller_runtime_reconcile_errors_total{" + manager + "}[$__rate_interval]))", "{{controller}}"})).
		WithRow(row("Work")).
		WithPanel(course("Looks at objects", "By controller.", units.OpsPerSecond, query{"sum by (controller) (rate(controller_runtime_reconcile_total{" + manager + "}[$__rate_interval]))", "{{controller}}"})).
		WithPanel(course("Time for a look", "99 of 100 are done in it.", units.Seconds, query{slowest("controller_runtime_reconcile_time_seconds", "controller"), "{{controller}}"})).
		WithPanel(course("Wait in queues", "99 of 100 wait no longer.", units.Seconds, query{slowest("workqueue_queue_duration_seconds", "name"), "{{name}}"})).
		WithPanel(course("Writes by result", "Conflict: something was otherwise than the operator saw it, and it looks again.", units.OpsPerSecond,
			query{"sum by (result) (rate(" + writes + "}[$__rate_interval]))", "{{result}}"})).
		WithPanel(course("Writes by name", "The ten most frequent, by the names that the log has.", units.OpsPerSecond,
			query{"topk(10, sum by (kind, write) (rate(" + writes + "}[$__rate_interval])))", "{{kind}}: {{write}}"})).
		WithPanel(course("Requests to the API server", "By the answer's code. Watches are one request each.", units.RequestsPerSecond,
			query{"sum by (method, code) (rate(rest_client_requests_total{" + manager + "}[$__rate_interval]))", "{{method}} {{code}}"})).
		WithRow(row("Costs")).
		WithPanel(course("Memory", "Resident, of each replica. The limit is 1 GiB unless you set another.", units.BytesIEC, query{"process_resident_memory_bytes{" + manager + "}", instance})).
		WithPanel(course("CPU", "Cores that each replica uses.", units.Short, query{"rate(process_cpu_seconds_total{" + manager + "}[$__rate_interval])", instance})).
		WithPanel(course("Goroutines", "Of each replica. They grow with objects, and go when those are gone.", units.Short, query{"go_goroutines{" + manager + "}", instance}))
}
