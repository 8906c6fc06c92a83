package cluster

import (
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/etcd/objects"
)

// TestBudget: without disruption.enabled there is none of the operator's, and others stay.
func TestBudget(t *testing.T) {
	with := func(enabled bool) ecOption {
		return func(ec *v1beta2.EtcdCluster) { ec.Spec.Disruption = &v1beta2.DisruptionPolicy{Enabled: &enabled} }
	}
	there := func(owned, ending bool) *policyv1.PodDisruptionBudget {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "example", UID: "budget-uid"}}
		if owned {
			b.OwnerReferences = objects.ControlledBy(anEtcd())
		}
		if ending {
			b.DeletionTimestamp = &metav1.Time{Time: noon}
		}
		return b
	}
	for name, tc := range map[string]struct {
		ec     *v1beta2.EtcdCluster
		budget *policyv1.PodDisruptionBudget
		want   string
	}{
		"nothing is said of it": {anEtcd(), &policyv1.PodDisruptionBudget{}, "apply"},
		"it is enabled":         {anEtcd(with(true)), there(true, false), "apply"},
		"it is not enabled":     {anEtcd(with(false)), there(true, false), "delete"},
		"it is about to go":     {anEtcd(with(false)), there(true, true), ""},
		"it is gone":            {anEtcd(with(false)), &policyv1.PodDisruptionBudget{}, ""},
		"it is somebody else's": {anEtcd(with(false)), there(false, false), ""},
	} {
		w := healthy(tc.ec, 1, 2, 3)
		w.seen.Children["PodDisruptionBudget"] = tc.budget
		next := decide(tc.ec, w.seen)
		var got string
		for _, write := range next.Writes {
			if verb, kind, _ := strings.Cut(loop.Name(write), " "); kind == "PodDisruptionBudget" {
				got = verb
			}
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
