//go:build e2e

// Command exporter stands in for the exporter of memcached's metrics: it takes
// the same two flags, and serves what the server's command stats says, by the
// names of prom/memcached-exporter.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"time"
)

// names are those of the exporter, by those of memcached.
var names = map[string]string{
	"curr_items":       "memcached_current_items",
	"bytes":            "memcached_current_bytes",
	"limit_maxbytes":   "memcached_limit_bytes",
	"curr_connections": "memcached_current_connections",
	"evictions":        "memcached_items_evicted_total",
	"get_hits":         `memcached_commands_total{command="get",status="hit"}`,
	"get_misses":       `memcached_commands_total{command="get",status="miss"}`,
	"cmd_set":          `memcached_commands_total{command="set",status="hit"}`,
}

func main() {
	memcached := flag.String("memcached.address", "", "the `address` of memcached")
	listen := flag.String("web.listen-address", "", "the `address` to serve at")
	flag.Parse()
	http.HandleFunc("/metrics", func(w http.ResponseWriter, r *http.Request) {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(r.Context(), "tcp", *memcached)
		if err != nil {
			fmt.Fprintln(w, "memcached_up 0")
			return
		}
		defer conn.Close()
		fmt.Fprintln(w, "memcached_up 1")
		fmt.Fprint(conn, "stats\r\nquit\r\n")
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			if words := strings.Fields(lines.Text()); len(words) == 3 && names[words[1]] != "" {
				fmt.Fprintln(w, names[words[1]], words[2])
			}
		}
	})
	log.Fatal(http.ListenAndServe(*listen, nil))
}
