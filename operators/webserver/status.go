package webserver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/disruption"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
)

// The reasons in status and in events that are not Kubernetes' own.
const (
	reasonReady       = "Ready"
	reasonRollingOut  = "RollingOut"
	reasonRolledBack  = "RolledBack"
	reasonPortTaken   = "PortTaken"
	reasonUnavailable = "PodsNotReady"
	reasonServing     = "Serving"
	reasonNoPods      = "NoPodReady"
	reasonNoService   = "NoService"
	reasonNotReached  = "NoReadyAddress"
	reasonStopped     = "ScaledToZero"
	reasonCopyLost    = "CopyLost"
	reasonAdopted     = "TakenOver"
	reasonNotAdopted  = "NotAdopted"
	reasonPortRange   = "PortOutOfRange"
	reasonNoRequest   = "NoCPURequest"

	reasonRouteRefused    = "RouteNotAccepted"
	reasonRouteUnresolved = "RouteNotResolved"
)

// summarize is the status of a WebServer after a step. failure is what went
// wrong with the step's writes, if something did.
func summarize(ws *webv1.WebServer, seen observation, next *plan, failure error) webv1.WebServerStatus {
	st := *ws.Status.DeepCopy()
	d := seen.deployment()
	st.ObservedGeneration = ws.Generation
	st.Selector = k8slabels.SelectorFromSet(selector(ws)).String()
	st.DesiredReplicas = desiredReplicas(ws, seen)
	st.ReadyReplicas = d.Status.AvailableReplicas // ready for a second
	switch s := seen.service(); {
	case serviceSpec(ws).Type == corev1.ServiceTypeClusterIP:
		st.NodePort, st.HTTPSNodePort = 0, 0
	case serviceSpec(ws).NodePort != 0 && failure != nil: // not there yet, perhaps
	case isOwned(s, ws):
		st.NodePort, st.HTTPSNodePort = currentNodePort(s, httpName), currentNodePort(s, httpsName)
	}
	if at := url(ws, seen, st); at != st.URL && len(seen.reached) == 0 {
		st.URL = "" // until it leads somewhere
	} else {
		st.URL = at
	}
	recordRevisions(ws, &st, seen, next)
	st.Image = servedImage(st, seen, next)

	conditions := status.Conditions{List: &st.Conditions, Generation: ws.Generation}
	if p := firstProblem(ws, seen, next, &st, failure); p != nil {
		conditions.MarkProblem(p)
	} else {
		conditions.MarkReady(reasonReady, readyMessage(ws, seen, st))
	}
	s := seen.service()
	switch {
	case len(next.refusals) > 0 && seen.adoptee.deployment != nil:
		conditions.Set(webv1.ConditionAvailable, false, reasonNotAdopted, "The Deployment is not this WebServer's: see the condition Adopted")
	case st.ReadyReplicas > 0 && !isOwned(s, ws):
		conditions.Set(webv1.ConditionAvailable, false, reasonNoService, "Pods are ready, and no Service leads to them")
	case st.ReadyReplicas > 0 && len(seen.reached) == 0:
		conditions.Set(webv1.ConditionAvailable, false, reasonNotReached, notReached(ws))
	case st.ReadyReplicas > 0:
		conditions.Set(webv1.ConditionAvailable, true, reasonServing, "Requests are answered")
	case st.DesiredReplicas == 0:
		conditions.Set(webv1.ConditionAvailable, false, reasonStopped, readyMessage(ws, seen, st))
	default:
		conditions.Set(webv1.ConditionAvailable, false, reasonNoPods, "No pod is ready")
	}
	switch {
	case len(next.refusals) > 0:
		conditions.Set(webv1.ConditionAdopted, false, reasonNotAdopted, notAdopted(next))
	case next.chosen.adopted:
		conditions.Set(webv1.ConditionAdopted, true, reasonAdopted, adoptedMessage(ws, seen, next.chosen.desired))
	case serviceKeeps(ws, seen) != "":
		conditions.Set(webv1.ConditionAdopted, true, reasonAdopted, serviceKeeps(ws, seen))
	default:
		meta.RemoveStatusCondition(&st.Conditions, webv1.ConditionAdopted)
	}
	return st
}

// recordRevisions writes into status which revision there is, which is good, and which
// one failed.
func recordRevisions(ws *webv1.WebServer, st *webv1.WebServerStatus, seen observation, next *plan) {
	if next.failed != nil {
		st.FailedRollout = next.failed
		if good := seen.good; st.LastGoodRevision == next.failed.Revision {
			st.LastGoodRevision, st.LastGoodImage = good.revision, good.image()
		}
		return
	}
	current := currentTemplate(seen)
	st.Revision = current.revision
	// What the operator tries again by itself stays noted, and how often that was, until it is good.
	if f, d := st.FailedRollout, next.chosen.desired; f != nil && !d.isNone() && (f.Revision != d.revision || isRetried(ws, f) || isRefuted(f, seen)) {
		st.FailedRollout = nil
	}
	failed := st.FailedRollout != nil && st.FailedRollout.Revision == st.Revision
	complete := isComplete(seen.deployment()) && *seen.deployment().Spec.Replicas > 0
	if complete && st.Revision != "" && !failed && st.Revision != st.LastGoodRevision {
		st.LastGoodRevision, st.LastGoodImage = st.Revision, current.image()
		st.LastGoodTime = &metav1.Time{Time: seen.now}
	}
}

// servedImage is the image of the pods that serve: of the revision that all pods
// have, and while there is no such one, of the last that they had.
func servedImage(st webv1.WebServerStatus, seen observation, next *plan) string {
	current := currentTemplate(seen)
	if next.chosen.adopted {
		current = templateOf(seen.deployment().Spec.Template)
	}
	if isComplete(seen.deployment()) || st.Image == "" && st.LastGoodImage == "" {
		return cmp.Or(current.image(), st.Image)
	}
	return cmp.Or(st.Image, st.LastGoodImage)
}

// firstProblem goes through what may be wrong, the worst first. The list is
// the specification of the condition Ready.
func firstProblem(ws *webv1.WebServer, seen observation, next *plan, st *webv1.WebServerStatus, failure error) *status.Problem {
	return status.First(
		func() *status.Problem { return writeProblem(failure) },
		func() *status.Problem { return seen.inputs.problem },
		func() *status.Problem { return adoptionRefused(next) },
		func() *status.Problem { return copyLost(ws, seen, next) },
		func() *status.Problem { return rolledBack(ws, seen, next, st) },
		func() *status.Problem { return missingKind(seen) },
		func() *status.Problem { return unavailable(ws, seen, next) },
		func() *status.Problem { return unreached(ws, seen, st) },
		func() *status.Problem { return routeRefused(ws, seen) },
		func() *status.Problem { return noRequest(ws, seen) },
	)
}

// writeProblem reports a write that was refused.
func writeProblem(failure error) *status.Problem {
	switch {
	case apply.AnyOf(failure, isPortTaken):
		return &status.Problem{Reason: reasonPortTaken, Retriable: true,
			Message: "The Service cannot have its node port, because another Service has it. Free it, or choose another one in service.nodePort: " + status.Shortened(failure.Error())}
	case apply.AnyOf(failure, isPortOutOfRange):
		return &status.Problem{Reason: reasonPortRange,
			Message: "The Service cannot have its node port, because the cluster gives other ones. Choose another one in service.nodePort: " + status.Shortened(failure.Error())}
	}
	return apply.Problem(failure, webServerKind)
}

// copyLost reports a copy that the pods mount, that was deleted, and that cannot be made
// again: what the spec names has other content by now.
func copyLost(ws *webv1.WebServer, seen observation, next *plan) *status.Problem {
	has := func(name string) bool {
		return slices.ContainsFunc(seen.copies, func(c metav1.PartialObjectMetadata) bool { return c.Name == name }) ||
			slices.ContainsFunc(seen.inputs.all(), func(s *snapshot) bool { return s.name == name })
	}
	for _, name := range next.chosen.template.copies() {
		if strings.HasPrefix(name, childName(ws)+"-") && !has(name) {
			return &status.Problem{Reason: reasonCopyLost, Message: fmt.Sprintf(
				"The copy %q was deleted, with content that is nowhere else: no new pod of revision %s can start. Change the spec, or what it names",
				name, next.chosen.template.revision)}
		}
	}
	return nil
}

func rolledBack(ws *webv1.WebServer, seen observation, next *plan, st *webv1.WebServerStatus) *status.Problem {
	failed := st.FailedRollout
	if failed == nil || next.failed == nil && !next.chosen.rolledBack {
		return nil
	}
	again := "To try again"
	if failed.RetryTime != nil {
		again = fmt.Sprintf("It is tried again at %s. To try now", failed.RetryTime.UTC().Format(time.RFC3339))
	}
	message := fmt.Sprintf("Rolled back from image %s (revision %s) to image %s: %s: %s. %s, correct the spec or what it names, change rollout.deadlineSeconds, or give annotation %s a new value",
		failed.Image, failed.Revision, seen.good.image(), failed.Reason, failed.Message, again, webv1.AnnotationRetry)
	isApplied := next.failed == nil && currentTemplate(seen).is(next.chosen.template)
	if p := unavailable(ws, seen, next); isApplied && p != nil && next.rollout.problem != nil {
		message += ". " + p.Message
	}
	return &status.Problem{Reason: reasonRolledBack, Message: message, Retriable: failed.RetryTime != nil}
}

func missingKind(seen observation) *status.Problem {
	for _, kind := range seen.missing {
		return &status.Problem{Reason: kind + "NotInstalled",
			Message: fmt.Sprintf("The cluster has no kind %s: install %s, or leave %s out", kind, optional[kind].from, optional[kind].field)}
	}
	return nil
}

// unavailable reports what keeps the pods from being as requested.
func unavailable(ws *webv1.WebServer, seen observation, next *plan) *status.Problem {
	t := next.rollout.problem
	isLooping := t != nil && t.Reason == crashLoop
	if isComplete(seen.deployment()) && !isLooping {
		return nil
	}
	current := currentTemplate(seen)
	p := &status.Problem{Reason: reasonRollingOut, Message: fmt.Sprintf("Image %s is being rolled out", ws.Spec.Image), Retriable: true}
	if !current.isNone() && current.revision == ws.Status.LastGoodRevision {
		p = &status.Problem{Reason: reasonUnavailable, Message: "Not all pods are ready", Retriable: true}
	}
	if isComplete(seen.deployment()) {
		p.Message = "Not all pods stay ready"
	}
	if t != nil {
		p.Reason = t.Reason
		p.Message += ": " + t.Message
		if how := howToMakeRoom(ws, seen, t); how != "" {
			p.Message = strings.TrimRight(p.Message, ".") + how
		}
	}
	return p
}

// howToMakeRoom is what a user may do if a rollout waits for a node although pods of the revision before have some:
// where two pods cannot be on one node, or share a port or a volume, there is never room for one more.
func howToMakeRoom(ws *webv1.WebServer, seen observation, p *status.Problem) string {
	isFirst := ws.Status.LastGoodRevision == "" || ws.Status.LastGoodRevision == currentTemplate(seen).revision
	if p.Reason != reasonUnschedulable || isFirst || ws.Spec.Rollout.MaxUnavailable > 0 {
		return ""
	}
	const how = ". If there is no room for more pods than replicas, set rollout.maxUnavailable to 1: then an old pod stops before a new one starts"
	if desiredReplicas(ws, seen) < 2 {
		return how + ", and requests fail between the two"
	}
	return how
}

// unreached reports that pods are ready, and clients that connect now are refused.
func unreached(ws *webv1.WebServer, seen observation, st *webv1.WebServerStatus) *status.Problem {
	if st.DesiredReplicas == 0 || len(seen.reached) > 0 {
		return nil
	}
	return &status.Problem{Reason: reasonNotReached, Message: notReached(ws), Retriable: true}
}

func notReached(ws *webv1.WebServer) string {
	return fmt.Sprintf("Pods are ready, and Service %q does not lead to them yet", serviceName(ws))
}

// noRequest reports autoscaling without a CPU request to compute a percentage of.
func noRequest(ws *webv1.WebServer, seen observation) *status.Problem {
	if ws.Spec.Autoscaling == nil {
		return nil
	}
	container, field := withoutCPU(seen), "spec.podTemplate"
	switch container {
	case "":
		return nil
	case serverContainer:
		field = "spec.resources.requests.cpu"
	}
	return &status.Problem{Reason: reasonNoRequest, Message: fmt.Sprintf(
		"Autoscaling cannot work: it aims at a percentage of the CPU that the pods request, and container %q requests none: set %s", container, field)}
}

func readyMessage(ws *webv1.WebServer, seen observation, st webv1.WebServerStatus) string {
	switch {
	case st.DesiredReplicas != 0:
		return "All pods are ready" + notKnown(ws, seen) + disruption.Sentence(seen.budgets)
	case *ws.Spec.Replicas != 0:
		return "The Deployment was scaled to 0, where an autoscaler that is not this operator's chooses"
	}
	return "spec.replicas is 0"
}

// notKnown says what is between the URL and the Service, as long as nothing says that it works: that is
// for others than this operator to know.
func notKnown(ws *webv1.WebServer, seen observation) string {
	between := ""
	switch {
	case ws.Spec.Ingress != nil:
		if len(loop.The[*networkingv1.Ingress](seen.children).Status.LoadBalancer.Ingress) == 0 {
			between = "The Ingress has no address yet"
		}
	case ws.Spec.Route != nil:
		if !isTaken(offers(seen.children[routeKind], "ingress"), "Admitted") {
			between = "No router has admitted the Route yet"
		}
	case ws.Spec.Gateway != nil:
		if !isTaken(parents(ws, seen), "Accepted") {
			between = fmt.Sprintf("Gateway %q has not accepted the HTTPRoute yet", ws.Spec.Gateway.Name)
		}
	case serviceSpec(ws).Type == corev1.ServiceTypeLoadBalancer && len(seen.service().Status.LoadBalancer.Ingress) == 0:
		between = "The load balancer has no address yet"
	}
	if between == "" {
		return ""
	}
	return ". " + between + ": whether clients get to the Service is not known"
}

// desiredReplicas is how many pods there should be, by whoever decides it.
func desiredReplicas(ws *webv1.WebServer, seen observation) int32 {
	if n := replicas(ws, seen); n != nil {
		return *n
	}
	if n := seen.deployment().Spec.Replicas; n != nil {
		return *n
	}
	return 1
}
