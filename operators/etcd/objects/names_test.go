package objects

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/fairlead/operators/etcd/members"
)

// TestMembersNames: no two members of a cluster have the same name, every operator gives the same
// one, and another cluster of the same name gives other ones.
func TestMembersNames(t *testing.T) {
	isName := regexp.MustCompile(`^example-[bcdfghjklmnpqrstvwxz2456789]{5}$`)
	for _, uid := range []types.UID{"", "a", "example-uid"} {
		ec := aCluster(func(ec *etcdCluster) { ec.UID = uid })
		names := map[string]int64{}
		for n := int64(1); n <= 10_000; n++ {
			name := MemberName(ec, n)
			if !isName.MatchString(name) || MemberName(ec, n) != name {
				t.Fatalf("member %d is named %q", n, name)
			}
			if other, taken := names[name]; taken {
				t.Fatalf("members %d and %d are both named %q", other, n, name)
			}
			names[name] = n
		}
	}
	if one, other := MemberName(aCluster(), 1), MemberName(aCluster(func(ec *etcdCluster) { ec.UID = "other" }), 1); one == other {
		t.Errorf("two clusters have a member %q", one)
	}
}

func TestHostsAndURLs(t *testing.T) {
	for name, tc := range map[string]struct {
		ec        *etcdCluster
		host, url string
	}{
		"plain":         {aCluster(), "example-abcde.example.shop.svc", "http://example-abcde.example.shop.svc:2380"},
		"TLS":           {aCluster(withTLS), "example-abcde.example.shop.svc", "https://example-abcde.example.shop.svc:2380"},
		"with a domain": {aCluster(inDomain("k.local")), "example-abcde.example.shop.svc.k.local", "http://example-abcde.example.shop.svc.k.local:2380"},
	} {
		if got := HostOf(tc.ec, "example-abcde"); got != tc.host {
			t.Errorf("%s: host %q, want %q", name, got, tc.host)
		}
		if got := PeerURLOf(tc.ec, "example-abcde"); got != tc.url {
			t.Errorf("%s: URL %q, want %q", name, got, tc.url)
		}
	}
}

func TestMemberOfPeerURL(t *testing.T) {
	for url, want := range map[string]string{
		"http://example-abcde.example.shop.svc:2380":          "example-abcde",
		"https://example-abcde.example.shop.svc:2380":         "example-abcde",
		"http://example-abcde.example.shop.svc.k.local:2380":  "example-abcde",
		"http://example-0.example.shop.svc:2380":              "example-0",
		"http://example-abcde.example.shop.svcs:2380":         "",
		"http://example-abcde.example.other.svc:2380":         "",
		"http://other-abcde.example.shop.svc:2380":            "",
		"http://example-abcde.other.shop.svc:2380":            "",
		"http://example-abcde.example.shop.svc:2379":          "",
		"http://example-abcde.example.shop.svc":               "",
		"http://10.0.0.7:2380":                                "",
		"http://[fd00::7]:2380":                               "",
		"http://example-client:2380":                          "",
		"://":                                                 "",
		"unix://example-abcde.example.shop.svc:2380/a:2380/b": "example-abcde",
	} {
		got, found := MemberOfPeerURL(aCluster(), url)
		if got != want || found != (want != "") {
			t.Errorf("%s is of %q (%v), want %q", url, got, found, want)
		}
	}
}

func TestEndpoints(t *testing.T) {
	for ip, want := range map[string]string{"10.0.0.7": "10.0.0.7:2379", "fd00::7": "[fd00::7]:2379"} {
		p := &corev1.Pod{Status: corev1.PodStatus{PodIP: ip}}
		p.Name = "example-abcde"
		if diff := cmp.Diff(members.Endpoint{Address: want, ServerName: "example-abcde.example.shop.svc"}, EndpointOf(aCluster(), p)); diff != "" {
			t.Errorf("endpoint (-want +got):\n%s", diff)
		}
	}
}

func TestLabels(t *testing.T) {
	ec := aCluster(withPolicy(func(p *policy) {
		p.Labels = map[string]string{"team": "shop", "app": "theirs", "etcd_node": "theirs", "app.kubernetes.io/managed-by": "theirs"}
	}))
	want := map[string]string{
		"team": "shop", "app": "etcd", "etcd_cluster": "example", "etcd_node": "example-abcde",
		"app.kubernetes.io/name": "etcd", "app.kubernetes.io/instance": "example", "app.kubernetes.io/managed-by": "etcd-operator",
	}
	if diff := cmp.Diff(want, labels(ec, "example-abcde")); diff != "" {
		t.Errorf("labels of a member (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"app": "etcd", "etcd_cluster": "example"}, Selector(ec)); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
}
