//go:build apiserver

package rig

import (
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

// asked is what a call requests of the API server, such as "get pods/log".
type asked struct {
	mu     sync.Mutex
	rights []string
}

var requests = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// note notes what a request takes, unless every user may do it. It answers none.
func (a *asked) note(_ http.ResponseWriter, q *http.Request) bool {
	info, err := requests.NewRequestInfo(q)
	if err == nil && info.IsResourceRequest && !strings.HasPrefix(info.Resource, "selfsubject") {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.rights = append(a.rights, strings.TrimSuffix(info.Verb+" "+info.Resource+"/"+info.Subresource, "/"))
	}
	return false
}

// check fails a test if a command requests what the tables of docs/kubectl.md do not have for it.
func (a *asked) check(r *Rig, args []string) {
	r.Helper()
	cmd, _, err := r.root(cli.New(genericiooptions.IOStreams{})).Find(args)
	if err != nil || len(args) == 0 || args[0] == "__complete" {
		return
	}
	name := strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), "kubectl "), "fairlead ")
	page, err := os.ReadFile("../../../docs/kubectl.md")
	if err != nil {
		r.Fatal(err)
	}
	documented, isThere := rightsOf(string(page))[name]
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, right := range a.rights {
		verb, resource, _ := strings.Cut(right, " ")
		isKind := slices.ContainsFunc(cli.Kinds(), func(k cli.Kind) bool { return k.Resource() == resource })
		if isDocumented := documented.Has(right) || isKind && documented.Has(verb+" kind"); isThere && !isDocumented {
			r.Errorf("%s: docs/kubectl.md does not say that it needs to %s: it says %v", strings.Join(args, " "), right, sets.List(documented))
		}
	}
}

var (
	commands         = regexp.MustCompile("`([a-z-]+(?: [a-z-]+)*)")
	verbsOfResources = regexp.MustCompile("((?:`[a-z]+`[, ]*)+)([^`;]*)") // as in: `get`, `list` pods, services
	verbs            = regexp.MustCompile(`[a-z]+`)
	resources        = regexp.MustCompile(`[a-z]+(?:/[a-z]+)?`)
)

// rightsOf are those in the tables of the page, by the words of commands. A row may refer to the one above it, or to one
// that says what "those to" do something are.
func rightsOf(page string) map[string]sets.Set[string] {
	all := map[string]sets.Set[string]{}
	for _, section := range strings.Split(page, "\n## ") {
		var shared, before sets.Set[string]
		var needShared []sets.Set[string]
		isTable, below := false, "" // a command of many
		for line := range strings.Lines(section) {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | ")
			isTable = strings.HasPrefix(line, "| ") && (isTable || cells[0] == "command")
			if !isTable || len(cells) < 2 {
				continue
			}
			rights := sets.New[string]()
			for _, part := range verbsOfResources.FindAllStringSubmatch(cells[len(cells)-1], -1) {
				for _, verb := range verbs.FindAllString(part[1], -1) {
					for _, resource := range resources.FindAllString(part[2], -1) {
						rights.Insert(verb + " " + resource)
					}
				}
			}
			if strings.Contains(cells[len(cells)-1], "the same") && before != nil {
				rights = rights.Union(before)
			}
			if strings.Contains(cells[len(cells)-1], "those to") {
				needShared = append(needShared, rights)
			}
			if before = rights; strings.HasPrefix(cells[0], "to ") {
				shared = rights
			}
			for _, command := range commands.FindAllStringSubmatch(cells[0], -1) {
				if command[1] == "kubectl at" {
					all["at"], below = rights, "at "
				} else {
					all[below+command[1]] = rights
				}
			}
		}
		for _, rights := range needShared {
			for right := range shared {
				rights.Insert(right)
			}
		}
	}
	return all
}
