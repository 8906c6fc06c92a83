//go:build apiserver

package at

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/testkit"
	"example.com/fairlead/internal/kit/testkit/standalone"
)

// TestCRDRefusesBadInput applies specs as users write them, to both kinds, and
// looks at what the API server says.
func TestCRDRefusesBadInput(t *testing.T) {
	server := testkit.Server(t)
	c, err := client.New(server.Config, client.Options{Scheme: standalone.Scheme(Operator), FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatal(err)
	}
	const ok = `schedule: "2030-01-31T08:00:00Z", command: x`
	kib := func(n int) string { return strings.Repeat("x", n<<10) }
	cases := map[string]struct{ spec, want string }{
		"the guides' form":            {`schedule: "2023-03-19T08:00:00Z", command: "echo hello world"`, ""},
		"an offset":                   {`schedule: "2030-01-31T08:00:00+05:30", command: x`, ""},
		"a fraction of a second":      {`schedule: "2030-01-31T08:00:00.123456789Z", command: x`, ""},
		"a time zone":                 {`schedule: "2030-01-31T08:00:00", timeZone: Europe/Berlin, command: x`, ""},
		"a time zone of three parts":  {`schedule: "2030-01-31T08:00:00", timeZone: America/Argentina/Ushuaia, command: x`, ""},
		"a skipped local time":        {`schedule: "2030-03-10T02:30:00", timeZone: America/New_York, command: x`, ""},
		"the last year":               {`schedule: "9999-12-31T23:59:59Z", command: x`, ""},
		"the last local day":          {`schedule: "9999-12-30T23:59:59", timeZone: Etc/GMT+12, command: x`, ""},
		"the last day with an offset": {`schedule: "9999-12-31T23:59:59+01:00", command: x`, ""},
		"after the last local day":    {`schedule: "9999-12-31T23:59:59", timeZone: America/New_York, command: x`, "must not be later than 9999-12-30 without an offset"},
		"an image with a space":       {ok + `, image: "busybox :1"`, "must not have spaces"},
		"an image by digest":          {ok + `, image: "r.example.com:5000/a/b:v1@sha256:0123"`, ""},
		"a service account":           {ok + `, serviceAccountName: a.b-c`, ""},
		"no such service account":     {ok + `, serviceAccountName: "A b"`, "must be the name of a ServiceAccount"},
		"a command of 128 KiB":        {`schedule: "2030-01-31T08:00:00Z", command: ` + strings.Repeat("ä", 64<<10), "must be less than 131072 bytes"},
		"args":                        {`schedule: "2030-01-31T08:00:00Z", args: [echo, ""]`, ""},
		"a command of 100 KiB":        {`schedule: "2030-01-31T08:00:00Z", command: ` + kib(100), ""},
		"a template without command":  {ok + `, podTemplate: {metadata: {labels: {a: b}}, spec: {nodeSelector: {a: b}}}`, ""},
		"a template with restart":     {ok + `, podTemplate: {spec: {restartPolicy: Never}}`, ""},
		"no schedule":                 {`command: x`, "spec.schedule: Required value"},
		"an empty schedule":           {`schedule: "", command: x`, "must be a date and time that exist"},
		"words":                       {`schedule: tomorrow, command: x`, "must be a date and time that exist"},
		"a date only":                 {`schedule: "2030-01-31", command: x`, "must be a date and time that exist"},
		"a space for the T":           {`schedule: "2030-01-31 08:00:00Z", command: x`, "must be a date and time that exist"},
		"30 February":                 {`schedule: "2030-02-30T08:00:00Z", command: x`, "must be a date and time that exist"},
		"30 February, local":          {`schedule: "2030-02-30T08:00:00", timeZone: Europe/Berlin, command: x`, "must be a date and time that exist"},
		"hour 24":                     {`schedule: "2030-01-31T24:00:00Z", command: x`, "must be a date and time that exist"},
		"second 60":                   {`schedule: "2030-01-31T08:00:60Z", command: x`, "must be a date and time that exist"},
		"offset 24":                   {`schedule: "2030-01-31T08:00:00+24:00", command: x`, "must be a date and time that exist"},
		"before 1970":                 {`schedule: "1969-12-31T23:59:59Z", command: x`, "must be a date and time that exist"},
		"beyond the last year in UTC": {`schedule: "9999-12-31T23:59:59-01:00", command: x`, "must be a date and time that exist"},
		"too long":                    {`schedule: "2030-01-31T08:00:00.0000000000000000Z", command: x`, "than 35"},
		"no zone":                     {`schedule: "2030-01-31T08:00:00", command: x`, "the schedule needs exactly one of"},
		"two zones":                   {`schedule: "2030-01-31T08:00:00Z", timeZone: UTC, command: x`, "the schedule needs exactly one of"},
		"an unknown zone":             {`schedule: "2030-01-31T08:00:00", timeZone: Mars/Olympus, command: x`, "must be the name of a zone"},
		"the machine's zone":          {`schedule: "2030-01-31T08:00:00", timeZone: Local, command: x`, "must be the name of a zone"},
		"a file as zone":              {`schedule: "2030-01-31T08:00:00", timeZone: posix/Europe/Berlin, command: x`, "must be the name of a zone"},
		"an empty zone":               {`schedule: "2030-01-31T08:00:00", timeZone: "", command: x`, "must be the name of a zone"},
		"no command":                  {`schedule: "2030-01-31T08:00:00Z"`, "give exactly one of command"},
		"an empty command":            {`schedule: "2030-01-31T08:00:00Z", command: ""`, "must not be empty: write what to run"},
		"a blank command":             {`schedule: "2030-01-31T08:00:00Z", command: " \n "`, "must not be empty: write what to run"},
		"a command too large":         {`schedule: "2030-01-31T08:00:00Z", command: ` + kib(101), "than 102400"},
		"command and args":            {ok + `, args: [x]`, "give exactly one of command"},
		"no args":                     {`schedule: "2030-01-31T08:00:00Z", args: []`, "should have at least 1 items"},
		"an empty program":            {`schedule: "2030-01-31T08:00:00Z", args: ["", x]`, "the first item must be the program to run"},
		"a misspelt field":            {ok + `, shedule: x`, `unknown field "spec.shedule"`},
		"a misspelt template field":   {ok + `, podTemplate: {spec: {nodeSelektor: {}}}`, `unknown field "spec.podTemplate.spec.nodeSelektor"`},
		"a template that restarts":    {ok + `, podTemplate: {spec: {restartPolicy: Always}}`, "backoffLimit says how often"},
		"a template with a node":      {ok + `, podTemplate: {spec: {nodeName: node-1}}`, "use nodeSelector or affinity"},
		"a negative deadline":         {ok + `, startingDeadlineSeconds: -1`, "should be greater than or equal to 0"},
		"no time to start":            {ok + `, pendingDeadlineSeconds: 0`, "should be greater than or equal to 1"},
		"no time to run":              {ok + `, activeDeadlineSeconds: 0`, "should be greater than or equal to 1"},
		"negative attempts":           {ok + `, backoffLimit: -1`, "should be greater than or equal to 0"},
		"attempts without end":        {ok + `, backoffLimit: 1000`, "should be less than or equal to 100"},
		"output without end":          {ok + `, outputBytes: 1000000`, "should be less than or equal to 32768"},
		"an empty image":              {ok + `, image: ""`, "should be at least 1 chars long"},
	}
	namespace := server.NewNamespace(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for i, g := range []group{atExample, cnat} {
				obj := &unstructured.Unstructured{}
				manifest := fmt.Sprintf("{apiVersion: %s, kind: At, metadata: {name: at, namespace: %s}, spec: {%s}}", g.gvk.GroupVersion(), namespace, tc.spec)
				if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
					t.Fatalf("%v: %s", err, manifest)
				}
				err := c.Create(t.Context(), obj, client.DryRunAll)
				switch {
				case tc.want == "" && err != nil:
					t.Errorf("group %d: refused: %v", i, err)
				case tc.want != "" && err == nil:
					t.Errorf("group %d: not refused, want %q", i, tc.want)
				case tc.want != "" && !strings.Contains(err.Error(), tc.want):
					t.Errorf("group %d: refused with\n%v\nwant %q", i, err, tc.want)
				}
			}
		})
	}
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
