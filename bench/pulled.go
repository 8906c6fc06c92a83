package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

const (
	// registryImage has slowregistry, and registryAddress is where it listens on the node. Pulls from the node itself
	// need no TLS.
	registryImage   = "fairlead-bench-registry:dev"
	registryAddress = "127.0.0.1:5000"
	// pullTime is how long a pull takes. A kubelet pulls one image after the other.
	pullTime = 20 * time.Second
	// pulls are how many commands there are, each with an image of its own.
	pulls = 4
	// pulledLead is how long before their time the Ats are prepared.
	pulledLead = (pulls + 2) * pullTime
)

// pulled measures how late commands begin whose image is not on the node, with a registry that takes its time, by their
// own clock; and those whose image is there.
func pulled(ctx context.Context, b *bench) ([]figure, error) {
	if err := b.namespace(ctx, workload, nil); err != nil {
		return nil, err
	}
	if err := b.slowRegistry(ctx); err != nil {
		return nil, err
	}
	var figures []figure
	var there time.Duration
	for _, way := range []struct {
		what    string
		prepare atv1alpha1.Preparation
		image   func(round, i int) string
	}{
		{"the image there, prepare: Pod", atv1alpha1.PreparePod, func(int, int) string { return registryImage }},
		{"a pull of 20 s, prepare: Pod", atv1alpha1.PreparePod, func(round, i int) string { return fmt.Sprintf("%s/pod-%d-%d:v1", registryAddress, round, i) }},
		{"a pull of 20 s, prepare: Node", atv1alpha1.PrepareNode, func(round, i int) string { return fmt.Sprintf("%s/node-%d-%d:v1", registryAddress, round, i) }},
	} {
		var all []time.Duration
		for round := range b.rounds {
			first := time.Now().Add(pulledLead + 5*time.Second)
			if way.prepare != atv1alpha1.PrepareNode {
				first = time.Now().Add(processHeadroom)
			}
			late, err := b.lateStarts(ctx, pulls, first, func(due time.Time, i int) time.Time { return due.Add(time.Duration(i) * time.Second) },
				func(ctx context.Context, dues []time.Time) error {
					return parallel(ctx, len(dues), func(i int) error {
						return b.client.Create(ctx, newAt(atName(i), dues[i], func(at *atv1alpha1.At) {
							at.Spec.Prepare, at.Spec.Image, at.Spec.Command, at.Spec.Args = way.prepare, way.image(round, i), nil, []string{"/slowregistry", "stamp"}
							if way.prepare == atv1alpha1.PrepareNode {
								at.Spec.PrepareSeconds = new(int64(pulledLead / time.Second))
							}
						}))
					})
				})
			if err != nil {
				return nil, err
			}
			all = append(all, late...)
		}
		if there == 0 {
			there = percentile(all, 50)
		}
		var bound time.Duration
		if way.prepare == atv1alpha1.PrepareNode {
			bound = there * 3 / 2
		}
		figures = append(figures, latenessFigures("pulled, 1/s", way.what, all, bound, 0)...)
	}
	return figures, b.clear(ctx, workload)
}

// slowRegistry starts the registry on the node.
func (b *bench) slowRegistry(ctx context.Context) error {
	if err := b.command(ctx, b.localcluster, "load", "--dir", b.dir, registryImage, "slowregistry="+b.slowregistry); err != nil {
		return fmt.Errorf("%w (make bench-programs builds it)", err)
	}
	const namespace = "registry"
	if err := b.namespace(ctx, namespace, nil); err != nil {
		return err
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "registry"},
		Spec: corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{
			Name: "registry", Image: registryImage, ImagePullPolicy: corev1.PullNever,
			Args: []string{"-listen", registryAddress, "-after", pullTime.String()},
		}}},
	}
	if err := b.client.Create(ctx, pod); err != nil {
		return err
	}
	return eventually(ctx, time.Minute, "the registry runs", func() (bool, error) {
		err := b.client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return pod.Status.Phase == corev1.PodRunning, err
	})
}
