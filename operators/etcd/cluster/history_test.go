package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/session"
	"example.com/fairlead/operators/etcd/step"
)

// grows has databases of which a part is in use, and which had a quarter of their room in use a minute before, at revision 30.
func (w *world) grows(used, perSecond float64) *world {
	w.seen.Growth = session.Growth{Used: used, PerSecond: perSecond}
	if used >= 0.25 {
		w.seen.Growth.Halfway, w.seen.Growth.HalfwayAt = 30, noon.Add(-time.Minute)
	}
	return w
}

// dropsHistory is the request to the first member to drop the history before a revision.
func dropsHistory(revision int64) asks {
	return func(w *world) members.Request {
		return members.Request{What: members.DropHistory, At: w.at(1), Revision: revision}
	}
}

func keepHistory(d time.Duration) ecOption {
	return func(ec *v1beta2.EtcdCluster) { ec.Spec.KeepHistory = &metav1.Duration{Duration: d} }
}

// TestDecideHistory: when history is dropped before a database is full.
func TestDecideHistory(t *testing.T) {
	justSeen := healthy(anEtcd(), 1, 2, 3).grows(0.6, 1)
	justSeen.seen.Growth.HalfwayAt = noon
	requireDecisions(t, map[string]decision{
		"less than half of the room":           {world: healthy(anEtcd(), 1, 2, 3).grows(0.49, 0.1)},
		"half of the room":                     {world: healthy(anEtcd(), 1, 2, 3).grows(0.5, 0.1), asks: dropsHistory(30)},
		"half of the room, of keys":            {world: healthy(anEtcd(), 1, 2, 3).grows(0.7, 0).keys(0.5)},
		"half of the room beside keys":         {world: healthy(anEtcd(), 1, 2, 3).grows(0.75, 0).keys(0.5), asks: dropsHistory(30)},
		"filled within a look: keep some":      {world: justSeen},
		"one is down":                          {world: healthy(anEtcd(), 1, 2, 3).silences(3).grows(0.5, 0), asks: dropsHistory(30)},
		"the leader does not answer":           {world: healthy(anEtcd(), 1, 2, 3).silences(1).grows(0.5, 0)},
		"while members are changed":            {world: healthy(anEtcd(version("3.6.15")), 1, 2, 3).grows(0.5, 0), asks: dropsHistory(30), want: "status/change"},
		"while another is defragmented":        {world: healthy(anEtcd(), 1, 2, 3).defragments(2, time.Minute, session.Maintenance{IsBegun: true}).grows(0.5, 0), asks: dropsHistory(30)},
		"it is full: make space":               {world: healthy(anEtcd(), 1, 2, 3).alarms(noSpace).grows(1, 0), want: "status/maintenance: Compaction of #1"},
		"it is corrupt: compare first":         {world: healthy(anEtcd(), 1, 2, 3).alarms(members.Alarm{Member: 3, Type: members.Corrupt}).grows(0.6, 0)},
		"the user wants all of it":             {world: healthy(anEtcd(keepHistory(0)), 1, 2, 3).grows(0.95, 0)},
		"the user wants an hour of it":         {world: healthy(anEtcd(keepHistory(time.Hour)), 1, 2, 3).grows(0.85, 0)},
		"etcd drops what is older than 72 h":   {world: healthy(anEtcd(withVariable("ETCD_AUTO_COMPACTION_RETENTION", "72h")), 1, 2, 3).grows(0.5, 0)},
		"the user wants more than fits":        {world: healthy(anEtcd(keepHistory(time.Hour)), 1, 2, 3).grows(0.9, 0), asks: dropsHistory(30)},
		"a file that is empty, and fills soon": {world: healthy(anEtcd(), 1, 2, 3).bloats(1, 2, 3).grows(0.25, 0.001)},
		"a file that is empty, and fills late": {world: healthy(anEtcd(), 1, 2, 3).bloats(1, 2, 3).grows(0.25, 0.0001), want: "status/maintenance: Defragmentation of #2"},
	})
}

// TestDecideQuota: no member gets a quota that its database, or another's, has reached.
func TestDecideQuota(t *testing.T) {
	smaller := func(by string) *world {
		w := healthy(anEtcd(onVolumes), 1, 2, 3)
		w.answer(2, func(a *session.Answer) { a.Status.DBSize, a.Status.DBSizeInUse = 64<<20, 64<<20 })
		w.ec.Spec.QuotaBackendBytes = new(resource.MustParse(by))
		return w
	}
	requireDecisions(t, map[string]decision{
		"less than there is": {world: smaller("64Mi"), problem: "QuotaRefused: spec.quotaBackendBytes is 64Mi, and the database of member " + healthy(anEtcd(), 1, 2).name(2) + " has 64Mi"},
		"more than there is": {world: smaller("65Mi"), want: "status/change", problem: "RollingOut: "},
	})
}

// TestRefusedQuotaReachesNoPod: also one that has to be made keeps a quota that its database fits in.
func TestRefusedQuotaReachesNoPod(t *testing.T) {
	w := healthy(anEtcd(onVolumes), 1, 2, 3)
	w.answer(2, func(a *session.Answer) { a.Status.DBSize, a.Status.DBSizeInUse = 64<<20, 64<<20 })
	w.losesPod(3)
	for quota, want := range map[string]string{"64Mi": "2147483648", "65Mi": "68157440"} {
		w.ec.Spec.QuotaBackendBytes = new(resource.MustParse(quota))
		found := false
		for _, write := range decide(w.ec, w.seen).Writes {
			if create, is := write.(loop.Create); is {
				if pod, is := create.Object.(*corev1.Pod); is {
					found = true
					if got := objects.Variable(pod, "ETCD_QUOTA_BACKEND_BYTES"); got != want {
						t.Errorf("%s: the pod has %s, want %s", quota, got, want)
					}
				}
			}
		}
		if !found {
			t.Errorf("%s: no pod is created", quota)
		}
	}
}

// keys has a part of the room be in use without any history.
func (w *world) keys(part float64) *world {
	w.seen.Growth.Least = part
	return w
}

// TestLooksAgain: the faster databases grow, the sooner they are looked at again; at rest no sooner than ever.
func TestLooksAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		used, perSecond float64
		want            time.Duration
	}{
		"at rest":                 {used: 0.4, want: step.RestingWake},
		"grows slowly":            {used: 0.1, perSecond: 0.005, want: step.RestingWake},
		"grows fast":              {used: 0.1, perSecond: 0.1, want: 2 * time.Second},
		"grows as fast as can be": {used: 0.1, perSecond: 10, want: step.BusyWake},
		"history is dropped":      {used: 0.5, perSecond: 0.1, want: step.BusyWake},
		"a little every year":     {used: 0.1, perSecond: 1e-12, want: step.RestingWake},
	} {
		t.Run(name, func(t *testing.T) {
			w := healthy(anEtcd(), 1, 2, 3).grows(tc.used, tc.perSecond)
			if got := decide(w.ec, w.seen).WakeAt.Sub(noon); got != tc.want {
				t.Errorf("it is looked at again after %s, want %s", got, tc.want)
			}
		})
	}
}
