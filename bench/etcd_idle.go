package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// questionTime is how often a member at rest may be asked how it is.
const questionTime = 30 * time.Second

// restingEtcds counts what clusters of one member cost that need nothing: requests to the API
// server by its audit log, and questions to the members by their own counters.
func restingEtcds(ctx context.Context, b *bench) ([]figure, error) {
	const namespace = "bench-etcd-idle"
	remove, err := b.scratch(ctx, namespace)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := parallel(ctx, b.etcds, func(i int) error {
		return b.client.Create(ctx, newEtcd(namespace, fmt.Sprintf("etcd-%03d", i), 1))
	}); err != nil {
		return nil, err
	}
	members, whole, err := b.etcdsWhole(ctx, namespace)
	if err != nil {
		return nil, err
	}
	took := whole.Sub(began)
	b.say("%d clusters are whole after %s", len(members), inSeconds(took))
	if err := b.quiet(ctx); err != nil {
		return nil, err
	}
	before, err := b.askedOf(ctx, namespace, members)
	if err != nil {
		return nil, err
	}
	requests, made, err := b.requestsOf(ctx, etcdOperator)
	if err != nil {
		return nil, err
	}
	after, err := b.askedOf(ctx, namespace, members)
	if err != nil {
		return nil, err
	}
	all, perMember := map[string]int{}, 0.0
	for _, member := range members {
		window := after[member].at.Sub(before[member].at)
		for method, n := range after[member].requests {
			n -= before[member].requests[method]
			all[method] += n
			if method == healthQuestion {
				perMember += float64(n) / (window.Seconds() / questionTime.Seconds()) / float64(len(members))
			}
		}
	}
	what := fmt.Sprintf("%d clusters of one at rest", len(members))
	return []figure{
		{measure: "etcd idle", what: fmt.Sprintf("%d clusters of one, created at once, until all serve", len(members)), value: inSeconds(took)},
		{measure: "etcd idle", what: what + ": requests within " + idleTime.String(), value: fmt.Sprint(made), spread: "all: " + summary(requests), bound: "0", missed: made > 0},
		{
			measure: "etcd idle", what: what + ": questions to a member in " + questionTime.String(), value: fmt.Sprintf("%.2f", perMember),
			// The window is not a multiple of the time between questions, hence the tolerance.
			spread: "all requests to all members in about " + idleTime.String() + ": " + methods(all), bound: "≤ 1", missed: perMember > 1.05,
		},
	}, remove(ctx)
}

// etcdsWhole waits until all clusters of one member serve. It returns the members' names, and when
// that was seen.
func (b *bench) etcdsWhole(ctx context.Context, namespace string) ([]string, time.Time, error) {
	var members []string
	var whole time.Time
	for i := range b.etcds {
		ec := newEtcd(namespace, fmt.Sprintf("etcd-%03d", i), 1)
		at, err := b.etcdWhole(ctx, ec, asCreated)
		if err != nil {
			return nil, at, err
		}
		whole = at
		members = append(members, ec.Status.Members.Ready...)
	}
	return members, whole, nil
}

// healthQuestion is what a member answers by itself, without a quorum.
const healthQuestion = "Maintenance/Status"

// asked is how many requests a member had until some time, by method.
type asked struct {
	at       time.Time
	requests map[string]int
}

// askedOf reads the members' counters. Their metrics are no gRPC requests, so this is not counted,
// nor are the kubelet's questions.
func (b *bench) askedOf(ctx context.Context, namespace string, members []string) (map[string]asked, error) {
	all := map[string]asked{}
	for _, member := range members {
		metrics, err := b.kube.CoreV1().Pods(namespace).ProxyGet("http", member, "2381", "metrics", nil).DoRaw(ctx)
		if err != nil {
			return nil, err
		}
		all[member] = asked{time.Now(), startedRequests(metrics)}
		if len(all[member].requests) == 0 {
			return nil, fmt.Errorf("member %s does not tell how many requests it had", member)
		}
	}
	return all, nil
}

// startedCounter is a counter of etcd's, such as
// grpc_server_started_total{grpc_method="Status",grpc_service="etcdserverpb.Maintenance",grpc_type="unary"} 7
var startedCounter = regexp.MustCompile(`^grpc_server_started_total\{grpc_method="(\w+)",grpc_service="etcdserverpb\.(\w+)",.*\} (\S+)$`)

func startedRequests(metrics []byte) map[string]int {
	started := map[string]int{}
	for lines := bufio.NewScanner(bytes.NewReader(metrics)); lines.Scan(); {
		if match := startedCounter.FindStringSubmatch(lines.Text()); match != nil {
			n, _ := strconv.ParseFloat(match[3], 64)
			started[match[2]+"/"+match[1]] += int(n)
		}
	}
	return started
}

// methods lists those that were called.
func methods(called map[string]int) string {
	var list []string
	for _, method := range slices.Sorted(maps.Keys(called)) {
		if called[method] > 0 {
			list = append(list, fmt.Sprintf("%d %s", called[method], method))
		}
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
