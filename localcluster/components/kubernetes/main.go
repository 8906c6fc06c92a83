// Command kubernetes is etcd, the five Kubernetes components and kubectl in one
// binary, as busybox is to the Unix tools: the name it is called by says which of
// them it is. They share nearly all of their code, so together they link once and
// take 150 MB instead of 600. It imports nothing of this module, so that it can be
// built with another release of Kubernetes.
//
// Symlinks named kube-apiserver, etcd and kubectl beside it are what
// controller-runtime's envtest looks for in KUBEBUILDER_ASSETS.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // upstream imports it in the components' main packages: CronJobs and CEL need time zones

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubectl's credential plugins
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics on /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // the version metric
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		run(apiserver.NewAPIServerCommand())
	case "kube-controller-manager":
		run(controllermanager.NewControllerManagerCommand())
	case "kube-scheduler":
		run(scheduler.NewSchedulerCommand())
	case "kubelet":
		run(kubeletCommand())
	case "kube-proxy":
		run(proxy.NewProxyCommand())
	case "kubectl":
		kubectl()
	default:
		fmt.Fprintf(os.Stderr, "%s: call me through a symlink named etcd, kube-apiserver, kube-controller-manager, "+
			"kube-scheduler, kubelet, kube-proxy or kubectl\n", name)
		os.Exit(2)
	}
}

func run(command *cobra.Command) {
	os.Exit(cli.Run(command))
}
