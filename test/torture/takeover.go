package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// elsewhere is an etcd of three members that no EtcdCluster has, and a Service for clients outside.
const elsewhere = `
apiVersion: v1
kind: Service
metadata: {name: %[1]s-before, labels: {app: %[1]s-before}}
spec: {clusterIP: None, publishNotReadyAddresses: true, selector: {app: %[1]s-before}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: %[1]s-before, labels: {app: %[1]s-before}}
spec:
  replicas: 3
  podManagementPolicy: Parallel
  serviceName: %[1]s-before
  selector: {matchLabels: {app: %[1]s-before}}
  template:
    metadata: {labels: {app: %[1]s-before}}
    spec:
      containers:
        - name: etcd
          image: quay.io/coreos/etcd:v%[2]s
          env:
            - {name: ETCD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
            - {name: ETCD_DATA_DIR, value: /data/etcd}
            - {name: ETCD_LISTEN_PEER_URLS, value: "http://0.0.0.0:2380"}
            - {name: ETCD_LISTEN_CLIENT_URLS, value: "http://0.0.0.0:2379"}
            - {name: ETCD_INITIAL_ADVERTISE_PEER_URLS, value: "http://$(ETCD_NAME).%[1]s-before.%[3]s.svc:2380"}
            - {name: ETCD_ADVERTISE_CLIENT_URLS, value: "http://$(ETCD_NAME).%[1]s-before.%[3]s.svc:2379"}
            - {name: ETCD_INITIAL_CLUSTER, value: "%[4]s"}
          readinessProbe: {httpGet: {path: /readyz, port: 2379}, periodSeconds: 1}
          volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, emptyDir: {}}]
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s-outside}
spec: {type: NodePort, selector: {app: %[1]s-before}, ports: [{port: 2379}]}
`

// joins is what the manifest of an EtcdCluster has besides that takes it over.
const joins = `  joinFrom:
    etcdEndpoints: [%[3]s]
`

// takenOver is the first thing that happens to it.
var takenOver = fault{"a StatefulSet's members taken over", takeOver}

// createElsewhere makes an etcd that is to be taken over.
func createElsewhere(ctx context.Context, name, version, logs string) (*cluster, error) {
	c := &cluster{name: name, version: version, logs: logs, pods: "app=" + name + "-before"}
	var members []string
	for i := range 3 {
		members = append(members, fmt.Sprintf("%s-before-%d=http://%s:2380", name, i, c.before(i)))
	}
	if err := c.begin(ctx, fmt.Sprintf(elsewhere, name, version, namespace, strings.Join(members, ","))); err != nil {
		return nil, err
	}
	_, err := kubectl(ctx, "rollout", "status", "statefulset/"+name+"-before", "--timeout=5m")
	return c, err
}

// before is the host of a member of the etcd that is to be taken over.
func (c *cluster) before(member int) string {
	return fmt.Sprintf("%[1]s-before-%[2]d.%[1]s-before.%[3]s.svc", c.name, member, namespace)
}

// takeOver has an EtcdCluster take it over while clients use it, as docs/moving/etcd.md says. The manager is killed twice, and
// the leader of before once: until that is back, nobody joins.
func takeOver(ctx context.Context, c *cluster) error {
	var endpoints []string
	for i := range 3 {
		endpoints = append(endpoints, "http://"+c.before(i)+":2379")
	}
	if err := apply(ctx, fmt.Sprintf(manifest+joins, c.name, c.version, strings.Join(endpoints, ", "))); err != nil {
		return err
	}
	time.Sleep(undisturbed) // some may have joined
	if err := errors.Join(killManager(ctx, c), killLeader(ctx, c)); err != nil {
		return err
	}
	if _, err := kubectl(ctx, "wait", "etcd/"+c.name, "--for=jsonpath={.status.join.phase}=Joined", "--timeout=5m"); err != nil {
		return err
	}
	before := *c // whose logs are to be had until its members stop
	c.pods = "etcd_cluster=" + c.name
	if _, err := kubectl(ctx, "set", "selector", "service", c.name+"-outside", c.pods); err != nil {
		return err
	}
	for left := 2; left >= 0; left-- {
		if err := before.copyLogs(ctx); err != nil {
			return err
		}
		if _, err := kubectl(ctx, "scale", "statefulset", c.name+"-before", fmt.Sprintf("--replicas=%d", left)); err != nil {
			return err
		}
		if left == 1 {
			if err := killManager(ctx, c); err != nil {
				return err
			}
		}
		if _, err := kubectl(ctx, "wait", "etcd/"+c.name, fmt.Sprintf("--for=jsonpath={.status.size}=%d", 3+left), "--timeout=5m"); err != nil {
			return err
		}
	}
	return c.whole(ctx)
}
