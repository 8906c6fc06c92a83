package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// chosen are the objects that the reader has selected.
const chosen = `namespace=~"$namespace",name=~"$object"`

// ofObjects are the variables for objects of some kinds that are in trouble: the others have no series of their own.
func ofObjects(kinds string) []*dashboard.QueryVariableBuilder {
	return []*dashboard.QueryVariableBuilder{
		variable("namespace", "Namespace", `label_values(fairlead_object_problem{kind=~"`+kinds+`"}, namespace)`),
		variable("object", "Object with a problem", `label_values(fairlead_object_problem{kind=~"`+kinds+`",namespace=~"$namespace"}, name)`),
	}
}

// inRange is how often something happened in the time that the dashboard shows. Prometheus extrapolates.
func inRange(metric string) string { return "round(sum(increase(" + metric + "[$__range])))" }

// often is how often something happened, by labels.
func often(metric, by string) string {
	return "sum by (" + by + ") (increase(" + metric + "[$__rate_interval]))"
}

// quantiles are the median and the 99th percentile of a histogram.
func quantiles(histogram string) []query {
	of := func(q string) string {
		return "histogram_quantile(" + q + ", sum by (le) (increase(" + histogram + "[$__rate_interval])))"
	}
	return []query{{of("0.5"), "half of them"}, {of("0.99"), "99 of 100"}}
}

// at is about commands that run once.
func at(runbooks []runbook) *classic {
	return newDashboard("Fairlead / At", "Commands that run once: do they run on time, and how do they end?", ofObjects("At")...).
		WithPanel(figure("Ats", "All of them, whatever their phase.", units.Short, "0", neutral, query{"sum(fairlead_ats)", "Ats"})).
		WithPanel(figure("Due", "Ats whose time has come, and that have not begun.", units.Short, "0", fewIsOK, query{"sum(fairlead_at_due)", "Ats"})).
		WithPanel(figure("Longest overdue", "How long the At that has waited longest is beyond its time. From two minutes on there is an alert.",
			units.DurationSeconds, "none", from(green).at(30, yellow).at(120, red), query{"max(time() - fairlead_at_due_timestamp_seconds{" + chosen + "})", "overdue"})).
		WithPanel(figure("Done", "Ats that ended well, in the time shown.", units.Short, "0", neutral, query{inRange(`fairlead_at_runs_total{phase="DONE"}`), "Ats"})).
		WithPanel(figure("Failed", "Ats of which the last attempt failed, in the time shown.", units.Short, "0", fewIsOK, query{inRange(`fairlead_at_runs_total{phase="FAILED"}`), "Ats"})).
		WithPanel(figure("Missed", "Ats that did not start within their startingDeadlineSeconds, in the time shown.", units.Short, "0", fewIsOK, query{inRange(`fairlead_at_runs_total{phase="MISSED"}`), "Ats"})).
		WithPanel(notReady(runbooks, `kind="At",`+chosen)).
		WithRow(row("Over time")).
		WithPanel(stacked(course("Ats by phase", "PENDING, RUNNING, DONE, FAILED or MISSED.", units.Short, query{"sum by (phase) (fairlead_ats)", "{{phase}}"}))).
		WithPanel(course("Ends", "How many ended, and how.", units.Short, query{often("fairlead_at_runs_total", "phase"), "{{phase}}"})).
		WithPanel(limit(course("Lateness", "How much later than scheduled the first attempts were allowed to run.", units.Seconds, quantiles("fairlead_at_lateness_seconds_bucket")...),
			from(green).at(1, orange))).
		WithPanel(course("Due", "Ats whose time has come, and that have not begun.", units.Short, query{"sum by (group) (fairlead_at_due)", "{{group}}"})).
		WithPanel(limit(course("Longest overdue", "The At that has waited longest beyond its time.", units.Seconds, query{"max by (namespace, name) (time() - fairlead_at_due_timestamp_seconds{" + chosen + "})", "{{namespace}}/{{name}}"}),
			from(green).at(120, red)))
}

// memcached is about pools, and what their exporters say of the servers.
func memcached(runbooks []runbook) *classic {
	const pool, by, name = `namespace=~"$namespace",memcached_cr=~"$pool"`, " by (namespace, memcached_cr) ", "{{namespace}}/{{memcached_cr}}"
	variables := append(ofObjects("Memcached"), variable("pool", "Pool with an exporter", "label_values(memcached_up, memcached_cr)"))
	return newDashboard("Fairlead / Memcached", "Pools of memcached: do their servers serve, and do changes keep the cache?", variables...).
		WithPanel(figure("Pools", "All Memcacheds.", units.Short, "0", neutral, query{`sum(fairlead_objects{kind="Memcached",condition="Ready"})`, "pools"})).
		WithPanel(figure("Servers that serve", "They are ready, and clients find them.", units.Short, "0", neutral, query{`sum(fairlead_memcached_servers{state="ready"})`, "servers"})).
		WithPanel(figure("Servers that do not", "Not ready, or missing.", units.Short, "0", fewIsOK, query{`sum(fairlead_memcached_servers{state="not_ready"})`, "servers"})).
		WithPanel(figure("Servers at stake", "Servers whose items a cold change in progress will lose.", units.Short, "0", fewIsOK, query{"sum(fairlead_memcached_servers_at_stake)", "servers"})).
		WithPanel(figure("Longest warm change", "How long the warm change that has been in progress for longest has been so. After 30 minutes there is an alert.",
			units.DurationSeconds, "none", from(green).at(900, yellow).at(1800, red), query{"max(time() - fairlead_memcached_change_started_timestamp_seconds{" + chosen + "})", "in progress"})).
		WithPanel(figure("Changes that turned cold", "Changes that could not keep the cache though they were to, in the time shown.", units.Short, "0", fewIsOK,
			query{"sum(increase(fairlead_memcached_changes_total{result=\"turned_cold\"}[$__range]))", "changes"})).
		WithPanel(notReady(runbooks, `kind="Memcached",`+chosen)).
		WithRow(row("Over time")).
		WithPanel(stacked(course("Servers", "Ready, or not; missing ones are not ready, too.", units.Short, query{"sum by (state) (fairlead_memcached_servers)", "{{state}}"}))).
		WithPanel(course("Changes that ended", "Warm ones keep the cache, cold ones lose it, some do not touch it.", units.Short,
			query{often("fairlead_memcached_changes_total", "kind, result"), "{{kind}}: {{result}}"})).
		WithPanel(course("Servers changed", "Servers that were changed in place.", units.Short, query{"sum(increase(fairlead_memcached_server_changes_total[$__rate_interval]))", "servers"})).
		WithPanel(course("Servers at stake", "Servers whose items a cold change in progress will lose.", units.Short, query{"sum(fairlead_memcached_servers_at_stake)", "servers"})).
		WithPanel(limit(course("Longest warm change", "The Memcached whose warm change has been in progress for longest.", units.Seconds,
			query{"max by (namespace, name) (time() - fairlead_memcached_change_started_timestamp_seconds{" + chosen + "})", "{{namespace}}/{{name}}"}), from(green).at(1800, red))).
		WithPanel(repairs("Memcached")).
		WithRow(row("What the exporters say: needs spec.metrics, and the PodMonitor memcached-servers")).
		WithPanel(course("Hit ratio", "Of the reads of a pool, the share that found something. It falls when a cache is lost.", units.PercentUnit,
			query{"sum" + by + `(rate(memcached_commands_total{command="get",status="hit",` + pool + "}[$__rate_interval]))\n/ sum" + by + `(rate(memcached_commands_total{command="get",` + pool + "}[$__rate_interval]))", name})).
		WithPanel(course("Items", "Items that a pool has.", units.Short, query{"sum" + by + "(memcached_current_items{" + pool + "})", name})).
		WithPanel(limit(course("Memory", "Of the memory for items, the share that is used. A full cache evicts what was not read for longest.", units.PercentUnit,
			query{"sum" + by + "(memcached_current_bytes{" + pool + "}) / sum" + by + "(memcached_limit_bytes{" + pool + "})", name}), from(green).at(0.9, orange))).
		WithPanel(course("Commands", "Commands of clients, and whether they found something.", units.OpsPerSecond,
			query{"sum by (command, status) (rate(memcached_commands_total{" + pool + "}[$__rate_interval]))", "{{command}}: {{status}}"})).
		WithPanel(course("Evictions", "Items that had to go before their time, because memory was full.", units.OpsPerSecond,
			query{"sum" + by + "(rate(memcached_items_evicted_total{" + pool + "}[$__rate_interval]))", name})).
		WithPanel(course("Connections", "Open ones, of each server.", units.Short, query{"memcached_current_connections{" + pool + "}", "{{namespace}}/{{pod}}"}))
}

// webserver is about web servers.
func webserver(runbooks []runbook) *classic {
	return newDashboard("Fairlead / WebServer", "Web servers: do they serve, and what was rolled back?", ofObjects("WebServer")...).
		WithPanel(figure("WebServers", "All of them.", units.Short, "0", neutral, query{`sum(fairlead_objects{kind="WebServer",condition="Ready"})`, "WebServers"})).
		WithPanel(figure("Pods that serve", "They are ready.", units.Short, "0", neutral, query{`sum(fairlead_webserver_replicas{state="ready"})`, "pods"})).
		WithPanel(figure("Pods that do not", "Not ready, or missing.", units.Short, "0", fewIsOK, query{`sum(fairlead_webserver_replicas{state="not_ready"})`, "pods"})).
		WithPanel(figure("Not available", "WebServers that serve nobody.", units.Short, "0", noneIsOK, query{`sum(fairlead_objects{kind="WebServer",condition="Available",status!="True"})`, "WebServers"})).
		WithPanel(figure("Rollouts that ended", "In the time shown, the first one of a WebServer included.", units.Short, "0", neutral, query{inRange("fairlead_webserver_rollouts_total"), "rollouts"})).
		WithPanel(figure("Rolled back", "Rollouts that did not become healthy, in the time shown.", units.Short, "0", fewIsOK, query{inRange(`fairlead_webserver_rollouts_total{result="rolled_back"}`), "rollouts"})).
		WithPanel(notReady(runbooks, `kind="WebServer",`+chosen)).
		WithRow(row("Over time")).
		WithPanel(stacked(course("Pods", "Ready, or not; missing ones are not ready, too.", units.Short, query{"sum by (state) (fairlead_webserver_replicas)", "{{state}}"}))).
		WithPanel(course("Rollouts that ended", "Done: the revision became healthy.", units.Short, query{often("fairlead_webserver_rollouts_total", "result"), "{{result}}"})).
		WithPanel(course("Rolled back, by reason", "Why the revision did not become healthy.", units.Short, query{often("fairlead_webserver_rollbacks_total", "reason"), "{{reason}}"})).
		WithPanel(repairs("WebServer"))
}
