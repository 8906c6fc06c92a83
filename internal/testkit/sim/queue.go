package sim

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queue is a controller's, as client-go has it, but for priorities: in which order they
// are worked on is the scheduler's choice.
type queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]

	now            func() time.Time
	first, longest time.Duration
	waiting        []reconcile.Request
	delayed        []delayed
	failures       map[reconcile.Request]int
}

type delayed struct {
	request reconcile.Request
	at      time.Time
}

func (q *queue) Add(r reconcile.Request) {
	for _, w := range q.waiting {
		if w == r {
			return
		}
	}
	q.waiting = append(q.waiting, r)
}

func (q *queue) remove(r reconcile.Request) {
	for i := range q.waiting {
		if q.waiting[i] == r {
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			return
		}
	}
}

func (q *queue) AddAfter(r reconcile.Request, d time.Duration) {
	if d <= 0 {
		q.Add(r)
		return
	}
	q.delayed = append(q.delayed, delayed{r, q.now().Add(d)})
}

func (q *queue) AddRateLimited(r reconcile.Request) {
	wait := q.first << min(q.failures[r], 20)
	q.failures[r]++
	q.AddAfter(r, min(wait, q.longest))
}

func (q *queue) Forget(r reconcile.Request) { delete(q.failures, r) }

// ring moves what is due.
func (q *queue) ring() {
	for i := 0; i < len(q.delayed); {
		if q.delayed[i].at.After(q.now()) {
			i++
			continue
		}
		q.Add(q.delayed[i].request)
		q.delayed = append(q.delayed[:i], q.delayed[i+1:]...)
	}
}
