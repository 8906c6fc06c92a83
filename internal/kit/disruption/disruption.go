// Package disruption tells of the PodDisruptionBudgets that others have made for pods which have one of the
// operator's: Kubernetes answers every eviction of such a pod with an error, and no drain of its node ends.
//
// The cache holds the budgets of others, too, see [loop.Child.Among]. An index has them alone, so that an object reads
// none where there is none, however many of the operator's own its namespace has.
package disruption

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/internal/kit/status"
)

// Reason is that of the event about a second budget.
const Reason = "SecondDisruptionBudget"

// all is the value of an index that everything has.
const all = "all"

// Watch has the objects of a kind look again when a budget that is not one of theirs comes or goes in their namespace,
// or selects other pods.
func Watch[T client.Object](kind string) loop.Watch[T] {
	return loop.Watch[T]{
		Object: &policyv1.PodDisruptionBudget{},
		Index:  "disruption",
		Value:  func(client.Object) string { return all },
		Values: func(T) []string { return []string{all} },
		If:     []predicate.Predicate{news(kind)},
	}
}

// Index has the cache find the budgets that are not of objects of a kind.
func Index(parts run.Parts, kind string) error {
	return parts.Index(&policyv1.PodDisruptionBudget{}, indexOf(kind), func(budget client.Object) []string {
		if isOf(kind, budget) {
			return nil
		}
		return []string{all}
	})
}

func indexOf(kind string) string { return "besides" + kind }

// isOf says whether a budget belongs to an object of a kind. One that has lost its owner does not, until it is taken back.
func isOf(kind string, budget client.Object) bool {
	owner := metav1.GetControllerOf(budget)
	return owner != nil && owner.Kind == kind
}

func news(kind string) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !isOf(kind, e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return !isOf(kind, e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, is := e.ObjectOld.(*policyv1.PodDisruptionBudget)
			after, isToo := e.ObjectNew.(*policyv1.PodDisruptionBudget)
			return is && isToo && !isOf(kind, after) &&
				(isOf(kind, before) || !equality.Semantic.DeepEqual(before.Spec.Selector, after.Spec.Selector))
		},
	}
}

// Others are the names of the budgets that select one of an object's pods beside the object's own, which has this name.
func Others(ctx context.Context, r *loop.Reader, kind string, own client.ObjectKey, pods []corev1.Pod) ([]string, error) {
	var list policyv1.PodDisruptionBudgetList
	if err := r.List(ctx, &list, client.InNamespace(own.Namespace), client.MatchingFields{indexOf(kind): all}); err != nil {
		return nil, err
	}
	return selecting(list.Items, own.Name, pods), nil
}

func selecting(budgets []policyv1.PodDisruptionBudget, own string, pods []corev1.Pod) []string {
	var names []string
	for _, budget := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil || budget.Name == own || budget.DeletionTimestamp != nil {
			continue // the API server takes no selector that cannot be read
		}
		if slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return selector.Matches(labels.Set(pod.Labels)) }) {
			names = append(names, budget.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Sentence is what the message of Ready has about them, after what it says otherwise.
func Sentence(others []string) string {
	if len(others) == 0 {
		return ""
	}
	return fmt.Sprintf("%s%q selects pods of this object, too, and Kubernetes refuses every eviction of a pod that two budgets select, "+
		"so no drain ends: delete it, or set spec.disruption.enabled to false", begin, others[0])
}

// begin is how the sentence begins, after the one before.
const begin = ". PodDisruptionBudget "

// Announce is the event about a second budget that the status before did not have.
func Announce(before, after []metav1.Condition) []loop.Event {
	is := sentenceIn(after)
	if is == "" || is == sentenceIn(before) {
		return nil
	}
	return []loop.Event{{Type: corev1.EventTypeWarning, Reason: Reason, Action: "Drain", Note: status.Shortened(is)}}
}

// sentenceIn is the sentence about a second budget in the condition Ready, without the end of the one before.
func sentenceIn(conditions []metav1.Condition) string {
	ready := meta.FindStatusCondition(conditions, status.Ready)
	if ready == nil || ready.Status != metav1.ConditionTrue {
		return ""
	}
	_, rest, found := strings.Cut(ready.Message, begin)
	if !found {
		return ""
	}
	return strings.TrimPrefix(begin, ". ") + rest
}
