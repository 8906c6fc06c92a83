package sim

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// budgets is the disruption controller. It takes the pods that there are for those that
// there should be: who owns them is asked by nobody here.
type budgets struct{ changes }

// NewBudgets makes a disruption controller.
func NewBudgets(w *World) Controller { return &budgets{changes{server: w.Server}} }

func (*budgets) Name() string { return "disruption controller" }

// Act writes the status of the first PodDisruptionBudget of which it is out of date.
func (c *budgets) Act() (bool, time.Time) { return syncFirst(&c.changes, c.sync) }

func (c *budgets) sync(b *policyv1.PodDisruptionBudget) bool {
	status, err := c.status(b)
	if err != nil || equality.Semantic.DeepEqual(&status, &b.Status) {
		return false
	}
	told := b.DeepCopy()
	told.Status = status
	return c.server.Replace(told, c.Name()) == nil
}

// status is how many pods a budget lets go. What was let go stays in it: nobody evicts.
func (c *budgets) status(b *policyv1.PodDisruptionBudget) (policyv1.PodDisruptionBudgetStatus, error) {
	s := *b.Status.DeepCopy()
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return s, err
	}
	s.ObservedGeneration = b.Generation
	s.ExpectedPods, s.CurrentHealthy = 0, 0
	Each(c.server, func(pod *corev1.Pod) {
		if pod.Namespace != b.Namespace || !selector.Matches(labelSet(pod.Labels)) || isOver(pod) {
			return
		}
		s.ExpectedPods++
		if pod.DeletionTimestamp == nil && isReady(pod) {
			s.CurrentHealthy++
		}
	})
	if most := b.Spec.MaxUnavailable; most != nil {
		n, err := intstr.GetScaledValueFromIntOrPercent(most, int(s.ExpectedPods), true)
		if err != nil {
			return s, err
		}
		s.DesiredHealthy = max(0, s.ExpectedPods-int32(n))
	}
	s.DisruptionsAllowed = max(0, s.CurrentHealthy-s.DesiredHealthy)
	if s.ExpectedPods == 0 {
		s.DisruptionsAllowed = 0
	}
	allowed := metav1.Condition{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.InsufficientPodsReason, ObservedGeneration: b.Generation}
	if s.DisruptionsAllowed > 0 {
		allowed.Status, allowed.Reason = metav1.ConditionTrue, policyv1.SufficientPodsReason
	}
	allowed.LastTransitionTime = metav1.NewTime(c.server.now().Truncate(time.Second))
	if len(s.Conditions) == 1 && s.Conditions[0].Status == allowed.Status {
		allowed.LastTransitionTime = s.Conditions[0].LastTransitionTime
	}
	s.Conditions = []metav1.Condition{allowed}
	return s, nil
}
