package sim

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The annotations of the controller of Deployments.
const (
	revisionOf      = "deployment.kubernetes.io/revision"
	desiredReplicas = "deployment.kubernetes.io/desired-replicas"
	maxReplicas     = "deployment.kubernetes.io/max-replicas"
)

// deployments is the controller of Deployments, after the real one in
// k8s.io/kubernetes/pkg/controller/deployment, whose functions have these names. It
// knows neither rollbackTo nor ReplicaSets that it did not make itself.
type deployments struct {
	world  *World
	hashes map[templateID]string
}

type templateID struct {
	types.UID
	generation int64
}

// NewDeployments makes the controller of Deployments. It needs that of ReplicaSets, see
// [NewReplicaSets], which is another one so that each can be late.
func NewDeployments(w *World) Controller {
	return &deployments{world: w, hashes: map[templateID]string{}}
}

func (*deployments) Name() string { return "deployment controller" }

// Act takes one step of the first Deployment that can go on.
func (c *deployments) Act() (did bool, wake time.Time) {
	s := c.world.Server
	owned := map[types.UID][]*appsv1.ReplicaSet{}
	var step func() error
	isRead := false
	Each(s, func(d *appsv1.Deployment) {
		if step != nil {
			return
		}
		if !isRead {
			isRead = true
			Each(s, func(rs *appsv1.ReplicaSet) {
				if ref := metav1.GetControllerOfNoCopy(rs); ref != nil && rs.DeletionTimestamp == nil {
					owned[ref.UID] = append(owned[ref.UID], rs)
				}
			})
		}
		step = c.sync(d, owned[d.UID], &wake)
	})
	if step == nil {
		return false, wake
	}
	c.world.Fail(step())
	return true, time.Time{}
}

// hash is that of a template without the label that has it.
func (c *deployments) hash(obj client.Object, template *corev1.PodTemplateSpec) string {
	id := templateID{obj.GetUID(), obj.GetGeneration()}
	if known, ok := c.hashes[id]; ok {
		return known
	}
	template = template.DeepCopy()
	delete(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	data, err := template.Marshal()
	c.world.Fail(err)
	h := fnv.New64a()
	_, _ = h.Write(data)
	c.hashes[id] = strconv.FormatUint(h.Sum64(), 36)
	return c.hashes[id]
}

// sync is the next step of a Deployment; nil if there is none.
func (c *deployments) sync(d *appsv1.Deployment, all []*appsv1.ReplicaSet, wake *time.Time) func() error {
	if d.DeletionTimestamp != nil {
		return nil
	}
	slices.SortStableFunc(all, func(a, b *appsv1.ReplicaSet) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	var newest *appsv1.ReplicaSet
	var old []*appsv1.ReplicaSet
	for _, rs := range all {
		if newest == nil && c.hash(rs, &rs.Spec.Template) == c.hash(d, &d.Spec.Template) {
			newest = rs
		} else {
			old = append(old, rs)
		}
	}
	r := &rollout{deployments: c, d: d, newest: newest, old: old}
	if !d.Spec.Paused || newest != nil {
		if step := r.getNewReplicaSet(); step != nil {
			return step
		}
	}
	var step func() error
	switch {
	case d.Spec.Paused || r.isScalingEvent():
		step = r.scale()
	case d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType:
		step = r.recreate()
	default:
		if step = r.reconcileNewReplicaSet(); step == nil {
			step = r.reconcileOldReplicaSets()
		}
	}
	if step == nil && deploymentComplete(d, &d.Status) {
		step = r.cleanup()
	}
	if step == nil {
		step = r.syncStatus(wake)
	}
	return step
}

// rollout is a Deployment and its ReplicaSets.
type rollout struct {
	*deployments
	d      *appsv1.Deployment
	newest *appsv1.ReplicaSet   // with the present template; nil if there is none
	old    []*appsv1.ReplicaSet // the oldest first
}

func (r *rollout) all() []*appsv1.ReplicaSet {
	if r.newest == nil {
		return r.old
	}
	return append(slices.Clone(r.old), r.newest)
}

// active are those of some ReplicaSets that are to have pods.
func active(all []*appsv1.ReplicaSet) (some []*appsv1.ReplicaSet) {
	for _, rs := range all {
		if *rs.Spec.Replicas > 0 {
			some = append(some, rs)
		}
	}
	return some
}

func sum(all []*appsv1.ReplicaSet, of func(*appsv1.ReplicaSet) int32) (n int32) {
	for _, rs := range all {
		n += of(rs)
	}
	return n
}

func requested(rs *appsv1.ReplicaSet) int32 { return *rs.Spec.Replicas }
func available(rs *appsv1.ReplicaSet) int32 { return rs.Status.AvailableReplicas }

// fenceposts are how many pods there may be too many, and too few.
func fenceposts(d *appsv1.Deployment) (surge, unavailable int32) {
	rolling := d.Spec.Strategy.RollingUpdate
	if rolling == nil {
		return 0, 0
	}
	scaled := func(v *intstr.IntOrString, up bool) int32 {
		n, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(v, intstr.FromInt32(0)), int(*d.Spec.Replicas), up)
		if err != nil {
			return 0
		}
		return int32(n)
	}
	surge, unavailable = scaled(rolling.MaxSurge, true), scaled(rolling.MaxUnavailable, false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, min(unavailable, *d.Spec.Replicas)
}

func revision(obj client.Object) int64 {
	n, _ := strconv.ParseInt(obj.GetAnnotations()[revisionOf], 10, 64)
	return n
}

// copied are the annotations that a ReplicaSet has from its Deployment.
func copied(d *appsv1.Deployment, onto map[string]string) (all map[string]string, changed bool) {
	all = map[string]string{}
	for k, v := range onto {
		all[k] = v
	}
	for k, v := range d.Annotations {
		if k == revisionOf || k == desiredReplicas || k == maxReplicas || k == corev1.LastAppliedConfigAnnotation {
			continue
		}
		if all[k] != v {
			all[k], changed = v, true
		}
	}
	return all, changed
}

// getNewReplicaSet makes the ReplicaSet of the present template, or its annotations and
// those of the Deployment what they are to be.
func (r *rollout) getNewReplicaSet() func() error {
	d, s := r.d, r.world.Server
	next := int64(1)
	for _, rs := range r.old {
		next = max(next, revision(rs)+1)
	}
	if r.newest == nil {
		return func() error { return r.create(next) }
	}
	annotations, changed := copied(d, r.newest.Annotations)
	if revision(r.newest) < next {
		annotations[revisionOf], changed = strconv.FormatInt(next, 10), true
	}
	if changed || r.newest.Spec.MinReadySeconds != d.Spec.MinReadySeconds {
		return func() error {
			rs := r.newest.DeepCopy()
			rs.Annotations, rs.Spec.MinReadySeconds = annotations, d.Spec.MinReadySeconds
			return s.Replace(rs, r.Name())
		}
	}
	hasCondition := conditionOf(&d.Status, appsv1.DeploymentProgressing) != nil
	if revision(d) == revision(r.newest) && hasCondition {
		return nil
	}
	return func() error {
		told := d.DeepCopy()
		metav1.SetMetaDataAnnotation(&told.ObjectMeta, revisionOf, strconv.FormatInt(revision(r.newest), 10))
		if !hasCondition {
			r.setCondition(&told.Status, appsv1.DeploymentProgressing, corev1.ConditionTrue, "FoundNewReplicaSet",
				fmt.Sprintf("Found new replica set %q", r.newest.Name))
		}
		return s.Replace(told, r.Name())
	}
}

// create makes a ReplicaSet. If another one has its name, the Deployment counts that, and
// the next try has another name.
func (r *rollout) create(number int64) error {
	d, s := r.d, r.world.Server
	hash := r.hash(d, &d.Spec.Template)
	hash = hash[max(0, len(hash)-9):]
	if n := d.Status.CollisionCount; n != nil {
		hash += strconv.Itoa(int(*n))
	}
	template := d.Spec.Template.DeepCopy()
	metav1.SetMetaDataLabel(&template.ObjectMeta, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	selector := d.Spec.Selector.DeepCopy()
	metav1.AddLabelToSelector(selector, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	annotations, _ := copied(d, nil)
	annotations[revisionOf] = strconv.FormatInt(number, 10)
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: d.Name + "-" + hash, Labels: template.Labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(0)), MinReadySeconds: d.Spec.MinReadySeconds, Selector: selector, Template: *template},
	}
	*rs.Spec.Replicas = r.newReplicas(rs, append(slices.Clone(r.old), rs))
	r.annotateReplicas(rs)

	_, err := s.Add(rs, r.Name())
	told := d.DeepCopy()
	switch {
	case apierrors.IsAlreadyExists(err):
		told.Status.CollisionCount = new(int32(1))
		if n := d.Status.CollisionCount; n != nil {
			*told.Status.CollisionCount = *n + 1
		}
		return s.Replace(told, r.Name())
	case err != nil:
		return err
	}
	// The real one does this in the same call, with a request of its own. If it dies
	// between them, the next one finds the ReplicaSet: see getNewReplicaSet.
	metav1.SetMetaDataAnnotation(&told.ObjectMeta, revisionOf, strconv.FormatInt(number, 10))
	r.setCondition(&told.Status, appsv1.DeploymentProgressing, corev1.ConditionTrue, "NewReplicaSetCreated", fmt.Sprintf("Created new replica set %q", rs.Name))
	return s.Replace(told, r.Name())
}

// annotateReplicas notes how many pods the Deployment wants in all.
func (r *rollout) annotateReplicas(rs *appsv1.ReplicaSet) {
	surge, _ := fenceposts(r.d)
	metav1.SetMetaDataAnnotation(&rs.ObjectMeta, desiredReplicas, strconv.Itoa(int(*r.d.Spec.Replicas)))
	metav1.SetMetaDataAnnotation(&rs.ObjectMeta, maxReplicas, strconv.Itoa(int(*r.d.Spec.Replicas+surge)))
}

// scaleReplicaSet gives a ReplicaSet a size; nil if it has it.
func (r *rollout) scaleReplicaSet(rs *appsv1.ReplicaSet, size int32) func() error {
	scaled := rs.DeepCopy()
	scaled.Spec.Replicas = &size
	r.annotateReplicas(scaled)
	if *rs.Spec.Replicas == size && rs.Annotations[desiredReplicas] == scaled.Annotations[desiredReplicas] && rs.Annotations[maxReplicas] == scaled.Annotations[maxReplicas] {
		return nil
	}
	return func() error { return r.world.Server.Replace(scaled, r.Name()) }
}
