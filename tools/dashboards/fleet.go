package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// fleet is where to look first: which object is in trouble, and what to do.
func fleet(runbooks []runbook) *classic {
	const chosen, problem = `kind=~"$kind",namespace=~"$namespace"`, `max by (group, kind, namespace, name) (fairlead_object_problem{kind=~"$kind",namespace=~"$namespace"`
	// Alerts about an operator have no namespace.
	const alert = `{alertname=~"Fairlead.+",namespace=~"$namespace|"`
	const ready = `sum by (kind) (fairlead_objects{condition="Ready",kind=~"$kind"})`
	return newDashboard("Fairlead / Fleet", "All objects of Fairlead's operators: which one is in trouble, since when, why, and what to do.",
		variable("kind", "Kind", "label_values(fairlead_objects, kind)"),
		variable("namespace", "Namespace", `label_values(fairlead_object_problem{kind=~"$kind"}, namespace)`)).
		WithPanel(figure("Objects with a problem", "Objects that are not Ready and should be. An At that waits or runs has none.", units.Short, "0", fewIsOK,
			query{"count(" + problem + "}))", "objects"})).
		WithPanel(figure("Not available", "Of these, the objects that serve nobody.", units.Short, "0", noneIsOK,
			query{"count(" + problem + `,available="False"}))`, "objects"})).
		WithPanel(figure("Critical alerts", "Alerts that fire, and of which somebody should know now.", units.Short, "0", noneIsOK,
			query{"count(ALERTS" + alert + `,alertstate="firing",severity="critical"})`, "alerts"})).
		WithPanel(figure("Warnings", "Alerts that fire, and that can wait for the morning.", units.Short, "0", fewIsOK,
			query{"count(ALERTS" + alert + `,alertstate="firing",severity="warning"})`, "alerts"})).
		WithPanel(figure("Objects", "All objects that the operators work for.", units.Short, "0", neutral,
			query{`sum(fairlead_objects{condition="Ready",kind=~"$kind"})`, "objects"})).
		WithPanel(figure("Managers without a leader", "Without a leader nothing is done for any object, and no object is known here.", units.Short, "no manager", noneIsOK,
			query{"sum(1 - max by (name) (leader_election_master_status{" + locks + "}))", "managers"})).
		WithPanel(notReady(runbooks, chosen)).
		WithPanel(list("Alerts, and their runbooks", "Alerts of Fairlead's rules that fire or are about to, and since when. They are there where Prometheus has loaded the rules.",
			"No alert", "ALERTS"+alert+"} * ignoring (alertstate) group_left () (time() - ALERTS_FOR_STATE"+alert+"})",
			column{"severity", "Severity", colored(map[string]string{"critical": red, "warning": orange, "info": blue})},
			column{"alertstate", "State", nil},
			column{"alertname", "Runbook", linked("Open the runbook", "${runbooks}/${__value.raw}.md")},
			column{"kind", "Kind", nil},
			column{"namespace", "Namespace", nil},
			column{"name", "Name", nil},
			column{"reason", "Reason", nil},
			column{"operator", "Operator", nil},
			column{"Value", "For", nil},
		)).
		WithRow(row("Over time")).
		WithPanel(stacked(course("Objects with a problem", "By kind.", units.Short, query{"count by (kind) (" + problem + "}))", "{{kind}}"}))).
		WithPanel(course("Share without a problem", "Of the objects of a kind, in all namespaces.", units.PercentUnit, query{
			`1 - ((count by (kind) (max by (group, kind, namespace, name) (fairlead_object_problem{kind=~"$kind"})) or 0 * ` + ready + `)` +
				` + sum by (kind) (fairlead_object_problems_omitted{kind=~"$kind"})) / ` + ready, "{{kind}}"})).
		WithPanel(course("Objects", "By kind, in all namespaces.", units.Short, query{ready, "{{kind}}"})).
		WithPanel(course("Problems without a name", "Of each kind 500 objects have a name in these dashboards and in alerts, the worst first. These are the others.", units.Short,
			query{`sum by (kind) (fairlead_object_problems_omitted{kind=~"$kind"})`, "{{kind}}"})).
		WithPanel(course("Writes that were refused or failed", "Refused: the object says by whom, and why. Failed: tried again.", units.OpsPerSecond,
			query{`sum by (kind, result) (rate(fairlead_writes_total{kind=~"$kind",result=~"refused|failed"}[$__rate_interval]))`, "{{kind}}: {{result}}"})).
		WithPanel(repairs("$kind"))
}
