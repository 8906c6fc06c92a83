package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// day is how many seconds it has.
const day = 86400

// etcd is about clusters, their backups and restores, and what the members say themselves.
func etcd(runbooks []runbook) *classic {
	const kinds = "EtcdCluster|EtcdBackup|EtcdRestore"
	variables := append(ofObjects(kinds), variable("cluster", "Cluster that is scraped", "label_values(etcd_server_has_leader, etcd_cluster)"))
	d := newDashboard("Fairlead / etcd", "Clusters of etcd, their backups and restores: is there a quorum, room, and a backup to go back to?", variables...).
		WithPanel(figure("Clusters", "All EtcdClusters.", units.Short, "0", neutral, query{`sum(fairlead_objects{kind="EtcdCluster",condition="Ready"})`, "clusters"})).
		WithPanel(figure("Not available", "Clusters that serve nobody: no quorum, or a Service that leads to none of its members.", units.Short, "0", noneIsOK,
			query{`count(max by (namespace, name) (fairlead_object_problem{kind="EtcdCluster",available="False",` + chosen + "}))", "clusters"})).
		WithPanel(figure("Without a leader", "Clusters that take no writes. An election takes a moment.", units.Short, "0", noneIsOK, query{"sum(fairlead_etcd_clusters_without_leader)", "clusters"})).
		WithPanel(figure("Members not ready", "Members that do not serve, learners left out.", units.Short, "0", fewIsOK, query{`sum(fairlead_etcd_members{state="not_ready"})`, "members"})).
		WithPanel(figure("Fullest database", "Size by quota, of the member for which that is greatest. At 100% the cluster takes no writes; over 80% there is an alert.",
			units.PercentUnit, "no quota", from(green).at(0.6, yellow).at(0.8, red), query{"max(fairlead_etcd_database_quota_ratio{" + chosen + "})", "full"})).
		WithPanel(figure("First certificate to expire", "What is left of it. Alerts are at 14 and at 3 days.", units.DurationSeconds, "no TLS", from(red).at(3*day, orange).at(14*day, green),
			query{"min(fairlead_etcd_certificate_expiry_timestamp_seconds{" + chosen + "} - time())", "left"})).
		WithPanel(notReady(runbooks, `kind=~"`+kinds+`",`+chosen))
	return members(backups(d.WithRow(row("Clusters")).
		WithPanel(stacked(course("Members", "Ready ones serve; learners are not voters yet.", units.Short, query{"sum by (state) (fairlead_etcd_members)", "{{state}}"}))).
		WithPanel(course("Changes of leader", "That the operator saw, also those that it requested itself.", units.Short, query{"sum(increase(fairlead_etcd_leader_changes_total[$__rate_interval]))", "changes"})).
		WithPanel(course("Changes of members", "What the operator requested from etcd.", units.Short, query{often("fairlead_etcd_member_requests_total", "change"), "{{change}}"})).
		WithPanel(limit(course("Fullest database", "The EtcdCluster with the member that has the greatest part of its quota.", units.PercentUnit,
			query{"max by (namespace, name) (fairlead_etcd_database_quota_ratio{" + chosen + "})", "{{namespace}}/{{name}}"}), from(green).at(0.8, red))).
		WithPanel(course("First certificate to expire", "The EtcdCluster of which a certificate, or its CA, expires first.", units.Seconds,
			query{"min by (namespace, name) (fairlead_etcd_certificate_expiry_timestamp_seconds{" + chosen + "} - time())", "{{namespace}}/{{name}}"})).
		WithPanel(course("Members that share a node", "They may be lost at once. The EtcdCluster that has most.", units.Short,
			query{"max by (namespace, name) (fairlead_etcd_members_sharing_node{" + chosen + "})", "{{namespace}}/{{name}}"})).
		WithPanel(repairs(kinds))))
}

// backups is the row about backups and restores.
func backups(d *classic) *classic {
	const success, proof = "time() - fairlead_etcd_backup_last_success_timestamp_seconds{" + chosen + "}", "time() - fairlead_etcd_backup_last_proof_timestamp_seconds{" + chosen + "}"
	return d.WithRow(row("Backups and restores")).
		WithPanel(figure("Most overdue backup", "How long a backup has been due, of the periodic EtcdBackup where that is longest. After 2 hours there is an alert.", units.DurationSeconds, "no backups",
			from(green).at(3600, yellow).at(2*3600, red), query{"max(clamp_min(time() - fairlead_etcd_backup_due_timestamp_seconds{" + chosen + "}, 0))", "overdue"}).Span(6)).
		WithPanel(figure("Most overdue proof", "How long the backup after the last proved one has been due, of the periodic EtcdBackup with verify: Restore where that is longest. After 6 hours there is an alert.", units.DurationSeconds, "no proofs",
			from(green).at(2*3600, yellow).at(6*3600, orange), query{"max(clamp_min(time() - fairlead_etcd_backup_proof_due_timestamp_seconds{" + chosen + "}, 0))", "overdue"}).Span(6)).
		WithPanel(figure("Backups that fail", "EtcdBackups of which the last try has failed.", units.Short, "0", fewIsOK, query{"sum(fairlead_etcd_backup_failures)", "backups"}).Span(6)).
		WithPanel(figure("Restores that failed", "In the time shown. Nothing is tried again after that.", units.Short, "0", noneIsOK, query{inRange(`fairlead_etcd_restores_total{result="failed"}`), "restores"}).Span(6)).
		WithPanel(course("Age of the last backup and proof", "Of the EtcdBackups where it is longest ago.", units.Seconds,
			query{"max by (namespace, name) (" + success + ")", "backup of {{namespace}}/{{name}}"}, query{"max by (namespace, name) (" + proof + ")", "proof of {{namespace}}/{{name}}"}).Span(6)).
		WithPanel(course("Time to save a backup", "Without its proof and the start of its pod.", units.Seconds, quantiles("fairlead_etcd_backup_duration_seconds_bucket")...).Span(6)).
		WithPanel(course("Size of backups", "Of those that were made.", units.BytesIEC,
			query{"sum(increase(fairlead_etcd_backup_size_bytes_sum[$__rate_interval])) / sum(increase(fairlead_etcd_backup_size_bytes_count[$__rate_interval]))", "on average"}).Span(6)).
		WithPanel(course("Restores that ended", "Done, or failed.", units.Short, query{often("fairlead_etcd_restores_total", "result"), "{{result}}"}).Span(6))
}

// members is the row of what etcd says itself.
func members(d *classic) *classic {
	const cluster, member = `namespace=~"$namespace",etcd_cluster=~"$cluster"`, "{{namespace}}/{{pod}}"
	slowest := func(histogram string) query {
		return query{"histogram_quantile(0.99, sum by (le, namespace, pod) (rate(" + histogram + "_bucket{" + cluster + "}[$__rate_interval])))", member}
	}
	return d.WithRow(row("What the members say: needs the PodMonitor etcd-members")).
		WithPanel(limit(course("Members that see a leader", "Of the members that are scraped. A member that does not takes no writes.", units.PercentUnit,
			query{"avg by (namespace, etcd_cluster) (etcd_server_has_leader{" + cluster + "})", "{{namespace}}/{{etcd_cluster}}"}), from(red).at(1, green))).
		WithPanel(course("Entries behind", "How many entries of the log a member has applied less than the one that has most.", units.Short,
			query{"max by (namespace, etcd_cluster) (etcd_server_proposals_applied_total{" + cluster + "})\n- on (namespace, etcd_cluster) group_right ()\nmax by (namespace, etcd_cluster, pod) (etcd_server_proposals_applied_total{" + cluster + "})", member})).
		WithPanel(course("Proposals", "Committed ones are writes that a quorum has. Those that fail are mostly for want of a leader.", units.OpsPerSecond,
			query{"max by (namespace, etcd_cluster) (rate(etcd_server_proposals_committed_total{" + cluster + "}[$__rate_interval]))", "committed in {{namespace}}/{{etcd_cluster}}"},
			query{"sum by (namespace, etcd_cluster) (rate(etcd_server_proposals_failed_total{" + cluster + "}[$__rate_interval]))", "failed in {{namespace}}/{{etcd_cluster}}"})).
		WithPanel(course("Database", "The file, and what of it is in use. Defragmentation gives the rest back.", units.BytesIEC,
			query{"etcd_mvcc_db_total_size_in_bytes{" + cluster + "}", member}, query{"etcd_mvcc_db_total_size_in_use_in_bytes{" + cluster + "}", "in use in " + member})).
		WithPanel(limit(course("Database by quota", "At 100% the cluster takes no writes.", units.PercentUnit,
			query{"etcd_mvcc_db_total_size_in_bytes{" + cluster + "} / etcd_server_quota_backend_bytes{" + cluster + "}", member}), from(green).at(0.8, red))).
		WithPanel(course("Requests", "Of clients, by how they ended.", units.RequestsPerSecond,
			query{"sum by (grpc_code) (rate(grpc_server_handled_total{" + cluster + `,grpc_type="unary"}[$__rate_interval]))`, "{{grpc_code}}"})).
		WithPanel(limit(course("Time to write the log", "99 of 100 are done in it. Over 10 ms the disk is slow for etcd.", units.Seconds, slowest("etcd_disk_wal_fsync_duration_seconds")), from(green).at(0.01, orange))).
		WithPanel(limit(course("Time to commit to the database", "99 of 100 are done in it. Over 25 ms the disk is slow for etcd.", units.Seconds, slowest("etcd_disk_backend_commit_duration_seconds")), from(green).at(0.025, orange))).
		WithPanel(course("Round trip between members", "99 of 100 are done in it. It should be far below the heartbeat's 100 ms.", units.Seconds, slowest("etcd_network_peer_round_trip_time_seconds")))
}
