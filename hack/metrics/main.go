// Command metrics prints docs/metrics.md: what every metric of the operators says, from the code
// that makes it.
package main

import (
	"fmt"
	"strings"

	"example.com/fairlead/internal/kit/metrics"
	_ "example.com/fairlead/operators/at"
	_ "example.com/fairlead/operators/etcd"
	_ "example.com/fairlead/operators/memcached"
	_ "example.com/fairlead/operators/webserver"
)

const head = `<!-- Made by hack/metrics from the code: change it there. -->
# Metrics

A manager serves these over HTTPS, to whoever may read them ([the manager](manager.md)). Counters and histograms have a
zero from the start, so that the first time is an increase; they begin anew with the process. What objects are is known
to the leader only: the other replicas have no series of it. controller-runtime's own metrics are there too:
` + "`controller_runtime_reconcile_errors_total`, `workqueue_depth`, `rest_client_requests_total`," + `
` + "`leader_election_master_status`" + ` and others.

**Only trouble has a name.** An object that is well has no series of its own, so that a large fleet costs nothing. One
that is not Ready is in ` + "`fairlead_object_problem`; a metric with the labels `namespace` and `name`" + ` has one series,
of the object that is worst off. A scrape with 10,000 objects, of which 1,000 are in trouble, takes a few milliseconds
(` + "`go test -bench Scrape ./internal/kit/metrics`" + `).

`

// sections are the parts of the page, by the beginning of the names. The first that fits counts.
var sections = []struct{ title, prefix string }{
	{"At", "fairlead_at"},
	{"Memcached", "fairlead_memcached_"},
	{"WebServer", "fairlead_webserver_"},
	{"EtcdCluster, EtcdBackup and EtcdRestore", "fairlead_etcd_"},
	{"All kinds", "fairlead_"},
}

func main() {
	in := map[string][]*metrics.Family{}
	for _, f := range metrics.Families() {
		for _, s := range sections {
			if strings.HasPrefix(f.Name, s.prefix) {
				in[s.title] = append(in[s.title], f)
				break
			}
		}
	}
	fmt.Print(head)
	last := len(sections) - 1
	for i := range sections {
		s := sections[(i+last)%len(sections)] // what all have comes first
		fmt.Printf("## %s\n\n| metric | type | labels | what |\n| --- | --- | --- | --- |\n", s.title)
		for _, f := range in[s.title] {
			fmt.Printf("| `%s` | %s | %s | %s |\n", f.Name, f.Type, strings.Join(f.Labels, ", "), f.Help)
		}
		fmt.Println()
	}
}
