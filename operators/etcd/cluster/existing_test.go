package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/operators/etcd/membership"
	"example.com/fairlead/operators/etcd/objects"
)

func TestMayBeOf(t *testing.T) {
	ec := anEtcd()
	job := []metav1.OwnerReference{{Kind: "Job", Name: "example", UID: "job", Controller: new(true)}}
	for name, tc := range map[string]struct {
		pod  metav1.ObjectMeta
		want bool
	}{
		"a member by its label":            {metav1.ObjectMeta{Name: "mine", Labels: map[string]string{objects.ClusterLabel: "example"}}, true},
		"one of another cluster":           {metav1.ObjectMeta{Name: objects.MemberName(ec, 1), Labels: map[string]string{objects.ClusterLabel: "other"}}, false},
		"a member by its name":             {metav1.ObjectMeta{Name: objects.MemberName(ec, 1)}, true},
		"a Job's pod has such a name":      {metav1.ObjectMeta{Name: objects.MemberName(ec, 1), OwnerReferences: job}, false},
		"no name of a member":              {metav1.ObjectMeta{Name: "example-debug"}, false},
		"the label, whoever owns it":       {metav1.ObjectMeta{Name: "x", OwnerReferences: job, Labels: map[string]string{objects.ClusterLabel: "example"}}, true},
		"a member of example-b, by letter": {metav1.ObjectMeta{Name: "example-b-bcdfg"}, false},
	} {
		if got := membership.MayBeOf(ec, &corev1.Pod{ObjectMeta: tc.pod}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
