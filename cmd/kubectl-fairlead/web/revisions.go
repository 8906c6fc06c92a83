package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pmezard/go-difflib/difflib"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

// revisionAnnotation is on the pods of a revision and on the ControllerRevision that keeps it.
// docs/webserver.md has it, under Rollback.
const revisionAnnotation = "webserver-operator/revision"

// revision is a pod template that a WebServer has or had.
type revision struct {
	name     string
	created  time.Time
	pods     int32
	template corev1.PodTemplateSpec
}

// image is that of the container that serves.
func (r revision) image() string {
	for _, container := range r.template.Spec.Containers {
		if container.Name == "webserver" || len(r.template.Spec.Containers) == 1 {
			return container.Image
		}
	}
	return ""
}

// state is what a revision is to a WebServer.
func (r revision) state(ws *webv1.WebServer) string {
	var words []string
	if failed := ws.Status.FailedRollout; failed != nil && failed.Revision == r.name {
		words = append(words, "rolled back: "+failed.Reason)
	}
	if ws.Status.Revision == r.name {
		words = append(words, "current")
	}
	if ws.Status.LastGoodRevision == r.name {
		words = append(words, "last good")
	}
	return strings.Join(words, ", ")
}

// revisionsOf are all that the cluster has of a WebServer, the newest first, and what could not be listed of that. A list
// that is refused keeps no other from being used, unless nothing is left.
func revisionsOf(ctx context.Context, c *cli.CLI, name string) (ws *webv1.WebServer, all []revision, missing, err error) {
	ws = &webv1.WebServer{}
	k, err := c.Get(ctx, name, ws)
	if err != nil {
		return nil, nil, nil, err
	}
	var deployments appsv1.DeploymentList
	var sets appsv1.ReplicaSetList
	var kept appsv1.ControllerRevisionList
	here := client.InNamespace(ws.Namespace)
	noDeployments, noSets, noneKept := k.List(ctx, &deployments, here), k.List(ctx, &sets, here), k.List(ctx, &kept, here)
	inSets := errors.Join(noDeployments, noSets) // it takes both: a Deployment is the ReplicaSets' owner
	if missing = errors.Join(inSets, noneKept); inSets != nil && noneKept != nil {
		return nil, nil, nil, missing
	}
	if inSets == nil {
		for i := range deployments.Items {
			if d := &deployments.Items[i]; metav1.IsControlledBy(d, ws) {
				all = append(all, inReplicaSets(d, sets.Items)...)
			}
		}
	}
	if noneKept == nil {
		for i := range kept.Items {
			r := &kept.Items[i]
			isThere := slices.ContainsFunc(all, func(other revision) bool { return other.name == r.Annotations[revisionAnnotation] })
			if !metav1.IsControlledBy(r, ws) || isThere {
				continue
			}
			one := revision{name: r.Annotations[revisionAnnotation], created: r.CreationTimestamp.Time}
			if err := json.Unmarshal(r.Data.Raw, &one.template); err != nil {
				return nil, nil, nil, fmt.Errorf("ControllerRevision %s: %w", r.Name, err)
			}
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b revision) int { return b.created.Compare(a.created) })
	return ws, all, missing, nil
}

// withMissing is an error about what could not be listed, behind what is shown.
func withMissing(err, missing error) error {
	if missing != nil {
		missing = fmt.Errorf("revisions may be missing: %w", missing)
	}
	return errors.Join(err, missing)
}

// inReplicaSets are the revisions of a Deployment. A ReplicaSet of another operator's pods has its own
// name instead.
func inReplicaSets(d *appsv1.Deployment, sets []appsv1.ReplicaSet) []revision {
	var all []revision
	for i := range sets {
		set := &sets[i]
		if !metav1.IsControlledBy(set, d) {
			continue
		}
		r := revision{
			name:     cmp.Or(set.Spec.Template.Annotations[revisionAnnotation], set.Name),
			created:  set.CreationTimestamp.Time,
			pods:     set.Status.Replicas,
			template: *set.Spec.Template.DeepCopy(),
		}
		// What says only which one it is.
		delete(r.template.Annotations, revisionAnnotation)
		delete(r.template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
		all = append(all, r)
	}
	return all
}

// toCompare are the two revisions that are compared.
func toCompare(ws *webv1.WebServer, all []revision, names []string) (from, to revision, err error) {
	find := func(name string) (revision, error) {
		var known []string
		for _, r := range all {
			if r.name == name {
				return r, nil
			}
			known = append(known, r.name)
		}
		return revision{}, fmt.Errorf("webserver/%s: the cluster has no revision %q: it has %s", ws.Name, name, strings.Join(known, ", "))
	}
	if len(names) == 0 {
		if names, err = usualComparison(ws, all); err != nil {
			return from, to, err
		}
	} else if len(names) == 1 {
		names = append(names, ws.Status.Revision)
	}
	if from, err = find(names[0]); err != nil {
		return from, to, err
	}
	to, err = find(names[1])
	return from, to, err
}

// usualComparison is of what runs with what was rolled back, or else of the one before with what runs.
func usualComparison(ws *webv1.WebServer, all []revision) ([]string, error) {
	now := ws.Status.Revision
	if failed := ws.Status.FailedRollout; failed != nil && failed.Revision != now {
		return []string{now, failed.Revision}, nil
	}
	for _, r := range all { // the newest first
		if r.name != now {
			return []string{r.name, now}, nil
		}
	}
	return nil, errors.New("webserver/" + ws.Name + ": there are no two revisions to compare")
}

// printDiff prints what differs, as diff -u does, and says whether something does.
func printDiff(c *cli.CLI, from, to revision) (bool, error) {
	lines := func(r revision) []string {
		text, err := yaml.Marshal(r.template)
		if err != nil {
			panic(err) // of plain data
		}
		return difflib.SplitLines(string(text))
	}
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: lines(from), B: lines(to), FromFile: from.name + " " + from.image(), ToFile: to.name + " " + to.image(), Context: 3,
	})
	if err != nil {
		return false, err
	}
	for _, line := range strings.SplitAfter(text, "\n") {
		colour := map[byte]int{'-': cli.Red, '+': cli.Green}[(line + " ")[0]]
		if colour != 0 {
			line = c.Colour(colour, strings.TrimSuffix(line, "\n")) + "\n"
		}
		if _, err := fmt.Fprint(c.Out, line); err != nil {
			return false, err
		}
	}
	return text != "", nil
}
