//go:build apiserver

package memcached

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"example.com/fairlead/internal/kit/status"
)

// TestSecondBudget: a PodDisruptionBudget of a user's is reported for as long as there is the operator's, too.
func TestSecondBudget(t *testing.T) {
	s, ctx := newStage(t, behaves), context.Background()
	mine := &policyv1.PodDisruptionBudget{}
	mine.Namespace, mine.Name = s.R.Namespace, "mine"
	mine.Spec.MinAvailable, mine.Spec.Selector = new(intstr.FromInt32(1)), &metav1.LabelSelector{}
	s.Must(s.Create(ctx, mine))
	s.Must(s.Create(ctx, story(s.R)))
	says := func(want bool) func() error {
		return func() error {
			mc, err := current(ctx, s.R)
			if err != nil {
				return err
			}
			ready := meta.FindStatusCondition(mc.Status.Conditions, status.Ready)
			if ready == nil || ready.Status != metav1.ConditionTrue || strings.Contains(ready.Message, `. PodDisruptionBudget "mine" selects`) != want {
				return fmt.Errorf("Ready is %+v", ready)
			}
			return nil
		}
	}
	s.Eventually(says(true))
	s.Must(patched(`{"spec":{"disruption":{"enabled":false}}}`)(ctx, s.R))
	s.Within(5*time.Second, says(false))
}
