package status

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAtMostOneOfTheThreeIsTrue(t *testing.T) {
	var list []metav1.Condition
	conditions := Conditions{List: &list, Generation: 3}
	steps := map[string]func(reason, message string){"Ready": conditions.MarkReady, "Reconciling": conditions.MarkReconciling, "Stalled": conditions.MarkStalled}
	for range 2 { // every way from one to another
		for _, names := range [][]string{{"Ready", "Reconciling", "Stalled"}, {"Ready", "Stalled", "Reconciling"}} {
			for _, name := range names {
				steps[name]("Because", "of this")
				var isTrue []string
				for _, condition := range list {
					if condition.Status == metav1.ConditionTrue {
						isTrue = append(isTrue, condition.Type)
					}
					if condition.ObservedGeneration != 3 || condition.Reason != "Because" || condition.Message != "of this" {
						t.Errorf("%+v", condition)
					}
				}
				if strings.Join(isTrue, ",") != name {
					t.Errorf("True are %v, want %s", isTrue, name)
				}
			}
		}
	}
}
