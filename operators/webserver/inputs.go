package webserver

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/contents"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
)

// This file reads what the pods are given: pages, configuration, certificate.
// Pods never mount the user's own ConfigMap or Secret: they mount a copy that
// cannot change, named after its content. So a change is a rollout, and the
// revision before keeps what it started with.

// inputs are what a WebServer's pods are given.
type inputs struct {
	content, config, tls *snapshot
	// check is the command that checks the configuration.
	check []string
	// isGenerated says that the operator writes the configuration, and generatedOf002 is what
	// 0.0.2 wrote, which knew nothing of IPv6.
	isGenerated    bool
	generatedOf002 *snapshot
	// as is the version whose template is wanted.
	as rendering
	// problem is why there can be no pod template, if there cannot.
	problem *status.Problem
}

// checked says whether the pods check their configuration before they serve.
func (in inputs) checked() bool { return in.config != nil && len(in.check) > 0 }

func (in inputs) all() []*snapshot {
	return slices.DeleteFunc([]*snapshot{in.content, in.config, in.tls}, func(s *snapshot) bool { return s == nil })
}

// snapshot is an input as it was at some time.
type snapshot struct {
	kind, name string
	// data is what to copy; nil when the copy is there.
	data map[string][]byte
}

// observeInputs reads the inputs that the spec names. copies are the names of
// the copies that are there.
func (o *observer) observeInputs(ctx context.Context, r *loop.Reader, ws *webv1.WebServer, copies map[string]bool) (in inputs, err error) {
	take := func(role, kind, from string) *snapshot {
		if err != nil {
			return nil
		}
		var s *snapshot
		var p *status.Problem
		s, p, err = o.observeInput(ctx, r, ws, copies, role, contents.Source{Kind: kind, NamespacedName: types.NamespacedName{Namespace: ws.Namespace, Name: from}})
		if p != nil && in.problem == nil {
			in.problem = p
		}
		return s
	}
	if content := ws.Spec.Content; content != nil {
		if content.Inline != "" {
			in.content = generated(ws, "content", map[string][]byte{"index.html": []byte(content.Inline)})
		} else {
			in.content = take("content", configMapKind, content.ConfigMap)
		}
	}
	if ws.Spec.TLS != nil {
		in.tls = take("tls", secretKind, ws.Spec.TLS.SecretName)
	}
	switch config := ws.Spec.Config; {
	case config != nil:
		in.config, in.check = take("config", configMapKind, config.ConfigMap), config.Check
	case ws.Spec.TLS != nil:
		in.config, in.check = nginxConfig(ws, o.ipv6), []string{"nginx", "-t"}
		in.isGenerated, in.generatedOf002 = true, nginxConfig(ws, false)
	case o.ipv6 && listensOnIPv4Only(ws):
		in.config, in.isGenerated = nginxConfig(ws, true), true
	}
	return in, err
}

// officialImage is nginx's, in whatever registry. Its configuration listens on IPv4, and a script of
// its adds IPv6: not here, where it is not root.
var officialImage = regexp.MustCompile(`^(docker\.io/|index\.docker\.io/)?nginx([:@]|$)|(^|/)library/nginx([:@]|$)`)

// listensOnIPv4Only says whether the server does with its image's own configuration, and takes another.
func listensOnIPv4Only(ws *webv1.WebServer) bool {
	if !officialImage.MatchString(ws.Spec.Image) {
		return false
	}
	if ws.Spec.PodTemplate == nil {
		return true
	}
	return !slices.ContainsFunc(ws.Spec.PodTemplate.Spec.Containers, func(c corev1.Container) bool {
		return c.Name == serverContainer && slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
			return strings.HasPrefix(m.MountPath, "/etc/nginx")
		})
	})
}

func (o *observer) observeInput(ctx context.Context, r *loop.Reader, ws *webv1.WebServer, copies map[string]bool, role string, from contents.Source) (*snapshot, *status.Problem, error) {
	check := contents.AsIs
	if from.Kind == contents.Secret {
		check = contents.Pair
	}
	found, data, err := o.digests.Of(ctx, r, key(ws), from, check)
	s := snapshotOf(ws, role, from.Kind, found.Hash)
	if err == nil && found.Version != "" && found.Wrong == "" && !copies[s.name] && data == nil {
		data, _, err = contents.Read(ctx, r.Live, from) // it is not kept in memory
		if err == nil {
			data, found.Wrong = check(data)
			s = snapshotOf(ws, role, from.Kind, contents.Hash(data))
		}
	}
	switch {
	case err != nil:
		return nil, nil, err
	case found.Version == "":
		return nil, &status.Problem{
			Reason:  from.Kind + "NotFound",
			Message: fmt.Sprintf("%s %q does not exist: create it, or correct its name", from.Kind, from.Name),
		}, nil
	case found.Wrong != "":
		return nil, &status.Problem{Reason: "Invalid" + from.Kind, Message: fmt.Sprintf("%s %q %s", from.Kind, from.Name, found.Wrong)}, nil
	case !copies[s.name]:
		s.data = data
	}
	return s, nil, nil
}

// generated is an input that the operator writes itself.
func generated(ws *webv1.WebServer, role string, data map[string][]byte) *snapshot {
	s := snapshotOf(ws, role, configMapKind, contents.Hash(data))
	s.data = data
	return s
}

func snapshotOf(ws *webv1.WebServer, role, kind, hash string) *snapshot {
	return &snapshot{kind: kind, name: fmt.Sprintf("%s-%s-%s", childName(ws), role, hash)}
}

// configPath is where the configuration goes.
func configPath(ws *webv1.WebServer) string {
	if ws.Spec.Config != nil {
		return ws.Spec.Config.Path
	}
	return "/etc/nginx/conf.d"
}

// nginxConfig is nginx's usual configuration, with HTTPS and IPv6 where they are requested.
func nginxConfig(ws *webv1.WebServer, ipv6 bool) *snapshot {
	root := "/usr/share/nginx/html"
	if ws.Spec.Content != nil {
		root = ws.Spec.Content.Path
	}
	addresses := []string{""}
	if ipv6 {
		addresses = append(addresses, "[::]:")
	}
	var config strings.Builder
	listen := func(port int32, how string) {
		for _, address := range addresses {
			fmt.Fprintf(&config, "    listen %s%d%s;\n", address, port, how)
		}
	}
	config.WriteString("server {\n")
	listen(ws.Spec.Port, "")
	if ws.Spec.TLS != nil {
		listen(httpsPort, " ssl")
		fmt.Fprintf(&config, "    ssl_certificate %s/tls.crt;\n    ssl_certificate_key %s/tls.key;\n", ws.Spec.TLS.Path, ws.Spec.TLS.Path)
	}
	fmt.Fprintf(&config, `    location / {
        root %s;
        index index.html index.htm;
    }
}
`, root)
	return generated(ws, "config", map[string][]byte{"default.conf": []byte(config.String())})
}

// sourcesOf are the names of the objects of a kind whose change is news for a
// WebServer.
func sourcesOf(ws *webv1.WebServer, kind string) []string {
	var names []string
	if ws.Spec.Content != nil && ws.Spec.Content.ConfigMap != "" && kind == configMapKind {
		names = append(names, ws.Spec.Content.ConfigMap)
	}
	if ws.Spec.Config != nil && kind == configMapKind {
		names = append(names, ws.Spec.Config.ConfigMap)
	}
	if ws.Spec.TLS != nil && kind == secretKind {
		names = append(names, ws.Spec.TLS.SecretName)
	}
	return names
}
