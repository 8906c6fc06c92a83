package task

import (
	"encoding/json"
	"testing"
)

// TestProblemOfBothVersions: a problem has the earlier name of a field, too, and is read by either.
func TestProblemOfBothVersions(t *testing.T) {
	for name, text := range map[string]string{
		"of 0.0.2":  `{"Problem":{"Reason":"R","Message":"m","Passes":true}}`,
		"of today":  `{"Problem":{"Reason":"R","Message":"m","Retriable":true,"Passes":true}}`,
		"of 0.2.0":  `{"Problem":{"Reason":"R","Message":"m","Retriable":true}}`,
		"for good":  `{"Problem":{"Reason":"R","Message":"m"}}`,
		"no result": `{}`,
	} {
		t.Run(name, func(t *testing.T) {
			var r Result
			if err := json.Unmarshal([]byte(text), &r); err != nil {
				t.Fatal(err)
			}
			var want *Problem
			if name != "no result" {
				want = &Problem{Reason: "R", Message: "m", Retriable: name != "for good"}
			}
			if (r.Problem == nil) != (want == nil) || want != nil && *r.Problem != *want {
				t.Fatalf("it is read as %+v, want %+v", r.Problem, want)
			}
			written, err := json.Marshal(Result{Problem: want})
			if err != nil {
				t.Fatal(err)
			}
			var of002 struct{ Problem *struct{ Passes bool } }
			if err := json.Unmarshal(written, &of002); err != nil || of002.Problem != nil && of002.Problem.Passes != want.Retriable {
				t.Errorf("a manager of 0.0.2 reads %s as %+v", written, of002.Problem)
			}
		})
	}
}
