package sim

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// collector is the garbage collector: it deletes what all owners of are gone.
type collector struct {
	server *Server
	seen   int64
}

// NewCollector makes a garbage collector.
func NewCollector(s *Server) Controller { return &collector{server: s} }

func (*collector) Name() string { return "garbage collector" }

func (g *collector) Act() (bool, time.Time) {
	s := g.server
	if g.seen == s.version {
		return false, time.Time{}
	}
	var orphan client.Object
	var of *Kind
	for _, st := range s.ordered {
		for _, key := range st.keys {
			obj := st.objects[key]
			refs := obj.GetOwnerReferences()
			if len(refs) > 0 && obj.GetDeletionTimestamp() == nil && !g.hasOwner(obj.GetNamespace(), refs) {
				orphan, of = obj, st.kind
			}
		}
	}
	if orphan == nil {
		g.seen = s.version
		return false, time.Time{}
	}
	uid := orphan.GetUID()
	_ = s.delete(of, client.ObjectKeyFromObject(orphan), &client.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}, write{by: g.Name()})
	return true, time.Time{}
}

func (g *collector) hasOwner(namespace string, refs []metav1.OwnerReference) bool {
	for _, ref := range refs {
		for _, st := range g.server.ordered {
			if st.kind.Kind != ref.Kind {
				continue
			}
			if owner, ok := st.objects[types.NamespacedName{Namespace: namespace, Name: ref.Name}]; ok && owner.GetUID() == ref.UID {
				return true
			}
		}
	}
	return false
}
