package status

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

// nothing is said where there is no object.
const nothing = "There is nothing of Fairlead's here.\n"

// Text is what the command says of objects, without what is beside them: a line for each, and then a screen for each.
func Text(c *cli.CLI, all []Health, now time.Time) (string, error) {
	plainly := *c
	plainly.IsTerminal = false
	s := &status{CLI: &plainly, allNamespaces: true}
	var details, table bytes.Buffer
	for _, h := range all {
		_, _ = fmt.Fprintf(&details, "\nnamespace %s\n", h.namespace)
		if err := s.detail(&details, h, nil, now); err != nil {
			return "", err
		}
	}
	if len(all) == 0 {
		return nothing, nil
	}
	sortByHealth(all)
	err := s.table(&table, all, nil, now)
	return table.String() + details.String(), err
}

// print prints objects, as kubectl get does.
func (o *status) print(screen io.Writer, objects ...runtime.Object) error {
	printer, err := o.printing.ToPrinter()
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := printer.PrintObj(object, screen); err != nil {
			return err
		}
	}
	return nil
}

// printAll prints a list, or what is called for of each.
func (o *status) printAll(screen io.Writer, all []Health) error {
	list := &corev1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}}
	var objects []runtime.Object
	for _, h := range all {
		objects = append(objects, h.withVerdict())
		list.Items = append(list.Items, runtime.RawExtension{Object: h.withVerdict()})
	}
	if *o.printing.OutputFormat == "name" { // of which the printer takes no list
		return o.print(screen, objects...)
	}
	return o.print(screen, list)
}

// table is a line for each. What is not known is first: nobody may miss that it is not there.
func (o *status) table(screen io.Writer, all []Health, missing []unlisted, now time.Time) error {
	w := printers.GetNewTabWriter(screen)
	row := func(cells ...string) { _, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) }
	where := func(namespace string) string {
		if o.allNamespaces {
			return namespace + "\t"
		}
		return ""
	}
	isWide := o.printing != nil && *o.printing.OutputFormat == "wide"
	row(where("NAMESPACE")+"NAME", o.Colour(cli.Plain, "STATUS"), "FOR", "MESSAGE")
	for _, m := range missing {
		row(where("")+m.resource, o.Colour(cli.Yellow, "Unknown"), "", m.why)
	}
	for _, h := range all {
		why := h.message
		if h.IsWell && !isWide {
			why = ""
		}
		row(where(h.namespace)+h.kind+"/"+h.name, o.state(h), cli.Age(h.since.Time, now), why)
	}
	return w.Flush()
}

func (o *status) state(h Health) string {
	if h.IsWell {
		return o.Colour(cli.Green, h.reason)
	}
	return o.Colour(cli.Red, h.reason)
}

// detail is a screen about one object, and what is beside it.
func (o *status) detail(screen io.Writer, h Health, beside cli.Page, now time.Time) error {
	word := map[bool]string{true: "well", false: "not well"}[h.IsWell]
	var p cli.Page
	p.Add(h.kind+"/"+h.name, "%s: %s, since %s", word, o.state(h), cli.Age(h.since.Time, now))
	p.Add("", "%s", h.message)
	p = slices.Concat(p, detailsOf(h.object, now), beside)
	for _, c := range conditionsOf(h.object) {
		isSaid := slices.Contains([]string{"Ready", "Available", "Complete", "Failed", "Reconciling", "Stalled"}, c.Type)
		if c.Status == metav1.ConditionTrue && !isSaid {
			p.Add(c.Type, "%s: %s", c.Reason, c.Message)
		}
	}
	w := printers.GetNewTabWriter(screen)
	for _, line := range p {
		_, _ = fmt.Fprintf(w, "%s\t%s\n", line[0], strings.ReplaceAll(line[1], "\n", " "))
	}
	return w.Flush()
}
