package agent

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/pki"
	"example.com/fairlead/operators/etcd/task"
)

// member is an endpoint, and what the member there has said.
type member struct {
	url    string
	at     members.Endpoint
	client members.Direct
	status members.Status
	err    error
}

// ask asks all endpoints at once for their status. If only the leader answers, the other members
// that it knows are asked, too: what was given may be a Service.
func (a *agent) ask(ctx context.Context, urls []string, config *tls.Config, as members.User) ([]member, error) {
	asked, err := status(ctx, urls, config, as)
	if err != nil {
		return nil, err
	}
	leader := slices.IndexFunc(asked, func(m member) bool { return m.err == nil })
	isAlone := !slices.ContainsFunc(asked, func(m member) bool { return m.err == nil && m.status.Leader != m.status.ID })
	if leader < 0 || !isAlone {
		return asked, nil
	}
	return append(asked, others(ctx, asked[leader], urls, config, as)...), nil
}

// others are the members that one knows of and that answer, but for those that were asked. It is no
// problem if there are none: the leader is better than nobody.
func others(ctx context.Context, m member, asked []string, config *tls.Config, as members.User) []member {
	list, err := m.client.List(ctx, m.at)
	if err != nil {
		return nil
	}
	var urls []string
	for _, other := range list.Members {
		if other.ID != m.status.ID && !other.IsLearner {
			urls = append(urls, other.ClientURLs...)
		}
	}
	urls = slices.DeleteFunc(urls, func(u string) bool { return slices.Contains(asked, u) })
	more, err := status(ctx, urls, config, as)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(more, func(m member) bool { return m.err != nil })
}

func status(ctx context.Context, urls []string, config *tls.Config, as members.User) ([]member, error) {
	asked := make([]member, len(urls))
	for i, u := range urls {
		at, isSecure, err := endpointOf(u)
		if err != nil {
			return nil, err
		}
		asked[i] = member{url: u, at: at, client: members.DialDirect(nil, as)}
		if isSecure {
			asked[i].client = members.DialDirect(config, as)
		}
	}
	var all sync.WaitGroup
	for i := range asked {
		m := &asked[i]
		all.Go(func() { m.status, m.err = m.client.Status(ctx, m.at) })
	}
	all.Wait()
	return asked, nil
}

// endpointOf is where an URL leads to.
func endpointOf(text string) (at members.Endpoint, isSecure bool, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return at, false, &task.Problem{Reason: task.ReasonEtcdUnreachable, Message: fmt.Sprintf("%q is no URL such as http://example-client:2379", text)}
	}
	port := cmp.Or(u.Port(), strconv.Itoa(members.ClientPort))
	return members.Endpoint{Address: net.JoinHostPort(u.Hostname(), port), ServerName: u.Hostname()}, u.Scheme == "https", nil
}

// clientConfig is how members with TLS are connected to.
func (a *agent) clientConfig(t task.Task) (*tls.Config, error) {
	if !t.TLS {
		return &tls.Config{MinVersion: tls.VersionTLS12}, nil
	}
	return mounted(a.certificateDir, "the client's certificate", task.ReasonCertificateInvalid, pki.ClientConfig)
}

// user is who asks; nobody where no Secret says it.
func (a *agent) user(t task.Task) (members.User, error) {
	if !t.User {
		return members.User{}, nil
	}
	return mounted(a.userDir, "etcd's user", task.ReasonUserInvalid, members.UserOf)
}

// mounted reads what a Secret that is mounted is with. One that cannot be read is a problem of the reason.
func mounted[T any](dir, with, reason string, read func(map[string][]byte) (T, error)) (made T, err error) {
	data, err := secretIn(dir)
	if err != nil {
		return made, err
	}
	problem := &task.Problem{Reason: reason, Message: "The Secret with " + with + " does not exist, or is empty: create it", Retriable: true}
	if len(data) == 0 {
		return made, problem
	}
	if made, err = read(data); err != nil {
		problem.Message = fmt.Sprintf("The Secret with %s: %v", with, err)
		return made, problem
	}
	return made, nil
}

// secretIn is the content of a Secret that is mounted; empty if there is none.
func secretIn(dir string) (map[string][]byte, error) {
	data := map[string][]byte{}
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, file := range files {
		if strings.HasPrefix(file.Name(), "..") { // what the kubelet keeps the files in
			continue
		}
		if data[file.Name()], err = os.ReadFile(filepath.Join(dir, file.Name())); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// order are the members that a snapshot may be taken from, the best one first.
func order(asked []member) ([]member, error) {
	var good []member
	var why, silent []string
	var refused error
	for _, m := range asked {
		s := m.status
		switch {
		case errors.Is(m.err, members.ErrAuth):
			refused = m.err
			fallthrough
		case m.err != nil:
			silent = append(silent, fmt.Sprintf("%s: %v", m.url, m.err))
		case len(good) > 0 && good[0].status.ClusterID != s.ClusterID:
			return nil, &task.Problem{Reason: task.ReasonEtcdUnhealthy, Message: fmt.Sprintf(
				"%s and %s are of different clusters: a backup is of one", good[0].url, m.url)}
		case s.IsLearner:
			why = append(why, m.url+" is a learner")
		case s.HasAlarm(members.Corrupt):
			why = append(why, m.url+" knows of an alarm CORRUPT: etcd's members do not have the same data, and it is not known whose is right")
		case s.Leader == 0:
			why = append(why, m.url+" has no leader")
		case slices.ContainsFunc(good, func(other member) bool { return other.status.ID == s.ID }):
		default:
			good = append(good, m)
		}
	}
	slices.SortStableFunc(good, func(a, b member) int {
		switch leads := a.status.Leader == a.status.ID; {
		case leads == (b.status.Leader == b.status.ID):
			return cmp.Compare(b.status.Applied, a.status.Applied)
		case leads:
			return 1
		}
		return -1
	})
	switch {
	case len(good) > 0:
		return good, nil
	case refused != nil:
		return nil, &task.Problem{Reason: task.ReasonEtcdRefuses, Message: refusal, Retriable: true}
	case len(why) > 0:
		return nil, &task.Problem{Reason: task.ReasonEtcdUnhealthy, Message: "No member can be backed up: " + strings.Join(append(why, silent...), "; "), Retriable: true}
	}
	return nil, &task.Problem{Reason: task.ReasonEtcdUnreachable, Message: "No member answers: " + strings.Join(silent, "; "), Retriable: true}
}

const refusal = "etcd has users, and refuses a snapshot: the user, or without one the common name of the client's certificate, has to be one with the role root, and the password right"
