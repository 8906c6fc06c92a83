package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/session"
	"example.com/fairlead/operators/etcd/view"
)

// TestJoinCertificate: what is wrong with the Secret by which a running etcd is asked.
func TestJoinCertificate(t *testing.T) {
	secret := func(data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "theirs"}, Data: data}
	}
	for name, tc := range map[string]struct {
		secrets []client.Object
		want    string
	}{
		"it is missing":    {nil, "SecretNotFound: Secret \"theirs\" does not exist: create it, or correct spec.joinFrom.clientTLSSecret"},
		"it has no key":    {[]client.Object{secret(nil)}, "InvalidSecret: Secret \"theirs\": "},
		"it is no PEM":     {[]client.Object{secret(map[string][]byte{"tls.crt": []byte("x"), "tls.key": []byte("x"), "ca.crt": []byte("x")})}, "InvalidSecret: Secret \"theirs\": "},
		"it is none: good": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ec, seen := anEtcd(joins), view.Observation{}
			if tc.want != "" {
				ec.Spec.JoinFrom.ClientTLSSecret = "theirs"
			}
			o := observer{asker: session.New(members.Dial, time.Now)}
			r := &loop.Reader{Live: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(tc.secrets...).Build()}
			if err := o.observeJoin(t.Context(), r, ec, members.User{}, &seen); err != nil {
				t.Fatal(err)
			}
			got := ""
			if seen.ElsewhereProblem != nil {
				got = seen.ElsewhereProblem.Reason + ": " + seen.ElsewhereProblem.Message
			}
			if (got == "") != (tc.want == "") || !strings.HasPrefix(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// TestPodsGone: what is known of pods that members of before have run in.
func TestPodsGone(t *testing.T) {
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "my-etcd-2"}}
		change(p)
		return p
	}
	for name, tc := range map[string]struct {
		url    string
		pods   []client.Object
		denied bool
		want   bool
	}{
		"it is gone":                    {url: theirURL(2), want: true},
		"it is there":                   {url: theirURL(2), pods: []client.Object{pod(func(*corev1.Pod) {})}},
		"its host has another name":     {url: theirURL(2), pods: []client.Object{pod(func(p *corev1.Pod) { p.Name, p.Spec.Hostname = "x", "my-etcd-2" })}},
		"one of another namespace":      {url: theirURL(2), pods: []client.Object{pod(func(p *corev1.Pod) { p.Namespace = "other" })}, want: true},
		"by its whole name":             {url: "http://my-etcd-2.my-etcd-headless.ns.svc.cluster.local:2379", want: true},
		"another domain":                {url: "http://my-etcd-2.my-etcd-headless.ns.svc.clusterset.local:2379"},
		"a Service":                     {url: "http://my-etcd-2.ns.svc:2379"},
		"an address":                    {url: "http://192.0.2.7:2379"},
		"the operator may not see pods": {url: theirURL(2), denied: true},
	} {
		t.Run(name, func(t *testing.T) {
			ec := anEtcd(joins, inPhase("Joined"))
			ec.Spec.JoinFrom.EtcdEndpoints = []string{tc.url}
			o := observer{}
			r := &loop.Reader{Live: interceptor.NewClient(fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(tc.pods...).Build(), interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if tc.denied {
						return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)
					}
					return c.List(ctx, list, options...)
				},
			})}
			for i, at := range []time.Time{noon, noon.Add(time.Minute)} {
				seen := view.Observation{Now: at, Answers: map[string]session.Answer{tc.url: {Err: errors.New("connection refused")}}}
				if err := o.observeGone(t.Context(), r, ec, &seen); err != nil {
					t.Fatal(err)
				}
				if since, is := seen.Gone[tc.url]; is != tc.want || is && !since.Equal(noon) {
					t.Errorf("look %d: its pod is gone: %v, since %s; want %v, since %s", i, is, since, tc.want, noon)
				}
			}
		})
	}
}
