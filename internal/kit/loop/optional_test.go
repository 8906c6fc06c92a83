package loop

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var anOptional = &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}}

// A kind that is removed right after it was found, so that its cache never fills, costs seconds once, and no worker
// for ever.
func TestOptionalReadNeverFills(t *testing.T) {
	served := &metav1.APIResourceList{APIResources: []metav1.APIResource{{Kind: "Service"}}}
	slow := errors.New("the cache has not begun")
	for name, tt := range map[string]struct {
		after     *metav1.APIResourceList // what the cluster has when the read has waited
		want      error
		isWatched bool
	}{
		"removed meanwhile": {after: &metav1.APIResourceList{}},
		"only slow":         {after: served, want: slow, isWatched: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				now, watches := served, 0
				o := &optional{
					object:  anOptional,
					list:    func(context.Context, string) (*metav1.APIResourceList, error) { return now, nil },
					watch:   func() error { watches++; return nil },
					unwatch: func(context.Context) error { watches--; return nil },
				}
				began := time.Now()
				got, err := o.read(t.Context(), true, func(ctx context.Context) (client.Object, error) {
					now = tt.after
					<-ctx.Done()
					return nil, slow
				})
				if got != nil || !errors.Is(err, tt.want) {
					t.Fatalf("read %v, %v; want nothing and %v", got, err, tt.want)
				}
				if took := time.Since(began); took != listPatience {
					t.Errorf("it took %s, want %s", took, listPatience)
				}
				if (watches == 1) != tt.isWatched || o.isFound() != tt.isWatched {
					t.Errorf("watched %d times, found %t", watches, o.isFound())
				}
			})
		})
	}
}

func TestOptionalReadOfAKindThatIsNotServed(t *testing.T) {
	asked := 0
	o := &optional{object: anOptional, list: func(context.Context, string) (*metav1.APIResourceList, error) {
		asked++
		return &metav1.APIResourceList{}, nil
	}}
	for _, requested := range []bool{false, true} {
		got, err := o.read(t.Context(), requested, func(context.Context) (client.Object, error) {
			t.Error("a kind that is not served was read")
			return nil, nil
		})
		if got != nil || err != nil {
			t.Errorf("read %v, %v; want nothing", got, err)
		}
	}
	if asked != 1 {
		t.Errorf("the cluster was asked %d times, want once: one that is not requested is not looked for", asked)
	}
}
