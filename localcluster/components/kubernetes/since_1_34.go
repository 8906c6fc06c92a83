//go:build !before_1_34

package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func kubeletCommand() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }

// kubectl sets the verbosity before it builds the command, which already logs,
// and prints errors its own way.
func kubectl() {
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args)) // a bad level is reported when the flags are parsed
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
