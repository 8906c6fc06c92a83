package run

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A right that is missing is logged once, however often the cache tries again.
func TestMissingRightsAreToldOnce(t *testing.T) {
	var lines []string
	r := &rights{log: funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})}
	refused := func(resource string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "at.example.com", Resource: resource}, "", errors.New(`User "x" cannot list`))
	}
	for range 3 {
		r.onWatchError(t.Context(), nil, refused("ats"))
	}
	r.onWatchError(t.Context(), nil, refused("others"))
	if len(lines) != 2 || !strings.Contains(lines[0], "ats.at.example.com") || !strings.Contains(lines[0], "WATCH_NAMESPACE") {
		t.Errorf("logged: %q", lines)
	}
	missing := func() float64 { return testutil.ToFloat64(rightsMissing) }
	if got := missing(); got != 2 {
		t.Errorf("%v rights are missing, want 2", got)
	}
	lacked.Store(refused("ats").Error(), time.Now().Add(-lately))
	if got := missing(); got != 1 {
		t.Errorf("%v rights are missing a minute after one was given, want 1", got)
	}
}
