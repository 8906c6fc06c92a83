package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/timespec"
)

// cli is what all commands have: flags that say which cluster, streams, a clock.
type cli struct {
	genericiooptions.IOStreams
	config     *genericclioptions.ConfigFlags
	now        func() time.Time
	isTerminal bool   // so there are colours, and lines that change
	timeZone   string // if not the machine's
}

// connect gives the cluster's configuration, and the namespace that is meant.
func (c *cli) connect() (*rest.Config, string, error) {
	config, err := c.config.ToRESTConfig()
	if err != nil {
		return nil, "", err
	}
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NewWarningWriter(c.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	namespace, _, err := c.config.ToRawKubeConfigLoader().Namespace()
	return config, namespace, err
}

// client asks the server for no more than what it is used for: what kinds there are is known.
func (c *cli) client() (client.WithWatch, string, error) {
	config, namespace, err := c.connect()
	if err != nil {
		return nil, "", err
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range kinds() {
		mapper.Add(kind.GroupVersionKind, meta.RESTScopeNamespace)
	}
	k, err := client.NewWithWatch(config, client.Options{Scheme: newScheme(), Mapper: mapper})
	return k, namespace, err
}

func addTimeZone(cmd *cobra.Command, c *cli) {
	cmd.PersistentFlags().StringVar(&c.timeZone, "tz", "",
		"The IANA time zone in which times are read and shown, such as Europe/Berlin (default this machine's)")
}

// here is what the clock shows in the zone that times are read and shown in.
func (c *cli) here() (time.Time, error) {
	if c.timeZone == "" {
		return c.now(), nil
	}
	zone, err := time.LoadLocation(c.timeZone)
	if err != nil {
		return time.Time{}, fmt.Errorf("--tz=%s: write a zone of the IANA time zone database, such as Europe/Berlin: %w", c.timeZone, err)
	}
	return c.now().In(zone), nil
}

// addPrinting adds the flags of how objects are printed. Help shows but --output, and
// completion what is used most.
func (c *cli) addPrinting(cmd *cobra.Command, printing *genericclioptions.PrintFlags, more ...string) {
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

// say is a time in the zone of now, in UTC, and how far it is.
func say(t, now time.Time) string {
	zone := now.Location().String()
	if zone == "Local" {
		zone = t.In(now.Location()).Format("MST")
	}
	return fmt.Sprintf("%s (%s), that is %s, %s", timespec.Say(t.In(now.Location())), zone, t.UTC().Format(time.RFC3339), far(t, now))
}

// far is how far a time is from now, to the second.
func far(t, now time.Time) string {
	d := t.Sub(now.Truncate(time.Second)).Truncate(time.Second)
	switch {
	case d > 0:
		return "in " + span(d)
	case d == 0:
		return "now"
	default:
		return span(-d) + " ago"
	}
}

func span(d time.Duration) string {
	const day = 24 * time.Hour
	if d < day {
		return d.String()
	}
	return fmt.Sprintf("%dd%s", d/day, d%day)
}

// colour is text in a colour of a terminal. Codes are equally long, so that columns stay in line.
func (c *cli) colour(code int, text string) string {
	if !c.isTerminal || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[39m", code, text)
}

const (
	red, green, yellow, plain = 31, 32, 33, 39
)

func (c *cli) phase(p atv1alpha1.Phase) string {
	switch p {
	case atv1alpha1.Done:
		return c.colour(green, string(p))
	case atv1alpha1.Failed, atv1alpha1.Missed:
		return c.colour(red, string(p))
	case atv1alpha1.Running:
		return c.colour(yellow, string(p))
	default:
		return c.colour(plain, string(p))
	}
}

// dryRun is the flag --dry-run.
type dryRun struct{ strategy string }

func (d *dryRun) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&d.strategy, "dry-run", "none",
		`Must be "none", "client" (only say what would be done) or "server" (have the server check it, and not keep it)`)
	_ = cmd.RegisterFlagCompletionFunc("dry-run",
		cobra.FixedCompletions([]string{"none", "client", "server"}, cobra.ShellCompDirectiveNoFileComp))
}

func (d *dryRun) check() error {
	switch d.strategy {
	case "none", "client", "server":
		return nil
	}
	return fmt.Errorf("--dry-run=%s: must be none, client or server", d.strategy)
}

func (d *dryRun) isClient() bool { return d.strategy == "client" }

// dry is what a request says for the server to keep nothing.
func (d *dryRun) dry() []string {
	if d.strategy == "server" {
		return []string{"All"}
	}
	return nil
}

// patch changes the very object that was read, and not one of its name that was made since.
func (d *dryRun) patch(ctx context.Context, k client.Client, o client.Object, changes map[string]any) error {
	if d.isClient() {
		return nil
	}
	if err := unstructured.SetNestedField(changes, string(o.GetUID()), "metadata", "uid"); err != nil {
		return err
	}
	data, err := json.Marshal(changes)
	if err != nil {
		return err
	}
	return k.Patch(ctx, o, client.RawPatch(types.MergePatchType, data), &client.PatchOptions{DryRun: d.dry()})
}

// done is what is said of what was done, as kubectl does.
func (d *dryRun) done(what string) string {
	switch d.strategy {
	case "client":
		return what + " (dry run)"
	case "server":
		return what + " (server dry run)"
	default:
		return what
	}
}
