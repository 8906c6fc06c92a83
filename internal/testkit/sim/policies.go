package sim

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/testkit"
)

// policies are what the owners of clusters have admission make of pods and of what makes them. A story is to end as
// it does without them, and then the operator is to be quiet.
var policies = []struct {
	name  string
	admit func(old, obj client.Object) error
}{
	{"mirror", func(_, obj client.Object) error {
		eachContainer(podSpec(obj, false), func(c *corev1.Container) {
			if c.Image != "" && !strings.HasPrefix(c.Image, mirror) {
				c.Image = mirror + c.Image
			}
		})
		return nil
	}},
	{"sidecar-first", func(old, obj client.Object) error { return inject(old, obj, 0) }},
	{"sidecar-last", func(old, obj client.Object) error { return inject(old, obj, -1) }},
	{"limits", func(_, obj client.Object) error {
		_, isPod := obj.(*corev1.Pod)
		eachContainer(podSpec(obj, true), func(c *corev1.Container) {
			if _, is := c.Resources.Limits[corev1.ResourceCPU]; is {
				return
			}
			c.Resources.Limits = with(c.Resources.Limits, corev1.ResourceCPU, resource.MustParse("2"))
			if isPod {
				requestLimits(c)
			}
		})
		return nil
	}},
	{"requests", func(_, obj client.Object) error {
		if _, isPod := obj.(*corev1.Pod); !isPod {
			eachContainer(podSpec(obj, true), func(c *corev1.Container) {
				c.Resources.Requests = with(c.Resources.Requests, corev1.ResourceMemory, resource.MustParse("32Mi"))
			})
		}
		return nil
	}},
	{"users", func(old, obj client.Object) error {
		if spec := podSpec(obj, false); spec != nil && old == nil {
			spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(1000650000)), FSGroup: new(int64(1000650000))}
			eachContainer(spec, func(c *corev1.Container) {
				if c.SecurityContext != nil {
					c.SecurityContext.RunAsUser, c.SecurityContext.RunAsGroup = new(int64(1000650000)), nil
				}
			})
		}
		return nil
	}},
	{"registries", func(_, obj client.Object) (err error) {
		eachContainer(podSpec(obj, false), func(c *corev1.Container) {
			if name, _, _ := strings.Cut(c.Image, ":"); name != strings.ToLower(name) { // of no registry at all
				err = apierrors.NewForbidden(corev1.Resource("pods"), obj.GetName(), fmt.Errorf("image %q is of no registry that is allowed", c.Image))
			}
		})
		return err
	}},
	{"labels", func(_, obj client.Object) error {
		if podSpec(obj, true) != nil {
			labels := obj.GetLabels()
			if labels == nil {
				labels = map[string]string{}
			}
			labels["team"] = "cluster-owners"
			obj.SetLabels(labels)
		}
		return nil
	}},
}

const mirror = "mirror.example.com/"

// underPolicies are these stories, each under every policy.
func underPolicies(scenarios []testkit.Scenario) (all []testkit.Scenario) {
	for _, sc := range scenarios {
		for _, p := range policies {
			under := sc
			under.Name = sc.Name + "-under-" + p.name
			under.Admit = func(_ *testkit.Run, old, obj client.Object) error { return p.admit(old, obj) }
			all = append(all, under)
		}
	}
	return all
}

// podSpec is that of a pod or, with templates, also of what makes pods; nil if there is none.
func podSpec(obj client.Object, templates bool) *corev1.PodSpec {
	switch obj := obj.(type) {
	case *corev1.Pod:
		return &obj.Spec
	case *appsv1.Deployment:
		if templates {
			return &obj.Spec.Template.Spec
		}
	case *appsv1.StatefulSet:
		if templates {
			return &obj.Spec.Template.Spec
		}
	}
	return nil
}

// with are resources with that much of one.
func with(list corev1.ResourceList, what corev1.ResourceName, quantity resource.Quantity) corev1.ResourceList {
	list = list.DeepCopy()
	if list == nil {
		list = corev1.ResourceList{}
	}
	list[what] = quantity
	return list
}

func eachContainer(spec *corev1.PodSpec, change func(*corev1.Container)) {
	if spec == nil {
		return
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			change(&containers[i])
		}
	}
}

// inject adds what a mesh does to a new pod, before the container with this index, or after the last one.
func inject(old, obj client.Object, at int) error {
	spec := podSpec(obj, false)
	if spec == nil || old != nil {
		return nil
	}
	if at < 0 {
		at = len(spec.Containers)
	}
	proxy := corev1.Container{Name: testkit.Proxy, Image: "proxy:1", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi")},
	}}
	spec.Containers = slices.Insert(spec.Containers, at, proxy)
	defaultPod(spec)
	return nil
}
