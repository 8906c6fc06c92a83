package view

import (
	_ "embed"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/operators/etcd/objects"
)

// v2Trace is what a kubelet has kept of the end of an etcd 3.6.16 with an entry of the API v2 in its log: 2048 bytes, in which
// nothing of the words is left.
//
//go:embed testdata/v2-in-log.txt
var v2Trace string

// TestHasV2: all ways in which etcd ends for what its API v2 has written; but not for a user's key that says so.
func TestHasV2(t *testing.T) {
	const inSnapshot = `{"level":"fatal","msg":"discovery failed","error":"detected disallowed custom content in v2store for stage --v2-deprecation=write-only"}`
	for name, tc := range map[string]struct {
		lines string
		want  bool
	}{
		"in a snapshot":                {inSnapshot, true},
		"in one that the leader sends": {strings.NewReplacer("fatal", "panic", "discovery failed", "illegal v2store content").Replace(inSnapshot), true},
		"in the log":                   {`{"level":"panic","msg":"detected disallowed v2 WAL for stage --v2-deprecation=write-only","method":"PUT"}`, true},
		"in the log, with its trace":   {v2Trace, true},
		"in a warning":                 {strings.Replace(inSnapshot, "fatal", "warn", 1), false},
		"another panic in a trace":     {strings.ReplaceAll(v2Trace, "v2ToV3Request", "applyConfChange"), false},
	} {
		t.Run(name, func(t *testing.T) {
			last := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error", Message: tc.lines}}
			m := &Member{Pod: &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: objects.ContainerName, LastTerminationState: last}}}}}
			if got := m.HasV2(); got != tc.want {
				t.Errorf("it is %t: %s", got, LastWords(m.Pod.Status.ContainerStatuses[0]))
			}
			m.Pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
			if m.HasV2() {
				t.Error("it is while it runs")
			}
		})
	}
}

// TestWordsOfTheEnd: what etcd ends for, and whether it says that its data is lost. A log has users' keys in it.
func TestWordsOfTheEnd(t *testing.T) {
	const (
		slow  = `{"level":"warn","msg":"apply request took too long","request":"header:<> put:<key:\"/jobs/failed: crc mismatch\" >","error":"context canceled"}`
		wrong = `{"level":"error","msg":"lease of /jobs/failed: crc mismatch","error":"invalid database"}`
		trace = "\n\ngoroutine 124 [running]:\ngo.uber.org/zap/zapcore.(*CheckedEntry).Write(0x3f)\n\t/zap@v1.27.0/entry.go:262 +0x26e\n"
		cut   = `base","path":"d/member/snap/db","error":"invalid database","stacktrace":"go.etcd.io/etcd\n\tback.go:205"}`
		keyed = `s":"key:\"\"error\":\"invalid database\",\"stacktrace\":\"x\"}\"","error":"canceled"}`
	)
	for name, tc := range map[string]struct {
		code          int32
		reason, lines string
		says          string
		isLost        bool
	}{
		"a log that is damaged":           {code: 1, lines: slow + "\n" + `{"level":"fatal","msg":"discovery failed","error":"walpb: crc mismatch: expected: 1"}`, says: "discovery failed: walpb: crc mismatch: expected: 1", isLost: true},
		"a database that is damaged":      {code: 2, lines: `{"level":"panic","msg":"failed to open database","error":"invalid database"}` + "\npanic: failed to open database" + trace, says: "failed to open database: invalid database", isLost: true},
		"the same, cut off":               {code: 2, lines: cut + "\npanic: failed to open database" + trace, says: "failed to open database: invalid database", isLost: true},
		"a database of another user":      {code: 2, lines: strings.Replace(cut, "invalid database", "permission denied", 1) + "\npanic: failed to open database" + trace, says: "failed to open database: permission denied"},
		"a key in the line before":        {code: 2, lines: keyed + "\npanic: runtime error: index out of range" + trace, says: "runtime error: index out of range"},
		"a trace alone":                   {code: 2, lines: trace, says: "a panic: kubectl logs --previous has it"},
		"killed, with a key that says so": {code: 137, reason: "Error", lines: slow + "\n" + wrong, says: "it was killed"},
		"killed for its memory":           {code: 137, reason: "OOMKilled", lines: slow, says: "it was killed OOMKilled"},
		"killed, after a fatal line":      {code: 137, reason: "Error", lines: `{"level":"fatal","msg":"x","error":"crc mismatch"}`, says: "it was killed"},
		"ended otherwise, with a key":     {code: 1, lines: slow + "\n" + wrong},
		"a panic after another one": {code: 2, lines: `{"level":"panic","msg":"disallowed v2 WAL","method":"PUT"}` + "\n" + `{"level":"panic","msg":"execute job failed","job":"server_applyAll","panic":"disallowed v2 WAL"}` +
			"\npanic: disallowed v2 WAL [recovered]\n\tpanic: execute job failed" + trace, says: "disallowed v2 WAL"},
		"the same, cut off to a trace": {code: 2, lines: v2Trace, says: "a panic in etcdserver.v2ToV3Request: kubectl logs --previous has it"},
		"the same, to its end":         {code: 2, lines: v2Trace[len(v2Trace)-600:], says: "a panic: kubectl logs --previous has it"},
		"a job that has ended":         {code: 2, lines: `{"level":"panic","msg":"execute job failed","job":"x","panic":"index out of range"}`, says: "execute job failed: index out of range"},
		"a flag that is wrong":         {code: 1, lines: slow + "\nerror verifying flags, expected 10 arguments", says: "error verifying flags, expected 10 arguments"},
		"before 3.4":                   {code: 1, lines: "2026-11-29 03:44:24.975268 C | etcdserver: read wal error (walpb: crc mismatch) and cannot be repaired", says: "etcdserver: read wal error (walpb: crc mismatch) and cannot be repaired", isLost: true},
		"before 3.4, with a key":       {code: 1, lines: `2026-11-29 03:44:24.975268 W | etcdserver: request "key:crc mismatch" took too long`},
	} {
		t.Run(name, func(t *testing.T) {
			c := corev1.ContainerStatus{Name: objects.ContainerName, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: tc.code, Reason: tc.reason, Message: tc.lines,
			}}}
			if got := LastWords(c); got != tc.says {
				t.Errorf("it says %q, want %q", got, tc.says)
			}
			if got := saysLost(&corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{c}}}); got != tc.isLost {
				t.Errorf("its data is lost: %t, want %t", got, tc.isLost)
			}
		})
	}
}
