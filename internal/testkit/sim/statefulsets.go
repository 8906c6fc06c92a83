package sim

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// statefulSets is the StatefulSet controller, but for volumes: nothing here claims any.
// Its ControllerRevisions are in its memory, because nobody else reads them.
type statefulSets struct {
	changes
	// revisions are the templates that a StatefulSet has had, the oldest first.
	revisions map[types.UID][]controllerRevision
	// latest is the revision of the template of a generation.
	latest map[generationOf]controllerRevision
}

// controllerRevision is a template that pods are made of.
type controllerRevision struct {
	name     string
	template corev1.PodTemplateSpec
}

type generationOf struct {
	types.UID
	generation int64
}

// NewStatefulSets makes a StatefulSet controller.
func NewStatefulSets(w *World) Controller {
	return &statefulSets{changes: changes{server: w.Server}, revisions: map[types.UID][]controllerRevision{}, latest: map[generationOf]controllerRevision{}}
}

func (*statefulSets) Name() string { return "statefulset controller" }

// Act does the first thing that is to be done for one of the StatefulSets.
func (c *statefulSets) Act() (bool, time.Time) { return syncFirst(&c.changes, c.sync) }

// pool is a StatefulSet and what there is of it.
type pool struct {
	*appsv1.StatefulSet
	selector        labels.Selector
	current, update controllerRevision
	replicas        []*corev1.Pod // by ordinal; nil where there is none
	condemned       []*corev1.Pod // in the order of their names
}

// sync does one thing for a StatefulSet, in the order in which the real controller does
// all of them.
func (c *statefulSets) sync(set *appsv1.StatefulSet) bool {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil || selector.Empty() {
		return false
	}
	replicas := 1
	if set.Spec.Replicas != nil {
		replicas = int(*set.Spec.Replicas)
	}
	p := &pool{StatefulSet: set, selector: selector, replicas: make([]*corev1.Pod, replicas)}
	if c.claim(p) {
		return true
	}
	p.current, p.update = c.revisionsOf(set)
	if set.DeletionTimestamp == nil && (c.scale(p) || c.roll(p)) {
		return true
	}
	status := p.status()
	if equality.Semantic.DeepEqual(&status, &set.Status) {
		return false
	}
	told := set.DeepCopy()
	told.Status = status
	return c.server.Replace(told, c.Name()) == nil
}

// claim finds the pods of a StatefulSet. It adopts one that has no controller, and
// releases one that is not selected any more, and says whether it did.
func (c *statefulSets) claim(p *pool) (did bool) {
	Each(c.server, func(pod *corev1.Pod) {
		ordinal, isMember := ordinalIn(p.Name, pod.Name)
		if did || pod.Namespace != p.Namespace || !isMember {
			return
		}
		matches := p.selector.Matches(labelSet(pod.Labels))
		owner := metav1.GetControllerOf(pod)
		switch {
		case owner == nil && (!matches || pod.DeletionTimestamp != nil || p.DeletionTimestamp != nil):
		case owner == nil:
			did = c.own(p, pod, true)
		case owner.UID != p.UID:
		case !matches:
			did = p.DeletionTimestamp == nil && c.own(p, pod, false)
		case ordinal < len(p.replicas):
			p.replicas[ordinal] = pod
		default:
			p.condemned = append(p.condemned, pod)
		}
	})
	return did
}

// own sets or removes the owner of a pod.
func (c *statefulSets) own(p *pool, pod *corev1.Pod, owned bool) bool {
	pod = pod.DeepCopy()
	if owned {
		pod.OwnerReferences = append(pod.OwnerReferences, p.reference())
	} else {
		var others []metav1.OwnerReference
		for _, ref := range pod.OwnerReferences {
			if ref.UID != p.UID {
				others = append(others, ref)
			}
		}
		pod.OwnerReferences = others
	}
	return c.server.Replace(pod, c.Name()) == nil
}

func (p *pool) reference() metav1.OwnerReference {
	return *metav1.NewControllerRef(p, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
}

// ordinalIn is the number in a pod's name, if that is one of the StatefulSet's.
func ordinalIn(set, pod string) (int, bool) {
	digits, ok := strings.CutPrefix(pod, set+"-")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n >= 0
}

// revisionsOf are the revision of the pods as they were, and that of the template.
func (c *statefulSets) revisionsOf(set *appsv1.StatefulSet) (current, update controllerRevision) {
	generation := generationOf{set.UID, set.Generation}
	update, known := c.latest[generation]
	if !known {
		update = c.revisionFor(set)
		c.latest[generation] = update
	}
	current = update
	for _, r := range c.revisions[set.UID] {
		if r.name == set.Status.CurrentRevision {
			current = r
		}
	}
	return current, update
}

// revisionFor is that of a template: a new one, or the one that was there before.
func (c *statefulSets) revisionFor(set *appsv1.StatefulSet) controllerRevision {
	all := c.revisions[set.UID]
	for _, r := range all {
		if equality.Semantic.DeepEqual(&r.template, &set.Spec.Template) {
			return r
		}
	}
	made := controllerRevision{fmt.Sprintf("%s-r%d", set.Name, len(all)+1), set.Spec.Template}
	c.revisions[set.UID] = append(all, made)
	return made
}

// scale makes pods that are missing, deletes those that are over, to make them again, and
// deletes those that are too many.
func (c *statefulSets) scale(p *pool) bool {
	isParallel := p.Spec.PodManagementPolicy == appsv1.ParallelPodManagement
	for ordinal, pod := range p.replicas {
		switch {
		case pod == nil:
			if c.create(p, ordinal) {
				return true
			}
		case isOver(pod):
			if pod.DeletionTimestamp == nil {
				return c.server.Delete(pod, c.Name()) == nil
			}
		case !isParallel && (pod.DeletionTimestamp != nil || !isReady(pod)):
			return false
		}
	}
	for i := len(p.condemned) - 1; i >= 0; i-- {
		pod := p.condemned[i]
		if pod.DeletionTimestamp == nil {
			return c.server.Delete(pod, c.Name()) == nil
		}
		if !isParallel {
			return false
		}
	}
	return false
}

// create makes a pod: of the present template below the partition, of the new one above
// it. It cannot while another one has the name.
func (c *statefulSets) create(p *pool, ordinal int) bool {
	name := fmt.Sprintf("%s-%d", p.Name, ordinal)
	if _, there := Find[*corev1.Pod](c.server, types.NamespacedName{Namespace: p.Namespace, Name: name}); there {
		return false
	}
	r := p.update
	if p.isOnDelete() {
		// What is made is always of the new one.
	} else if rolling := p.Spec.UpdateStrategy.RollingUpdate; rolling == nil && ordinal < int(p.Status.CurrentReplicas) || ordinal < p.partition() {
		r = p.current
	}
	template := r.template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name, pod.GenerateName = p.Namespace, name, p.Name+"-"
	pod.Labels = maps.Clone(pod.Labels)
	pod.Labels[appsv1.StatefulSetRevisionLabel] = r.name
	pod.Labels[appsv1.StatefulSetPodNameLabel] = name
	pod.Labels[appsv1.PodIndexLabel] = strconv.Itoa(ordinal)
	pod.OwnerReferences = []metav1.OwnerReference{p.reference()}
	pod.Spec.Hostname, pod.Spec.Subdomain = name, p.Spec.ServiceName
	_, err := c.server.Add(pod, c.Name())
	return err == nil
}

func (p *pool) isOnDelete() bool {
	return p.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
}

// partition is the lowest ordinal that gets the new template.
func (p *pool) partition() int {
	if rolling := p.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
		return int(*rolling.Partition)
	}
	return 0
}

// roll deletes the highest pod at or above the partition that is not of the new
// template, once those above it are ready.
func (c *statefulSets) roll(p *pool) bool {
	if p.isOnDelete() {
		return false
	}
	for ordinal := len(p.replicas) - 1; ordinal >= p.partition(); ordinal-- {
		pod := p.replicas[ordinal]
		if pod == nil {
			return false
		}
		if pod.Labels[appsv1.StatefulSetRevisionLabel] != p.update.name && pod.DeletionTimestamp == nil {
			return c.server.Delete(pod, c.Name()) == nil
		}
		if pod.DeletionTimestamp != nil || !isReady(pod) {
			return false
		}
	}
	return false
}

// status is that of a StatefulSet. Once all pods are of the new template and ready, that
// is the present one.
func (p *pool) status() appsv1.StatefulSetStatus {
	s := *p.Status.DeepCopy()
	s.ObservedGeneration = p.Generation
	s.CurrentRevision, s.UpdateRevision = p.current.name, p.update.name
	s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.CurrentReplicas, s.UpdatedReplicas = 0, 0, 0, 0, 0
	if s.CollisionCount == nil {
		s.CollisionCount = new(int32)
	}
	for _, pods := range [][]*corev1.Pod{p.replicas, p.condemned} {
		for _, pod := range pods {
			if pod == nil {
				continue
			}
			s.Replicas++
			if isReady(pod) {
				s.ReadyReplicas++
				s.AvailableReplicas++
			}
			if pod.DeletionTimestamp != nil {
				continue
			}
			if pod.Labels[appsv1.StatefulSetRevisionLabel] == p.current.name {
				s.CurrentReplicas++
			}
			if pod.Labels[appsv1.StatefulSetRevisionLabel] == p.update.name {
				s.UpdatedReplicas++
			}
		}
	}
	if !p.isOnDelete() && s.UpdatedReplicas == s.Replicas && s.ReadyReplicas == s.Replicas {
		s.CurrentReplicas, s.CurrentRevision = s.UpdatedReplicas, s.UpdateRevision
	}
	return s
}

// isReady says whether a pod runs and is ready.
func isReady(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodRunning {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// isOver says whether nothing will run in a pod any more.
func isOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}
