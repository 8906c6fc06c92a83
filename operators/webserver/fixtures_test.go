package webserver

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/services"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

type webOption func(*webv1.WebServer)

// aWeb is a WebServer as the API server stores it, with its defaults.
func aWeb(options ...webOption) *webv1.WebServer {
	ws := &webv1.WebServer{
		TypeMeta:   metav1.TypeMeta{APIVersion: "my.domain/v1", Kind: "WebServer"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web-uid", Generation: 1},
		Spec: webv1.WebServerSpec{
			Image: "nginx:1", Replicas: new(int32(3)), Port: 80,
			Rollout: webv1.RolloutSpec{DeadlineSeconds: 60, MaxSurge: new(int32(1)), DrainSeconds: 5},
		},
	}
	for _, option := range options {
		option(ws)
	}
	return ws
}

func image(name string) webOption {
	return func(ws *webv1.WebServer) { ws.Spec.Image = name }
}

// good has had the revision of a template as its last good one since then.
func good(template podTemplate, since time.Time) webOption {
	return func(ws *webv1.WebServer) {
		ws.Status.LastGoodRevision, ws.Status.LastGoodImage = template.revision, template.image()
		ws.Status.LastGoodTime = &metav1.Time{Time: since}
	}
}

func failed(template podTemplate) webOption {
	return func(ws *webv1.WebServer) {
		ws.Status.FailedRollout = &webv1.FailedRollout{Revision: template.revision, Image: template.image(), Reason: "ImagePullBackOff", Message: "the image is not there",
			DeadlineSeconds: ws.Spec.Rollout.DeadlineSeconds, Retry: retryOf(ws)}
	}
}

// retriedAt is when the operator tries again by itself what failed, and how often it has.
func retriedAt(retries int32, at time.Time) webOption {
	return func(ws *webv1.WebServer) {
		ws.Status.FailedRollout.Retries, ws.Status.FailedRollout.RetryTime = retries, &metav1.Time{Time: at}
	}
}

func deadline(seconds int32) webOption {
	return func(ws *webv1.WebServer) { ws.Spec.Rollout.DeadlineSeconds = seconds }
}

// retry has the annotation that requests another try.
func retry(value string) webOption {
	return func(ws *webv1.WebServer) { ws.Annotations = map[string]string{webv1.AnnotationRetry: value} }
}

// templateFor is the template that a WebServer with these options requests.
func templateFor(options ...webOption) podTemplate {
	template, err := desiredTemplate(aWeb(options...), inputs{})
	if err != nil {
		panic(err)
	}
	return template
}

type seenOption func(*observation)

// somethingSeen is a cluster without children, but for the options.
func somethingSeen(options ...seenOption) observation {
	seen := observation{now: noon, children: loop.NoChildren(children)}
	for _, option := range options {
		option(&seen)
	}
	if seen.service().UID != "" && seen.deployment().Status.AvailableReplicas > 0 && seen.reached == nil {
		seen.reached = services.Targets{"pod-uid": true}
	}
	return seen
}

// aDeployment is owned, with three of three pods, and was given a template.
func aDeployment(current, lastGood podTemplate, options ...func(*appsv1.Deployment)) seenOption {
	return func(seen *observation) {
		d := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web", UID: "deployment-uid", Generation: 2,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(aWeb(), webv1.GroupVersion.WithKind("WebServer"))},
				Annotations:     map[string]string{},
			},
			Spec:   appsv1.DeploymentSpec{Replicas: new(int32(3))},
			Status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3, ReadyReplicas: 3},
		}
		if !current.isNone() {
			d.Annotations[templateAnnotation] = current.json
		}
		if !lastGood.isNone() {
			d.Annotations[goodAnnotation] = lastGood.revision
			keeps(lastGood)(seen)
		}
		for _, option := range options {
			option(d)
		}
		seen.children[deploymentKind] = d
	}
}

// keeps is a template that a ControllerRevision has.
func keeps(template podTemplate) seenOption {
	return func(seen *observation) {
		seen.good = template
		seen.revisions = []appsv1.ControllerRevision{{
			ObjectMeta: metav1.ObjectMeta{Name: "web-" + template.revision, Annotations: map[string]string{revisionAnnotation: template.revision}},
			Revision:   1,
		}}
	}
}

// withRevision is a Deployment whose pods have that revision.
func withRevision(template podTemplate) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.Template.Annotations = map[string]string{revisionAnnotation: template.revision}
	}
}

// late is a Deployment whose deadline has passed with two old pods left.
func late(d *appsv1.Deployment) { lateSince(noon)(d) }

// lateSince is the same, of which the condition was set then.
func lateSince(when time.Time) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		progressing("ProgressDeadlineExceeded", when)(d)
		d.Status.Conditions[0].Status = corev1.ConditionFalse
	}
}

// progressing is a Deployment with two old pods left, and with what it said then.
func progressing(reason string, when time.Time) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Status.Replicas, d.Status.UpdatedReplicas = 4, 1
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: reason, LastUpdateTime: metav1.Time{Time: when}}}
	}
}

// readySince is a pod of a template that has been ready since then.
func readySince(template podTemplate, when time.Time) seenOption {
	return func(seen *observation) {
		aPod(template, corev1.ContainerStatus{Ready: true})(seen)
		seen.pods[len(seen.pods)-1].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: when}}}
	}
}

// refused is a Deployment whose new pods are refused since then.
func refused(since time.Time) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Status.Replicas, d.Status.UpdatedReplicas = 3, 0
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue,
			Reason: "FailedCreate", Message: "exceeded quota", LastTransitionTime: metav1.Time{Time: since}}}
	}
}

// appliedAt is a Deployment that the operator last wrote then.
func appliedAt(when time.Time) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: managedBy, Time: &metav1.Time{Time: when}}}
	}
}

// aPod of a template has a server container in a state.
func aPod(template podTemplate, container corev1.ContainerStatus) seenOption {
	return func(seen *observation) {
		container.Name, container.Image = serverContainer, template.image()
		seen.pods = append(seen.pods, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "web-1", Annotations: map[string]string{revisionAnnotation: template.revision}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: serverContainer, Image: template.image()}}},
			Status:     corev1.PodStatus{HostIP: "192.0.2.1", ContainerStatuses: []corev1.ContainerStatus{container}},
		})
		seen.hosts = append(seen.hosts, "192.0.2.1")
	}
}

// unready is a pod of a template whose server has run since a time before or after noon, and is not ready.
func unready(template podTemplate, since time.Duration) seenOption {
	return aPod(template, corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Time{Time: noon.Add(since)}}}})
}

// noRoom is a pod of a template that was created then, and that no node has room for.
func noRoom(template podTemplate, since time.Duration) seenOption {
	return func(seen *observation) {
		seen.pods = append(seen.pods, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "web-0", Annotations: map[string]string{revisionAnnotation: template.revision}, CreationTimestamp: metav1.Time{Time: noon.Add(since)}},
			Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available"}}},
		})
	}
}

// createdAt is when the pod before it was created, from noon.
func createdAt(at time.Duration) seenOption {
	return func(seen *observation) {
		seen.pods[len(seen.pods)-1].CreationTimestamp = metav1.Time{Time: noon.Add(at)}
	}
}

// ended is a pod of a template that was made at a time before or after noon, and that its node has refused.
func ended(template podTemplate, created time.Duration) seenOption {
	return func(seen *observation) {
		aPod(template, corev1.ContainerStatus{})(seen)
		createdAt(created)(seen)
		seen.pods[len(seen.pods)-1].Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "SysctlForbidden", Message: "forbidden sysctl"}
	}
}

func waits(reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
}

// refuses is a pod of a template whose check has failed.
func refuses(template podTemplate, message string) seenOption {
	return func(seen *observation) {
		seen.pods = append(seen.pods, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "web-2", Annotations: map[string]string{revisionAnnotation: template.revision}},
			Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{
				Name:  checkContainer,
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: message}},
			}}},
		})
	}
}

// aService is owned by the WebServer, with a node port.
func aService(port int32) seenOption {
	return func(seen *observation) {
		seen.children["Service"] = &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web-service", UID: "service-uid",
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(aWeb(), webv1.GroupVersion.WithKind("WebServer"))},
			},
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, NodePort: port}}},
		}
	}
}
