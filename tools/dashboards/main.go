// Command dashboards writes the dashboards for Grafana into the folders of the operators, from where they are
// installed: docs/dashboards.md. It runs in the repository's root.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// operators have a dashboard each. Kinds are those that they work for.
var operators = []struct{ name, kinds string }{
	{"at", "At"},
	{"memcached", "Memcached"},
	{"webserver", "WebServer"},
	{"etcd", "EtcdCluster|EtcdBackup|EtcdRestore"},
}

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}

func write() error {
	build := map[string]func([]runbook) *classic{"at": at, "memcached": memcached, "webserver": webserver, "etcd": etcd}
	var all []runbook
	for _, operator := range operators {
		runbooks, err := runbooksOf(operator.name)
		if err != nil {
			return err
		}
		all = append(all, runbooks...)
		if err := writeFile(filepath.Join("operators", operator.name, "config", "grafana"), operator.name, build[operator.name](runbooks)); err != nil {
			return err
		}
	}
	common := filepath.Join("operators", "config", "grafana", "common")
	if err := writeFile(common, "fleet", fleet(all)); err != nil {
		return err
	}
	return writeFile(common, "operator", operator())
}

// writeFile writes a dashboard under a name that it has in Grafana's folder, too, with the numbers of its panels.
func writeFile(folder, name string, builder *classic) error {
	built, err := builder.Uid("fairlead-" + name).Build()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for i, p := range built.Panels {
		id := uint32(i + 1)
		if p.Panel != nil {
			p.Panel.Id = &id
		} else {
			p.RowPanel.Id = id
		}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(built); err != nil {
		return err
	}
	readable := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(text.String())
	return os.WriteFile(filepath.Join(folder, "fairlead-"+name+".json"), []byte(readable), 0o644)
}
