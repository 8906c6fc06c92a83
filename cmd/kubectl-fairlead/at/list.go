package at

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

type list struct {
	*cli.CLI
	printing      *genericclioptions.PrintFlags
	allNamespaces bool
}

func listCommand(c *cli.CLI) *cobra.Command {
	o := &list{CLI: c, printing: genericclioptions.NewPrintFlags("").WithTypeSetter(cli.Scheme())}
	cmd := &cobra.Command{
		Use:               "list [NAME...]",
		Aliases:           []string{"ls", "get", "atq"},
		Short:             "List Ats by their time, as atq does",
		Example:           "  kubectl at list\n  kubectl at list -A -o wide --tz UTC\n  kubectl at get at-x7k2p -o yaml",
		ValidArgsFunction: completeAts(c),
		RunE:              func(cmd *cobra.Command, names []string) error { return o.run(cmd, names) },
	}
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "List the Ats of all namespaces")
	o.AddPrinting(cmd, o.printing, "wide")
	return cmd
}

func (o *list) run(cmd *cobra.Command, names []string) error {
	now, err := o.Here()
	if err != nil {
		return err
	}
	var printer printers.ResourcePrinter
	output := *o.printing.OutputFormat
	if output != "" && output != "wide" {
		if printer, err = o.printing.ToPrinter(); err != nil {
			return err
		}
	}
	k, namespace, err := o.Client()
	if err != nil {
		return err
	}
	if o.allNamespaces {
		namespace = ""
	}
	var ats atv1alpha1.AtList
	if err := k.List(cmd.Context(), &ats, client.InNamespace(namespace)); err != nil {
		return cli.Explain(err)
	}
	if len(names) == 0 {
		return o.show(&ats, printer, namespace, now)
	}
	ats.Items = slices.DeleteFunc(ats.Items, func(at atv1alpha1.At) bool { return !slices.Contains(names, at.Name) })
	for _, name := range names {
		if !slices.ContainsFunc(ats.Items, func(at atv1alpha1.At) bool { return at.Name == name }) {
			err = errors.Join(err, fmt.Errorf("ats.at.example.com %q not found", name))
		}
	}
	switch {
	case len(names) == 1 && len(ats.Items) == 1 && printer != nil: // as kubectl does: no list of one
		return printer.PrintObj(&ats.Items[0], o.Out)
	case len(ats.Items) > 0:
		err = errors.Join(o.show(&ats, printer, namespace, now), err)
	}
	return err
}

// show prints Ats, by their time.
func (o *list) show(ats *atv1alpha1.AtList, printer printers.ResourcePrinter, namespace string, now time.Time) error {
	output := *o.printing.OutputFormat
	slices.SortStableFunc(ats.Items, func(a, b atv1alpha1.At) int { return Scheduled(&a).Compare(Scheduled(&b)) })
	switch {
	case output == "name": // of which the printer takes no list
		for i := range ats.Items {
			if err := printer.PrintObj(&ats.Items[i], o.Out); err != nil {
				return err
			}
		}
		return nil
	case printer != nil:
		return printer.PrintObj(ats, o.Out)
	case len(ats.Items) == 0:
		where := "in any namespace"
		if namespace != "" {
			where = "in namespace " + namespace
		}
		_, err := fmt.Fprintf(o.ErrOut, "No Ats found %s.\n", where)
		return err
	}
	return o.table(ats.Items, now, output == "wide")
}

func (o *list) table(ats []atv1alpha1.At, now time.Time, isWide bool) error {
	w := printers.GetNewTabWriter(o.Out)
	row := func(cells ...string) { _, _ = io.WriteString(w, strings.Join(cells, "\t")+"\n") }
	header := []string{"NAME", "TIME", "WHEN", o.Colour(cli.Plain, "PHASE")}
	if isWide {
		header = append(header, "REASON", "EXIT CODE", "POD")
	}
	if o.allNamespaces {
		header = append([]string{"NAMESPACE"}, header...)
	}
	row(append(header, "COMMAND")...)
	for i := range ats {
		row(o.cells(&ats[i], now, isWide)...)
	}
	return w.Flush()
}

func (o *list) cells(at *atv1alpha1.At, now time.Time, isWide bool) []string {
	var cells []string
	if o.allNamespaces {
		cells = append(cells, at.Namespace)
	}
	shown, when := at.Spec.Schedule, ""
	if t := Scheduled(at); !t.IsZero() {
		shown, when = t.In(now.Location()).Format("Mon 2006-01-02 15:04:05 -07:00"), cli.Far(t, now)
	}
	if at.Spec.Suspend && at.Status.Phase == atv1alpha1.Pending {
		when = "suspended"
	}
	cells = append(cells, at.Name, shown, when, coloured(o.CLI, at.Status.Phase))
	if isWide {
		code := ""
		if at.Status.ExitCode != nil {
			code = strconv.Itoa(int(*at.Status.ExitCode))
		}
		return append(cells, at.Status.Reason, code, at.Status.PodName, strings.ReplaceAll(commandOf(at), "\n", `\n`))
	}
	command, _, isLonger := strings.Cut(strings.TrimSpace(commandOf(at)), "\n")
	if runes := []rune(command); len(runes) > 40 || isLonger {
		command = string(runes[:min(len(runes), 39)]) + "…"
	}
	return append(cells, command)
}

// coloured is a phase in its colour.
func coloured(c *cli.CLI, p atv1alpha1.Phase) string {
	switch p {
	case atv1alpha1.Done:
		return c.Colour(cli.Green, string(p))
	case atv1alpha1.Failed, atv1alpha1.Missed:
		return c.Colour(cli.Red, string(p))
	case atv1alpha1.Running:
		return c.Colour(cli.Yellow, string(p))
	default:
		return c.Colour(cli.Plain, string(p))
	}
}

// commandOf is the command in one line, a program's arguments with quotes where a shell would need them.
func commandOf(at *atv1alpha1.At) string {
	if at.Spec.Command != nil {
		return strings.ReplaceAll(strings.TrimSpace(*at.Spec.Command), "\t", " ")
	}
	words := make([]string, len(at.Spec.Args))
	for i, arg := range at.Spec.Args {
		if words[i] = arg; arg == "" || strings.ContainsAny(arg, " \t\n\"'`$&|;<>()*?\\#~") {
			words[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// Scheduled is when the At runs; zero if only the operator knows, and has not said yet: with a time zone, or a window.
func Scheduled(at *atv1alpha1.At) time.Time {
	if t, err := time.Parse(time.RFC3339, at.Spec.Schedule); err == nil && at.Spec.WindowSeconds == 0 {
		return t
	}
	if at.Status.ScheduledTime != nil && at.Status.ObservedGeneration == at.Generation {
		return at.Status.ScheduledTime.Time
	}
	return time.Time{}
}
