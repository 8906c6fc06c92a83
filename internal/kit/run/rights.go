package run

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"example.com/fairlead/internal/kit/metrics"
)

// rights logs the kinds that the manager may not see, each once. The API server's message
// names the account and the right. The manager then waits: it is not ready, and continues
// when it has the right.
type rights struct {
	log  logr.Logger
	seen sync.Map
}

// lately is for how long after it was refused a right counts as missing. What was refused is tried
// again every half minute, or sooner.
const lately = time.Minute

// lacked has when a right was refused last, by the message.
var lacked sync.Map

var rightsMissing = metrics.GaugeFunc("fairlead_rights_missing",
	"Rights that the manager lacked during the last minute, and without which it cannot watch what it works for. Its log names them.",
	func() float64 {
		missing := 0
		for _, last := range lacked.Range {
			if time.Since(last.(time.Time)) < lately {
				missing++
			}
		}
		return float64(missing)
	})

func (r *rights) onWatchError(ctx context.Context, reflector *toolscache.Reflector, err error) {
	if !apierrors.IsForbidden(err) {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		return
	}
	lacked.Store(err.Error(), time.Now())
	if _, again := r.seen.LoadOrStore(err.Error(), true); !again {
		r.log.Error(err, "the manager may not see what it is to work for: give its service account the right, "+
			"or say in WATCH_NAMESPACE or --namespace which namespaces its Roles are in")
	}
}

// lister finds out about rights that an install may leave out.
type lister struct {
	live   client.Reader
	scheme *runtime.Scheme
	log    logr.Logger
}

// sees says whether objects of a kind can be listed. It is asked once: who gives the right later restarts the manager.
func (l *lister) sees(ctx context.Context, obj client.Object, without string) (bool, error) {
	gvk, err := apiutil.GVKForObject(obj, l.scheme)
	if err != nil {
		return false, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err = l.live.List(ctx, list, client.Limit(1)); apierrors.IsForbidden(err) {
		l.log.Info("the manager works without a right that an install may leave out: "+without, "right", err.Error())
		return false, nil
	}
	return err == nil, err
}
