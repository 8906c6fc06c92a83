// Package managers has the commands of `kubectl fairlead` that are about the operators themselves: version and check.
package managers

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/fairlead/cmd/kubectl-fairlead/cli"
	"example.com/fairlead/internal/kit/docs"
	"example.com/fairlead/internal/kit/run"
)

// build is what a program was built from.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
}

func buildIn(labels map[string]string) build {
	return build{labels[run.VersionLabel], labels[run.CommitLabel]}
}

// versions is what `kubectl fairlead version` says.
type versions struct {
	Plugin     build            `json:"plugin"`
	Kubernetes string           `json:"kubernetes,omitempty"`
	Managers   []managerVersion `json:"managers,omitempty"`
}

// managerVersion is what runs of a manager.
type managerVersion struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Runs      string `json:"runs"`
	Image     string `json:"image"`
	build
	// Fits is yes, no, or unknown.
	Fits    string `json:"fits"`
	Message string `json:"message,omitempty"`
}

// VersionCommand is `kubectl fairlead version`.
func VersionCommand(c *cli.CLI) *cobra.Command {
	var output string
	var isClient bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the plugin and of the managers, and whether they fit",
		Long: "Print the versions of the plugin, of Kubernetes, and of the managers in the cluster, as their leaders say it\n" +
			"themselves: the tag of an image may be of another build since. A plugin fits managers of the same minor version.\n\n" +
			"The exit code is 0 if all fit, 2 if one does not, and 1 if that is unknown.",
		Example:           "  kubectl fairlead version\n  kubectl fairlead version --client -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := versions{Plugin: buildIn(run.BuildLabels())}
			code := 0
			if !isClient {
				var err error
				if code, err = v.ask(cmd.Context(), c); err != nil {
					return err
				}
			}
			if err := v.print(c.Out, output); err != nil || code == 0 {
				return err
			}
			return cli.ExitError(code)
		},
	}
	cmd.Flags().BoolVar(&isClient, "client", false, "The version of the plugin only, without a cluster")
	cmd.Flags().StringVarP(&output, "output", "o", "", "Output format: json, yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// ask asks the cluster, and returns the exit code.
func (v *versions) ask(ctx context.Context, c *cli.CLI) (code int, err error) {
	d, err := c.Discovery()
	if err != nil {
		return 0, err
	}
	server, err := d.ServerVersionWithContext(ctx)
	if err != nil {
		return 0, err
	}
	v.Kubernetes = server.GitVersion
	k, namespace, err := c.Client()
	if err != nil {
		return 0, err
	}
	managers, err := c.Managers(ctx, k, namespace)
	if err == nil && len(managers) == 0 {
		err = fmt.Errorf("no manager was found: is Fairlead installed in this cluster? See %s", docs.Page("install.md"))
	}
	if err != nil {
		_, _ = fmt.Fprintln(c.ErrOut, "error:", err)
		code = 1
	}
	for _, m := range managers {
		one := managerVersion{Namespace: m.Namespace, Name: m.Name, Runs: m.Runs, Image: m.Container.Image}
		lease, err := leaseOf(ctx, k, m)
		if err != nil {
			one.Fits, one.Message = "unknown", err.Error()
		} else if one.build = buildIn(lease.Labels); one.Version == "" {
			one.Fits, one.Message = "unknown", "its leader does not say its version: it is older than 0.1.0, or none leads yet"
		} else {
			one.Fits, one.Message = fits(v.Plugin.Version, one.Version)
		}
		v.Managers = append(v.Managers, one)
		code = max(code, map[string]int{"no": 2, "unknown": 1}[one.Fits])
	}
	return code, nil
}

// leaseOf is the Lease of a manager's leader.
func leaseOf(ctx context.Context, k client.Client, m *cli.Manager) (*coordinationv1.Lease, error) {
	if election := m.Flag("leader-election", string(run.Lease)); election != string(run.Lease) {
		return nil, fmt.Errorf("there is no Lease with --leader-election=%s", election)
	}
	key := client.ObjectKey{Namespace: m.Flag("leader-election-namespace", m.Namespace), Name: run.LockName(m.Runs)}
	lease := &coordinationv1.Lease{}
	return lease, k.Get(ctx, key, lease)
}

// fits says whether a plugin goes with a manager: the fields that it knows are of a minor version.
func fits(own, its string) (fits, message string) {
	minor := func(version string) string {
		parts := strings.Split(version, ".")
		return strings.Join(parts[:min(len(parts), 2)], ".")
	}
	if minor(own) == minor(its) {
		return "yes", ""
	}
	return "no", fmt.Sprintf("the plugin is of %s: install the one of %s", minor(own), minor(its))
}

func (v *versions) print(out io.Writer, output string) error {
	var text []byte
	var err error
	switch output {
	case "json":
		text, err = json.MarshalIndent(v, "", "    ")
		text = append(text, '\n')
	case "yaml":
		text, err = yaml.Marshal(v)
	case "":
		_, _ = fmt.Fprintf(out, "Plugin: %s, commit %s\n", v.Plugin.Version, v.Plugin.Commit)
		if v.Kubernetes != "" {
			_, _ = fmt.Fprintf(out, "Kubernetes: %s\n", v.Kubernetes)
		}
		if len(v.Managers) == 0 {
			return nil
		}
		w := printers.GetNewTabWriter(out)
		_, _ = io.WriteString(w, "NAMESPACE\tMANAGER\tRUNS\tIMAGE\tVERSION\tCOMMIT\tFITS\tMESSAGE\n")
		for _, m := range v.Managers {
			_, _ = fmt.Fprintln(w, strings.Join([]string{m.Namespace, m.Name, m.Runs, m.Image, m.Version, m.Commit, m.Fits, m.Message}, "\t"))
		}
		return w.Flush()
	default:
		err = fmt.Errorf("--output=%s: must be json or yaml", output)
	}
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}
