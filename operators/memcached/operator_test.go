package memcached

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/operators/memcached/objects"
)

// listed is a cache with these Memcacheds and pods.
type listed struct {
	client.Reader
	items []v1alpha1.Memcached
	pods  []corev1.Pod
}

func (l listed) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*v1alpha1.MemcachedList).Items = l.items
	return nil
}

func (l listed) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	for _, pod := range l.pods {
		if client.ObjectKeyFromObject(&pod) == key {
			pod.DeepCopyInto(into.(*corev1.Pod))
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, key.Name)
}

// TestBusy: only a server that is being restarted, and is not overdue, holds an upgrade of the
// operator.
func TestBusy(t *testing.T) {
	const want = "Memcached shop/cache is being upgraded warm: server cache-1 is restarting"
	begun := func(ago time.Duration) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Annotations[objects.ChangedAnnotation] = noon.Add(-ago).Format(time.RFC3339)
		}
	}
	for name, tc := range map[string]struct {
		mc   *v1alpha1.Memcached
		pod  []func(*corev1.Pod)
		want string
	}{
		"nothing is under way":     {aPool(warm), nil, ""},
		"a server is to stop":      {aPool(warm, announced(v1alpha1.Warm, "cache-1")), []func(*corev1.Pod){restarting, begun(time.Minute)}, want},
		"a server starts":          {aPool(warm, announced(v1alpha1.Warm, "cache-1")), []func(*corev1.Pod){unready, begun(time.Minute)}, want},
		"it has started":           {aPool(warm, announced(v1alpha1.Warm, "cache-1")), []func(*corev1.Pod){begun(time.Minute)}, ""},
		"it hangs":                 {aPool(warm, announced(v1alpha1.Warm, "cache-1")), []func(*corev1.Pod){restarting, begun(time.Hour)}, ""},
		"it does not get ready":    {aPool(warm, announced(v1alpha1.Warm, "cache-1")), []func(*corev1.Pod){unready, begun(time.Hour)}, ""},
		"its node is lost":         {aPool(warm, announced(v1alpha1.Warm, "cache-1")), []func(*corev1.Pod){restarting, ending, begun(time.Hour)}, ""},
		"it is yet to be changed":  {aPool(warm, announced(v1alpha1.Warm, "cache-1")), []func(*corev1.Pod){unready}, ""},
		"it is another one's":      {aPool(warm, announced(v1alpha1.Warm, "cache-7")), []func(*corev1.Pod){restarting, begun(time.Minute)}, ""},
		"the image is not there":   {aPool(warm, announced(v1alpha1.Warm, "")), nil, ""},
		"it is replaced, not warm": {aPool(warm, announced(v1alpha1.Cold, "")), nil, ""},
	} {
		seen := somethingSeen(aServer(tc.mc, 1, tc.pod...))
		got, err := busy(context.Background(), listed{items: []v1alpha1.Memcached{*tc.mc}, pods: seen.Pods}, noon)
		if err != nil || got != tc.want {
			t.Errorf("%s: %q (%v), want %q", name, got, err, tc.want)
		}
	}
}
