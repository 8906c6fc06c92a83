package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"example.com/fairlead/operators/etcd/store"
	"example.com/fairlead/operators/etcd/task"
)

// memoryLimit is what the garbage collector aims at. A pod's memory is its user's.
const memoryLimit = 48 << 20

// mostMessage is how much the kubelet reads of a termination message.
const mostMessage = 4096

// agent does tasks.
type agent struct {
	// secretDir, volumeDir, certificateDir and userDir are where the storage's Secret, or claim, the client's certificate
	// and etcd's user are mounted.
	secretDir, volumeDir, certificateDir, userDir string
	// member is the value of [task.MemberVariable].
	member string

	now func() time.Time
	// log tells people what is done.
	log io.Writer
}

// Main does the task in the only argument, reports its result, and returns the exit code.
func Main(ctx context.Context, args []string) int {
	limitMemory()
	a := &agent{
		secretDir: task.SecretDir, volumeDir: task.VolumeDir, certificateDir: task.CertificateDir, userDir: task.UserDir,
		member: os.Getenv(task.MemberVariable), now: time.Now, log: os.Stdout,
	}
	result := a.main(ctx, args)
	if err := os.WriteFile(task.MessagePath, message(result), 0o600); err != nil {
		a.say("The result cannot be reported: %v", err)
		return 1
	}
	if result.Problem != nil {
		return 1
	}
	return 0
}

func limitMemory() {
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(memoryLimit)
}

func (a *agent) main(ctx context.Context, args []string) task.Result {
	var t task.Task
	if len(args) != 1 {
		return task.Result{Problem: &task.Problem{Reason: task.ReasonTaskInvalid, Message: fmt.Sprintf("%s needs a task as its only argument", task.Program)}}
	}
	if err := json.Unmarshal([]byte(args[0]), &t); err != nil {
		return task.Result{Problem: &task.Problem{Reason: task.ReasonTaskInvalid, Message: "The task cannot be read: " + err.Error()}}
	}
	result := a.do(ctx, t)
	if p := result.Problem; p != nil {
		a.say("%s: %s", p.Reason, p.Message)
	}
	return result
}

// do does a task.
func (a *agent) do(ctx context.Context, t task.Task) (result task.Result) {
	if err := valid(t); err != nil {
		return task.Result{Problem: &task.Problem{Reason: task.ReasonTaskInvalid, Message: err.Error()}}
	}
	var err error
	switch t.Action {
	case task.Save:
		result.Saved, err = a.save(ctx, t)
	case task.Fetch:
		result.Fetched, err = a.fetch(ctx, t)
	case task.Prove:
		result.Proved, err = a.prove(ctx, t)
	case task.Prune:
		result, err = a.prune(ctx, t)
	}
	if err != nil {
		return task.Result{Problem: problemOf(ctx, err), Pruned: result.Pruned, Left: result.Left, Retained: result.Retained}
	}
	return result
}

// valid says what is missing in a task. An operator of another version may have made it.
func valid(t task.Task) error {
	switch t.Action {
	case task.Save, task.Fetch, task.Prove, task.Prune:
	default:
		return fmt.Errorf("the action %q is unknown", t.Action)
	}
	switch {
	case t.Timeout <= 0:
		return errors.New("the timeout is missing")
	case (t.Action == task.Save || t.Action == task.Prune) && t.Owner == "":
		return errors.New("the owner is missing")
	case t.Action == task.Save && len(t.Endpoints) == 0:
		return errors.New("the endpoints are missing")
	case (t.Action == task.Fetch || t.Action == task.Prove) && t.Member == nil:
		return errors.New("the member is missing")
	case t.Action == task.Prove && (t.Saved == nil || len(t.Endpoints) == 0):
		return errors.New("what is to be proved is missing")
	case t.Action == task.Prune && t.Keep == nil:
		return errors.New("what is kept is missing")
	}
	return nil
}

// open opens the storage of a task.
func (a *agent) open(ctx context.Context, t task.Task) (*store.Store, error) {
	return store.Open(ctx, t.Place, store.Options{SecretDir: a.secretDir, VolumeDir: a.volumeDir, Timeout: t.Timeout})
}

// problemOf is an error as it is reported.
func problemOf(ctx context.Context, err error) *task.Problem {
	var known *task.Problem
	switch {
	case ctx.Err() != nil:
		return &task.Problem{Reason: task.ReasonInterrupted, Message: "The pod was told to stop", Retriable: true}
	case errors.As(err, &known):
		return known
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &task.Problem{Reason: task.ReasonNoSpace, Message: "The volume is full: it needs twice the size of the backup", Retriable: true}
	case errors.As(err, new(*os.PathError)), errors.As(err, new(*os.LinkError)), errors.As(err, new(*os.SyscallError)):
		return &task.Problem{Reason: task.ReasonVolumeFailed, Message: "The volume cannot be used: " + err.Error(), Retriable: true}
	}
	return &task.Problem{Reason: task.ReasonAgentFailed, Message: err.Error(), Retriable: true}
}

// message is a result as a termination message, which is never cut: half a JSON is nothing.
func message(r task.Result) []byte {
	for most := mostMessage / 2; ; most /= 2 {
		text, err := json.Marshal(r)
		if err != nil {
			r = task.Result{Problem: &task.Problem{Reason: task.ReasonAgentFailed, Message: err.Error(), Retriable: true}}
			continue
		}
		if len(text) <= mostMessage || r.Problem == nil || most == 0 {
			return text
		}
		cut := *r.Problem
		cut.Message = strings.ToValidUTF8(cut.Message[:min(most, len(cut.Message))], "") + "…"
		r.Problem = &cut
	}
}

// say writes a line to the log.
func (a *agent) say(format string, args ...any) {
	_, _ = fmt.Fprintf(a.log, format+"\n", args...) // nobody is there to be told
}
