package at

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/at/starter"
)

// This file is about pods whose process is there before its instant, and waits for it (spec.prepare: Process).

const (
	// startName is what the container that installs the start program is called, and the volume that has it.
	startName = "fairlead-at-start"
	// startImageVariable has the image of the start program: that of the manager itself.
	startImageVariable = "AT_START_IMAGE"
	// defaultStartImage is the image where nothing says another one.
	defaultStartImage = "fairlead:dev"

	// claimAfter is how long after its instant a process that has not ended is claimed. At the instant itself, when many
	// are due at once, the node's processors are for their commands.
	claimAfter = time.Second
)

// lastCall is how long before its instant a waiting process can be withdrawn: its node has to be faster than that,
// or the command would begin and be killed. A variable, so that the sweep need not wait.
var lastCall = 5 * time.Second

// earlyPod is the pod of a first attempt that is made before its time.
func earlyPod(at *atv1alpha1.At, gvk schema.GroupVersionKind, podName string, now time.Time) *corev1.Pod {
	pod := desiredPod(at, gvk, podName, now)
	if due, err := scheduledTime(at); err == nil && at.Spec.Prepare == atv1alpha1.PrepareProcess {
		waitUntil(&pod.Spec, due)
		if deadline := pod.Spec.ActiveDeadlineSeconds; deadline != nil { // the kubelet counts the wait, too
			wait := int64((max(0, due.Sub(now)) + time.Second - 1) / time.Second)
			*deadline = min(*deadline+wait, 1<<31-1)
		}
	}
	return pod
}

// waitUntil puts the start program in front of the command.
func waitUntil(spec *corev1.PodSpec, instant time.Time) {
	command := podtemplate.Container(spec, commandContainer)
	wait := []string{starter.Program, "--at", instant.UTC().Format(time.RFC3339Nano)}
	if file := command.TerminationMessagePath; file != "" {
		wait = append(wait, "--message", literal.Replace(file))
	}
	command.Command = slices.Concat(wait, []string{"--"}, command.Command)
	// A pod that gets its node after it was withdrawn has the mark in its environment, see withdrawalOf.
	command.Env = append(command.Env, corev1.EnvVar{Name: starter.Withdrawn, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: fmt.Sprintf("metadata.annotations['%s']", withdrawnAnnotation)},
	}})

	command.VolumeMounts = append(command.VolumeMounts, installStart(spec, command))
}

// installStart brings the start program into a pod, by a container in front of all others. The mount is for those that
// are to run it.
func installStart(spec *corev1.PodSpec, command *corev1.Container) corev1.VolumeMount {
	// The container that installs it is allowed what the command is, and no more than it needs. With the command's
	// resources it adds nothing to those of the pod, and no quota or limit refuses it alone.
	mount := corev1.VolumeMount{Name: startName, MountPath: path.Dir(starter.Program)}
	install := corev1.Container{
		Name: startName, Image: cmp.Or(os.Getenv(startImageVariable), defaultStartImage), ImagePullPolicy: corev1.PullIfNotPresent,
		Command:                  []string{starter.ImageProgram, "install", starter.Program},
		Resources:                *command.Resources.DeepCopy(),
		VolumeMounts:             []corev1.VolumeMount{mount},
		SecurityContext:          command.SecurityContext.DeepCopy(),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	install.SecurityContext.Privileged = nil
	install.SecurityContext.AllowPrivilegeEscalation = new(false)
	install.SecurityContext.ReadOnlyRootFilesystem = new(true)
	install.SecurityContext.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	install.Resources.Claims = nil
	spec.InitContainers = slices.Insert(spec.InitContainers, 0, install)

	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: startName, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	mount.ReadOnly = true
	return mount
}

// waitsUntil is the instant for which the process of a pod waits, if it is one that does. The command is looked
// through, because a webhook may have put a program of its own in front.
func waitsUntil(pod *corev1.Pod) (instant time.Time, ok bool) {
	if pod == nil {
		return time.Time{}, false
	}
	command := podtemplate.Container(&pod.Spec, commandContainer)
	args := slices.Concat(command.Command, command.Args)
	i := slices.Index(args, starter.Program)
	if i < 0 || len(args) < i+3 || args[i+1] != "--at" {
		return time.Time{}, false
	}
	instant, err := time.Parse(time.RFC3339Nano, args[i+2])
	return instant, err == nil
}

// allowedAt is when the command of a pod could run, zero if the pod does not say: when its gate was removed or, if its
// process waits, at its instant, or when the process was there after it. Kubernetes' times have whole seconds.
func allowedAt(pod *corev1.Pod) time.Time {
	allowed := releasedAt(pod)
	instant, isProcess := waitsUntil(pod)
	if !isProcess || allowed.IsZero() {
		return allowed
	}
	state := pods.Status(pod, commandContainer).State
	var there time.Time
	switch {
	case state.Running != nil:
		there = state.Running.StartedAt.Time
	case state.Terminated != nil:
		there = state.Terminated.StartedAt.Time
	}
	for _, t := range []time.Time{instant, there} {
		if t.After(allowed) {
			allowed = t
		}
	}
	return ceilMicro(allowed.UTC())
}

// neverBegan says whether the command of a pod whose process was to wait has certainly not begun, and never will. That
// the instant has not come is no proof of it: the node's clock may be ahead.
func neverBegan(pod *corev1.Pod, seen observation) bool {
	instant, isProcess := waitsUntil(pod)
	command := pods.Status(pod, commandContainer)
	end := command.State.Terminated
	neverCreated := pods.IsOver(pod) && command.ContainerID == "" && command.LastTerminationState.Terminated == nil
	switch {
	case !isProcess, isRejection(pod): // which hides how far it was
		return false
	case isMarked(pod) && gateIndex(pod) < 0 && pod.Spec.NodeName == "":
		return true // whichever node it gets: its process finds the mark when it starts
	case isMadeUp(end):
		// So the kubelet ends a container that it has not created, and one that it has lost. If it never reported that
		// it runs, it may have done so for a moment, but not long enough to get to its instant.
		return neverCreated && seen.now.Before(instant)
	case end != nil:
		return hasWaited(pod) || isStartError(end)
	}
	_, isUnavailable := unavailable(pod)
	return neverCreated && command.State.Waiting != nil && (isMarked(pod) || isUnavailable || seen.now.Before(instant))
}

// unavailable says why the start program cannot be brought into a pod, if so.
func unavailable(pod *corev1.Pod) (why string, is bool) {
	install := pods.Status(pod, startName)
	if end := install.State.Terminated; end != nil && end.ExitCode != 0 {
		return initFailure(pod), true
	}
	reason, why := pods.CannotStart(pod, install)
	return why, reason != ""
}

// hasWaited says whether the process of a pod has ended while it waited. What the runtime says comes before its
// message.
func hasWaited(pod *corev1.Pod) bool {
	end := terminated(pod)
	return end != nil && !isMadeUp(end) && strings.HasSuffix(strings.TrimSpace(end.Message), starter.NotBegun)
}

// isStartError says whether the runtime could not start a container.
func isStartError(end *corev1.ContainerStateTerminated) bool {
	return end.Reason == "StartError" || end.Reason == "ContainerCannotRun"
}

// followProcess takes a prepared pod without its gate to its claim, or withdraws it. As its process waits, the command
// begins at the instant whatever the operator does, or does not. So what has become of it is in how the process ended,
// and an operator that finds it past its instant takes it for one that has begun.
func followProcess(at *atv1alpha1.At, seen observation, instant time.Time) step {
	pod := seen.pod
	next := start(at, seen)
	isOff := next.action == discard // the At is not what the pod was made from, or is not to run
	switch {
	case neverBegan(pod, seen), hasNotStarted(pod, seen):
		if !isOff {
			next.news = news{} // another one is made
			if !hasWaited(pod) && seen.now.Before(instant) {
				next.news = notPrepared(pod)
			}
		}
		next.action, next.pod = reject, pod
		return next
	case started(pod) && !ended(pod) && !seen.now.Before(instant) && seen.now.Before(instant.Add(claimAfter)):
		return step{wakeAt: instant.Add(claimAfter)}
	case ended(pod), !seen.now.Before(instant):
		return step{action: claim, pod: pod, news: runningAs(at, pod)}
	}

	isTooLate := isMarked(pod) || !seen.now.Before(instant.Add(-lastCall))
	switch {
	case isOff && isTooLate:
		return step{wakeAt: instant} // its end is an event
	case isOff:
		return step{action: withdraw, pod: pod, wakeAt: instant, news: news{reason: cmp.Or(next.news.reason, reasonChanged)}}
	}
	if words := pods.OnSilentNodes(*pod); words != "" {
		say := nodeSilent(words)
		say.phase = atv1alpha1.Pending
		return step{wakeAt: instant, news: say}
	}
	if started(pod) {
		return step{wakeAt: instant, news: next.news}
	}
	say, look := slow(pod, seen.now)
	if say.phase == "" {
		wakes := earliest{instant}
		wakes.add(look)
		return step{wakeAt: wakes.time, news: next.news}
	}
	if _, is := unavailable(pod); is && !isTooLate {
		return withoutProcess(pod, instant)
	}
	say.phase = atv1alpha1.Pending
	return step{wakeAt: instant, news: say}
}

// withoutProcess withdraws a pod that lacks nothing but the start program: without it, the command may well run.
func withoutProcess(pod *corev1.Pod, wakeAt time.Time) step {
	return step{action: withdraw, pod: pod, wakeAt: wakeAt, news: news{reason: reasonNotPrepared}}
}

// notPrepared is what there is to say when the process of a pod cannot wait for its instant, or was ended before.
func notPrepared(pod *corev1.Pod) news {
	end := terminated(pod)
	missing, isUnavailable := unavailable(pod)
	var why string
	switch {
	case isRejection(pod):
		why = nodeRefuses(pod)
	case isUnavailable:
		why = "The program that was to wait for the instant cannot be brought into the pod: " + missing
	case hasWaited(pod):
		why = "The process that waited for the instant was ended before"
	case end != nil && isStartError(end):
		why = "The process that was to wait for the instant could not be started: " + end.Message
	default:
		why = "The pod of the process that was to wait for the instant was ended: " + cmp.Or(podReasonOf(pod), initFailure(pod))
	}
	return news{phase: atv1alpha1.Pending, reason: reasonNotPrepared, message: status.Shortened(why) + ". The command starts without it, in another pod, when it is due"}
}
