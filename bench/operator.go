package main

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// operator is one of the operators, by the name of its folder, as it is deployed
// by itself.
type operator string

const (
	atOperator        operator = "at"
	etcdOperator      operator = "etcd"
	memcachedOperator operator = "memcached"
	webServerOperator operator = "webserver"
)

func (o operator) namespace() string { return string(o) + "-operator-system" }

// account is the name of its Deployment and of its ServiceAccount.
func (o operator) account() string { return string(o) + "-operator-controller-manager" }

// user is whom the API server knows it as.
func (o operator) user() string { return "system:serviceaccount:" + o.namespace() + ":" + o.account() }

// deploy deploys an operator as its users do, with the images that its pods need,
// and waits until it is ready.
func (b *bench) deploy(ctx context.Context, o operator, images ...string) error {
	commands := [][]string{
		{b.localcluster, "load", "--dir", b.dir, "fairlead:dev", "fairlead=" + b.manager, "fairlead-at-start=" + b.start, "fairlead-etcd-agent=" + b.agent},
		{"kubectl", "apply", "--server-side", "-k", "operators/" + string(o) + "/config/default"},
		{"kubectl", "-n", o.namespace(), "rollout", "restart", "deployment/" + o.account()},
	}
	if len(images) > 0 {
		commands = append(commands, append([]string{b.localcluster, "image", "--dir", b.dir}, images...))
	}
	for _, args := range commands {
		if err := b.command(ctx, args...); err != nil {
			return err
		}
	}
	return b.ready(ctx, o)
}

func (b *bench) ready(ctx context.Context, o operator) error {
	return b.command(ctx, "kubectl", "-n", o.namespace(), "rollout", "status", "--timeout", "5m", "deployment/"+o.account())
}

// scaled has an operator run in n pods; 0 stops it. The node is open afterwards.
func (b *bench) scaled(ctx context.Context, o operator, n string) error {
	if err := b.cordon(ctx, false); err != nil {
		return err
	}
	if err := b.command(ctx, "kubectl", "-n", o.namespace(), "scale", "--replicas", n, "deployment/"+o.account()); err != nil {
		return err
	}
	return b.ready(ctx, o)
}

// stopped stops an operator and waits until its process has ended.
func (b *bench) stopped(ctx context.Context, o operator) error {
	if err := b.scaled(ctx, o, "0"); err != nil {
		return err
	}
	return eventually(ctx, time.Minute, "the end of the operator "+string(o), func() (bool, error) {
		var pods corev1.PodList
		err := b.client.List(ctx, &pods, client.InNamespace(o.namespace()), managerPods)
		return len(pods.Items) == 0, err
	})
}

// managerPods are those of an operator's manager, in its namespace.
var managerPods = client.MatchingLabels{"control-plane": "controller-manager"}

// as is an unthrottled client with a token of an operator's ServiceAccount.
func (b *bench) as(ctx context.Context, o operator) (client.Client, error) {
	account, err := b.kube.CoreV1().ServiceAccounts(o.namespace()).CreateToken(ctx, o.account(), &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	cfg := rest.AnonymousClientConfig(b.cfg)
	cfg.BearerToken = account.Status.Token
	cfg.QPS = -1
	return client.New(cfg, client.Options{Scheme: b.client.Scheme()})
}
