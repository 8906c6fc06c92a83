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

// head begins the page; its code is in single quotes.
const head = `<!-- Made by hack/metrics from the code: change it there. -->
# Metrics

Each replica of a manager serves these metrics over HTTPS, to every client that [has the
permission](manager.md#metrics). Counters and histograms start at zero, so that the first occurrence is an increase;
they restart with the process. Only the leader knows the state of the objects: the other replicas have no series of it.
The metrics of controller-runtime are served too: 'controller_runtime_reconcile_errors_total', 'workqueue_depth',
'rest_client_requests_total', 'leader_election_master_status' and others.

**Only objects with a problem have series of their own**, so that a large fleet costs nothing. An object that is not
Ready has a series in 'fairlead_object_problem'. A metric with the labels 'namespace' and 'name' has one series, of the
worst object. A scrape with 10,000 objects, of which 1,000 have a problem, takes a few milliseconds ('go test -bench
Scrape ./internal/kit/metrics').

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
	fmt.Print(strings.ReplaceAll(head, "'", "`"))
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
