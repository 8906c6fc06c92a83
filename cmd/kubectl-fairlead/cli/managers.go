package cli

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/run"
)

// InstalledIn are the namespaces that managers are installed in, for who may not look in all.
var InstalledIn = []string{
	"fairlead-system", "at-operator-system", "etcd-operator-system", "memcached-operator-system", "webserver-operator-system", "operators",
}

// Operators are all, by the words that a manager is called with.
var Operators = []string{"at", "etcd", "memcached", "webserver"}

// Manager is a Deployment that runs operators.
type Manager struct {
	*appsv1.Deployment
	// Container is the one that runs them.
	Container corev1.Container
	// Runs is the word for what it runs: an operator, or all.
	Runs string
}

// ManagerIn is the manager that a Deployment is, or nil. It goes by what the program is called with: labels are not the
// same in every way of installing.
func ManagerIn(d *appsv1.Deployment) *Manager {
	if d.Spec.Selector == nil || d.Spec.Selector.MatchLabels["control-plane"] != "controller-manager" {
		return nil
	}
	for _, container := range d.Spec.Template.Spec.Containers {
		for _, arg := range container.Args {
			if container.Name == "manager" && (arg == run.All || slices.Contains(Operators, arg)) {
				return &Manager{d, container, arg}
			}
		}
	}
	return nil
}

// Managers are those of the cluster. If the user may not list all Deployments, they are those in the namespace that is
// meant, and in those that managers are installed in as a rule; without any there, it is an error.
func (c *CLI) Managers(ctx context.Context, k client.Client, namespace string) ([]*Manager, error) {
	var found []*Manager
	in := func(namespace string) error {
		var list appsv1.DeploymentList
		err := k.List(ctx, &list, client.InNamespace(namespace))
		for i := range list.Items {
			if m := ManagerIn(&list.Items[i]); m != nil {
				found = append(found, m)
			}
		}
		return err
	}
	err := in("")
	if !apierrors.IsForbidden(err) {
		return found, err
	}
	for _, usual := range slices.Compact(slices.Sorted(slices.Values(append(InstalledIn, namespace)))) {
		_ = in(usual) // which is as likely forbidden as not there
	}
	if len(found) > 0 {
		err = nil
	}
	return found, err
}

// Flag is the value of a flag that the manager is called with.
func (m *Manager) Flag(name, otherwise string) string {
	for _, arg := range m.Container.Args {
		if value, isIt := strings.CutPrefix(strings.TrimLeft(arg, "-"), name+"="); isIt && arg[0] == '-' {
			return value
		}
	}
	return otherwise
}

// Does says whether the manager runs an operator.
func (m *Manager) Does(operator string) bool { return m.Runs == run.All || m.Runs == operator }
