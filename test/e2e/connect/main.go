//go:build e2e

// Command connect is a client that believes `Ready`: it watches an object and, each time
// the watch shows it as Ready, connects to every ready address of a Service's EndpointSlices,
// and to the Service. It writes what it met as one line of JSON.
//
//	connect RESOURCE.VERSION.GROUP NAME SERVICE PORT
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/fairlead/test/e2e"
)

const (
	// patience is how long a connection may take, and for how long a Service that refuses is asked again.
	patience      = 5 * time.Second
	namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

func main() {
	log.SetFlags(0)
	if err := run(context.Background(), os.Args[1:]); err != nil {
		log.Fatal("connect: ", err)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("want RESOURCE.VERSION.GROUP NAME SERVICE PORT, not %q", args)
	}
	resource, _ := schema.ParseResourceArg(args[0])
	if resource == nil {
		return fmt.Errorf("%q is not RESOURCE.VERSION.GROUP", args[0])
	}
	namespace, err := os.ReadFile(namespaceFile)
	if err != nil {
		return err
	}
	cfg, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	cluster, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	c := client{cluster: cluster, namespace: string(namespace), service: args[2], port: args[3]}
	for ctx.Err() == nil {
		w, err := objects.Resource(*resource).Namespace(c.namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + args[1]})
		if err != nil {
			return err
		}
		for event := range w.ResultChan() {
			if u, ok := event.Object.(*unstructured.Unstructured); ok && isReady(u) && isToServe(u) {
				c.connect(ctx, u.GetResourceVersion())
			}
		}
	}
	return nil
}

// isReady says whether an object is Ready, as its spec is now.
func isReady(u *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == "Ready" && condition["status"] == "True" && condition["observedGeneration"] == u.GetGeneration()
	})
}

// isToServe says whether an object is to have any pods: scaled to zero, it is Ready and serves nobody.
func isToServe(u *unstructured.Unstructured) bool {
	for _, field := range []string{"size", "replicas"} {
		if n, is, _ := unstructured.NestedInt64(u.Object, "spec", field); is && n == 0 {
			return false
		}
	}
	return true
}

type client struct {
	cluster                  kubernetes.Interface
	namespace, service, port string
}

func (c client) connect(ctx context.Context, version string) {
	began := time.Now()
	met := e2e.Met{Time: began, Version: version}
	list, err := c.cluster.DiscoveryV1().EndpointSlices(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + c.service})
	met.After = time.Since(began)
	if err != nil {
		met.Refusals = append(met.Refusals, err.Error())
		list = &discoveryv1.EndpointSliceList{}
	}
	for _, slice := range list.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready != nil && !*endpoint.Conditions.Ready {
				continue
			}
			met.Addresses++
			port := c.port
			if len(slice.Ports) > 0 && slice.Ports[0].Port != nil {
				port = fmt.Sprint(*slice.Ports[0].Port)
			}
			if err := dial(ctx, net.JoinHostPort(endpoint.Addresses[0], port)); err != nil {
				met.Refusals = append(met.Refusals, err.Error())
			}
		}
	}
	if err := c.connectToService(ctx, &met); err != nil {
		met.Refusals = append(met.Refusals, err.Error())
	}
	_ = json.NewEncoder(os.Stdout).Encode(met)
}

// connectToService connects to the Service's own address, if it has one.
func (c client) connectToService(ctx context.Context, met *e2e.Met) error {
	service, err := c.cluster.CoreV1().Services(c.namespace).Get(ctx, c.service, metav1.GetOptions{})
	if err != nil || service.Spec.ClusterIP == corev1.ClusterIPNone {
		return err
	}
	began := time.Now()
	for {
		err := dial(ctx, net.JoinHostPort(service.Spec.ClusterIP, c.port))
		if met.Service = time.Since(began); err == nil || met.Service > patience {
			return err
		}
		met.Retries++
		time.Sleep(50 * time.Millisecond)
	}
}

func dial(ctx context.Context, address string) error {
	conn, err := (&net.Dialer{Timeout: patience}).DialContext(ctx, "tcp", address)
	if err == nil {
		_ = conn.Close()
	}
	return err
}
