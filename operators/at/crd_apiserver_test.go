//go:build apiserver

package at

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/standalone"
)

// TestCRDRefusesBadInput applies specs as users write them, to both kinds, and
// looks at what the API server says.
func TestCRDRefusesBadInput(t *testing.T) {
	const ok = `schedule: "2030-01-31T08:00:00Z", command: x`
	kib := func(n int) string { return strings.Repeat("x", n<<10) }
	cases := map[string]testkit.SpecCase{
		"the guides' form":            {Spec: `schedule: "2023-03-19T08:00:00Z", command: "echo hello world"`},
		"an offset":                   {Spec: `schedule: "2030-01-31T08:00:00+05:30", command: x`},
		"a fraction of a second":      {Spec: `schedule: "2030-01-31T08:00:00.123456789Z", command: x`},
		"a time zone":                 {Spec: `schedule: "2030-01-31T08:00:00", timeZone: Europe/Berlin, command: x`},
		"a time zone of three parts":  {Spec: `schedule: "2030-01-31T08:00:00", timeZone: America/Argentina/Ushuaia, command: x`},
		"a skipped local time":        {Spec: `schedule: "2030-03-10T02:30:00", timeZone: America/New_York, command: x`},
		"the last year":               {Spec: `schedule: "9999-12-31T23:59:59Z", command: x`},
		"the last local day":          {Spec: `schedule: "9999-12-30T23:59:59", timeZone: Etc/GMT+12, command: x`},
		"the last day with an offset": {Spec: `schedule: "9999-12-31T23:59:59+01:00", command: x`},
		"after the last local day":    {Spec: `schedule: "9999-12-31T23:59:59", timeZone: America/New_York, command: x`, Want: "must not be later than 9999-12-30 without an offset"},
		"an image with a space":       {Spec: ok + `, image: "busybox :1"`, Want: "must not have spaces"},
		"an image by digest":          {Spec: ok + `, image: "r.example.com:5000/a/b:v1@sha256:0123"`},
		"a service account":           {Spec: ok + `, serviceAccountName: a.b-c`},
		"no such service account":     {Spec: ok + `, serviceAccountName: "A b"`, Want: "must be the name of a ServiceAccount"},
		"a command of 128 KiB":        {Spec: `schedule: "2030-01-31T08:00:00Z", command: ` + strings.Repeat("ä", 64<<10), Want: "must be less than 131072 bytes"},
		"args":                        {Spec: `schedule: "2030-01-31T08:00:00Z", args: [echo, ""]`},
		"a command of 100 KiB":        {Spec: `schedule: "2030-01-31T08:00:00Z", command: ` + kib(100)},
		"a template without command":  {Spec: ok + `, podTemplate: {metadata: {labels: {a: b}}, spec: {nodeSelector: {a: b}}}`},
		"a template with restart":     {Spec: ok + `, podTemplate: {spec: {restartPolicy: Never}}`},
		"no schedule":                 {Spec: `command: x`, Want: "spec.schedule: Required value"},
		"an empty schedule":           {Spec: `schedule: "", command: x`, Want: "must be a date and time that exist"},
		"words":                       {Spec: `schedule: tomorrow, command: x`, Want: "must be a date and time that exist"},
		"a date only":                 {Spec: `schedule: "2030-01-31", command: x`, Want: "must be a date and time that exist"},
		"a space for the T":           {Spec: `schedule: "2030-01-31 08:00:00Z", command: x`, Want: "must be a date and time that exist"},
		"30 February":                 {Spec: `schedule: "2030-02-30T08:00:00Z", command: x`, Want: "must be a date and time that exist"},
		"30 February, local":          {Spec: `schedule: "2030-02-30T08:00:00", timeZone: Europe/Berlin, command: x`, Want: "must be a date and time that exist"},
		"hour 24":                     {Spec: `schedule: "2030-01-31T24:00:00Z", command: x`, Want: "must be a date and time that exist"},
		"second 60":                   {Spec: `schedule: "2030-01-31T08:00:60Z", command: x`, Want: "must be a date and time that exist"},
		"offset 24":                   {Spec: `schedule: "2030-01-31T08:00:00+24:00", command: x`, Want: "must be a date and time that exist"},
		"before 1970":                 {Spec: `schedule: "1969-12-31T23:59:59Z", command: x`, Want: "must be a date and time that exist"},
		"beyond the last year in UTC": {Spec: `schedule: "9999-12-31T23:59:59-01:00", command: x`, Want: "must be a date and time that exist"},
		"too long":                    {Spec: `schedule: "2030-01-31T08:00:00.0000000000000000Z", command: x`, Want: "than 35"},
		"no zone":                     {Spec: `schedule: "2030-01-31T08:00:00", command: x`, Want: "the schedule needs exactly one of"},
		"two zones":                   {Spec: `schedule: "2030-01-31T08:00:00Z", timeZone: UTC, command: x`, Want: "the schedule needs exactly one of"},
		"an unknown zone":             {Spec: `schedule: "2030-01-31T08:00:00", timeZone: Mars/Olympus, command: x`, Want: "must be the name of a zone"},
		"the machine's zone":          {Spec: `schedule: "2030-01-31T08:00:00", timeZone: Local, command: x`, Want: "must be the name of a zone"},
		"a file as zone":              {Spec: `schedule: "2030-01-31T08:00:00", timeZone: posix/Europe/Berlin, command: x`, Want: "must be the name of a zone"},
		"an empty zone":               {Spec: `schedule: "2030-01-31T08:00:00", timeZone: "", command: x`, Want: "must be the name of a zone"},
		"no command":                  {Spec: `schedule: "2030-01-31T08:00:00Z"`, Want: "give exactly one of command"},
		"an empty command":            {Spec: `schedule: "2030-01-31T08:00:00Z", command: ""`, Want: "must not be empty: write what to run"},
		"a blank command":             {Spec: `schedule: "2030-01-31T08:00:00Z", command: " \n "`, Want: "must not be empty: write what to run"},
		"a command too large":         {Spec: `schedule: "2030-01-31T08:00:00Z", command: ` + kib(101), Want: "than 102400"},
		"command and args":            {Spec: ok + `, args: [x]`, Want: "give exactly one of command"},
		"no args":                     {Spec: `schedule: "2030-01-31T08:00:00Z", args: []`, Want: "should have at least 1 items"},
		"an empty program":            {Spec: `schedule: "2030-01-31T08:00:00Z", args: ["", x]`, Want: "the first item must be the program to run"},
		"a misspelt field":            {Spec: ok + `, shedule: x`, Want: `unknown field "spec.shedule"`},
		"a misspelt template field":   {Spec: ok + `, podTemplate: {spec: {nodeSelektor: {}}}`, Want: `unknown field "spec.podTemplate.spec.nodeSelektor"`},
		"a template that restarts":    {Spec: ok + `, podTemplate: {spec: {restartPolicy: Always}}`, Want: "backoffLimit says how often"},
		"a template with a node":      {Spec: ok + `, podTemplate: {spec: {nodeName: node-1}}`, Want: "use nodeSelector or affinity"},
		"a window":                    {Spec: ok + `, windowSeconds: 86400`},
		"a window before its time":    {Spec: ok + `, windowSeconds: -1`, Want: "should be greater than or equal to 0"},
		"a window of two days":        {Spec: ok + `, windowSeconds: 172800`, Want: "should be less than or equal to 86400"},
		"a window at the end of time": {Spec: `schedule: "9999-12-30T23:59:59", timeZone: Etc/GMT+12, command: x, windowSeconds: 60`, Want: "the window may end after that year"},
		"no window at the end":        {Spec: `schedule: "9999-12-31T23:59:59Z", command: x, windowSeconds: 0`},
		"a process that waits":        {Spec: ok + `, prepare: Process`},
		"nothing prepared":            {Spec: ok + `, prepare: None`},
		"prepared otherwise":          {Spec: ok + `, prepare: process`, Want: `supported values: "Pod", "Node", "Process", "None"`},
		"a negative deadline":         {Spec: ok + `, startingDeadlineSeconds: -1`, Want: "must be at least 1, and a minute or more is sensible"},
		"a deadline of no time":       {Spec: ok + `, startingDeadlineSeconds: 0`, Want: "with 0 it would always be missed; leave it out for no limit"},
		"a second to start":           {Spec: ok + `, startingDeadlineSeconds: 1`},
		"no time to start":            {Spec: ok + `, pendingDeadlineSeconds: 0`, Want: "should be greater than or equal to 1"},
		"no time to run":              {Spec: ok + `, activeDeadlineSeconds: 0`, Want: "should be greater than or equal to 1"},
		"negative attempts":           {Spec: ok + `, backoffLimit: -1`, Want: "should be greater than or equal to 0"},
		"attempts without end":        {Spec: ok + `, backoffLimit: 1000`, Want: "should be less than or equal to 100"},
		"output without end":          {Spec: ok + `, outputBytes: 1000000`, Want: "should be less than or equal to 32768"},
		"an empty image":              {Spec: ok + `, image: ""`, Want: "should be at least 1 chars long"},
	}
	testkit.CheckSpecs(t, cases, atExample.gvk, cnat.gvk)
}

// TestSpecIsFixedOnceStarted goes through all phases; status is written as the
// operator does, which does not run here.
func TestSpecIsFixedOnceStarted(t *testing.T) {
	server := testkit.Server(t)
	c, err := client.New(server.Config, client.Options{Scheme: standalone.Scheme(Operator)})
	if err != nil {
		t.Fatal(err)
	}
	at := anAt()
	at.Namespace, at.UID, at.Status = server.NewNamespace(t), "", atv1alpha1.AtStatus{}
	if err := c.Create(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	if at.Status.Phase != atv1alpha1.Pending {
		t.Errorf("a new At has phase %q, want PENDING without anybody writing it", at.Status.Phase)
	}
	change := func() error {
		at.Spec.Command = new(*at.Spec.Command + "x")
		return c.Update(t.Context(), at)
	}
	if err := change(); err != nil {
		t.Errorf("PENDING: change refused: %v", err)
	}
	for _, phase := range []atv1alpha1.Phase{atv1alpha1.Running, atv1alpha1.Done, atv1alpha1.Failed, atv1alpha1.Missed} {
		at.Status.Phase = phase
		if err := c.Status().Update(t.Context(), at); err != nil {
			t.Fatalf("%s: status write: %v", phase, err)
		}
		if err := change(); err == nil || !strings.Contains(err.Error(), "create a new At for another run") {
			t.Errorf("%s: change of the spec: %v", phase, err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(at), at); err != nil {
			t.Fatal(err)
		}
		at.Labels = map[string]string{"phase": string(phase)}
		if err := c.Update(t.Context(), at); err != nil {
			t.Errorf("%s: change of a label refused: %v", phase, err)
		}
	}
}
