package at

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
	"example.com/fairlead/cmd/kubectl-fairlead/rig"
)

// refusal is a call that does nothing, and says why.
func refusal(why string) rig.Called { return rig.Called{Code: 1, ErrOut: "error: " + why + "\n"} }

// TestCreateSaysWhatItUnderstood asks no server, at 15:50:20 on Thursday, 26 November 2026, in Berlin.
func TestCreateSaysWhatItUnderstood(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return time.Date(2026, 11, 26, 15, 50, 20, 0, berlin) }
	const runs = "Runs Friday 2026-11-27 08:00:00 +01:00 (Europe/Berlin), that is 2026-11-27T07:00:00Z, in 16h9m40s.\n"
	cases := map[string]struct {
		stdin string
		args  string
		want  rig.Called
	}{
		"words need no quotes": {
			args: "tomorrow 08:00 --name=x --dry-run=client -- echo hello",
			want: rig.Called{Out: "at.at.example.com/x created (dry run)\n", ErrOut: runs},
		},
		"another zone": {
			args: "02:00 friday --tz=America/New_York --name=x --dry-run=client -- date",
			want: rig.Called{Out: "at.at.example.com/x created (dry run)\n",
				ErrOut: "Runs Friday 2026-11-27 02:00:00 -05:00 (America/New_York), that is 2026-11-27T07:00:00Z, in 16h9m40s.\n"},
		},
		"so far from now": {
			args: "--in=2d12h --name=x --dry-run=client -- date",
			want: rig.Called{Code: 1, ErrOut: "error: \"2d12h\" is no length of time, such as 2h, 1h30m, or \"2 days\": " +
				"expected minutes, hours, days, weeks, months or years, not \"d\"\n"},
		},
		"in hours": {
			args: "--in=2h --name=x --dry-run=client -- date",
			want: rig.Called{Out: "at.at.example.com/x created (dry run)\n",
				ErrOut: "Runs Thursday 2026-11-26 17:50:20 +01:00 (Europe/Berlin), that is 2026-11-26T16:50:20Z, in 2h0m0s.\n"},
		},
		"only its name": {
			args: "now + 1 week --name=x --dry-run=client -o name -- date",
			want: rig.Called{Out: "at.at.example.com/x\n",
				ErrOut: "Runs Thursday 2026-12-03 15:50:20 +01:00 (Europe/Berlin), that is 2026-12-03T14:50:20Z, in 7d0s.\n"},
		},
		"one argument is a line": {
			args: "tomorrow 08:00 --name=x -n ns --image=img --dry-run=client -o yaml -- date|cat",
			want: rig.Called{Out: `apiVersion: at.example.com/v1alpha1
kind: At
metadata:
  name: x
  namespace: ns
spec:
  command: date|cat
  image: img
  schedule: "2026-11-27T08:00:00+01:00"
status: {}
`, ErrOut: runs},
		},
		"a script": {
			stdin: "set -e\ndate\n",
			args:  "tomorrow 08:00 --name=x --dry-run=client -f - -o jsonpath={.spec.command}",
			want:  rig.Called{Out: "set -e\ndate\n", ErrOut: runs},
		},
		"an empty script":         {args: "tomorrow 08:00 -f -", want: refusal("-f -: it has no command")},
		"a script and a command":  {args: "tomorrow 08:00 -f - -- x", want: refusal("there is a command in a file, and one after --: give one of them")},
		"two times":               {args: "8:00 --in 2h -- x", want: refusal("--in=2h and the time \"8:00\": give one of them")},
		"no such hour":            {args: "25:00 -- x", want: refusal("25 is no hour: it is from 0 to 23")},
		"no such zone":            {args: "8:00 --tz Mars -- x", want: refusal("--tz=Mars: write a zone of the IANA time zone database, such as Europe/Berlin: unknown time zone Mars")},
		"no such dry run":         {args: "8:00 --dry-run=yes -- x", want: refusal("--dry-run=yes: must be none, client or server")},
		"the server cannot be it": {args: "8:00 --server=http://127.0.0.1:1 -- x", want: rig.Called{Code: 1, ErrOut: "connect: connection refused\n"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := rig.Call(t, Command, now, tc.stdin, strings.Fields(tc.args)...)
			if got.Code != tc.want.Code || got.Out != tc.want.Out || !strings.HasSuffix(got.ErrOut, tc.want.ErrOut) {
				t.Errorf("kubectl at %s:\n%+v\nwant\n%+v", tc.args, got, tc.want)
			}
		})
	}
}

// TestRefusesAnUnknownTZ: what Go takes for UTC is no zone to read a time in.
func TestRefusesAnUnknownTZ(t *testing.T) {
	t.Setenv("TZ", "UTC+2")
	if got := rig.Call(t, Command, time.Now, "", "noon", "--dry-run=client", "--", "x"); got.Code != 1 || got.Out != "" || !strings.Contains(got.ErrOut, "TZ=UTC+2,") {
		t.Errorf("%+v", got)
	}
	if got := rig.Call(t, Command, time.Now, "", "--in=1h", "--tz=UTC", "--dry-run=client", "--", "x"); got.Code != 0 {
		t.Errorf("with --tz: %+v", got)
	}
}

func TestDescribe(t *testing.T) {
	now := time.Date(2026, 11, 26, 15, 50, 20, 0, time.UTC)
	started := metav1.NewMicroTime(now.Add(-61 * time.Second))
	at := func(change func(*atv1alpha1.At)) *atv1alpha1.At {
		at := &atv1alpha1.At{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
		at.Spec.Schedule, at.Status.Phase = "2026-11-27T08:00:00Z", atv1alpha1.Pending
		change(at)
		return at
	}
	ready := func(at *atv1alpha1.At, reason, message string) {
		at.Status.Reason = reason
		at.Status.Conditions = []metav1.Condition{{Type: atv1alpha1.ConditionReady, Message: message}}
	}
	cases := map[string]*atv1alpha1.At{
		"x runs in 16h9m40s, Friday 2026-11-27 08:00:00 +00:00": at(func(*atv1alpha1.At) {}),
		"x runs in 16h10m40s, Friday 2026-11-27 08:01:00 +00:00": at(func(at *atv1alpha1.At) {
			at.Spec.WindowSeconds, at.Status.ScheduledTime = 600, &metav1.MicroTime{Time: time.Date(2026, 11, 27, 8, 1, 0, 0, time.UTC)}
		}),
		"x is suspended":                      at(func(at *atv1alpha1.At) { at.Spec.Suspend = true }),
		"x has not been seen by its operator": at(func(at *atv1alpha1.At) { at.Spec.Schedule = "2026-11-26T08:00:00Z" }),
		"x is due: a quota":                   at(func(at *atv1alpha1.At) { at.Spec.Schedule = "2026-11-26T08:00:00Z"; ready(at, "PodRefused", "a quota") }),
		"x is RUNNING, since 1m1s: it runs": at(func(at *atv1alpha1.At) {
			at.Status.Phase, at.Status.StartTime = "RUNNING", &started
			ready(at, "Running", "it runs")
		}),
		"x is FAILED: the command ended: 3": at(func(at *atv1alpha1.At) {
			at.Status.Phase = "FAILED"
			ready(at, "CommandFailed", "the command ended: 3")
		}),
	}
	c := &cli.CLI{}
	for want, at := range cases {
		if got := describe(c, at, now); got != want {
			t.Errorf("describe(): %q, want %q", got, want)
		}
	}
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	c.IsTerminal = true
	if got := coloured(c, atv1alpha1.Failed); got != "\x1b[31mFAILED\x1b[39m" {
		t.Errorf("on a terminal: %q", got)
	}
	t.Setenv("NO_COLOR", "1")
	if got := coloured(c, atv1alpha1.Failed); got != "FAILED" {
		t.Errorf("with NO_COLOR: %q", got)
	}
}
