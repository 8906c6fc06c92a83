package at

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

// commandContainer is the container of an At's pod that runs the command.
const commandContainer = "command"

func logsCommand(c *cli.CLI) *cobra.Command {
	var flags cli.LogFlags
	cmd := &cobra.Command{
		Use:               "logs NAME",
		Short:             "Print what an At's command has printed, in its last attempt",
		Example:           "  kubectl at logs at-x7k2p\n  kubectl at logs -f at-x7k2p",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeAts(c),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			pod, err := podOf(cmd, c, args[0])
			if err != nil {
				return err
			}
			pods, err := c.Pods()
			if err != nil {
				return err
			}
			stream, err := pods.Core.Pods(pod.Namespace).GetLogs(pod.Name, flags.Options(commandContainer)).Stream(cmd.Context())
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, stream.Close()) }()
			_, err = io.Copy(c.Out, stream)
			return err
		},
	}
	flags.AddTo(cmd)
	return cmd
}

// podOf is the pod of an At's last attempt.
func podOf(cmd *cobra.Command, c *cli.CLI, name string) (client.ObjectKey, error) {
	now, err := c.Here()
	if err != nil {
		return client.ObjectKey{}, err
	}
	var at atv1alpha1.At
	if _, err := c.Get(cmd.Context(), name, &at); err != nil {
		return client.ObjectKey{}, err
	}
	if at.Status.Phase == atv1alpha1.Pending || at.Status.PodName == "" {
		return client.ObjectKey{}, fmt.Errorf("there are no logs yet, or ever: %s", describe(c, &at, now))
	}
	return client.ObjectKey{Namespace: at.Namespace, Name: at.Status.PodName}, nil
}
