package webserver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
)

// This file is about the Gateway that an HTTPRoute is for. It belongs to somebody else: what it makes of the
// HTTPRoute is in the HTTPRoute's status, which is watched, and its listeners are read for the URL.

// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=gateways,verbs=get

// listener is where a Gateway takes requests.
type listener struct {
	name, hostname string
	isHTTPS        bool
	port           int32
}

// observeListeners reads the listeners of the Gateway that spec.gateway names. It is read and not watched: it may
// be in a namespace that the operator has no right in, and a cache of what may not be listed is never filled. Without
// the right, or without the Gateway, nothing is known of them.
func observeListeners(ctx context.Context, r *loop.Reader, ws *webv1.WebServer) ([]listener, error) {
	if ws.Spec.Gateway == nil || len(ws.Spec.Gateway.Hostnames) == 0 || r.Children[httpRouteKind] == nil {
		return nil, nil
	}
	gateway := unstructuredOf(gatewayKind)
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: gatewayNamespace(ws), Name: ws.Spec.Gateway.Name}, gateway)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return listenersOf(gateway), nil
}

// listenersOf are the listeners that serve HTTPRoutes.
func listenersOf(gateway *unstructured.Unstructured) []listener {
	var all []listener
	list, _, _ := unstructured.NestedSlice(gateway.Object, "spec", "listeners")
	for _, item := range list {
		fields, _ := item.(map[string]any)
		protocol := text(fields, "protocol")
		port, _, _ := unstructured.NestedInt64(fields, "port")
		if protocol == "HTTP" || protocol == "HTTPS" {
			all = append(all, listener{text(fields, "name"), text(fields, "hostname"), protocol == "HTTPS", int32(port)})
		}
	}
	return all
}

// listenerFor is the listener for the first host name: that of spec.gateway.sectionName, or one for HTTP, or else
// one for HTTPS. It is one for HTTP on port 80 if nothing is known.
func listenerFor(ws *webv1.WebServer, seen observation) listener {
	found := listener{port: 80}
	for i, l := range slices.DeleteFunc(slices.Clone(seen.listeners), func(l listener) bool {
		section := ws.Spec.Gateway.SectionName
		return section != "" && section != l.name || !haveHostsInCommon(l.hostname, ws.Spec.Gateway.Hostnames[0])
	}) {
		if i == 0 || found.isHTTPS && !l.isHTTPS {
			found = l
		}
	}
	return found
}

// haveHostsInCommon says whether a listener's host name and an HTTPRoute's have hosts in common. Each may begin with "*.".
func haveHostsInCommon(listeners, routes string) bool {
	covers := func(a, b string) bool {
		suffix, isWildcard := strings.CutPrefix(a, "*")
		return a == b || isWildcard && strings.HasSuffix(b, suffix)
	}
	return listeners == "" || covers(listeners, routes) || covers(routes, listeners)
}

// address is a host with the listener's port, unless that goes without saying.
func (l listener) address(host string) string {
	if l.isHTTPS && l.port == httpsPort || !l.isHTTPS && l.port == 80 {
		return host
	}
	return fmt.Sprintf("%s:%d", host, l.port)
}

func gatewayNamespace(ws *webv1.WebServer) string {
	return cmp.Or(ws.Spec.Gateway.Namespace, ws.Namespace)
}

// parents are what the Gateway's controllers say of the HTTPRoute. What another Gateway says, which the spec named
// before, does not count.
func parents(ws *webv1.WebServer, seen observation) []map[string]any {
	return slices.DeleteFunc(offers(seen.children[httpRouteKind], "parents"), func(parent map[string]any) bool {
		ref, _, _ := unstructured.NestedMap(parent, "parentRef")
		namespace, section := cmp.Or(text(ref, "namespace"), ws.Namespace), ws.Spec.Gateway.SectionName
		return text(ref, "name") != ws.Spec.Gateway.Name || namespace != gatewayNamespace(ws) ||
			section != "" && text(ref, "sectionName") != section
	})
}

// routeRefused reports that the Gateway does not serve the HTTPRoute, in its own words.
func routeRefused(ws *webv1.WebServer, seen observation) *status.Problem {
	if ws.Spec.Gateway == nil {
		return nil
	}
	if said := refusal(ws, seen, "Accepted"); said != nil {
		return &status.Problem{Reason: reasonRouteRefused, Message: fmt.Sprintf("Gateway %q does not accept the HTTPRoute: %s",
			ws.Spec.Gateway.Name, wordsOf(said))}
	}
	if said := refusal(ws, seen, "ResolvedRefs"); said != nil {
		// A Gateway that has not seen the Service yet says so, too.
		return &status.Problem{Reason: reasonRouteUnresolved, Retriable: true, Message: fmt.Sprintf(
			"Gateway %q does not find what the HTTPRoute refers to: %s", ws.Spec.Gateway.Name, wordsOf(said))}
	}
	return nil
}

// refusal is the condition that is False for the present HTTPRoute, and True for nobody.
func refusal(ws *webv1.WebServer, seen observation, condition string) map[string]any {
	answers := parents(ws, seen)
	if isTaken(answers, condition) {
		return nil
	}
	for _, answer := range answers {
		for _, said := range conditionsOf(answer) {
			generation, isTold, _ := unstructured.NestedInt64(said, "observedGeneration")
			isCurrent := !isTold || generation == seen.children[httpRouteKind].GetGeneration()
			if said["type"] == condition && said["status"] == "False" && isCurrent {
				return said
			}
		}
	}
	return nil
}

func wordsOf(condition map[string]any) string {
	return status.Shortened(strings.TrimSuffix(text(condition, "reason")+": "+text(condition, "message"), ": "))
}

// offers are the answers of those to whom a route was offered: a list in its status.
func offers(route client.Object, list string) []map[string]any {
	u, is := route.(*unstructured.Unstructured)
	if !is {
		return nil
	}
	return mapsIn(u.Object, "status", list)
}

// isTaken says whether one of those to whom a route was offered has taken it.
func isTaken(offers []map[string]any, condition string) bool {
	return slices.ContainsFunc(offers, func(offer map[string]any) bool {
		return slices.ContainsFunc(conditionsOf(offer), func(said map[string]any) bool {
			return said["type"] == condition && said["status"] == "True"
		})
	})
}

func conditionsOf(offer map[string]any) []map[string]any { return mapsIn(offer, "conditions") }

func mapsIn(fields map[string]any, path ...string) []map[string]any {
	var all []map[string]any
	list, _, _ := unstructured.NestedSlice(fields, path...)
	for _, item := range list {
		if m, is := item.(map[string]any); is {
			all = append(all, m)
		}
	}
	return all
}

func text(fields map[string]any, field string) string {
	s, _, _ := unstructured.NestedString(fields, field)
	return s
}
