package run

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Election is how one of several replicas becomes the one that acts.
type Election string

const (
	// Lease elects with a Lease, which the leader renews; another replica
	// takes over some 15 s after the leader stopped renewing. The default.
	Lease Election = "lease"
	// ForLife elects with a ConfigMap that the leader's pod owns. The leader
	// keeps it until its pod is gone, however long it does not answer.
	ForLife Election = "for-life"
	// NoElection acts at once. Only for a single replica.
	NoElection Election = "none"
)

// Options are the settings of a manager. The zero value watches all
// namespaces, elects no leader, and serves neither metrics nor probes.
type Options struct {
	// Namespaces to watch; empty for all.
	Namespaces []string
	// Election is how the leader is chosen. "" means NoElection.
	Election Election
	// ElectionNamespace holds the lock; "" is the namespace of the pod, and
	// outside a cluster the one of the kubeconfig's context.
	ElectionNamespace string
	// MetricsAddress is where metrics are served, such as ":8443"; "" or "0"
	// for nowhere.
	MetricsAddress string
	// MetricsFilter decides who may read them. There are none without it.
	MetricsFilter func(*rest.Config, *http.Client) (metricsserver.Filter, error)
	// ProbeAddress is where /healthz and /readyz are served, such as ":8081";
	// "" or "0" for nowhere.
	ProbeAddress string
	// ClusterDomain is the domain of the Kubernetes cluster, such as cluster.local; "" if
	// it is not known.
	ClusterDomain string
	// BaseContext gives the values of the contexts that reconciliations have, their
	// logger among them; nil for none. Tests get in between by them.
	BaseContext func() context.Context
}

// bind registers the flags that set o, with their defaults.
func (o *Options) bind(flags *flag.FlagSet) {
	flags.Func("namespace", "the `namespaces` to watch, separated by commas (default $WATCH_NAMESPACE, and all if that is empty)", func(value string) error {
		o.Namespaces = splitNamespaces(value)
		return nil
	})
	o.Namespaces = splitNamespaces(os.Getenv("WATCH_NAMESPACE"))

	o.Election = Lease
	flags.Func("leader-election", "how the leader among replicas is chosen: `lease`, for-life (a lock that the leader's pod owns) or none (default lease)", func(value string) error {
		switch election := Election(value); election {
		case Lease, ForLife, NoElection:
			o.Election = election
			return nil
		}
		return errors.New("must be lease, for-life or none")
	})
	flags.StringVar(&o.ElectionNamespace, "leader-election-namespace", "", "the `namespace` of the leader's lock (default: that of the pod; outside a cluster, that of the kubeconfig)")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8443", "the `address` of the metrics, served over HTTPS to whoever the API server lets get /metrics; 0 for none")
	flags.StringVar(&o.ClusterDomain, "cluster-domain", searchedDomain("/etc/resolv.conf"), "the `domain` of the Kubernetes cluster, such as cluster.local (default: in a pod, that of its search path)")
	flags.StringVar(&o.ProbeAddress, "health-probe-bind-address", ":8081", "the `address` of /healthz and /readyz; 0 for none")
}

func splitNamespaces(value string) []string {
	var namespaces []string
	for namespace := range strings.SplitSeq(value, ",") {
		if namespace = strings.TrimSpace(namespace); namespace != "" {
			namespaces = append(namespaces, namespace)
		}
	}
	return namespaces
}

// searchedDomain is the domain of the Kubernetes cluster by the search path that the kubelet gives a
// pod: <namespace>.svc.<domain> svc.<domain> <domain>. It is "" elsewhere.
func searchedDomain(resolvConf string) string {
	content, err := os.ReadFile(resolvConf)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "search" {
			continue
		}
		for _, searched := range fields[1:] {
			domain, found := strings.CutPrefix(searched, "svc.")
			if found && slices.Contains(fields, domain) {
				return strings.TrimSuffix(domain, ".")
			}
		}
	}
	return ""
}

// hasIPv6 says whether this process is a pod with an address of IPv6.
func hasIPv6() bool {
	if _, ok := inCluster(); !ok {
		return false
	}
	addresses, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(addresses, func(a net.Addr) bool {
		ip, _ := a.(*net.IPNet)
		return ip != nil && ip.IP.To4() == nil && ip.IP.IsGlobalUnicast()
	})
}

// namespaceFile holds the namespace of the pod that a process runs in.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// inCluster says in which namespace the process runs as a pod; ok is false
// when it does not run in a cluster.
func inCluster() (namespace string, ok bool) {
	content, err := os.ReadFile(namespaceFile)
	if err != nil {
		return "", false
	}
	return strings.TrimSpace(string(content)), true
}

// electionNamespace is where the leader's lock goes when no flag says so.
func electionNamespace(kubeconfig string) (string, error) {
	if namespace, ok := inCluster(); ok {
		return namespace, nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	namespace, _, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).Namespace()
	if err != nil {
		return "", fmt.Errorf("cannot tell the namespace of the leader's lock, give --leader-election-namespace: %w", err)
	}
	return namespace, nil
}
