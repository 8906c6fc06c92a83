package run

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
)

// rights logs the kinds that the manager may not see, each once. The API server's message
// names the account and the right. The manager then waits: it is not ready, and continues
// when it has the right.
type rights struct {
	log  logr.Logger
	seen sync.Map
}

func (r *rights) onWatchError(ctx context.Context, reflector *toolscache.Reflector, err error) {
	if !apierrors.IsForbidden(err) {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		return
	}
	if _, again := r.seen.LoadOrStore(err.Error(), true); !again {
		r.log.Error(err, "the manager may not see what it is to work for: give its service account the right, "+
			"or say in WATCH_NAMESPACE or --namespace which namespaces its Roles are in")
	}
}
