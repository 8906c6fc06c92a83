package memcached

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/operators/memcached/change"
)

// TestKnownFaults: a version with faults that matter to a pool is named, with the one that has
// them fixed, until the servers have that.
func TestKnownFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		mc   *v1alpha1.Memcached
		was  string // the version of the servers
		want string // in the message; "" for no condition
	}{
		"an old version":              {aPool(version("1.6.38")), "1.6.38", "memcached 1.6.38 has known faults: a client can end a server with a malformed request (fixed in 1.6.42). Set spec.version to 1.6.42 or later, unless the image has the fixes"},
		"… with users":                {aPool(version("1.6.38"), withUsers), "1.6.38", "with auth, whoever can connect can end a server without logging in (fixed in 1.6.44). Set spec.version to 1.6.44 or later"},
		"a variant of it":             {aPool(version("1.6.38-alpine")), "1.6.38-alpine", "memcached 1.6.38-alpine has known faults"},
		"fixed":                       {aPool(version("1.6.42")), "1.6.42", ""},
		"fixed, but not for users":    {aPool(version("1.6.42"), withUsers), "1.6.42", "memcached 1.6.42 has known faults: with auth"},
		"fixed for users as well":     {aPool(version("1.6.44"), withUsers), "1.6.44", ""},
		"the servers are about to be": {aPool(version("1.6.45")), "1.6.38", "memcached 1.6.38 has"},
		"the servers are no more":     {aPool(version("1.6.38")), "1.6.45", "memcached 1.6.38 has"},
		"there are no servers yet":    {aPool(version("1.6.38")), "", "memcached 1.6.38 has"},
		"an image without a version":  {aPool(image("registry.example.com/cache:latest")), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.mc.Status.Version = tc.was
			next := &change.Plan{Upgrade: &v1alpha1.UpgradeStatus{}} // the servers have what they had
			st := summarize(tc.mc, somethingSeen(), next, nil)
			is := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionKnownFaults)
			switch {
			case tc.want == "" && is != nil:
				t.Errorf("%+v", is)
			case tc.want != "" && (is == nil || !strings.Contains(is.Message, tc.want)):
				t.Errorf("%+v, want %q", is, tc.want)
			}
			tc.mc.Status, tc.mc.Spec.Image = st, "memcached:1.6.45"
			tc.mc.Status.Version = "1.6.45"
			if st := summarize(tc.mc, somethingSeen(), next, nil); meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionKnownFaults) != nil {
				t.Error("it is still there after the upgrade")
			}
		})
	}
}
