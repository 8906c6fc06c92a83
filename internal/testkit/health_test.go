package testkit

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// job is an object of generation 2 with all that its health may depend on.
type job struct {
	thing
	Spec   struct{ Suspend bool } `json:"spec"`
	Status struct {
		Phase              string             `json:"phase"`
		ObservedGeneration int64              `json:"observedGeneration"`
		Conditions         []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

func (j *job) DeepCopyObject() runtime.Object {
	c := *j
	return &c
}

func aJob(change func(*job), conditions ...metav1.Condition) *job {
	j := &job{}
	j.Name, j.Generation = "x", 2
	j.Status.ObservedGeneration = 2
	for _, c := range conditions {
		c.Message = c.Reason + "."
		if c.ObservedGeneration == 0 {
			c.ObservedGeneration = 2
		}
		j.Status.Conditions = append(j.Status.Conditions, c)
	}
	if change != nil {
		change(j)
	}
	return j
}

// jobs are one of each sort, with the health that they have in Argo CD.
func jobs() map[string]struct {
	job  *job
	want health
} {
	unreported := "The operator has not reported on this generation yet"
	ready := func(status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: "Ready", Status: status, Reason: reason}
	}
	stalled := metav1.Condition{Type: "Stalled", Status: "True", Reason: "Invalid"}
	old := func(c metav1.Condition) metav1.Condition {
		c.ObservedGeneration = 1
		return c
	}
	return map[string]struct {
		job  *job
		want health
	}{
		"new":          {aJob(func(j *job) { j.Status.ObservedGeneration = 0 }), health{"Progressing", unreported}},
		"ready":        {aJob(nil, ready("True", "Done")), health{"Healthy", "Done."}},
		"not ready":    {aJob(nil, ready("False", "Starting")), health{"Progressing", "Starting."}},
		"unknown":      {aJob(nil, ready("Unknown", "ReadFailed")), health{"Progressing", "ReadFailed."}},
		"edited":       {aJob(func(j *job) { j.Status.ObservedGeneration = 1 }, old(ready("True", "Done"))), health{"Progressing", unreported}},
		"ready before": {aJob(nil, old(ready("True", "Done"))), health{"Progressing", unreported}},
		"stalled":      {aJob(nil, ready("False", "Invalid"), stalled), health{"Degraded", "Invalid."}},
		"failed":       {aJob(func(j *job) { j.Status.Phase = "FAILED" }, stalled, ready("False", "Invalid")), health{"Degraded", "Invalid."}},
		"edited since it stalled": {
			aJob(func(j *job) { j.Status.ObservedGeneration = 1 }, old(stalled)), health{"Progressing", unreported},
		},
		"suspended": {aJob(func(j *job) { j.Spec.Suspend = true }, ready("True", "Suspended")), health{"Suspended", "Suspended."}},
		"suspended after its end": {
			aJob(func(j *job) { j.Spec.Suspend, j.Status.Phase = true, "DONE" }, ready("True", "Completed")), health{"Healthy", "Completed."},
		},
		"deleted": {aJob(func(j *job) { j.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, ready("True", "Done")), health{"Progressing", "The object is being deleted"}},
	}
}

func TestHealth(t *testing.T) {
	script, err := readHealth()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range jobs() {
		got, err := runHealth(script, tc.job)
		if err != nil || got != tc.want {
			t.Errorf("%s: %v, want %v, error %v", name, got, tc.want, err)
		}
		for range 2 { // the second time it is known
			if err := CheckHealth(tc.job); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestHealthFindsMistakes: whatever is taken out of the script, the check finds it.
func TestHealthFindsMistakes(t *testing.T) {
	script, err := readHealth()
	if err != nil {
		t.Fatal(err)
	}
	for name, mistake := range map[string][2]string{
		"deletion is not seen":          {"obj.metadata.deletionTimestamp ~= nil", "false"},
		"an old generation counts":      {"status.observedGeneration ~= generation", "false"},
		"Stalled is not seen":           {`condition.type == "Stalled"`, "false"},
		"an old Ready counts":           {" and condition.observedGeneration == generation", ""},
		"any Ready counts":              {`elseif condition.status == "True" then`, "else"},
		"suspended is healthy":          {` and condition.reason == "Suspended"`, " and false"},
		"ready is suspended":            {` and condition.reason == "Suspended"`, ""},
		"no status is an error":         {"obj.status or {}", "obj.status.no"},
		"it says nothing of its health": {"\nreturn health", ""},
	} {
		flawed := strings.Replace(script, mistake[0], mistake[1], 1)
		if flawed == script {
			t.Errorf("%s: the script has no %q", name, mistake[0])
		}
		found := false
		for _, tc := range jobs() {
			got, err := runHealth(flawed, tc.job)
			r, _ := readReported(tc.job)
			words := readWords(tc.job)
			found = found || err != nil || rightHealth(got, &r, &words) != nil
		}
		if !found {
			t.Errorf("not found: %s", name)
		}
	}
}

// BenchmarkCheckHealth is what a simulation pays for each version of an object.
func BenchmarkCheckHealth(b *testing.B) {
	obj := aJob(nil, metav1.Condition{Type: "Ready", Status: "True", Reason: "Done"}, metav1.Condition{Type: "Available", Status: "True", Reason: "Done"})
	for b.Loop() {
		if err := CheckHealth(obj); err != nil {
			b.Fatal(err)
		}
	}
}
