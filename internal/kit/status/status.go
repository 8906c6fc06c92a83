// Package status sets conditions and writes status, the same way for every
// operator.
//
// Conditions follow kstatus (the status conventions that kubectl wait, Argo CD
// and Flux read): Ready says whether all is as asked for; Reconciling is
// present, and True, only while the operator or the cluster is still at work;
// Stalled is present, and True, only when nothing more will happen until
// somebody acts. At most one of the three is True.
package status

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The condition types of kstatus.
const (
	Ready       = "Ready"
	Reconciling = "Reconciling"
	Stalled     = "Stalled"
)

// Available is the condition of what serves: whether it can be used now.
const Available = "Available"

// Conditions is the condition list of one object, at the generation of the
// spec that was acted on.
type Conditions struct {
	List       *[]metav1.Condition
	Generation int64
}

// Good says that all is as asked for.
func (c Conditions) Good(reason, message string) {
	c.Set(Ready, true, reason, message)
	c.drop(Reconciling, Stalled)
}

// Busy says that work goes on, and why it is not done yet.
func (c Conditions) Busy(reason, message string) {
	c.Set(Ready, false, reason, message)
	c.Set(Reconciling, true, reason, message)
	c.drop(Stalled)
}

// Bad says that nothing more will happen until somebody acts.
func (c Conditions) Bad(reason, message string) {
	c.Set(Ready, false, reason, message)
	c.Set(Stalled, true, reason, message)
	c.drop(Reconciling)
}

// Unknown says that what is reported may not be so any more, and why.
func (c Conditions) Unknown(reason, message string) {
	for _, conditionType := range []string{Ready, Available} {
		if conditionType == Ready || meta.FindStatusCondition(*c.List, conditionType) != nil {
			c.set(conditionType, metav1.ConditionUnknown, reason, message)
		}
	}
	c.drop(Reconciling, Stalled)
}

// Set sets one condition. Its transition time changes only with its status.
func (c Conditions) Set(conditionType string, value bool, reason, message string) {
	status := metav1.ConditionFalse
	if value {
		status = metav1.ConditionTrue
	}
	c.set(conditionType, status, reason, message)
}

func (c Conditions) set(conditionType string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(c.List, metav1.Condition{
		Type:               conditionType,
		Status:             status,
		ObservedGeneration: c.Generation,
		Reason:             reason,
		Message:            message,
	})
}

func (c Conditions) drop(conditionTypes ...string) {
	for _, conditionType := range conditionTypes {
		meta.RemoveStatusCondition(c.List, conditionType)
	}
}

// Write stores obj, whose status is now after, if that differs from before,
// the status as it was read, and says whether it wrote. It fails with a
// conflict when obj has changed since it was read, so a status never tells
// about a spec that it has not seen.
func Write[S any](ctx context.Context, c client.Client, obj client.Object, before, after *S) (wrote bool, err error) {
	if equality.Semantic.DeepEqual(before, after) {
		return false, nil
	}
	return true, c.Status().Update(ctx, obj)
}
