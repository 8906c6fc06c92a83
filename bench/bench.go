package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	cachev1alpha1 "example.com/fairlead/api/cache/v1alpha1"
	etcdv1beta2 "example.com/fairlead/api/etcd/v1beta2"
	webv1 "example.com/fairlead/api/web/v1"
)

// options are what the command line can change.
type options struct {
	rounds, burst, processes, idle, scale, fleet, etcds, database int
	manager, start, agent, localcluster                           string
	versitygw, s3pipe, slowregistry                               string
	charts                                                        string
	overwrite                                                     time.Duration
}

// bench is the cluster that is measured on. Its clients are unthrottled.
type bench struct {
	options
	cfg    *rest.Config
	client client.WithWatch
	kube   kubernetes.Interface
	node   string
	dir    string // the local cluster's folder

	// waited is how long was spent waiting for quiet.
	waited time.Duration
}

func newBench(options options) (*bench, error) {
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	dir := os.Getenv("LOCALCLUSTER_DIR")
	if dir == "" {
		return nil, errors.New("no local cluster: run me with localcluster run -- (LOCALCLUSTER_DIR is not set)")
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), atv1alpha1.AddToScheme(scheme), cachev1alpha1.AddToScheme(scheme),
		etcdv1beta2.AddToScheme(scheme), webv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	cfg.QPS = -1 // no throttling
	cfg.UserAgent = "bench"
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	b := &bench{options: options, cfg: cfg, client: c, kube: kube, dir: dir}
	return b, b.findNode(context.Background())
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}

func (b *bench) findNode(ctx context.Context) error {
	var nodes corev1.NodeList
	if err := b.client.List(ctx, &nodes); err != nil {
		return err
	}
	if len(nodes.Items) != 1 {
		return fmt.Errorf("the cluster has %d nodes, where one was expected", len(nodes.Items))
	}
	b.node = nodes.Items[0].Name
	return nil
}

func (b *bench) command(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

func (b *bench) auditLog() string { return filepath.Join(b.dir, "log", "audit.log") }

// cordon keeps pods from being scheduled, or lets them: what a node does with
// pods is not what is measured.
func (b *bench) cordon(ctx context.Context, closed bool) error {
	node := &corev1.Node{}
	if err := b.client.Get(ctx, client.ObjectKey{Name: b.node}, node); err != nil {
		return err
	}
	before := client.MergeFrom(node.DeepCopy())
	node.Spec.Unschedulable = closed
	return b.client.Patch(ctx, node, before)
}

// namespace makes an empty namespace, if it is not there, in which pods can be
// created.
func (b *bench) namespace(ctx context.Context, name string, labels map[string]string) error {
	namespace := &corev1.Namespace{}
	namespace.Name, namespace.Labels = name, labels
	if err := b.client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return eventually(ctx, time.Minute, "the default ServiceAccount of namespace "+name, func() (bool, error) {
		err := b.client.Get(ctx, client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
		return err == nil, client.IgnoreNotFound(err)
	})
}

// eventually waits until a condition holds.
func eventually(ctx context.Context, patience time.Duration, what string, holds func() (bool, error)) error {
	deadline := time.Now().Add(patience)
	for {
		ok, err := holds()
		if err != nil || ok {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %s: %s", patience, what)
		}
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
