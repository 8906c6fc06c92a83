// Package cli is what the commands of the plugin have in common: which cluster is meant, Fairlead's kinds, what is asked,
// waited for and printed, and how a call ends. The folders beside it have a group of commands each; package main puts
// them together.
package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // whatever a kubeconfig names: OIDC, and errors about those that are gone
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/docs"
)

// CLI is what all commands have: flags that say which cluster, streams, a clock.
type CLI struct {
	genericiooptions.IOStreams
	// Config are kubectl's flags.
	Config *genericclioptions.ConfigFlags
	// Now is the clock.
	Now func() time.Time
	// IsTerminal says whether the output is a terminal, so that there are colours, and lines that change.
	IsTerminal bool

	timeZone string // if not the machine's
}

// New is a CLI with these streams, and the machine's clock.
func New(streams genericiooptions.IOStreams) *CLI {
	out, isFile := streams.Out.(*os.File)
	return &CLI{
		IOStreams:  streams,
		Config:     genericclioptions.NewConfigFlags(true),
		Now:        time.Now,
		IsTerminal: isFile && term.IsTerminal(int(out.Fd())),
	}
}

// Connect gives the cluster's configuration, and the namespace that is meant.
func (c *CLI) Connect() (*rest.Config, string, error) {
	config, err := c.Config.ToRESTConfig()
	if err != nil {
		return nil, "", err
	}
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NewWarningWriter(c.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	namespace, _, err := c.Config.ToRawKubeConfigLoader().Namespace()
	return config, namespace, err
}

// Client asks the server for no more than what it is used for: what kinds there are is known.
func (c *CLI) Client() (client.WithWatch, string, error) {
	config, namespace, err := c.Connect()
	if err != nil {
		return nil, "", err
	}
	scheme, mapper := Scheme(), meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.AllKnownTypes() {
		scope := meta.RESTScopeNamespace
		if kind.Group == authorizationv1.GroupName { // of all other kinds those in namespaces are used
			scope = meta.RESTScopeRoot
		}
		mapper.Add(kind, scope)
	}
	for _, kind := range Ownable() {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	k, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	return k, namespace, err
}

// Get reads one object of Fairlead's by its name.
func (c *CLI) Get(ctx context.Context, name string, into client.Object) (client.WithWatch, error) {
	k, namespace, err := c.Client()
	if err != nil {
		return nil, err
	}
	return k, Explain(k.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into))
}

// Explain says what to do about an error that does not.
func Explain(err error) error {
	if apierrors.IsNotFound(err) && strings.Contains(err.Error(), "could not find the requested resource") {
		return fmt.Errorf("%w: is its operator installed in this cluster? See %s", err, docs.Page("install.md"))
	}
	return err
}

// AddPrinting adds the flags of how objects are printed. Help shows but --output, and
// completion what is used most.
func (c *CLI) AddPrinting(cmd *cobra.Command, printing *genericclioptions.PrintFlags, more ...string) {
	printing.OutputFlagSpecified = func() bool { return cmd.Flag("output").Changed }
	those := &cobra.Command{}
	printing.AddFlags(those)
	flags := those.Flags()
	hide(flags, "output")
	flags.Lookup("output").Usage = "Output format: " + strings.Join(append(more, printing.AllowedFormats()...), ", ")
	cmd.Flags().AddFlagSet(flags)
	_ = cmd.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions(append(more, "json", "yaml", "name"), cobra.ShellCompDirectiveNoFileComp))
}
