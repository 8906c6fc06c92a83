package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

func TestNames(t *testing.T) {
	t.Setenv("KUBECONFIG", "/dev/null")
	for name, want := range map[string]string{
		"kubectl-at":               "\n  kubectl at TIME",
		"/usr/bin/kubectl-at.exe":  "\n  kubectl at TIME",
		"kubectl-fairlead":         "\n  kubectl fairlead [command]",
		"kubectl-fairlead at":      "\n  kubectl fairlead at TIME",
		"kubectl_complete-at li":   "list\t",
		"kubectl_complete-at":      "",
		"kubectl_complete-at -":    "",
		"kubectl_complete-at --tz": "--tz\t",
	} {
		args := strings.Fields(name)
		if !strings.HasPrefix(name, "kubectl_") {
			args = append(args, "--help")
		}
		var out bytes.Buffer
		code := run(t.Context(), args, cli.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: io.Discard}))
		if code != 0 && len(args) > 1 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit code %d, %s; want %q", name, code, out.String(), want)
		}
	}
}
