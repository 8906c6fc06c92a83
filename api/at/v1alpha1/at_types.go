package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// At runs a command once, at a given time: never early, at most once per
// attempt, and never dropped silently.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=ats,singular=at,categories=fairlead
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Time zone",type=string,JSONPath=`.spec.timeZone`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Exit code",type=integer,JSONPath=`.status.exitCode`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Scheduled",type=string,priority=1,JSONPath=`.status.scheduledTime`
// +kubebuilder:printcolumn:name="Lateness",type=string,priority=1,JSONPath=`.status.lateness`
// +kubebuilder:printcolumn:name="Attempts",type=integer,priority=1,JSONPath=`.status.attempts`
// +kubebuilder:printcolumn:name="Pod",type=string,priority=1,JSONPath=`.status.podName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.phase) || oldSelf.status.phase == 'PENDING' || self.spec == oldSelf.spec",reason=FieldValueForbidden,fieldPath=".spec",message="the run has started or is over, so the spec cannot be changed any more: create a new At for another run"
type At struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state: what to run, and when. It can be changed until
	// the run starts.
	// +required
	Spec AtSpec `json:"spec"`

	// status is the observed state. Written by the operator.
	// +optional
	// +structType=atomic
	// +kubebuilder:default:={"observedGeneration":-1,"phase":"PENDING"}
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

// AtSpec is the desired state of an At: what to run, and when. It can be
// changed until the run starts.
//
// +kubebuilder:validation:XValidation:rule="self.schedule.matches('(Z|[+-][0-9:]{5})$') != has(self.timeZone)",fieldPath=".schedule",message="the schedule needs exactly one of: an offset of its own (2030-01-31T08:00:00Z, 2030-01-31T08:00:00+01:00), or a timeZone beside it (2030-01-31T08:00:00 with timeZone: Europe/Berlin)"
// +kubebuilder:validation:XValidation:rule="has(self.command) != has(self.args)",message="give exactly one of command (a line for /bin/sh -c) and args (a list, executed as it is)"
// +kubebuilder:validation:XValidation:rule="!has(self.windowSeconds) || self.windowSeconds == 0 || !self.schedule.startsWith('9999-12-')",fieldPath=".windowSeconds",message="must be 0 or left out for a schedule in December of the year 9999, because the window may end after that year"
type AtSpec struct {
	// schedule is when to run, as an RFC 3339 date-time. It has an offset
	// (2030-01-31T08:00:00Z, 2030-01-31T08:00:00+01:00), or it has none
	// (2030-01-31T08:00:00) and timeZone is set. Without an offset it must not be
	// later than 9999-12-30, because it may be the next day in UTC. Fractions of a
	// second are kept. The API server rejects a time that does not exist, such as
	// 30 February, or that is before 1970. If the time has passed, the command
	// runs at once, unless startingDeadlineSeconds has passed too.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=35
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?$') && timestamp(self.matches('(Z|[+-][0-9:]{5})$') ? self : self + 'Z') >= timestamp('1970-01-01T00:00:00Z')",message="must be a date and time that exist, from 1970 on, in RFC 3339 form, such as 2030-01-31T08:00:00Z, 2030-01-31T08:00:00+01:00, or 2030-01-31T08:00:00 with a timeZone"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('9999-12-31') || self.matches('(Z|[+-][0-9:]{5})$')",message="must not be later than 9999-12-30 without an offset, because it may then be after the year 9999 in UTC"
	Schedule string `json:"schedule"`

	// timeZone is the IANA time zone (such as Europe/Berlin) of a schedule without
	// an offset. A local time that a change to daylight saving time skips is read
	// with the offset from before the change: the command runs that much later on
	// the clock, and never early. If a local time occurs twice, the command runs
	// once, at the first occurrence (RFC 5545, section 3.3.5).
	// status.scheduledTime shows the resulting time in UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') && self != 'Local' && timestamp('2030-01-01T00:00:00Z').getFullYear(self) >= 2029",message="must be the name of a zone in the IANA time zone database, such as Europe/Berlin, America/New_York or UTC"
	TimeZone *string `json:"timeZone,omitempty"`

	// windowSeconds spreads runs that share a schedule, such as a thousand at
	// midnight: the run starts at a moment of the window of that many seconds which
	// begins at schedule, from 0 (none, the default) to 86400, a day. The moment
	// follows from the At's UID, to the millisecond: it is the same for as long as
	// the At exists, and another one for an At that is created again.
	// status.scheduledTime shows it, and all deadlines count from it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	WindowSeconds int32 `json:"windowSeconds,omitempty"`

	// prepare says what exists of the run before its time. Pod, the default: its pod,
	// behind a scheduling gate. The run starts a fraction of a second late, and later
	// if many are due at once. Node: in addition a placeholder, a pod of the same
	// template in which nothing of yours runs. It pulls the images on a node, keeps
	// room there until a second before the time, and the run's pod then prefers that
	// node; what would keep the run from starting is in condition Ready before the
	// time. Process: its pod runs, and a small program in the command's container
	// waits for the time and then becomes the command, never early by the clock of the
	// node. Many that are due at once all start in time. The pod uses its resources
	// while it waits, and its init containers and sidecars start before the time. For
	// Node and Process, the node must be able to pull the operator's image. If
	// preparing fails, the run starts as with None. None: nothing. Retries are not
	// prepared.
	// +optional
	Prepare Preparation `json:"prepare,omitempty"`

	// prepareSeconds is how long before its time the run is prepared, from 10 to 86400,
	// a day. It defaults to 60 with prepare: Node, and to 30 otherwise: with prepare:
	// Pod to a quarter of the time from the creation of the At, if that is less.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	PrepareSeconds *int64 `json:"prepareSeconds,omitempty"`

	// command is what to run, as a line for `/bin/sh -c`: quotes, pipes, variables
	// and $(...) have their shell meaning. At most 102,400 characters and less
	// than 128 KiB, the limit of Linux. Exactly one of command and args must be
	// set.
	// +optional
	// +kubebuilder:validation:MaxLength=102400
	// +kubebuilder:validation:XValidation:rule="self.matches('[^[:space:]]')",message="must not be empty: write what to run, such as echo hello"
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) < 131072",message="must be less than 131072 bytes, which is as much as Linux takes"
	Command *string `json:"command,omitempty"`

	// args is what to run, as a program and its arguments. They are executed as
	// they are, without a shell, and replace the entrypoint of the image. Exactly
	// one of command and args must be set.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:XValidation:rule="size(self[0]) > 0",message="the first item must be the program to run"
	// +kubebuilder:validation:items:MaxLength=102400
	Args []string `json:"args,omitempty"`

	// image is the container image that the command runs in. Defaults to the image
	// in podTemplate, or else to busybox. Unless podTemplate says otherwise, it is
	// pulled only if the node does not have it (imagePullPolicy IfNotPresent).
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:space:]]')",message="must not have spaces: write a name and a tag or digest, such as busybox:1.36"
	Image string `json:"image,omitempty"`

	// env is the list of environment variables of the command's container.
	// +optional
	// +listType=map
	// +listMapKey=name
	Env []corev1.EnvVar `json:"env,omitempty"`

	// resources are the compute resources of the command's container, such as CPU
	// and memory.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`

	// serviceAccountName is the name of the pod's ServiceAccount. Defaults to the
	// namespace's default one, without its token in the pod. Anyone who can create
	// an At can use any ServiceAccount of the namespace, as with a Deployment.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$')",message="must be the name of a ServiceAccount: small letters, digits, - and ."
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// podTemplate sets everything else about the pod: volumes, node selection,
	// tolerations, sidecars, security context. The container named "command" runs
	// the command. The other containers are sidecars: when the command ends, the
	// run is over and the operator stops them. A security context set here
	// replaces the default one, which meets the restricted Pod Security Standard.
	// The pod never restarts (restartPolicy Never). Rules that would restart the
	// command's container are ignored.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.restartPolicy) || self.spec.restartPolicy == 'Never'",fieldPath=".spec.restartPolicy",message="must be Never or left out: backoffLimit says how often a failed command is tried again"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.nodeName)",fieldPath=".spec.nodeName",message="cannot be set, because the pod waits behind a scheduling gate: use nodeSelector or affinity"
	PodTemplate *corev1.PodTemplateSpec `json:"podTemplate,omitempty"`

	// startingDeadlineSeconds is how late the run can start, in seconds after
	// status.scheduledTime, at least 1. After that, the At is MISSED, with an event, and
	// never runs. Runs start a fraction of a second late, and later when many are
	// due at once or the operator has just restarted: a minute or more is sensible.
	// By default there is no limit: the run starts as soon as it can.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1",message="must be at least 1, and a minute or more is sensible: every run starts a fraction of a second late, and with 0 it would always be missed; leave it out for no limit"
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`

	// suspend stops the run from starting. When it becomes false, a run that is
	// due starts at once, unless startingDeadlineSeconds has passed.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// pendingDeadlineSeconds is how long an attempt's pod can take to start the
	// command, in seconds, including scheduling and image pulls. After that, the
	// attempt has failed. By default there is no limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	PendingDeadlineSeconds *int64 `json:"pendingDeadlineSeconds,omitempty"`

	// activeDeadlineSeconds is how long the run can take, in seconds from the
	// start of the first attempt, all attempts together. After that, the command
	// is killed and the At is FAILED. By default there is no limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// backoffLimit is how many times a failed command is retried, from 0 to 100.
	// Each retry runs in a new pod, after 10, 20, 40 seconds and so on, up to 6
	// minutes. An attempt that may have succeeded is not retried: one whose result
	// is unknown, or with exit code 0. Defaults to 0: the At is FAILED when its
	// first attempt has failed. A pod that its node refuses before the command
	// starts, for want of room for example, is no attempt: it is made again until
	// the starting or pending deadline, if there is one.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	BackoffLimit int32 `json:"backoffLimit,omitempty"`

	// finalExitCodes are exit codes of the command, from 1 to 255, that no retry can
	// change, such as 64 for wrong arguments. An attempt that ends with one of them is
	// the last one, whatever backoffLimit says. By default there are none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=255
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=255
	FinalExitCodes []int32 `json:"finalExitCodes,omitempty"`

	// ttlSecondsAfterFinished is how long a finished At is kept, in seconds. After
	// that, the operator deletes it and its pods. By default it is kept forever.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int64 `json:"ttlSecondsAfterFinished,omitempty"`

	// outputBytes is how many of the last bytes of the command's output
	// status.output keeps, at most 32768. Defaults to 0, none, because anyone who
	// can read the At can read them.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=32768
	OutputBytes int32 `json:"outputBytes,omitempty"`
}

// Preparation says what exists of a run before its time.
//
// +kubebuilder:validation:Enum=Pod;Node;Process;None
type Preparation string

const (
	// PreparePod creates the pod, behind a scheduling gate.
	PreparePod Preparation = "Pod"
	// PrepareNode creates a placeholder as well, which finds a node.
	PrepareNode Preparation = "Node"
	// PrepareProcess starts the pod, with a process that waits.
	PrepareProcess Preparation = "Process"
	// PrepareNone creates nothing.
	PrepareNone Preparation = "None"
)

// Phase is a summary of the state of an At.
//
// +kubebuilder:validation:Enum=PENDING;RUNNING;DONE;FAILED;MISSED
type Phase string

const (
	// Pending says that the run has not started.
	Pending Phase = "PENDING"
	// Running says that an attempt has started, or that a failed attempt is to be
	// retried.
	Running Phase = "RUNNING"
	// Done says that the command ended with exit code 0.
	Done Phase = "DONE"
	// Failed says that the last attempt failed, or that its result is unknown.
	Failed Phase = "FAILED"
	// Missed says that the run did not start by its starting deadline.
	Missed Phase = "MISSED"
)

// Finished says whether a phase is final: the At never runs again.
func (p Phase) Finished() bool { return p == Done || p == Failed || p == Missed }

// Condition types of an At, in the sense of kstatus.
const (
	// ConditionReady is True while the run is scheduled or suspended, and once it
	// is done. It is False otherwise: while it runs, after it failed, and while a
	// problem keeps it from starting.
	ConditionReady = "Ready"
	// ConditionComplete is present once the run is over: True if the At is DONE,
	// False otherwise. Wait for it with kubectl wait --for=condition=Complete.
	ConditionComplete = "Complete"
	// ConditionFailed is present once the run is over: True if the At is FAILED or
	// MISSED, False if it is DONE.
	ConditionFailed = "Failed"
	// ConditionReconciling is present, and True, while the run is in progress, and
	// while the operator retries to start it.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is present, and True, once the At is FAILED or MISSED, and
	// while its schedule is invalid.
	ConditionStalled = "Stalled"
)

// AtStatus is the observed state of an At. Times are in UTC and by the
// operator's clock, except completionTime, which is by the node's clock if the
// node reports it.
type AtStatus struct {
	// phase is PENDING, RUNNING, DONE, FAILED or MISSED.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// observedGeneration is the metadata.generation that this status describes; -1 until the operator has seen the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready; Complete and Failed, once the run is over; Reconciling
	// and Stalled, while they are true.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// scheduledTime is when the run is due, in UTC: the time that schedule, timeZone
	// and windowSeconds specify. A fraction of a microsecond is rounded up.
	// +optional
	ScheduledTime *metav1.MicroTime `json:"scheduledTime,omitempty"`

	// startTime is when the scheduling gate of the first attempt's pod was
	// removed; with prepare: Process it is scheduledTime or, if the process was there
	// later, when it was started. Until the attempt ends, it may be earlier: when the
	// operator was about to remove the gate, or scheduledTime. From startTime on, a
	// change of the spec is refused, or has no effect.
	// +optional
	StartTime *metav1.MicroTime `json:"startTime,omitempty"`

	// completionTime is when the last attempt ended, or when the At became MISSED.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// lateness is startTime minus scheduledTime.
	// +optional
	Lateness *metav1.Duration `json:"lateness,omitempty"`

	// attempts is the number of attempts that the operator has started, without
	// those whose pod its node refused before the command started: they are made
	// again. It is 0 if the At is MISSED.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`

	// podName is the name of the pod of the last attempt.
	// +optional
	PodName string `json:"podName,omitempty"`

	// podUID is the UID of that pod. The operator removes the scheduling gate of
	// this pod and of the prepared one, and of no other.
	// +optional
	PodUID types.UID `json:"podUID,omitempty"`

	// preparedPodUID is the UID of the pod that was created for this run before its
	// time, and waits behind its scheduling gate, or with its process. The operator
	// removes that gate when the run is due, or at once if its process is to wait.
	// When the run has begun, podName and podUID name the pod. If the spec is changed
	// before, the pod becomes a discarded one.
	// +optional
	PreparedPodUID types.UID `json:"preparedPodUID,omitempty"`

	// discardedPodUID is the UID of a pod that was made for this run and is not to
	// run, because the run was put off or changed meanwhile. The pod is deleted, and
	// never becomes that of an attempt.
	// +optional
	DiscardedPodUID types.UID `json:"discardedPodUID,omitempty"`

	// nextAttemptTime is when the next attempt starts, after a failed one, or when
	// an attempt whose pod its node refused is made again.
	// +optional
	NextAttemptTime *metav1.Time `json:"nextAttemptTime,omitempty"`

	// pendingSince is since when the attempt waits to start, if a node refused a
	// pod of it before the command started. pendingDeadlineSeconds counts from then.
	// +optional
	PendingSince *metav1.MicroTime `json:"pendingSince,omitempty"`

	// exitCode is the exit code of the last attempt's command.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`

	// reason is a CamelCase word, for programs, that says why the At is in its
	// phase.
	// +optional
	Reason string `json:"reason,omitempty"`

	// problem says what keeps the operator from starting the command, such as a
	// quota. It is absent if nothing does.
	// +optional
	Problem string `json:"problem,omitempty"`

	// output is the last outputBytes bytes of the last attempt's output.
	// +optional
	Output string `json:"output,omitempty"`
}
