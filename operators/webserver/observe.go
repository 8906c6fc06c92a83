package webserver

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/contents"
	"example.com/fairlead/internal/kit/disruption"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/services"
)

// observation is all that decide reads, besides the WebServer.
type observation struct {
	now time.Time
	// children are the children by kind; an empty object where there is none.
	children loop.Children
	// pods are those with the operator's label, by name.
	pods []corev1.Pod
	// unmounted are what pods mount that is not there.
	unmounted []pods.Mount
	// reached are the pods that the Service leads to.
	reached services.Targets
	// hosts are the nodes of the pods. Those of pods that another operator made
	// are looked for only while there is no URL.
	hosts []string
	// inputs are what the pods are to be given.
	inputs inputs
	// copies are the copies of inputs that are there.
	copies []metav1.PartialObjectMetadata
	// revisions keep templates, and good is the one of them to go back to, if there
	// is one.
	revisions []appsv1.ControllerRevision
	good      podTemplate
	// tutorialPort is true when port 30010 seems free, and this WebServer may request it;
	// tutorialPortTaken is for the case that it is not.
	tutorialPort      bool
	tutorialPortTaken func()
	// adoptee has what spec.adopt is about, and the WebServer does not own yet.
	adoptee adoptee
	// autoscaled is true when an autoscaler that the operator does not own sets the
	// replicas.
	autoscaled bool
	// listeners are those of the Gateway, as far as the operator may read it.
	listeners []listener
	// budgets are PodDisruptionBudgets of others that select pods, too.
	budgets []string
	// missing are the kinds that are requested and that the cluster does not have.
	missing []string
}

func (o observation) deployment() *appsv1.Deployment {
	return loop.The[*appsv1.Deployment](o.children)
}

func (o observation) service() *corev1.Service { return loop.The[*corev1.Service](o.children) }

// observer reads what the next step depends on.
type observer struct {
	digests      *contents.Digests
	tutorialPort *tutorialPort
	ipv6         bool // pods have addresses of IPv6
	now          func() time.Time
}

// forget drops what is kept in memory about a WebServer that is gone.
func (o *observer) forget(ws types.NamespacedName) {
	o.digests.Forget(ws)
	figures.Forget(ws)
}

func (o *observer) observe(ctx context.Context, r *loop.Reader, ws *webv1.WebServer) (observation, error) {
	seen := observation{now: o.now().Round(0), children: r.Children, missing: r.Missing}
	var err error
	if seen.adoptee, err = observeAdoptee(ctx, r, ws, seen); err != nil {
		return seen, err
	}
	if err := observePods(ctx, r, ws, &seen); err != nil {
		return seen, err
	}
	if seen.unmounted, err = contents.Missing(ctx, r, seen.pods, configMapKind, secretKind); err != nil {
		return seen, err
	}
	if seen.reached, err = services.Read(ctx, r, seen.service()); err != nil {
		return seen, err
	}
	if err := observeCopies(ctx, r, ws, &seen); err != nil {
		return seen, err
	}
	if err := observeRevisions(ctx, r, ws, &seen); err != nil {
		return seen, err
	}
	there := map[string]bool{}
	for _, c := range seen.copies {
		there[c.Name] = true
	}
	if seen.inputs, err = o.observeInputs(ctx, r, ws, there); err != nil {
		return seen, err
	}
	if wantsTutorialPort(ws, seen.service()) {
		if seen.tutorialPort, err = o.tutorialPort.mayRequest(ctx, r, ws, seen.now); err != nil {
			return seen, err
		}
		seen.tutorialPortTaken = func() { o.tutorialPort.isTaken(seen.now) }
	}
	if hasBudget(ws) {
		if seen.budgets, err = disruption.Others(ctx, r, webServerKind, client.ObjectKey{Namespace: ws.Namespace, Name: childName(ws)}, seen.pods); err != nil {
			return seen, err
		}
	}
	if seen.listeners, err = observeListeners(ctx, r, ws); err != nil {
		return seen, err
	}
	d := seen.deployment()
	if seen.adoptee.deployment != nil {
		d = seen.adoptee.deployment
	}
	seen.autoscaled, err = observeAutoscaler(ctx, r, ws, d)
	return seen, err
}

func observePods(ctx context.Context, r *loop.Reader, ws *webv1.WebServer, seen *observation) error {
	var list corev1.PodList
	if err := r.List(ctx, &list, client.InNamespace(ws.Namespace), client.MatchingLabels(selector(ws))); err != nil {
		return err
	}
	seen.pods = slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	slices.SortFunc(seen.pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	serving := seen.pods
	if len(serving) == 0 && isForeign(seen.deployment()) && seen.deployment().Status.AvailableReplicas > 0 && !hasURL(ws, seen.service()) {
		// The cache does not show pods without the operator's label.
		if err := r.Live.List(ctx, &list, client.InNamespace(ws.Namespace), client.MatchingLabels(selector(ws))); err != nil {
			return err
		}
		serving = list.Items
	}
	seen.hosts = hostsOf(serving)
	return nil
}

// hostsOf are the nodes of pods, without those that do not answer.
func hostsOf(serving []corev1.Pod) (hosts []string) {
	for _, pod := range serving {
		if pod.Status.HostIP != "" && pods.OnSilentNodes(pod) == "" {
			hosts = append(hosts, pod.Status.HostIP)
		}
	}
	return hosts
}

// observeCopies lists the copies of inputs that belong to the WebServer.
func observeCopies(ctx context.Context, r *loop.Reader, ws *webv1.WebServer, seen *observation) error {
	for _, kind := range []string{configMapKind, secretKind} {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
		if err := r.List(ctx, &list, client.InNamespace(ws.Namespace), client.MatchingLabels(labels(ws))); err != nil {
			return err
		}
		for _, c := range list.Items {
			if isOwned(&c, ws) && c.DeletionTimestamp == nil {
				c.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
				seen.copies = append(seen.copies, c)
			}
		}
	}
	return nil
}

// observeRevisions lists the templates that are kept. There are two for a moment,
// while one takes the place of the other.
func observeRevisions(ctx context.Context, r *loop.Reader, ws *webv1.WebServer, seen *observation) error {
	var list appsv1.ControllerRevisionList
	if err := r.List(ctx, &list, client.InNamespace(ws.Namespace), client.MatchingLabels(labels(ws))); err != nil {
		return err
	}
	d := seen.deployment()
	want := cmp.Or(d.Annotations[goodAnnotation], ws.Status.LastGoodRevision)
	isWanted := func(r appsv1.ControllerRevision) bool { return r.Annotations[revisionAnnotation] == want }
	if isNamed := d.Annotations[goodAnnotation] != "" || d.UID == ""; isNamed && want != "" && !slices.ContainsFunc(list.Items, isWanted) {
		// It was kept before the Deployment named it, so the cache is late: without it, an
		// earlier one would be gone back to, and this one deleted. A Deployment that is
		// gone, and that status remembers, may have named it, too.
		if err := r.Live.List(ctx, &list, client.InNamespace(ws.Namespace), client.MatchingLabels(labels(ws))); err != nil {
			return err
		}
	}
	for _, revision := range list.Items {
		if !isOwned(&revision, ws) || revision.DeletionTimestamp != nil {
			continue
		}
		seen.revisions = append(seen.revisions, revision)
		if found := revision.Annotations[revisionAnnotation]; seen.good.isNone() || found == want {
			seen.good = keptIn(revision)
		}
	}
	if seen.good.isNone() {
		seen.good = goodOf002(seen.deployment())
	}
	return nil
}

// isOwned says whether an object belongs to this WebServer.
func isOwned(obj client.Object, ws *webv1.WebServer) bool {
	return obj.GetUID() != "" && apply.Owns(managedBy, ws, obj)
}
