package memcached

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
)

// listed is a cache with these Memcacheds.
type listed struct {
	client.Reader
	items []v1alpha1.Memcached
}

func (l listed) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*v1alpha1.MemcachedList).Items = l.items
	return nil
}

// TestBusy: only a server that is being restarted holds an upgrade of the
// operator.
func TestBusy(t *testing.T) {
	for name, tc := range map[string]struct {
		mc   *v1alpha1.Memcached
		want string
	}{
		"nothing is under way":     {aPool(warm), ""},
		"a server is restarted":    {aPool(warm, announced(v1alpha1.Warm, "cache-1")), "Memcached shop/cache is being upgraded warm"},
		"the image is not there":   {aPool(warm, announced(v1alpha1.Warm, "")), ""},
		"it is replaced, not warm": {aPool(warm, announced(v1alpha1.Cold, "")), ""},
	} {
		got, err := busy(context.Background(), listed{items: []v1alpha1.Memcached{*tc.mc}})
		if err != nil || got != tc.want {
			t.Errorf("%s: %q (%v), want %q", name, got, err, tc.want)
		}
	}
}
