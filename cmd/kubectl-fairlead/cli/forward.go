package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// Pods are the pods of a namespace, and a way to their ports.
type Pods struct {
	// Core is a client of their kind, and of what else is in Kubernetes' core.
	Core *corev1client.CoreV1Client

	config    *rest.Config
	namespace string
}

// Pods are those of the namespace that is meant.
func (c *CLI) Pods() (*Pods, error) {
	config, namespace, err := c.Connect()
	if err != nil {
		return nil, err
	}
	core, err := corev1client.NewForConfig(config)
	return &Pods{core, config, namespace}, err
}

// ErrNoForward says that the user lacks the right to reach ports of pods.
var ErrNoForward = errors.New("you have no permission to create pods/portforward")

// Forward makes a port of a pod one of this machine until the context ends, as kubectl port-forward
// does: over a WebSocket, or SPDY where the API server does not know that. It returns the address.
//
// It is a port, and not a command in the pod, because images need no shell or client for that, etcd's
// have none to stream a snapshot with, and the certificate of a client is in a Secret and not in the pods.
func (p *Pods) Forward(ctx context.Context, pod string, port int32) (string, error) {
	url := p.Core.RESTClient().Post().Resource("pods").Namespace(p.namespace).Name(pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(p.config)
	if err != nil {
		return "", err
	}
	byWebSocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, p.config)
	if err != nil {
		return "", err
	}
	bySPDY := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	dialer := portforward.NewFallbackDialerForStreaming(byWebSocket, bySPDY, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	ready, ended := make(chan struct{}), make(chan error, 1)
	// What goes wrong with a connection, its user sees.
	ctx = logr.NewContext(ctx, logr.Discard())
	forwarder, err := portforward.NewOnAddressesForStreamingWithContext(ctx, dialer, []string{"127.0.0.1"},
		[]string{fmt.Sprintf(":%d", port)}, ready, io.Discard, io.Discard)
	if err != nil {
		return "", err
	}
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case err := <-ended:
		if p.isForbidden(ctx) {
			return "", fmt.Errorf("%w in namespace %s", ErrNoForward, p.namespace)
		}
		return "", fmt.Errorf("connect to port %d of pod %s: %w", port, pod, err)
	case <-ctx.Done():
		return "", ctx.Err()
	case <-ready:
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		return "", err
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(ports[0].Local))), nil
}

// isForbidden says whether the API server says that the user may not forward ports. The errors of a connection are text.
func (p *Pods) isForbidden(ctx context.Context) bool {
	k, err := authorizationv1client.NewForConfig(p.config)
	if err != nil {
		return false
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: p.namespace, Verb: "create", Resource: "pods", Subresource: "portforward"},
	}}
	review, err = k.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	return err == nil && !review.Status.Allowed
}
