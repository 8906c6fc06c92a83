package podtemplate

import (
	"testing"
)

const text = `{"metadata":{"annotations":{"mine":"1"}},"spec":{"containers":[{"name":"server","image":"nginx:a"}]}}`

func TestRead(t *testing.T) {
	first, err := Read(text)
	if err != nil || first.Spec.Containers[0].Image != "nginx:a" {
		t.Fatalf("read %v: %v", first, err)
	}
	if again, err := Read(text); err != nil || again != first {
		t.Errorf("read again %v: %v", again, err)
	}
	if _, err := Read("{"); err == nil {
		t.Error("half a template is read")
	}
}

// What one caller adds to the annotations is not in what the next one gets.
func TestAppliedIsOnesOwn(t *testing.T) {
	first, err := Applied(text)
	if err != nil {
		t.Fatal(err)
	}
	first.WithAnnotations(map[string]string{"added": "2"})
	second, err := Applied(text)
	if err != nil || len(second.Annotations) != 1 || len(first.Annotations) != 2 {
		t.Errorf("the second has annotations %v, the first %v: %v", second.Annotations, first.Annotations, err)
	}
}
