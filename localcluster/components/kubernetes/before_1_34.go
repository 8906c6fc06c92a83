//go:build before_1_34

package main

import (
	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func kubeletCommand() *cobra.Command { return kubelet.NewKubeletCommand() }

// kubectl prints errors its own way.
func kubectl() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
