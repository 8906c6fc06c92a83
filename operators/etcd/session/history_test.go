package session

import (
	"math"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestGrowth: what is known of the history of a cluster after some looks.
func TestGrowth(t *testing.T) {
	type look struct {
		after    time.Duration
		used     float64
		revision int64
	}
	for name, tc := range map[string]struct {
		looks     []look
		dropped   bool // after the second look
		limit     float64
		halfway   int64
		perSecond float64
	}{
		"one that is nearly empty":                 {looks: []look{{0, 0, 10}}, limit: 0.5},
		"one that is all keys, as far as is known": {looks: []look{{0, 0.4, 10}}, limit: 0.7},
		"one that may be all history":              {looks: []look{{0, 0.9, 10}}, limit: 0.75, halfway: 10},
		"grows":                                    {looks: []look{{0, 0, 10}, {time.Second, 0.25, 20}, {time.Second, 0.5, 30}}, limit: 0.5, halfway: 20, perSecond: 0.25},
		"is looked at again at once":               {looks: []look{{0, 0, 10}, {time.Second, 0.25, 20}, {time.Millisecond, 0.25, 20}}, limit: 0.5, halfway: 20, perSecond: 0.25},
		"has stopped growing":                      {looks: []look{{0, 0, 10}, {time.Second, 0.25, 20}, {time.Second, 0.25, 20}}, limit: 0.5, halfway: 20},
		"shrinks, nobody knows how fast it grows":  {looks: []look{{0, 0, 10}, {time.Second, 0.25, 20}, {time.Second, 0.125, 30}}, limit: 0.5, halfway: 20, perSecond: 0.25},
		"keys are deleted":                         {looks: []look{{0, 0.5, 10}, {time.Second, 0.125, 20}}, limit: 0.5625},
		"the history was dropped, and is there":    {looks: []look{{0, 0, 10}, {time.Second, 0.5, 20}, {time.Second, 0.5, 30}}, dropped: true, limit: 0.75},
		"the history was dropped, and is gone":     {looks: []look{{0, 0, 10}, {time.Second, 0.5, 20}, {time.Second, 0.25, 30}}, dropped: true, limit: 0.625, perSecond: 0.5},
		"quorum was lost, and with it the end":     {looks: []look{{0, 0, 10}, {time.Second, 0.25, 20}, {time.Second, 0.25, 15}}, limit: 0.5, halfway: 15},
	} {
		t.Run(name, func(t *testing.T) {
			aKey := types.NamespacedName{Namespace: "ns", Name: "example"}
			a, now := New(nil, nil), time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
			for i, l := range tc.looks {
				now = now.Add(l.after)
				last := a.last[aKey]
				last.Growth.note(l.used, l.revision, now)
				a.last[aKey] = last
				if tc.dropped && i == 1 {
					a.noteDropped(aKey)
				}
			}
			g := a.last[aKey].Growth
			if g.Limit() != tc.limit || g.Halfway != tc.halfway || math.Abs(g.PerSecond-tc.perSecond) > 0.01 {
				t.Errorf("its limit is %v, halfway was at %d, and it grows by %v, want %v, %d and %v", g.Limit(), g.Halfway, g.PerSecond, tc.limit, tc.halfway, tc.perSecond)
			}
		})
	}
}
