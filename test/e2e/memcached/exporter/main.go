//go:build e2e

// Command exporter stands in for the exporter of memcached's metrics: it takes
// the same two flags, and serves what the server's command stats says.
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
			if words := strings.Fields(lines.Text()); len(words) == 3 && words[1] == "curr_items" {
				fmt.Fprintln(w, "memcached_current_items", words[2])
			}
		}
	})
	log.Fatal(http.ListenAndServe(*listen, nil))
}
