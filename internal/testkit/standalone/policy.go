package standalone

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/pace"
)

// policyFile is the admission policy that users may install, for all operators.
const policyFile = "operators/config/policy/policy.yaml"

// policies has, by server and operator, what installs the policy once.
var policies sync.Map

// AsAccount is the config of an operator's service account, which has all rights, under the policy that lets it write
// only objects of its own.
func AsAccount(ctx context.Context, cfg *rest.Config, operator run.Operator, namespace string) (*rest.Config, error) {
	account := rest.CopyConfig(cfg)
	account.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + run.ManagedBy(operator.Name) + "-controller-manager",
		Groups:   []string{"system:masters"},
	}
	// What the sweep does to an operator's requests is not for these.
	admin, user := rest.CopyConfig(cfg), rest.CopyConfig(account)
	admin.WrapTransport, user.WrapTransport = nil, nil
	once, _ := policies.LoadOrStore(cfg.Host+" "+operator.Name, sync.OnceValue(func() error {
		return enforce(ctx, admin, user, operator, namespace)
	}))
	return account, once.(func() error)()
}

// enforce installs the policy of an operator, and waits until it has taken effect.
func enforce(ctx context.Context, admin, user *rest.Config, operator run.Operator, namespace string) error {
	policy, binding, err := policyOf(operator)
	if err != nil {
		return err
	}
	c, err := client.New(admin, client.Options{Scheme: Scheme(operator)})
	if err != nil {
		return err
	}
	if err := errors.Join(c.Create(ctx, policy), c.Create(ctx, binding)); err != nil {
		return err
	}
	if c, err = client.New(user, client.Options{Scheme: Scheme(operator)}); err != nil {
		return err
	}
	_, err = pace.Until(ctx, time.Minute, func() error {
		foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "foreign"}}
		if err := c.Create(ctx, foreign, client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("an object that is not the operator's is not refused: %w", err)
		}
		return nil
	})
	return err
}

// policyOf are the policy and its binding, as kustomizations change them for one operator.
func policyOf(operator run.Operator) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding, error) {
	root, err := testkit.ModuleRoot()
	if err != nil {
		return nil, nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, policyFile))
	if err != nil {
		return nil, nil, err
	}
	first, second, _ := strings.Cut(string(text), "\n---\n")
	policy, binding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
	if err := errors.Join(yaml.UnmarshalStrict([]byte(first), policy), yaml.UnmarshalStrict([]byte(second), binding)); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", policyFile, err)
	}
	var kinds []string
	for _, kind := range operator.Kinds {
		gvk, err := apiutil.GVKForObject(kind.Object, Scheme(operator))
		if err != nil {
			return nil, nil, err
		}
		kinds = append(kinds, "'"+gvk.Group+"/"+gvk.Kind+"'")
	}
	managedBy := run.ManagedBy(operator.Name)
	condition := &policy.Spec.MatchConditions[0]
	condition.Expression = strings.Replace(condition.Expression, "fairlead-controller-manager", managedBy+"-controller-manager", 1)
	policy.Spec.Variables[0].Expression = "['" + managedBy + "']"
	policy.Spec.Variables[1].Expression = "[" + strings.Join(kinds, ", ") + "]"
	policy.Name, binding.Name, binding.Spec.PolicyName = managedBy, managedBy, managedBy
	return policy, binding, nil
}
