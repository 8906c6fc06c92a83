package managers

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

const checkLong = `Check what is installed: whether each kind has its operator and each operator its kinds, and of each
manager whether it is available, has a leader, its permissions, and one image in all its pods.

What you may not see is unknown. The exit code is 0 if all is well, 2 if something is not, and 1 if
that is unknown of something.`

// check is `kubectl fairlead check`.
type check struct {
	*cli.CLI
	k    client.Client
	rows [][3]string // of what, a result, a message
	code int
}

// CheckCommand is `kubectl fairlead check`.
func CheckCommand(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use:               "check",
		Short:             "Check the kinds, the managers, their leaders, permissions and images",
		Long:              checkLong,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := &check{CLI: c}
			if err := o.all(cmd.Context()); err != nil {
				return err
			}
			w := printers.GetNewTabWriter(c.Out)
			_, _ = fmt.Fprintf(w, "CHECK\t%s\tMESSAGE\n", c.Colour(cli.Plain, "RESULT"))
			for _, row := range o.rows {
				colour := map[string]int{"ok": cli.Green, "problem": cli.Red, "unknown": cli.Yellow}[row[1]]
				_, _ = io.WriteString(w, row[0]+"\t"+c.Colour(colour, row[1])+"\t"+strings.ReplaceAll(row[2], "\n", " ")+"\n")
			}
			if err := w.Flush(); err != nil || o.code == 0 {
				return err
			}
			return cli.ExitError(o.code)
		},
	}
}

// row adds what is found of something: ok, problem or unknown.
func (o *check) row(result, what, format string, args ...any) {
	o.rows = append(o.rows, [3]string{what, result, fmt.Sprintf(format, args...)})
	o.code = max(o.code, map[string]int{"problem": 2, "unknown": 1}[result])
}

// all makes all checks.
func (o *check) all(ctx context.Context) (err error) {
	var namespace string
	if o.k, namespace, err = o.Client(); err != nil {
		return err
	}
	managers, noManagers := o.Managers(ctx, o.k, namespace)
	for _, kind := range cli.Kinds() {
		isServed, err := o.Serves(ctx, kind.GroupVersion(), kind.Resource())
		runsIt := slices.ContainsFunc(managers, func(m *cli.Manager) bool { return m.Does(kind.Operator) })
		waits := slices.IndexFunc(managers, func(m *cli.Manager) bool { return m.Runs == kind.Operator && !isServed })
		switch what := "kind " + kind.Resource() + "." + kind.Group; {
		case err != nil && len(o.rows) == 0:
			return err // the API server does not answer
		case err != nil:
			o.row("unknown", what, "%v", err)
		case isServed && runsIt:
			o.row("ok", what, "version %s", kind.Version)
		case isServed && noManagers == nil:
			o.row("problem", what, "no manager runs the operator %s: nothing happens to its objects", kind.Operator)
		case isServed:
			o.row("unknown", what, "whether a manager runs the operator %s: %v", kind.Operator, noManagers)
		case waits >= 0:
			o.row("problem", what, "version %s is not served: install the CRD, for which the manager %s waits", kind.Version, managers[waits].Name)
		default:
			o.row("ok", what, "not installed")
		}
	}
	if noManagers != nil {
		o.row("unknown", "managers", "%v", noManagers)
	}
	for _, m := range managers {
		name := m.Namespace + "/" + m.Name
		o.available("manager "+name, m)
		var pods corev1.PodList
		if err := o.k.List(ctx, &pods, client.InNamespace(m.Namespace), client.MatchingLabels(m.Spec.Selector.MatchLabels)); err != nil {
			o.row("unknown", "image "+name, "%v", err)
		} else {
			o.images("image "+name, m, pods.Items)
		}
		o.leader(ctx, "leader "+name, m, pods.Items)
		o.permissions(ctx, "permissions "+name, m)
	}
	return nil
}

func (o *check) available(what string, m *cli.Manager) {
	st, wanted := m.Status, ptr.Deref(m.Spec.Replicas, 1)
	result := "ok"
	if wanted == 0 || st.ObservedGeneration != m.Generation || st.AvailableReplicas < wanted || st.UpdatedReplicas < wanted {
		result = "problem"
	}
	o.row(result, what, "%d of %d pods are available, %d of them of this revision", st.AvailableReplicas, wanted, st.UpdatedReplicas)
}

// images has all pods of a manager run the same image, and those for which the operators have programs in it, too.
func (o *check) images(what string, m *cli.Manager, pods []corev1.Pod) {
	ids := map[string]bool{}
	for _, pod := range pods {
		for _, s := range pod.Status.ContainerStatuses {
			if s.Name != m.Container.Name {
				continue
			}
			if w := s.State.Waiting; w != nil {
				o.row("problem", what, "pod %s: %s: %s", pod.Name, w.Reason, w.Message)
				return
			}
			ids[s.ImageID] = true
		}
	}
	if len(ids) > 1 {
		o.row("problem", what, "the pods run %d builds of %s: kubectl rollout restart -n %s deployment %s", len(ids), m.Container.Image, m.Namespace, m.Name)
		return
	}
	for _, needs := range []struct{ operator, variable, without string }{
		{"at", "AT_START_IMAGE", "no process of an At can be prepared"}, {"etcd", "ETCD_AGENT_IMAGE", "no backup can be made"},
	} {
		i := slices.IndexFunc(m.Container.Env, func(e corev1.EnvVar) bool { return e.Name == needs.variable })
		switch {
		case m.Does(needs.operator) && i < 0:
			o.row("problem", what, "%s is not set: %s", needs.variable, needs.without)
			return
		case i >= 0 && m.Container.Env[i].Value != m.Container.Image:
			o.row("problem", what, "%s is %s, and the manager's image %s", needs.variable, m.Container.Env[i].Value, m.Container.Image)
			return
		}
	}
	o.row("ok", what, "%s", m.Container.Image)
}

// leader has a manager's Lease be held by one of its pods, and renewed.
func (o *check) leader(ctx context.Context, what string, m *cli.Manager, pods []corev1.Pod) {
	lease, err := leaseOf(ctx, o.k, m)
	switch {
	case apierrors.IsNotFound(err):
		o.row("problem", what, "no pod has ever led: %v", err)
		return
	case err != nil:
		o.row("unknown", what, "%v", err)
		return
	}
	s := lease.Spec
	pod, _, _ := strings.Cut(ptr.Deref(s.HolderIdentity, ""), "_")
	if pod == "" || s.RenewTime == nil {
		o.row("problem", what, "no pod leads: nothing happens to objects")
		return
	}
	renewed, lasts := o.Now().Sub(s.RenewTime.Time), time.Duration(ptr.Deref(s.LeaseDurationSeconds, 15))*time.Second
	switch isOurs := len(pods) == 0 || slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Name == pod }); {
	case renewed > 2*lasts: // clocks differ
		o.row("problem", what, "%s has not renewed its Lease for %s", pod, renewed.Round(time.Second))
	case !isOurs:
		o.row("problem", what, "%s leads, which is none of its pods: does another manager have the same Lease?", pod)
	default:
		o.row("ok", what, "%s, renewed %s ago", pod, max(renewed, 0).Round(time.Second))
	}
}

// permissions asks the API server what a manager's account may, of what every operator does with its kinds.
func (o *check) permissions(ctx context.Context, what string, m *cli.Manager) {
	namespaces := []string{""}
	for _, variable := range m.Container.Env {
		if variable.ValueFrom != nil && variable.ValueFrom.FieldRef != nil { // the Operator Lifecycle Manager says it so
			variable.Value = m.Spec.Template.Annotations["olm.targetNamespaces"]
		}
		if variable.Name == "WATCH_NAMESPACE" && variable.Value != "" {
			namespaces = strings.Split(variable.Value, ",")
		}
	}
	if flag := m.Flag("namespace", ""); flag != "" {
		namespaces = strings.Split(flag, ",")
	}
	account := "system:serviceaccount:" + m.Namespace + ":" + m.Spec.Template.Spec.ServiceAccountName
	var lacks []string
	for _, kind := range cli.Kinds() {
		if !m.Does(kind.Operator) {
			continue
		}
		for _, namespace := range namespaces {
			for _, right := range []string{"list", "watch", "update/status"} {
				verb, subresource, _ := strings.Cut(right, "/")
				review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
					User:   account,
					Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + m.Namespace, "system:authenticated"},
					ResourceAttributes: &authorizationv1.ResourceAttributes{
						Namespace: strings.TrimSpace(namespace), Verb: verb, Group: kind.Group, Resource: kind.Resource(), Subresource: subresource,
					},
				}}
				if err := o.k.Create(ctx, review); err != nil {
					o.row("unknown", what, "%v", err)
					return
				}
				if !review.Status.Allowed {
					lacks = append(lacks, strings.TrimSpace(fmt.Sprintf("%s %s %s", right, kind.Resource(), namespace)))
				}
			}
		}
	}
	if len(lacks) == 0 {
		o.row("ok", what, "%s may list and watch its kinds, and write their status", account)
	} else {
		o.row("problem", what, "%s may not: %s", account, strings.Join(lacks, ", "))
	}
}
