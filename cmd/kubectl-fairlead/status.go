package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const statusLong = `Say whether what Fairlead keeps running is well, and if not, what it waits for.

Without a name it is a line for each object, those that are not Ready first. With a name it is a
screen about that object: also what is beside it, such as an etcdcluster's backups, certificates and
PodDisruptionBudget, and what its servers say. What you may not read of that is named, and left out.

The exit code is 0 if all are Ready, 2 if one is not, and 1 if that is unknown.`

// status is `kubectl fairlead status`.
type status struct {
	*cli
	printing             *genericclioptions.PrintFlags
	allNamespaces, watch bool
}

func statusCommand(c *cli) *cobra.Command {
	o := &status{cli: c, printing: genericclioptions.NewPrintFlags("").WithTypeSetter(newScheme())}
	cmd := &cobra.Command{
		Use:   "status [KIND/NAME]",
		Short: "Say what is well, and what is not and why",
		Long:  statusLong,
		Example: "  kubectl fairlead status -A\n  kubectl fairlead status etcdcluster/example\n" +
			"  kubectl fairlead status memcached/cache --watch\n  kubectl fairlead status -A -o name",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: c.completeObjects,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Look at the objects of all namespaces")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Look again every two seconds, until Ctrl-C")
	o.addPrinting(cmd, o.printing)
	addTimeZone(cmd, c)
	return cmd
}

func (o *status) run(ctx context.Context, args []string) error {
	if o.watch && *o.printing.OutputFormat != "" {
		return errors.New("--watch draws a screen: leave out --output")
	}
	for hasSeen := false; ; hasSeen = true {
		var screen bytes.Buffer
		isWell, err := o.look(ctx, &screen, args)
		switch {
		case err != nil && hasSeen && ctx.Err() == nil: // the API server may be away for a while
			screen.Reset()
			_, _ = fmt.Fprintln(&screen, "error:", explain(err))
		case err != nil:
			return err
		}
		if o.watch && o.isTerminal {
			o.draw(screen.String())
		} else if _, err := screen.WriteTo(o.Out); err != nil {
			return err
		}
		if !o.watch {
			if !isWell {
				return exitError(2)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Second):
		}
	}
}

// look writes a screen, and says whether all is well.
func (o *status) look(ctx context.Context, screen io.Writer, args []string) (bool, error) {
	now, err := o.here()
	if err != nil {
		return false, err
	}
	k, namespace, err := o.client()
	if err != nil {
		return false, err
	}
	if o.allNamespaces {
		namespace = ""
	}
	if len(args) == 0 {
		return o.overview(ctx, k, screen, namespace, now)
	}
	kind, name, err := objectCalled(args[0])
	if err != nil {
		return false, err
	}
	if namespace == "" {
		return false, fmt.Errorf("%s: name one object, without -A", args[0])
	}
	one, err := kind.get(ctx, k, client.ObjectKey{Namespace: namespace, Name: name})
	if err != nil {
		return false, err
	}
	h := healthOf(kind, one)
	if *o.printing.OutputFormat != "" {
		return h.isWell, o.print(screen, one)
	}
	beside, err := o.beside(k, now)
	if err != nil {
		return false, err
	}
	return h.isWell, o.detail(screen, h, beside.of(ctx, one), now)
}

// health is whether an object is well, and what is said of that.
type health struct {
	kind, namespace, name string
	object                client.Object
	isWell                bool
	reason, message       string
	since                 metav1.Time
}

// healthOf goes by the condition Ready, if that is of what is wanted now.
func healthOf(k kind, o client.Object) health {
	o.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	h := health{kind: k.name(), namespace: o.GetNamespace(), name: o.GetName(), object: o, since: o.GetCreationTimestamp()}
	ready := meta.FindStatusCondition(conditionsOf(o), "Ready")
	switch {
	case ready == nil:
		h.reason, h.message = "NotSeen", "its operator has not seen it: is it running?"
	case ready.ObservedGeneration != o.GetGeneration():
		h.reason, h.message, h.since = "NotSeen", "its operator has not seen the last change: is it running?", ready.LastTransitionTime
	default:
		h.isWell, h.since = ready.Status == metav1.ConditionTrue, ready.LastTransitionTime
		h.reason, h.message = ready.Reason, ready.Message
	}
	return h
}

// sortByHealth has those first that are not well.
func sortByHealth(all []health) {
	slices.SortStableFunc(all, func(a, b health) int {
		return map[bool]int{true: 1}[a.isWell] - map[bool]int{true: 1}[b.isWell]
	})
}

// overview is a line for each object. Kinds that the cluster does not have are left out.
func (o *status) overview(ctx context.Context, k client.Client, screen io.Writer, namespace string, now time.Time) (bool, error) {
	var all []health
	var errs []error
	for _, kind := range kinds() {
		err := k.List(ctx, kind.list, client.InNamespace(namespace))
		if apierrors.IsNotFound(err) {
			continue
		}
		errs = append(errs, err)
		_ = meta.EachListItem(kind.list, func(item runtime.Object) error {
			all = append(all, healthOf(kind, item.(client.Object)))
			return nil
		})
	}
	if err := errors.Join(errs...); err != nil {
		return false, err
	}
	sortByHealth(all)
	if *o.printing.OutputFormat != "" {
		return len(all) == 0 || all[0].isWell, o.printAll(screen, all)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(screen, "There is nothing of Fairlead's here.")
		return true, err
	}
	return all[0].isWell, o.table(screen, all, now)
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
func (o *status) printAll(screen io.Writer, all []health) error {
	list := &corev1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}}
	var objects []runtime.Object
	for _, h := range all {
		objects = append(objects, h.object)
		list.Items = append(list.Items, runtime.RawExtension{Object: h.object})
	}
	if *o.printing.OutputFormat == "name" { // of which the printer takes no list
		return o.print(screen, objects...)
	}
	return o.print(screen, list)
}

// table is a line for each.
func (o *status) table(screen io.Writer, all []health, now time.Time) error {
	w := printers.GetNewTabWriter(screen)
	row := func(cells ...string) { _, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) }
	where := func(namespace string) string {
		if o.allNamespaces {
			return namespace + "\t"
		}
		return ""
	}
	row(where("NAMESPACE")+"OBJECT", o.colour(plain, "STATE"), "SINCE", "WHY")
	for _, h := range all {
		why := h.message
		if h.isWell {
			why = ""
		}
		row(where(h.namespace)+h.kind+"/"+h.name, o.state(h), span(max(now.Sub(h.since.Time), 0).Truncate(time.Second)), why)
	}
	return w.Flush()
}

func (o *status) state(h health) string {
	if h.isWell {
		return o.colour(green, h.reason)
	}
	return o.colour(red, h.reason)
}

// detail is a screen about one object, and what is beside it.
func (o *status) detail(screen io.Writer, h health, beside *page, now time.Time) error {
	word := "well"
	if !h.isWell {
		word = "not well"
	}
	p := &page{}
	p.add(h.kind+"/"+h.name, "%s: %s, since %s", word, o.state(h), span(max(now.Sub(h.since.Time), 0).Truncate(time.Second)))
	p.add("", "%s", h.message)
	p.lines = append(p.lines, detailsOf(h.object, now).lines...)
	p.lines = append(p.lines, beside.lines...)
	for _, c := range conditionsOf(h.object) {
		isSaid := slices.Contains([]string{"Ready", "Available", "Complete", "Reconciling", "Stalled"}, c.Type)
		if c.Status == metav1.ConditionTrue && !isSaid {
			p.add(c.Type, "%s: %s", c.Reason, c.Message)
		}
	}
	w := printers.GetNewTabWriter(screen)
	for _, line := range p.lines {
		_, _ = fmt.Fprintf(w, "%s\t%s\n", line[0], strings.ReplaceAll(line[1], "\n", " "))
	}
	return w.Flush()
}
