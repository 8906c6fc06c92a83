package loop

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// longestSleep bounds how late an alarm is after the wall clock was set
// forward. Go's timers follow the monotonic clock and do not see that.
const longestSleep = 15 * time.Second

// alarms wakes objects at instants of the wall clock: one goroutine over a heap,
// whatever the number of objects. It is a source of the controller's queue.
type alarms struct {
	now     func() time.Time
	changed chan struct{} // the earliest alarm is another one

	mu    sync.Mutex
	heap  alarmHeap
	byKey map[types.NamespacedName]*alarm
}

type alarm struct {
	key   types.NamespacedName
	at    time.Time
	index int // in the heap
}

func newAlarms(now func() time.Time) *alarms {
	return &alarms{
		now:     now,
		changed: make(chan struct{}, 1),
		byKey:   map[types.NamespacedName]*alarm{},
	}
}

// set moves the alarm of key to at; the zero time removes it.
func (a *alarms) set(key types.NamespacedName, at time.Time) {
	at = at.Round(0) // the wall clock counts
	a.mu.Lock()
	defer a.mu.Unlock()

	entry, ok := a.byKey[key]
	switch {
	case at.IsZero() && !ok:
		return
	case at.IsZero():
		heap.Remove(&a.heap, entry.index)
		delete(a.byKey, key)
		return
	case !ok:
		entry = &alarm{key: key, at: at}
		a.byKey[key] = entry
		heap.Push(&a.heap, entry)
	case entry.at.Equal(at):
		return
	default:
		entry.at = at
		heap.Fix(&a.heap, entry.index)
	}
	if entry.index == 0 {
		select {
		case a.changed <- struct{}{}:
		default:
		}
	}
}

// Start wakes what is due until ctx ends. It returns at once, as a source does.
func (a *alarms) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			case <-a.changed:
			}
			due, sleep := a.Ring()
			for _, key := range due {
				queue.Add(reconcile.Request{NamespacedName: key})
			}
			timer.Reset(sleep)
		}
	}()
	return nil
}

// Next is when the next object is due.
func (a *alarms) Next() (at time.Time, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.heap) == 0 {
		return at, false
	}
	return a.heap[0].at, true
}

// Ring takes out what is due, and says how long to sleep until more may be.
func (a *alarms) Ring() (due []types.NamespacedName, sleep time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now().Round(0)
	for len(a.heap) > 0 {
		next := a.heap[0]
		if next.at.After(now) {
			return due, min(next.at.Sub(now), longestSleep)
		}
		heap.Pop(&a.heap)
		delete(a.byKey, next.key)
		due = append(due, next.key)
	}
	return due, longestSleep
}

// alarmHeap implements heap.Interface, the earliest alarm first.
type alarmHeap []*alarm

func (h alarmHeap) Len() int           { return len(h) }
func (h alarmHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *alarmHeap) Push(x any) {
	entry := x.(*alarm)
	entry.index = len(*h)
	*h = append(*h, entry)
}

func (h *alarmHeap) Pop() any {
	last := len(*h) - 1
	entry := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return entry
}
