package run

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/fairlead/internal/kit/outside"
)

// TestUrgentInSlots: what a user does is reconciled before what only resyncs, also where that waits for a slot already.
func TestUrgentInSlots(t *testing.T) {
	request := func(name string) reconcile.Request {
		return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
	}
	var order []string
	synctest.Test(t, func(t *testing.T) {
		noted := &priorities{byRequest: map[reconcile.Request]int{}}
		queue := noted.queue("test", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()).(priorityqueue.PriorityQueue[reconcile.Request])
		r := inSlots{reconcile.Func(func(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
			time.Sleep(time.Second)
			order = append(order, req.Name)
			return reconcile.Result{}, nil
		}), outside.NewSlots(1), noted}
		var workers sync.WaitGroup
		for range 5 {
			workers.Go(func() {
				for {
					req, _, shutdown := queue.GetWithPriority()
					if shutdown {
						return
					}
					_, _ = r.Reconcile(t.Context(), req)
					queue.Done(req)
				}
			})
		}
		for _, name := range []string{"first", "a", "b", "edited"} {
			queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, request(name))
			synctest.Wait()
		}
		queue.Add(request("new"))
		synctest.Wait()
		queue.Add(request("edited")) // which is done once more, for that
		time.Sleep(time.Minute)
		queue.ShutDown()
		workers.Wait()
		if len(noted.byRequest) > 0 {
			t.Errorf("the priorities of %v are still noted", noted.byRequest)
		}
	})
	if want := []string{"first", "edited", "new"}; len(order) != 6 || !slices.Equal(order[:3], want) {
		t.Errorf("the order is %v, want %v first", order, want)
	}
}
