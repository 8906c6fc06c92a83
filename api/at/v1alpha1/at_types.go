package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// At runs a command once, at a given time: never early, at most once per
// attempt, never lost without a word.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=ats,singular=at
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Exit code",type=integer,JSONPath=`.status.exitCode`
// +kubebuilder:printcolumn:name="Time zone",type=string,priority=1,JSONPath=`.spec.timeZone`
// +kubebuilder:printcolumn:name="Scheduled",type=string,priority=1,JSONPath=`.status.scheduledTime`
// +kubebuilder:printcolumn:name="Lateness",type=string,priority=1,JSONPath=`.status.lateness`
// +kubebuilder:printcolumn:name="Attempts",type=integer,priority=1,JSONPath=`.status.attempts`
// +kubebuilder:printcolumn:name="Pod",type=string,priority=1,JSONPath=`.status.podName`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.phase) || oldSelf.status.phase == 'PENDING' || self.spec == oldSelf.spec",reason=FieldValueForbidden,fieldPath=".spec",message="the run has started or is over, so the spec cannot be changed any more: create a new At for another run"
type At struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What to run, and when.
	// +required
	Spec AtSpec `json:"spec"`

	// What became of it. Written by the operator.
	// +optional
	// +structType=atomic
	// +kubebuilder:default={phase: "PENDING"}
	Status AtStatus `json:"status,omitempty"`
}

// AtList is a list of Ats.
//
// +kubebuilder:object:root=true
type AtList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []At `json:"items"`
}

// AtSpec says what to run and when. It can be changed until the run starts.
//
// +kubebuilder:validation:XValidation:rule="self.schedule.matches('(Z|[+-][0-9:]{5})$') != has(self.timeZone)",fieldPath=".schedule",message="the schedule needs exactly one of: an offset of its own (2030-01-31T08:00:00Z, 2030-01-31T08:00:00+01:00), or a timeZone beside it (2030-01-31T08:00:00 with timeZone: Europe/Berlin)"
// +kubebuilder:validation:XValidation:rule="has(self.command) != has(self.args)",message="give exactly one of command (a line for /bin/sh -c) and args (a list, executed as it is)"
type AtSpec struct {
	// When to run: an RFC 3339 date-time with an offset
	// (2030-01-31T08:00:00Z, 2030-01-31T08:00:00+01:00), or one without an
	// offset (2030-01-31T08:00:00) together with timeZone; the latter at most
	// on 9999-12-30, because it may be the next day in UTC. Fractions of a
	// second are kept. A time that does not exist, such as 30 February, is
	// refused. A time in the past runs at once, unless
	// startingDeadlineSeconds says that it is too late.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=35
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?$') && timestamp(self.matches('(Z|[+-][0-9:]{5})$') ? self : self + 'Z') >= timestamp('1970-01-01T00:00:00Z')",message="must be a date and time that exist, from 1970 on, in RFC 3339 form, such as 2030-01-31T08:00:00Z, 2030-01-31T08:00:00+01:00, or 2030-01-31T08:00:00 with a timeZone"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('9999-12-31') || self.matches('(Z|[+-][0-9:]{5})$')",message="must not be later than 9999-12-30 without an offset, because it may then be after the year 9999 in UTC"
	Schedule string `json:"schedule"`

	// The IANA time zone (Europe/Berlin) of a schedule without an offset. A
	// local time that a change to daylight-saving time skips is taken with
	// the offset from before the change, so it runs that much later on the
	// clock and never early; one that comes twice runs at its first
	// occurrence, once (RFC 5545, section 3.3.5). status.scheduledTime shows
	// the instant chosen, in UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') && self != 'Local' && timestamp('2030-01-01T00:00:00Z').getFullYear(self) >= 2029",message="must be the name of a zone in the IANA time zone database, such as Europe/Berlin, America/New_York or UTC"
	TimeZone *string `json:"timeZone,omitempty"`

	// What to run, as a line for `/bin/sh -c`, so quotes, pipes, variables and
	// $(...) mean what they mean in a shell. At most 102,400 characters; Linux
	// takes 128 KiB less one byte.
	// +optional
	// +kubebuilder:validation:MaxLength=102400
	// +kubebuilder:validation:XValidation:rule="self.matches('[^[:space:]]')",message="must not be empty: write what to run, such as echo hello"
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) < 131072",message="must be less than 131072 bytes, which is as much as Linux takes"
	Command *string `json:"command,omitempty"`

	// What to run, as a program and its arguments, executed as they are and
	// without a shell, in place of the image's own entrypoint.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:XValidation:rule="size(self[0]) > 0",message="the first item must be the program to run"
	// +kubebuilder:validation:items:MaxLength=102400
	Args []string `json:"args,omitempty"`

	// The image to run the command in. Default busybox. It is pulled only if
	// the node does not have it (imagePullPolicy IfNotPresent).
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:space:]]')",message="must not have spaces: write a name and a tag or digest, such as busybox:1.36"
	Image string `json:"image,omitempty"`

	// Environment variables of the command.
	// +optional
	// +listType=map
	// +listMapKey=name
	Env []corev1.EnvVar `json:"env,omitempty"`

	// CPU, memory and other resources of the command's container.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`

	// The ServiceAccount of the pod. Default: the namespace's default one,
	// without its token in the pod. Whoever may create an At can use any
	// ServiceAccount of the namespace, as with a Deployment.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$')",message="must be the name of a ServiceAccount: small letters, digits, - and ."
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// Everything else about the pod: volumes, node selection, tolerations,
	// sidecars, security context. The container named "command" is the one
	// that runs the command; the other containers are sidecars: the run is
	// over when the command is, and sidecars are then stopped. A security
	// context given here replaces the default one, which meets the restricted
	// Pod Security Standard. The pod never restarts (restartPolicy Never), and
	// what containers say about restarting the command's is left out.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.restartPolicy) || self.spec.restartPolicy == 'Never'",fieldPath=".spec.restartPolicy",message="must be Never or left out: backoffLimit says how often a failed command is tried again"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.nodeName)",fieldPath=".spec.nodeName",message="cannot be set, because the pod waits behind a scheduling gate: use nodeSelector or affinity"
	PodTemplate *corev1.PodTemplateSpec `json:"podTemplate,omitempty"`

	// How late the run may start, in seconds after the scheduled time. Later
	// than that the At is MISSED, with an event, and never runs. Default: no
	// limit, it runs whenever it can.
	// +optional
	// +kubebuilder:validation:Minimum=0
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`

	// While true, the run does not start. When it becomes false, a run that
	// is due starts at once, unless startingDeadlineSeconds has passed.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// How long an attempt's pod may take until its command starts, in
	// seconds: for the scheduler to find a node, and for images to be pulled.
	// After that the attempt has failed. Default: no limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	PendingDeadlineSeconds *int64 `json:"pendingDeadlineSeconds,omitempty"`

	// How long the run may take, in seconds from the start of the first
	// attempt, all attempts together. After that the command is killed and
	// the At is FAILED. Default: no limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// How often a failed command is tried again, each time in a new pod,
	// after 10, 20, 40 seconds and so on, up to 6 minutes. An attempt that may
	// have succeeded is not repeated: one whose outcome is not known, or with
	// exit code 0. Default 0: a failed command is FAILED.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	BackoffLimit int32 `json:"backoffLimit,omitempty"`

	// How long a finished At is kept, in seconds. After that it is deleted,
	// with its pods. Default: for ever.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int64 `json:"ttlSecondsAfterFinished,omitempty"`

	// How many of the last bytes of the command's output are kept in
	// status.output. Default 0, none, because whoever may read Ats would read
	// them.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=32768
	OutputBytes int32 `json:"outputBytes,omitempty"`
}

// Phase is where an At stands.
//
// +kubebuilder:validation:Enum=PENDING;RUNNING;DONE;FAILED;MISSED
type Phase string

const (
	// Pending says that the run has not started.
	Pending Phase = "PENDING"
	// Running says that an attempt has started, or waits to be tried again.
	Running Phase = "RUNNING"
	// Done says that the command ended with exit code 0.
	Done Phase = "DONE"
	// Failed says that the last attempt failed.
	Failed Phase = "FAILED"
	// Missed says that the run did not start before its starting deadline.
	Missed Phase = "MISSED"
)

// Finished says whether a phase is final: the At never runs again.
func (p Phase) Finished() bool { return p == Done || p == Failed || p == Missed }

// Condition types of an At, in the sense of kstatus.
const (
	// ConditionReady is True while all is well: the run is scheduled, or it
	// is done. It is False while it runs and after it failed.
	ConditionReady = "Ready"
	// ConditionComplete is there once the run is over: True if the command
	// ended with exit code 0, False otherwise. kubectl wait
	// --for=condition=Complete.
	ConditionComplete = "Complete"
	// ConditionReconciling is there, and True, while the run goes on.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is there, and True, once the At is FAILED or MISSED.
	ConditionStalled = "Stalled"
)

// AtStatus is what became of an At. Instants are in UTC and by the clock of
// the operator, except completionTime, which is by the clock of the node.
type AtStatus struct {
	// PENDING, RUNNING, DONE, FAILED or MISSED.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// The generation of the spec that this status tells about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Ready; Complete once the run is over; Reconciling and Stalled while they
	// are true.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// The instant that schedule and timeZone mean, in UTC. A fraction below a
	// microsecond is rounded up.
	// +optional
	ScheduledTime *metav1.MicroTime `json:"scheduledTime,omitempty"`

	// When the first attempt was allowed to run: its scheduling gate was
	// removed. Until the attempt has ended, when the gate was about to be
	// removed, which may be earlier. From here on the spec cannot be changed.
	// +optional
	StartTime *metav1.MicroTime `json:"startTime,omitempty"`

	// When the last attempt ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// startTime less scheduledTime.
	// +optional
	Lateness *metav1.Duration `json:"lateness,omitempty"`

	// How many attempts were allowed to run.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`

	// The pod of the last attempt.
	// +optional
	PodName string `json:"podName,omitempty"`

	// The UID of that pod. No other pod is ever allowed to run.
	// +optional
	PodUID types.UID `json:"podUID,omitempty"`

	// When the next attempt starts, after a failed one.
	// +optional
	NextAttemptTime *metav1.Time `json:"nextAttemptTime,omitempty"`

	// The exit code of the last attempt's command.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`

	// Why it stands where it stands, in one word for programs.
	// +optional
	Reason string `json:"reason,omitempty"`

	// What keeps the command from starting, such as a quota; absent while nothing
	// does.
	// +optional
	Problem string `json:"problem,omitempty"`

	// The last outputBytes bytes of the last attempt's output.
	// +optional
	Output string `json:"output,omitempty"`
}
