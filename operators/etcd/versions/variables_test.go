package versions

import "testing"

func TestReplacement(t *testing.T) {
	for variable, want := range map[string][2]string{
		"ETCD_EXPERIMENTAL_CORRUPT_CHECK_TIME":    {"ETCD_CORRUPT_CHECK_TIME", ""},
		"ETCD_EXPERIMENTAL_INITIAL_CORRUPT_CHECK": {"ETCD_FEATURE_GATES", "InitialCorruptCheck"},
		"ETCD_CORRUPT_CHECK_TIME":                 {},
		"ETCD_EXPERIMENTAL_OF_NOBODY":             {},
		"ETCD_QUOTA_BACKEND_BYTES":                {},
		"CORRUPT_CHECK_TIME":                      {},
	} {
		if name, value := Replacement(variable); name != want[0] || value != want[1] {
			t.Errorf("%s is replaced by %q %q, want %q", variable, name, value, want)
		}
	}
	if len(experimental) != 23 {
		t.Errorf("%d flags were removed in etcd 3.7, and it has %d", 23, len(experimental))
	}
}
