// Package at has the commands of `kubectl at`.
package at

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
	"example.com/fairlead/internal/timespec"
)

const atLong = `Run a command once, at a given time, in a pod of the cluster.

The time is written as for at(1): a time, a date and what to add, of which the
last two may be left out, or "now" and what to add. What could be read in two
ways is refused.

  time   8, 0815, 8:15, 8:15am, noon, midnight; then UTC or an offset: 08:15 UTC
  date   today, tomorrow, friday, jan 24, "jan 24, 2030", 2030-01-24
  add    + 5 minutes, + 2 days, next week

One argument after "--" is a line for the shell; several are a program and its
arguments, and no shell reads them.`

const atExamples = `  # A line for the shell, tomorrow
  kubectl at tomorrow 08:00 -- 'echo "hello from $HOSTNAME" | tr a-z A-Z'

  # A program and its arguments, in an image of yours
  kubectl at now + 5 minutes --image=registry.example.com/books:7 -- ./close-books --quarter 1

  # In two hours
  kubectl at --in 2h -- date

  # A script from standard input, when it is eight in New York on Friday
  kubectl at 08:00 friday --tz America/New_York -f - < script.sh

  # A manifest to add to
  kubectl at noon --dry-run=client -o yaml -- date > at.yaml

  # What waits, what ran, and what it printed
  kubectl at list
  kubectl at wait at-x7k2p && kubectl at logs at-x7k2p`

// create is `kubectl at TIME -- COMMAND`.
type create struct {
	*cli.CLI
	cli.DryRun
	printing *genericclioptions.PrintFlags

	in, file, image, name string
}

// Command is `kubectl at`, with the commands below it.
func Command(c *cli.CLI) *cobra.Command {
	o := &create{CLI: c, printing: genericclioptions.NewPrintFlags("created").WithTypeSetter(cli.Scheme())}
	cmd := &cobra.Command{
		Use:         "kubectl-at TIME [DATE] [+ N UNITS] -- COMMAND [ARG...]",
		Short:       "Run a command once, at a given time",
		Long:        atLong,
		Example:     atExamples,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl at"},
		Args:        cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && o.in == "" {
				return cmd.Help()
			}
			words, command := args, []string(nil)
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				words, command = args[:dash], args[dash:]
			}
			return o.run(cmd, strings.Join(words, " "), command)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.in, "in", "", `How far from now, instead of a time: 2h, 1h30m, "2 days"`)
	flags.StringVarP(&o.file, "filename", "f", "", `A file with the command, as a script for the shell; "-" is standard input`)
	flags.StringVar(&o.image, "image", "", "The image that the command runs in (default busybox)")
	flags.StringVar(&o.name, "name", "", `The name of the At (default "at-" and five characters)`)
	o.AddTo(cmd)
	o.AddPrinting(cmd, o.printing)
	c.AddTimeZone(cmd)
	cmd.AddCommand(listCommand(c), removeCommand(c), runNowCommand(c), suspendCommand(c), resumeCommand(c), logsCommand(c), waitCommand(c))
	return cmd
}

func (o *create) run(cmd *cobra.Command, text string, command []string) error {
	if len(command) == 0 && o.file == "" {
		return errors.New("what to run is missing: write it after --, as in: kubectl at tomorrow 08:00 -- echo hello; " +
			"or give it as -f FILE, or -f -\nkubectl at --help lists what else there is")
	}
	if err := errors.Join(o.Check(), o.KnowsZone()); err != nil {
		return err
	}
	now, err := o.Here()
	if err != nil {
		return err
	}
	at := &atv1alpha1.At{ObjectMeta: metav1.ObjectMeta{Name: o.name}}
	when, err := o.when(text, now)
	if err != nil {
		return err
	}
	at.Spec.Schedule = when.Format(time.RFC3339)
	at.Spec.Image = o.image
	if err := o.setCommand(&at.Spec, command); err != nil {
		return err
	}
	if at.Name == "" {
		at.Name = "at-" + rand.String(5)
	}
	if err := o.printing.Complete(o.Done("%s")); err != nil {
		return err
	}
	printer, err := o.printing.ToPrinter()
	if err != nil {
		return err
	}
	if err := o.send(cmd, at); err != nil {
		return err
	}
	if err := printer.PrintObj(at, o.Out); err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.ErrOut, "Runs %s.\n", cli.Say(when, now))
	return err
}

func (o *create) when(text string, now time.Time) (time.Time, error) {
	switch {
	case o.in == "":
		return timespec.Parse(text, now)
	case text != "":
		return time.Time{}, fmt.Errorf("--in=%s and the time %q: give one of them", o.in, text)
	default:
		return timespec.In(o.in, now)
	}
}

func (o *create) setCommand(spec *atv1alpha1.AtSpec, command []string) error {
	switch {
	case o.file != "" && len(command) > 0:
		return errors.New("there is a command in a file, and one after --: give one of them")
	case o.file != "":
		script, err := o.script()
		if err != nil {
			return err
		}
		if strings.TrimSpace(script) == "" {
			return fmt.Errorf("-f %s: it has no command", o.file)
		}
		spec.Command = &script
	case len(command) == 1:
		spec.Command = &command[0]
	default:
		spec.Args = command
	}
	return nil
}

func (o *create) script() (string, error) {
	if o.file != "-" {
		script, err := os.ReadFile(o.file)
		return string(script), err
	}
	if in, isFile := o.In.(*os.File); isFile && term.IsTerminal(int(in.Fd())) {
		_, _ = fmt.Fprintln(o.ErrOut, "Write the commands, and end with Ctrl-D:")
	}
	script, err := io.ReadAll(o.In)
	return string(script), err
}

func (o *create) send(cmd *cobra.Command, at *atv1alpha1.At) error {
	if o.IsClient() {
		if namespace := *o.Config.Namespace; namespace != "" {
			at.Namespace = namespace
		}
		return nil
	}
	k, namespace, err := o.Client()
	if err != nil {
		return err
	}
	at.Namespace = namespace
	return cli.Explain(k.Create(cmd.Context(), at, &client.CreateOptions{DryRun: o.Dry()}))
}
