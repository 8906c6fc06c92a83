// Package report has `kubectl fairlead report`: one archive for a bug report, without secrets.
package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/fairlead/cmd/kubectl-fairlead/cli"
	"example.com/fairlead/cmd/kubectl-fairlead/status"
)

const reportLong = `Write one archive, a tar.gz, for a bug report: the objects of Fairlead's kinds and what they
own, events, logs, the operators' pods and logs, versions, and what "kubectl fairlead status" says.

Secrets are not read. Values of environment variables, commands and arguments, contents of
ConfigMaps, annotations, and what the commands of Ats print are taken out, and so is what looks
like a password, a key or a token in messages and logs. README.txt in the archive has the list.
No list is complete: look at the archive before you give it to anybody.

What you may not read is left out, and named in left-out.txt in the archive.`

// report is `kubectl fairlead report`.
type report struct {
	*cli.CLI
	allNamespaces bool
	file          string
}

// Command is `kubectl fairlead report`.
func Command(c *cli.CLI) *cobra.Command {
	o := &report{CLI: c}
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Write one archive for a bug report, without secrets",
		Long:  reportLong,
		Example: "  kubectl fairlead report -n books\n  kubectl fairlead report -A --file=report.tar.gz\n" +
			"  kubectl fairlead report --file=- | tar tz",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "The objects of all namespaces")
	cmd.Flags().StringVar(&o.file, "file", "", `The file to create; "-" is standard output (default fairlead-report-TIME.tar.gz)`)
	return cmd
}

func (o *report) run(ctx context.Context) (err error) {
	config, namespace, err := o.Connect()
	if err != nil {
		return err
	}
	if o.allNamespaces {
		namespace = ""
	}
	config.QPS = -1 // some twenty requests, and one for each log
	g := &gathering{redactor: redactor{known: map[string]bool{}, names: map[string]bool{}}}
	if g.objects, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	if g.core, err = corev1client.NewForConfig(config); err != nil {
		return err
	}
	versions, err := g.versions(ctx, config)
	if err != nil {
		return err
	}
	now := o.Now().UTC()
	folder := "fairlead-report-" + now.Format("20060102T150405Z")
	to, err := o.create(folder)
	if err != nil {
		return err
	}
	a := newArchive(to, folder, now)
	counted, err := o.fill(ctx, g, a, namespace, versions)
	if err = errors.Join(err, a.close(), to.Close()); err == nil {
		err = ctx.Err()
	}
	if err != nil {
		if o.file != "-" {
			err = errors.Join(err, os.Remove(o.file))
		}
		return err
	}
	_, err = fmt.Fprintf(o.ErrOut, "%s, in %s.\nSecrets were not read. Look at it before you give it to anybody.\n",
		counted, map[bool]string{true: "the archive", false: o.file}[o.file == "-"])
	return err
}

// create opens what the archive is written to. A file that is there is kept.
func (o *report) create(name string) (io.WriteCloser, error) {
	if o.file == "-" {
		if o.IsTerminal {
			return nil, errors.New("--file=-: the archive is no text for a terminal: pipe it, or name a file")
		}
		return struct {
			io.Writer
			io.Closer
		}{o.Out, io.NopCloser(nil)}, nil
	}
	if o.file == "" {
		o.file = name + ".tar.gz"
	}
	return os.OpenFile(o.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// fill writes all of the archive, and says what is in it. Objects come first: what is taken out of them is
// known when texts are written.
func (o *report) fill(ctx context.Context, g *gathering, a *archive, namespace, versions string) (string, error) {
	g.gather(ctx, namespace)
	events := g.events(ctx, namespace)
	g.operators(ctx)
	if err := a.add("versions.txt", versions); err != nil {
		return "", err
	}
	for _, f := range g.found {
		g.scrub(f.Object)
		text, err := yaml.Marshal(f.Object)
		if err != nil {
			return "", err
		}
		if err := a.add(fmt.Sprintf("namespaces/%s/%s/%s.yaml", f.GetNamespace(), f.resource, f.GetName()), string(text)); err != nil {
			return "", err
		}
	}
	screen, err := o.status(g)
	if err != nil {
		return "", err
	}
	if err := a.add("status.txt", screen); err != nil {
		return "", err
	}
	if err := a.add("events.txt", lines(events)); err != nil {
		return "", err
	}
	logs, err := g.allLogs(ctx, a.add)
	if err != nil {
		return "", err
	}
	said := fmt.Sprintf("Objects: %d, events: %d, logs: %d", len(g.found), len(events), logs)
	if len(g.leftOut) > 0 {
		said += fmt.Sprintf(", left out: %d (left-out.txt says what)", len(g.leftOut))
	}
	if err := a.add("left-out.txt", lines(g.leftOut)); err != nil {
		return "", err
	}
	return said, a.add("README.txt", readme)
}

// allLogs adds logs, those of operators first.
func (g *gathering) allLogs(ctx context.Context, add func(name, content string) error) (logs int, err error) {
	counting := func(name, content string) error {
		logs++
		return add(name, content)
	}
	var pods, ofAts int
	for _, isOperator := range []bool{true, false} {
		for _, f := range g.found {
			switch {
			case f.resource != "pods" || f.isOperator != isOperator:
				continue
			case f.isAts:
				ofAts++
				continue
			}
			if pods++; pods > mostLogged {
				continue
			}
			if err := g.logs(ctx, f, counting); err != nil {
				return logs, err
			}
		}
	}
	if ofAts > 0 {
		g.without(fmt.Sprintf("logs of %d pods of Ats", ofAts), errors.New("what users' commands print is not taken: see kubectl at logs"))
	}
	if surplus := pods - mostLogged; surplus > 0 {
		g.without(fmt.Sprintf("logs of %d pods", surplus), fmt.Errorf("no more than those of %d are taken", mostLogged))
	}
	return logs, nil
}

// status is what `kubectl fairlead status` says of the objects as they are in the archive.
func (o *report) status(g *gathering) (string, error) {
	var all []status.Health
	for _, kind := range cli.Kinds() {
		for _, f := range g.found {
			if f.GroupVersionKind() != kind.GroupVersionKind {
				continue
			}
			made, err := cli.Scheme().New(kind.GroupVersionKind)
			if err != nil {
				return "", err
			}
			object := made.(client.Object)
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(f.Object, object); err != nil {
				g.without("status of "+kind.Name()+"/"+f.GetName(), err)
				continue
			}
			all = append(all, status.Of(kind, object))
		}
	}
	return status.Text(o.CLI, all, o.Now().UTC())
}

func lines(of []string) string {
	if len(of) == 0 {
		return "nothing\n"
	}
	return strings.Join(of, "\n") + "\n"
}

const readme = `A report of "kubectl fairlead report", for somebody who is to find out what is wrong.

  versions.txt       the cluster's version, and the versions of Fairlead's kinds that it serves
  status.txt         what "kubectl fairlead status" says
  events.txt         events of the objects below: time, type, reason, object, message
  left-out.txt       what could not be read, or was not taken, and why
  namespaces/NAMESPACE/RESOURCE/NAME.yaml
                     the objects of Fairlead's kinds, what they own, and the operators' Deployments and pods
  namespaces/NAMESPACE/logs/POD/CONTAINER.log, CONTAINER.previous.log
                     the end of the logs of the present container, and of the one before it

What is not in it:

  Secrets            they are not read, not even their names
  environment        the values of variables, everywhere; names are there
  commands, arguments, HTTP headers of probes
                     all but the names of flags
  ConfigMaps, ControllerRevisions
                     what is in them, also where a program quotes it; keys and sizes are there
  web pages          spec.content.inline
  annotations        all but those of the operators that are one word
  Ats                what their commands print: status.output, last words in messages, and logs
  volumes            attributes and options of CSI and flex volumes
  EtcdClusters       spec.backup, restore and selfHosted, which have no effect
  managed fields     of all objects

A value that a user wrote and that was taken out, of six characters or more, is taken out of messages, events and
logs too. So is what looks like a password, a token, a private key, an access key, or like a query or a user in a
URL. Where something was taken out it says REDACTED. Names, labels, images, hosts and paths are there. No list is
complete: look at the files before you give them to anybody.
`
