package memcached

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/memo"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

// This file reads back how much memory a server has for items, after it was given to take
// more while it runs. Nothing that Kubernetes reports says that, so the operator queries
// the server over the network, as a client would.

const (
	readTimeout = 2 * time.Second
	// takeLasts is for how long it is no news that a server does not yet have the
	// memory, or does not answer.
	takeLasts = 30 * time.Second
)

// limits are what servers have answered.
type limits = memo.Map[limitKey, pool.Limit]

type limitKey struct {
	owner     types.NamespacedName // the Memcached
	container string
	wanted    int64
}

// readLimit queries a server; tests have none to query.
var readLimit = askLimit

// observeLimits queries the servers that were given more memory while they ran, and are
// not known to have it. A container that was not resized has what it was started with:
// the kubelet takes that from the same annotation.
func (o *observer) observeLimits(ctx context.Context, r *loop.Reader, mc *v1alpha1.Memcached, seen *pool.Observation) {
	if !objects.GrowsLive(mc) {
		return
	}
	seen.Limits = map[string]pool.Limit{}
	isReached := true // if one is not, the others are not waited for now
	for i := range seen.Pods {
		pod := &seen.Pods[i]
		wanted, err := strconv.ParseInt(pod.Annotations[objects.MemoryAnnotation], 10, 64)
		if err != nil || pod.Generation <= 1 || pod.DeletionTimestamp != nil || !pods.IsReady(pod) {
			continue
		}
		k := limitKey{key(mc), pool.ServerStatus(pod).ContainerID, wanted}
		known, ok := o.limits.Get(k)
		if !ok {
			known = pool.Limit{Wanted: wanted, Since: seen.Now}
		}
		switch isDue := known.Has != wanted && !seen.Now.Before(known.Next); {
		case isDue && !isReached:
			known.Next = seen.Now.Add(time.Second)
		case isDue:
			if known.Has, err = readLimit(ctx, r.Live, mc, pod); err != nil {
				known.Has, isReached = 0, false
			}
			known.Next = seen.Now.Add(min(max(seen.Now.Sub(known.Since)/4, time.Second), time.Minute))
		}
		o.limits.Set(k, known)
		if known.Has != wanted {
			seen.Limits[pod.Name] = known
		}
	}
}

// askLimit queries the statistics of a server.
func askLimit(ctx context.Context, live client.Reader, mc *v1alpha1.Memcached, pod *corev1.Pod) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if pod.Status.PodIP == "" {
		return 0, errors.New("the pod has no address")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(PortOf(mc, pod)))))
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return 0, err
		}
	}
	conn, login, err := Secure(ctx, live, mc, conn)
	if err != nil {
		return 0, err
	}
	request := login + "stats\r\nquit\r\n"
	if _, err := io.WriteString(conn, request); err != nil {
		return 0, err
	}
	return limitIn(conn)
}

// Secure prepares a connection to a server. With TLS the server must show the very certificate that it
// was given. With users, the command is returned that logs in the first of them.
func Secure(ctx context.Context, live client.Reader, mc *v1alpha1.Memcached, conn net.Conn) (net.Conn, string, error) {
	if mc.Spec.TLS != nil {
		data, err := contentOf(ctx, live, mc, "tls")
		if err != nil {
			return nil, "", err
		}
		pair, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
		if err != nil {
			return nil, "", err
		}
		conn = tls.Client(conn, onlyThis(pair))
	}
	if mc.Spec.Auth == nil {
		return conn, "", nil
	}
	data, err := contentOf(ctx, live, mc, "auth")
	if err != nil {
		return nil, "", err
	}
	line, _, _ := bytes.Cut(data[objects.UsersFile], []byte("\n"))
	login := strings.Replace(string(line), ":", " ", 1)
	return conn, fmt.Sprintf("set login 0 0 %d\r\n%s\r\n", len(login), login), nil
}

// onlyThis trusts a server with this certificate, whatever its names and issuer.
func onlyThis(pair tls.Certificate) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // replaced by a stricter check
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 || !bytes.Equal(state.PeerCertificates[0].Raw, pair.Certificate[0]) {
				return errors.New("the server shows another certificate")
			}
			return nil
		},
	}
}

// limitIn reads memcached's statistics.
func limitIn(from io.Reader) (int64, error) {
	lines := bufio.NewScanner(io.LimitReader(from, 1<<20))
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "STAT limit_maxbytes "); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return n >> 20, err
		}
	}
	return 0, errors.Join(errors.New("no answer to stats"), lines.Err())
}

// contentOf is the content of the copy of a Secret.
func contentOf(ctx context.Context, live client.Reader, mc *v1alpha1.Memcached, role string) (map[string][]byte, error) {
	var secret corev1.Secret
	err := live.Get(ctx, types.NamespacedName{Namespace: mc.Namespace, Name: objects.CopyName(mc, role)}, &secret)
	return secret.Data, err
}

// notTaken reports a server that has not the memory that it was given, or that
// has not answered yet.
func notTaken(seen pool.Observation) *status.Problem {
	for i := range seen.Pods {
		name := seen.Pods[i].Name
		l, ok := seen.Limits[name]
		isNew := seen.Now.Sub(l.Since) < takeLasts
		switch {
		case !ok:
		case isNew:
			return &status.Problem{Reason: reasonUpgrading, Message: fmt.Sprintf("server %s is getting %dMi for items", name, l.Wanted), Retriable: true}
		case l.Has > 0:
			return &status.Problem{Reason: reasonNotTaken, Retriable: true, Message: fmt.Sprintf(
				"server %s has %dMi for items and not %dMi: memcached has not taken the new limit. To start it with that, and empty, delete the pod", name, l.Has, l.Wanted)}
		}
	}
	return nil
}

// memoryOf is how much memory each server has for items, as far as that is known: the
// least that one has; empty if a server could not be queried.
func memoryOf(mc *v1alpha1.Memcached, seen pool.Observation) string {
	least := mc.Spec.Memory.Value() >> 20
	for _, l := range seen.Limits {
		if l.Has == 0 {
			return ""
		}
		least = min(least, l.Has)
	}
	if len(seen.Limits) == 0 {
		return mc.Spec.Memory.String()
	}
	return fmt.Sprintf("%dMi", least)
}
