package run

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func parse(t *testing.T, args ...string) (Options, error) {
	t.Helper()
	flags := flag.NewFlagSet("test", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	var options Options
	options.bind(flags)
	return options, flags.Parse(args)
}

func TestOptionsComeFromFlagsAndEnvironment(t *testing.T) {
	cases := map[string]struct {
		watch string
		args  []string
		want  []string
	}{
		"all by default":          {},
		"one from OLM":            {watch: "a", want: []string{"a"}},
		"several":                 {watch: "a, b,,c", want: []string{"a", "b", "c"}},
		"the flag wins":           {watch: "a", args: []string{"--namespace=b"}, want: []string{"b"}},
		"the flag can say all":    {watch: "a", args: []string{"--namespace="}},
		"the flag can be several": {args: []string{"--namespace", "b,c"}, want: []string{"b", "c"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("WATCH_NAMESPACE", tc.watch)
			options, err := parse(t, tc.args...)
			if err != nil || !slices.Equal(options.Namespaces, tc.want) {
				t.Errorf("namespaces %v, %v, want %v", options.Namespaces, err, tc.want)
			}
		})
	}
	options, err := parse(t)
	if err != nil || options.Election != Lease || options.MetricsAddress != ":8443" || options.ProbeAddress != ":8081" {
		t.Errorf("defaults: %+v, %v", options, err)
	}
	if options, err = parse(t, "--leader-election=for-life"); err != nil || options.Election != ForLife {
		t.Errorf("for-life: %+v, %v", options, err)
	}
	if _, err = parse(t, "--leader-election=forever"); err == nil {
		t.Error("an unknown way to elect is taken")
	}
}

func TestSearchedDomain(t *testing.T) {
	cases := map[string]struct{ file, want string }{
		"a pod":               {"search shop.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n", "cluster.local"},
		"with the node's own": {"nameserver fd00::a\nsearch a.svc.k8s.example.internal svc.k8s.example.internal k8s.example.internal corp.example\n", "k8s.example.internal"},
		"a machine":           {"domain example.com\nsearch example.com lab.example.com\nnameserver 192.0.2.1\n", ""},
		"a company's svc":     {"search svc.example.com\n", ""},
		"nothing":             {"", ""},
		"a comment":           {"# search a.svc.b svc.b b\n", ""},
	}
	for name, tc := range cases {
		file := filepath.Join(t.TempDir(), "resolv.conf")
		if err := os.WriteFile(file, []byte(tc.file), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := searchedDomain(file); got != tc.want {
			t.Errorf("%s: searchedDomain() = %q, want %q", name, got, tc.want)
		}
	}
	if got := searchedDomain(filepath.Join(t.TempDir(), "none")); got != "" {
		t.Errorf("without a file: %q", got)
	}
	if options, err := parse(t, "--cluster-domain=example.internal"); err != nil || options.ClusterDomain != "example.internal" {
		t.Errorf("the flag: %+v, %v", options, err)
	}
}

// TestOperatorsShareCaches: two operators in one manager cannot have different views
// of a kind.
func TestOperatorsShareCaches(t *testing.T) {
	metadata := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
	watches := Operator{Name: "one", Kinds: []Kind{{Watches: []client.Object{metadata}}}}
	for name, tc := range map[string]struct {
		other Kind
		want  string
	}{
		"another kind":         {Kind{Owns: []client.Object{&corev1.Pod{}}}, "<nil>"},
		"all of them, too":     {Kind{Watches: []client.Object{&corev1.ConfigMap{}}}, "<nil>"},
		"those of others, too": {Kind{OwnsAmong: []client.Object{&corev1.ConfigMap{}}}, "<nil>"},
		"only its own": {Kind{Owns: []client.Object{&corev1.ConfigMap{}}},
			"operator one watches every ConfigMap, and operator two only its own: that one has to name it as metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			err := canShareCaches(scheme.Scheme, []Operator{watches, {Name: "two", Kinds: []Kind{tc.other}}})
			if got := fmt.Sprint(err); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// TestCacheKeepsManagedFields: of a kind of which the cache holds the objects of others, too, those that an operator has
// written keep their managed fields, which say that they are its own.
func TestCacheKeepsManagedFields(t *testing.T) {
	operators := []Operator{
		{Name: "one", Kinds: []Kind{{OwnsAmong: []client.Object{&corev1.ConfigMap{}}}}},
		{Name: "two", Kinds: []Kind{{OwnsAmong: []client.Object{&corev1.ConfigMap{}}, Owns: []client.Object{&corev1.Pod{}}}}},
	}
	options := cacheOptions(nil, operators)
	if len(options.ByObject) != 2 {
		t.Fatalf("%d kinds, want each once", len(options.ByObject))
	}
	for object, of := range options.ByObject {
		if _, is := object.(*corev1.ConfigMap); !is {
			continue
		}
		if of.Label != nil {
			t.Errorf("only objects with %v are cached", of.Label)
		}
		for manager, want := range map[string]int{"one-operator": 1, "two-operator": 1, "kubectl": 0} {
			cm := &corev1.ConfigMap{}
			cm.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager}}
			if _, err := of.Transform(cm); err != nil || len(cm.ManagedFields) != want {
				t.Errorf("written by %s: %d managed fields, %v", manager, len(cm.ManagedFields), err)
			}
		}
	}
}

func TestChooseOperators(t *testing.T) {
	operators := []Operator{{Name: "one"}, {Name: "two"}}
	cases := map[string]struct {
		args []string
		want string // the names chosen, or the error
	}{
		"one":       {[]string{"one"}, "one"},
		"all":       {[]string{"all"}, "one+two"},
		"none":      {nil, "say which operator to run, one of: one, two, all"},
		"more":      {[]string{"one", "two"}, "say which operator to run, one of: one, two, all"},
		"not there": {[]string{"three"}, `there is no operator "three", only: one, two, all`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			chosen, err := choose(tc.args, operators)
			got := names(chosen)
			if err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("choose(%v) = %q, want %q", tc.args, got, tc.want)
			}
		})
	}
}
