package status

import (
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	cachev1alpha1 "example.com/fairlead/api/cache/v1alpha1"
	etcdv1beta2 "example.com/fairlead/api/etcd/v1beta2"
	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/cmd/kubectl-fairlead/at"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
	"example.com/fairlead/internal/kit/docs"
)

// detailsOf are what is worth to know of an object, beside its conditions.
func detailsOf(o client.Object, now time.Time) cli.Page {
	p := &cli.Page{}
	switch o := o.(type) {
	case *etcdv1beta2.EtcdCluster:
		ofCluster(p, o)
	case *etcdv1beta2.EtcdBackup:
		ofBackup(p, o, now)
	case *etcdv1beta2.EtcdRestore:
		p.Add("cluster", "%s", o.Spec.EtcdCluster.Name)
		p.Add("phase", "%s", o.Status.Phase)
		p.Add("backup", "%s", o.Status.Key)
	case *cachev1alpha1.Memcached:
		ofPool(p, o)
	case *webv1.WebServer:
		ofWebServer(p, o, now)
	case *atv1alpha1.At:
		if t := at.Scheduled(o); !t.IsZero() {
			p.Add("time", "%s", cli.Say(t, now))
		}
		p.Add("phase", "%s", o.Status.Phase)
		p.Add("pod", "%s", o.Status.PodName)
	}
	return *p
}

func ofPool(p *cli.Page, o *cachev1alpha1.Memcached) {
	p.Add("servers", "%d ready of %d", o.Status.ReadyReplicas, o.Status.Replicas)
	for _, server := range o.Status.Servers {
		p.Add("", "%s", server)
	}
	p.Add("version", "%s", o.Status.Version)
	if o.Status.Memory != "" {
		p.Add("memory", "%s for items, each", o.Status.Memory)
	}
	if u := o.Status.Upgrade; u != nil {
		p.Add("change", "%s, %d changed so far: %s", u.Kind, u.Updated, u.Message)
		if f := u.FailedPull; f != nil {
			p.Add("", "image %s on node %s: %s", f.Image, f.Node, f.Message)
		}
	}
}

func ofCluster(p *cli.Page, o *etcdv1beta2.EtcdCluster) {
	p.Add("members", "%d ready of %d", o.Status.ReadyMembers, o.Spec.Size)
	version := o.Status.CurrentVersion
	if target := o.Status.TargetVersion; target != "" && target != version {
		version += ", on the way to " + target
	}
	p.Add("version", "%s", version)
	p.Add("leader", "%s", o.Status.Leader)
	if quorum := o.Status.QuorumLoss; quorum != nil {
		p.Add("quorum lost", "loss %s: %d members lost, %d survive; how to answer: %s",
			quorum.ID, len(quorum.Lost), len(quorum.Surviving), docs.Page("disaster-recovery.md"))
	}
	p.Add("adding", "%s", o.Status.MemberBeingAdded)
	p.Add("changing", "%s", o.Status.MemberBeingUpdated)
	if m := o.Status.Maintenance; m != nil {
		p.Add("maintenance", "%s of %s, until %s at the latest", m.Type, m.Member, m.Deadline.Format(time.RFC3339))
	}
	for _, m := range o.Status.MemberList {
		words := []string{map[bool]string{true: "ready", false: "not ready"}[m.Ready]}
		if m.Learner {
			words = append(words, "learner")
		}
		if m.DBSize != nil {
			words = append(words, "database "+m.DBSize.String())
		}
		if len(m.Alarms) > 0 {
			words = append(words, "alarms "+strings.Join(m.Alarms, " "))
		}
		if m.Problem != "" {
			words = append(words, m.Problem)
		}
		p.Add("  "+m.Name, "%s", strings.Join(words, ", "))
	}
}

func ofBackup(p *cli.Page, o *etcdv1beta2.EtcdBackup, now time.Time) {
	p.Add("cluster", "%s", o.Spec.EtcdCluster)
	p.Add("last", "%s", timed(o.Status.LastSuccessDate, now))
	if proof := o.Status.LastProof; proof != nil {
		p.Add("proved", "revision %d, %s", proof.Revision, timed(&proof.Time, now))
	}
	p.Add("next", "%s", timed(o.Status.NextTime, now))
	if o.Status.StoredBackups != nil {
		p.Add("stored", "%s", strconv.Itoa(int(*o.Status.StoredBackups)))
	}
	if f := o.Status.LastFailure; f != nil {
		p.Add("failed", "%s, %s: %s", timed(&f.Time, now), f.Reason, f.Message)
	}
}

func ofWebServer(p *cli.Page, o *webv1.WebServer, now time.Time) {
	p.Add("pods", "%d ready of %d", o.Status.ReadyReplicas, o.Status.DesiredReplicas)
	p.Add("image", "%s", o.Status.Image)
	if o.Spec.Image != o.Status.Image {
		p.Add("wanted", "%s", o.Spec.Image)
	}
	p.Add("revision", "%s", o.Status.Revision)
	if t := o.Status.LastGoodTime; t != nil {
		p.Add("last good", "%s of image %s, healthy %s", o.Status.LastGoodRevision, o.Status.LastGoodImage, timed(t, now))
	}
	if f := o.Status.FailedRollout; f != nil {
		p.Add("rolled back", "from %s, %s: %s: %s", f.Image, timed(&f.Time, now), f.Reason, f.Message)
	}
	p.Add("URL", "%s", o.Status.URL)
}

// timed is a time in the zone of now, and how far it is; nothing if there is none.
func timed(t *metav1.Time, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(now.Location()).Format("Mon 2006-01-02 15:04:05 -07:00") + ", " + cli.Far(t.Time, now)
}
