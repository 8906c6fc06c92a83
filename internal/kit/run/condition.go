package run

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// conditionVariable is set by the Operator Lifecycle Manager: the name of
	// the OperatorCondition by which the operator talks to it.
	conditionVariable = "OPERATOR_CONDITION_NAME"
	// upgradeable is the condition that it waits for before an upgrade.
	upgradeable = "Upgradeable"
	// busyInterval is how often it is checked whether the operators are busy. The answer
	// comes from the cache, so it costs no request.
	busyInterval = 2 * time.Second
)

var operatorConditionKind = schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v2", Kind: "OperatorCondition"}

// conditionReporter keeps the condition Upgradeable: false while an operator is
// busy. Only the leader does.
type conditionReporter struct {
	key       client.ObjectKey
	writer    client.Client
	live      client.Reader
	cached    client.Reader
	operators []Operator
	log       logr.Logger

	reported *string // what the condition says: why not, empty if upgradeable
	logged   string  // the last error
}

// newConditionReporter is nil when the process does not run under OLM.
func (s *starter) newConditionReporter() *conditionReporter {
	name := os.Getenv(conditionVariable)
	namespace, ok := inCluster()
	if name == "" || !ok {
		return nil
	}
	return &conditionReporter{
		key: client.ObjectKey{Namespace: namespace, Name: name}, operators: s.operators,
		writer: s.mgr.GetClient(), live: s.mgr.GetAPIReader(), cached: s.mgr.GetClient(),
		log: s.mgr.GetLogger().WithName("operator-condition").WithValues("condition", name),
	}
}

// Start reports until ctx ends.
func (r *conditionReporter) Start(ctx context.Context) error {
	ticker := time.NewTicker(busyInterval)
	defer ticker.Stop()
	for {
		if err := r.report(ctx); err != nil && ctx.Err() == nil && r.logged != err.Error() {
			r.logged = err.Error()
			r.log.Error(err, "cannot tell the Operator Lifecycle Manager whether an upgrade may begin, trying again")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (r *conditionReporter) report(ctx context.Context) error {
	reason, err := busy(ctx, r.cached, r.operators)
	if err != nil || r.reported != nil && *r.reported == reason {
		return err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(operatorConditionKind)
	if err := r.live.Get(ctx, r.key, object); err != nil {
		return err
	}
	changed, err := setUpgradeable(object, reason)
	if err != nil {
		return err
	}
	if changed {
		if err := r.writer.Update(ctx, object); err != nil {
			return err
		}
		r.log.Info("reported whether the operator may be upgraded", "upgradeable", reason == "", "because", reason)
	}
	r.reported, r.logged = &reason, ""
	return nil
}

// busy says what the operators have under way that must not be cut short.
func busy(ctx context.Context, cached client.Reader, operators []Operator) (string, error) {
	var reasons []string
	for _, operator := range operators {
		if operator.Busy == nil {
			continue
		}
		reason, err := operator.Busy(ctx, cached)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue // its CRD is not installed
		}
		if err != nil {
			return "", fmt.Errorf("is the %s operator busy: %w", operator.Name, err)
		}
		if reason != "" {
			reasons = append(reasons, reason)
		}
	}
	return strings.Join(reasons, "; "), nil
}

// setUpgradeable sets the condition in spec.conditions, which is where
// operators write; OLM copies it to the status.
func setUpgradeable(object *unstructured.Unstructured, reason string) (changed bool, err error) {
	var have struct {
		Conditions []metav1.Condition `json:"conditions"`
	}
	spec, _, err := unstructured.NestedMap(object.Object, "spec")
	if err != nil {
		return false, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &have); err != nil {
		return false, err
	}
	condition := metav1.Condition{Type: upgradeable, Status: metav1.ConditionTrue, Reason: "Idle", Message: "nothing is under way that an upgrade would cut short"}
	if reason != "" {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "Busy", reason
	}
	if !meta.SetStatusCondition(&have.Conditions, condition) {
		return false, nil
	}
	conditions, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&have)
	if err != nil {
		return false, err
	}
	return true, unstructured.SetNestedField(object.Object, conditions["conditions"], "spec", "conditions")
}
