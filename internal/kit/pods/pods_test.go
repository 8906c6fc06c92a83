package pods

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) metav1.Time { return metav1.Time{Time: noon.Add(d)} }

// ended is a container that ran for a while and ended at noon.
func ended(ran time.Duration, code int32, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: "Error", Message: message, StartedAt: at(-ran), FinishedAt: at(0)}}
}

func runs(started time.Duration) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(started)}}
}

var waits = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: CrashLoopBackOff}}

// TestACrashLoopIsSteady: the words are the same at every turn of a loop, and
// change when the container has crashed again.
func TestACrashLoopIsSteady(t *testing.T) {
	end := ended(5*time.Second, 3, "no license\n")
	crashed := func(times string) string {
		return `container "web" is crash-looping: it crashed ` + times + ` times, last with exit code 3: no license`
	}
	for name, tc := range map[string]struct {
		container corev1.ContainerStatus
		after     time.Duration // since noon
		want      string
		until     time.Duration // since noon; 0 for none
	}{
		"crashed once":              {container: corev1.ContainerStatus{State: end}},
		"starts again":              {container: corev1.ContainerStatus{State: runs(0), LastTerminationState: end, RestartCount: 1}},
		"crashed twice":             {container: corev1.ContainerStatus{State: end, LastTerminationState: end, RestartCount: 1}, want: crashed("2")},
		"waits":                     {container: corev1.ContainerStatus{State: waits, LastTerminationState: end, RestartCount: 1}, want: crashed("2")},
		"starts for the third time": {container: corev1.ContainerStatus{State: runs(0), LastTerminationState: end, RestartCount: 2}, want: crashed("2")},
		"is ready for a moment":     {container: corev1.ContainerStatus{State: runs(0), LastTerminationState: end, RestartCount: 2, Ready: true}, after: 59 * time.Second, want: crashed("2"), until: time.Minute},
		"crashed for the third":     {container: corev1.ContainerStatus{State: end, LastTerminationState: end, RestartCount: 2}, want: crashed("3")},
		"has recovered":             {container: corev1.ContainerStatus{State: runs(0), LastTerminationState: end, RestartCount: 2, Ready: true}, after: time.Minute},
		"ready, after longer runs":  {container: corev1.ContainerStatus{State: runs(0), LastTerminationState: ended(2*time.Minute, 3, "no license"), RestartCount: 2, Ready: true}, after: 3 * time.Minute, want: crashed("2"), until: 4 * time.Minute},
		"not ready, and runs on":    {container: corev1.ContainerStatus{State: runs(0), LastTerminationState: end, RestartCount: 2}, after: time.Hour},
		"crashed after a long run":  {container: corev1.ContainerStatus{State: ended(time.Hour, 3, ""), LastTerminationState: end, RestartCount: 7}},
		"runs after a long run":     {container: corev1.ContainerStatus{State: runs(0), LastTerminationState: ended(time.Hour, 3, ""), RestartCount: 7}},
		"init container, done":      {container: corev1.ContainerStatus{State: ended(time.Second, 0, ""), LastTerminationState: end, RestartCount: 2, Ready: true}},
		"pulls its image":           {container: corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}, LastTerminationState: end, RestartCount: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.container.Name = "web"
			got := ""
			crash, ok := CrashLoop(tc.container, noon.Add(tc.after))
			if ok {
				got = crash.String()
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
			if tc.until > 0 && !crash.Until.Equal(noon.Add(tc.until)) || tc.until == 0 && !crash.Until.IsZero() {
				t.Errorf("until %v, want noon and %v", crash.Until, tc.until)
			}
		})
	}
}

func TestCrashTellsHowItEnded(t *testing.T) {
	for want, crash := range map[string]Crash{
		`container "web" is crash-looping: it ended 2 times, last with exit code 0`:                  {Container: "web", Times: 2, Reason: "Completed"},
		`container "web" is crash-looping: it crashed 4 times, last with exit code 137 (OOMKilled)`:  {Container: "web", Times: 4, ExitCode: 137, Reason: "OOMKilled"},
		`container "web" is crash-looping: it crashed once, last with exit code 1: cannot open file`: {Container: "web", Times: 1, ExitCode: 1, Reason: "Error", LastWords: "cannot open file"},
	} {
		if got := crash.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestLastWords(t *testing.T) {
	for name, tc := range map[string]struct{ message, want string }{
		"none":          {"", ""},
		"one line":      {" exec:\t\"nginks\": not found\n", `exec: "nginks": not found`},
		"several lines": {"one\n\ntwo\n", "one two"},
		"nginx -t": {`2026/11/21 22:00:00 [warn] 1#1: the "user" directive makes sense only as root
nginx: [warn] the "user" directive makes sense only as root
nginx: [emerg] unknown directive "lisen" in /etc/nginx/conf.d/default.conf:1
nginx: configuration file /etc/nginx/nginx.conf test failed
`, `nginx: [emerg] unknown directive "lisen" in /etc/nginx/conf.d/default.conf:1 nginx: configuration file /etc/nginx/nginx.conf test failed`},
		"requests before the end": {"[error] 7#7: open() failed\n[emerg] 1#1: bind() failed\n[notice] 1#1: try again\n", "[emerg] 1#1: bind() failed"},
		"Apache's":                {"[core:notice] hello\n[ssl:emerg] no key\n", "[ssl:emerg] no key"},
		"only harmless":           {"[warn] a\n[notice] b\n", "[warn] a [notice] b"},
		"no level says why":       {"[notice] starting\nSegmentation fault\n", "Segmentation fault"},
	} {
		if got := LastWords(tc.message); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	long := LastWords(strings.Repeat("ä", mostWords) + "\nthe reason")
	if len(long) > mostWords+len("… ") || !utf8.ValidString(long) || !strings.HasSuffix(long, " the reason") {
		t.Errorf("a long message became %d bytes: %q", len(long), long)
	}
}
