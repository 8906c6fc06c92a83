// Package status sets conditions, the same way for every operator.
//
// Conditions follow kstatus (the status conventions that kubectl wait, Argo CD and Flux
// read): Ready says whether all is as requested; Reconciling is present, and True, only
// while the operator or the cluster is still at work; Stalled is present, and True, only
// when nothing more will happen until a user acts. At most one of the three is True.
package status

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The condition types of kstatus.
const (
	Ready       = "Ready"
	Reconciling = "Reconciling"
	Stalled     = "Stalled"
)

// Available is the condition of what serves: whether it can be used now.
const Available = "Available"

// Overruled is present, and True, while admission has changed fields of a child, and the operator leaves them so. It says
// nothing about the three above: the loop sets it, for every kind.
const Overruled = "Overruled"

// Conditions is the condition list of one object, at the generation of the
// spec that was acted on.
type Conditions struct {
	List       *[]metav1.Condition
	Generation int64
}

// MarkReady says that all is as requested.
func (c Conditions) MarkReady(reason, message string) {
	c.Set(Ready, true, reason, message)
	c.drop(Reconciling, Stalled)
}

// MarkReconciling says that the work continues, and why it is not done yet.
func (c Conditions) MarkReconciling(reason, message string) {
	c.Set(Ready, false, reason, message)
	c.Set(Reconciling, true, reason, message)
	c.drop(Stalled)
}

// MarkStalled says that nothing more will happen until a user acts.
func (c Conditions) MarkStalled(reason, message string) {
	c.Set(Ready, false, reason, message)
	c.Set(Stalled, true, reason, message)
	c.drop(Reconciling)
}

// MarkUnknown says that what is reported may not be so any more, and why.
func (c Conditions) MarkUnknown(reason, message string) {
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

// SetUnknown says of one condition that it is not known, and why.
func (c Conditions) SetUnknown(conditionType, reason, message string) {
	c.set(conditionType, metav1.ConditionUnknown, reason, message)
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
