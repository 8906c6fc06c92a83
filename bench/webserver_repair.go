package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
)

const (
	repairServers = 10
	repairs       = 200
	repairBound   = 200 * time.Millisecond
)

// spoilt is one way to change what a WebServer has made.
type spoilt struct {
	what, resource, suffix string
	object                 func() client.Object
	patch                  string // a JSON patch; "" deletes
}

var spoils = []spoilt{
	{"image", "deployments", "", func() client.Object { return &appsv1.Deployment{} }, `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"nginx:nobody"}]`},
	{"replicas", "deployments", "", func() client.Object { return &appsv1.Deployment{} }, `[{"op":"replace","path":"/spec/replicas","value":2}]`},
	{"port", "services", "-service", func() client.Object { return &corev1.Service{} }, `[{"op":"replace","path":"/spec/ports/0/targetPort","value":8081}]`},
	{"Service", "services", "-service", func() client.Object { return &corev1.Service{} }, ""},
	{"budget", "poddisruptionbudgets", "", func() client.Object { return &policyv1.PodDisruptionBudget{} }, `[{"op":"replace","path":"/spec/maxUnavailable","value":0}]`},
}

// repair changes and deletes what running WebServers have made, one after the
// other, and takes the time from the API server's answer to that until its answer
// to the operator that put it right.
func repair(ctx context.Context, b *bench) ([]figure, error) {
	const namespace = "bench-repair"
	remove, err := b.scratch(ctx, namespace)
	if err != nil {
		return nil, err
	}
	name := func(i int) string { return fmt.Sprintf("web-%02d", i) }
	for i := range repairServers {
		ws := &webv1.WebServer{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name(i)}, Spec: webv1.WebServerSpec{Image: webImage}}
		if err := b.client.Create(ctx, ws); err != nil {
			return nil, err
		}
	}
	tail, err := b.tailAudit()
	if err != nil {
		return nil, err
	}
	defer tail.close()
	var took []time.Duration
	for i := range repairs {
		server, how := name(i%repairServers), spoils[i%len(spoils)]
		if err := b.webServerReady(ctx, namespace, server); err != nil {
			return nil, err
		}
		if i%repairServers == 0 {
			if err := b.quiet(ctx); err != nil {
				return nil, err
			}
		}
		if _, err := tail.next(); err != nil {
			return nil, err
		}
		from := len(tail.seen)
		obj := how.object()
		obj.SetNamespace(namespace)
		obj.SetName(server + how.suffix)
		if how.patch == "" {
			err = b.client.Delete(ctx, obj)
		} else {
			err = b.client.Patch(ctx, obj, client.RawPatch(types.JSONPatchType, []byte(how.patch)))
		}
		if err != nil {
			return nil, err
		}
		var d time.Duration
		if err := eventually(ctx, time.Minute, "the repair of "+how.what, func() (bool, error) {
			_, err := tail.next()
			var ok bool
			d, ok = repaired(tail.seen[from:], how.resource, obj.GetName())
			return ok, err
		}); err != nil {
			return nil, err
		}
		took = append(took, d)
	}
	p99 := percentile(took, 99)
	return []figure{{
		measure: "repair", what: fmt.Sprintf("of %d changes and deletions, p99", repairs), value: inMillis(p99),
		spread: spread(took, inMillis), bound: "≤ " + inMillis(repairBound), missed: p99 > repairBound,
	}}, remove(ctx)
}

// repaired is the time from a change of an object that was not the operator's
// until the operator's next one.
func repaired(requests []request, resource, name string) (time.Duration, bool) {
	var spoilt time.Time
	for _, r := range requests {
		if !r.isWrite() || r.ObjectRef.Resource != resource || r.ObjectRef.Name != name || r.ObjectRef.Subresource != "" || r.ResponseStatus.Code >= 300 {
			continue
		}
		switch {
		case r.UserAgent == "bench":
			spoilt = r.StageTimestamp
		case r.User.Username == webServerOperator.user() && !spoilt.IsZero():
			return r.StageTimestamp.Sub(spoilt), true
		}
	}
	return 0, false
}

func (b *bench) webServerReady(ctx context.Context, namespace, name string) error {
	return eventually(ctx, 5*time.Minute, "WebServer "+name+" ready", func() (bool, error) {
		var ws webv1.WebServer
		err := b.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &ws)
		return meta.IsStatusConditionTrue(ws.Status.Conditions, "Ready"), err
	})
}
