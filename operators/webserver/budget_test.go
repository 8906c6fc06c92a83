package webserver

import (
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/loop"
)

func budgeted(d webv1.DisruptionSpec) webOption {
	return func(ws *webv1.WebServer) { ws.Spec.Disruption = &d }
}

// aBudget is a PodDisruptionBudget of the WebServer's name.
func aBudget(options ...func(*policyv1.PodDisruptionBudget)) seenOption {
	return func(seen *observation) {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web", UID: "budget-uid",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(aWeb(), webv1.GroupVersion.WithKind("WebServer"))},
		}}
		for _, option := range options {
			option(b)
		}
		seen.children["PodDisruptionBudget"] = b
	}
}

// TestBudget: without disruption.enabled there is none of the operator's, and others stay.
func TestBudget(t *testing.T) {
	off := budgeted(webv1.DisruptionSpec{Enabled: new(false), MinAvailable: new(intstr.FromInt32(1))})
	foreign := func(b *policyv1.PodDisruptionBudget) { b.OwnerReferences = nil }
	ending := func(b *policyv1.PodDisruptionBudget) { b.DeletionTimestamp = &metav1.Time{Time: noon} }
	for name, tc := range map[string]struct {
		ws   *webv1.WebServer
		seen observation
		want string
		pods string // that may be unavailable
	}{
		"none is described":        {aWeb(), somethingSeen(), "apply", "1"},
		"nothing is said of it":    {aWeb(budgeted(webv1.DisruptionSpec{})), somethingSeen(), "apply", "1"},
		"it is enabled":            {aWeb(budgeted(webv1.DisruptionSpec{Enabled: new(true)})), somethingSeen(), "apply", "1"},
		"it is described":          {aWeb(budgeted(webv1.DisruptionSpec{Enabled: new(true), MaxUnavailable: new(intstr.FromString("50%"))})), somethingSeen(), "apply", "50%"},
		"pods may all be away":     {aWeb(budgeted(webv1.DisruptionSpec{MinAvailable: new(intstr.FromInt32(0))})), somethingSeen(), "apply", ""},
		"it is not enabled":        {aWeb(off), somethingSeen(aBudget()), "delete", ""},
		"it is gone":               {aWeb(off), somethingSeen(), "", ""},
		"it is about to go":        {aWeb(off), somethingSeen(aBudget(ending)), "", ""},
		"it is somebody else's":    {aWeb(off), somethingSeen(aBudget(foreign)), "", ""},
		"it is not enabled, alone": {aWeb(budgeted(webv1.DisruptionSpec{Enabled: new(false)})), somethingSeen(aBudget()), "delete", ""},
	} {
		next, err := decide(tc.ws, tc.seen)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		for _, w := range next.Writes {
			verb, kind, _ := strings.Cut(loop.Name(w), " ")
			if kind != "PodDisruptionBudget" {
				continue
			}
			got = verb
			if policy := disruptionBudget(tc.ws).Spec.UnhealthyPodEvictionPolicy; policy == nil || *policy != policyv1.AlwaysAllow {
				t.Errorf("%s: pods that are not ready: %v", name, policy)
			}
			if tc.pods != "" && disruptionBudget(tc.ws).Spec.MaxUnavailable.String() != tc.pods {
				t.Errorf("%s: %v pods may be unavailable, want %s", name, disruptionBudget(tc.ws).Spec.MaxUnavailable, tc.pods)
			}
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
