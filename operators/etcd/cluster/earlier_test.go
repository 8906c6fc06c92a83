package cluster

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/objects"
)

// earlierNames are the names that fields of status and annotations had in commits before 0.1.0.
var earlierNames = strings.NewReplacer(
	`"memberNamesUsed":`, `"made":`, `"memberBeingAdded":`, `"adding":`, `"memberBeingUpdated":`, `"changing":`,
	`"dataPreparedFor":`, `"prepared":`, `"seedDataUID":`, `"seedData":`, `"failureMessage":`, `"failed":`,
	`"keptPersistentVolumeClaims":`, `"kept":`,
	"etcd.database.coreos.com/v1beta2", "etcd.database.coreos.com/v1beta2", annotation.Replace, annotation.Replace, objects.VoterLabel, objects.VoterLabel, "etcd.database.coreos.com/", "etcd-operator/",
)

// asEarlier makes of an object what those commits left.
func asEarlier[T any](t *testing.T, obj *T) {
	t.Helper()
	data, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	var earlier T
	if err := json.Unmarshal([]byte(earlierNames.Replace(string(data))), &earlier); err != nil {
		t.Fatal(err)
	}
	*obj = earlier
}

// requireSameOfEarlier decides about what those commits left, too: there is no other write, and annotations have the
// names that they have on the pod.
func (w *world) requireSameOfEarlier(t *testing.T, want *plan) {
	t.Helper()
	doing, request := w.doing(want), want.Request
	asEarlier(t, w.ec)
	all := map[client.Object]bool{}
	for _, pod := range w.seen.Pods {
		all[pod] = true
	}
	for _, claim := range w.seen.Claims {
		all[claim] = true
	}
	for _, list := range [][]client.Object{w.seen.Existing, w.seen.Unmarked, w.seen.Seeds} {
		for _, obj := range list {
			all[obj] = true
		}
	}
	for obj := range all {
		switch obj := obj.(type) {
		case *corev1.Pod:
			asEarlier(t, obj)
		case *corev1.PersistentVolumeClaim:
			asEarlier(t, obj)
		}
	}
	got := decide(w.ec, w.seen)
	if now := w.doing(got); now != doing {
		t.Errorf("of what earlier commits left, it does %q, want %q", now, doing)
	}
	if (request == nil) != (got.Request == nil) || request != nil && cmp.Diff(request.Request, got.Request.Request) != "" {
		t.Errorf("of what earlier commits left, it asks for %v, want %v", got.Request, request)
	}
	got.memory.Renamed = want.memory.Renamed
	if diff := cmp.Diff(want.memory, got.memory); diff != "" {
		t.Errorf("status after that, of what earlier commits left (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.Problem, got.Problem); diff != "" {
		t.Errorf("what it reports of what earlier commits left (-want +got):\n%s", diff)
	}
	for _, write := range got.Writes {
		patch, is := write.(loop.Patch)
		if !is || !all[patch.Object] {
			continue
		}
		annotations, _ := patch.Metadata["annotations"].(map[string]any)
		for name := range annotations {
			if strings.HasPrefix(name, "etcd.database.coreos.com/") {
				t.Errorf("%s writes the annotation %s, of which the pod's environment is not made", loop.Name(patch), name)
			}
		}
	}
}
