package webserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/names"
)

// This file reads what the pods are given: pages, configuration, certificate.
// Pods never mount the user's own ConfigMap or Secret: they mount a copy that
// cannot change, named after its content. So a change is a rollout, and the
// revision before keeps what it started with.

const (
	// The last good template is kept in a copy of this role, under this key.
	keptRole, keptKey = "last-good", "template"
)

// inputs are what a WebServer's pods are given.
type inputs struct {
	content, config, tls *snapshot
	// check is the command that checks the configuration.
	check []string
	// as is the version whose template is wanted.
	as rendering
	// trouble is why there can be no pod template, if there cannot.
	trouble *problem
}

// checked says whether the pods check their configuration before they serve.
func (in inputs) checked() bool { return in.config != nil }

func (in inputs) all() []*snapshot {
	return slices.DeleteFunc([]*snapshot{in.content, in.config, in.tls}, func(s *snapshot) bool { return s == nil })
}

// snapshot is an input as it was at some time.
type snapshot struct {
	kind, name string
	// data is what to copy; nil when the copy is there.
	data map[string][]byte
}

// digests remembers what the contents of a source amount to, so that a source
// is read again only when it has changed.
type digests struct {
	mu    sync.Mutex
	known map[inputSource]digest
}

type inputSource struct {
	kind string
	types.NamespacedName
}

type digest struct {
	version, hash string
	// invalid is what is wrong with it.
	invalid string
}

func newDigests() *digests { return &digests{known: map[inputSource]digest{}} }

func (d *digests) get(s inputSource, version string) (digest, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known, ok := d.known[s]
	return known, ok && known.version == version
}

func (d *digests) set(s inputSource, value digest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known[s] = value
}

func (d *digests) forget(s inputSource) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.known, s)
}

// observeInputs reads the inputs that the spec names. copies are the names of
// the copies that are there.
func (o *observer) observeInputs(ctx context.Context, r *loop.Reader, ws *webv1.WebServer, copies map[string]bool) (in inputs, err error) {
	take := func(role, kind, from string) *snapshot {
		if err != nil {
			return nil
		}
		var s *snapshot
		var trouble *problem
		s, trouble, err = o.observeInput(ctx, r, ws, copies, role, inputSource{kind, types.NamespacedName{Namespace: ws.Namespace, Name: from}})
		if trouble != nil && in.trouble == nil {
			in.trouble = trouble
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
		in.config, in.check = generated(ws, "config", map[string][]byte{"default.conf": []byte(tlsConfig(ws))}), []string{"nginx", "-t"}
	}
	if config := ws.Spec.Config; config != nil {
		in.config, in.check = take("config", configMapKind, config.ConfigMap), config.Check
	}
	return in, err
}

func (o *observer) observeInput(ctx context.Context, r *loop.Reader, ws *webv1.WebServer, copies map[string]bool, role string, from inputSource) (*snapshot, *problem, error) {
	missing := &problem{
		reason:  from.kind + "NotFound",
		message: fmt.Sprintf("%s %q does not exist: create it, or correct its name", from.kind, from.Name),
	}
	meta := metadataOf(from.kind)
	err := r.Get(ctx, from.NamespacedName, meta)
	if apierrors.IsNotFound(err) {
		o.digests.forget(from)
		return nil, missing, nil
	} else if err != nil {
		return nil, nil, err
	}
	version := string(meta.GetUID()) + "/" + meta.GetResourceVersion()
	known, ok := o.digests.get(from, version)
	if s := snapshotOf(ws, role, from.kind, known.hash); ok && (known.invalid != "" || copies[s.name]) {
		if known.invalid != "" {
			return nil, &problem{reason: "Invalid" + from.kind, message: known.invalid}, nil
		}
		return s, nil, nil
	}

	data, read, err := readSource(ctx, r.Live, from)
	if apierrors.IsNotFound(err) {
		return nil, missing, nil
	} else if err != nil {
		return nil, nil, err
	}
	known = digest{version: read, hash: hashOf(data)}
	if from.kind == secretKind {
		if _, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey]); err != nil {
			known.invalid = fmt.Sprintf("Secret %q has no certificate and key that fit together: %v", from.Name, err)
		}
		data = map[string][]byte{corev1.TLSCertKey: data[corev1.TLSCertKey], corev1.TLSPrivateKeyKey: data[corev1.TLSPrivateKeyKey]}
		known.hash = hashOf(data)
	}
	o.digests.set(from, known)
	if known.invalid != "" {
		return nil, &problem{reason: "Invalid" + from.kind, message: known.invalid}, nil
	}
	s := snapshotOf(ws, role, from.kind, known.hash)
	if !copies[s.name] {
		s.data = data
	}
	return s, nil, nil
}

// readSource reads the contents of a source from the API server, which is asked for
// them only when they have changed: they are not worth a cache.
func readSource(ctx context.Context, live client.Reader, from inputSource) (data map[string][]byte, version string, err error) {
	data = map[string][]byte{}
	if from.kind == secretKind {
		var secret corev1.Secret
		err := live.Get(ctx, from.NamespacedName, &secret)
		maps.Copy(data, secret.Data)
		return data, string(secret.UID) + "/" + secret.ResourceVersion, err
	}
	var configMap corev1.ConfigMap
	err = live.Get(ctx, from.NamespacedName, &configMap)
	maps.Copy(data, configMap.BinaryData)
	for name, text := range configMap.Data {
		data[name] = []byte(text)
	}
	return data, string(configMap.UID) + "/" + configMap.ResourceVersion, err
}

// generated is an input that the operator writes itself.
func generated(ws *webv1.WebServer, role string, data map[string][]byte) *snapshot {
	s := snapshotOf(ws, role, configMapKind, hashOf(data))
	s.data = data
	return s
}

// keptTemplate is the last good template as an input that the operator writes
// itself: it outlives the Deployment. None, if there is no such template.
func keptTemplate(ws *webv1.WebServer, good podTemplate) []*snapshot {
	if good == "" {
		return nil
	}
	s := snapshotOf(ws, keptRole, configMapKind, good.revision())
	s.data = map[string][]byte{keptKey: []byte(good)}
	return []*snapshot{s}
}

// readKept reads the template that is kept among the copies, if there is one.
func readKept(ctx context.Context, r *loop.Reader, ws *webv1.WebServer, copies []metav1.PartialObjectMetadata) (podTemplate, error) {
	var kept podTemplate
	for _, c := range copies {
		if !strings.HasPrefix(c.Name, snapshotOf(ws, keptRole, configMapKind, "").name) {
			continue
		}
		data, _, err := readSource(ctx, r.Live, inputSource{configMapKind, client.ObjectKeyFromObject(&c)})
		if client.IgnoreNotFound(err) != nil {
			return "", err
		}
		// There are two for a moment, while one takes the place of the other.
		if found := podTemplate(data[keptKey]); kept == "" || found.revision() == ws.Status.LastGoodRevision {
			kept = found
		}
	}
	return kept, nil
}

func snapshotOf(ws *webv1.WebServer, role, kind, hash string) *snapshot {
	return &snapshot{kind: kind, name: fmt.Sprintf("%s-%s-%s", childName(ws), role, hash)}
}

func hashOf(data map[string][]byte) string {
	all := ""
	for _, name := range slices.Sorted(maps.Keys(data)) {
		all += fmt.Sprintf("%q=%q\n", name, data[name])
	}
	return names.Hash(all)
}

// configPath is where the configuration goes.
func configPath(ws *webv1.WebServer) string {
	if ws.Spec.Config != nil {
		return ws.Spec.Config.Path
	}
	return "/etc/nginx/conf.d"
}

// tlsConfig is nginx's usual configuration, with HTTPS.
func tlsConfig(ws *webv1.WebServer) string {
	root := "/usr/share/nginx/html"
	if ws.Spec.Content != nil {
		root = ws.Spec.Content.Path
	}
	return fmt.Sprintf(`server {
    listen %d;
    listen %d ssl;
    ssl_certificate %s/tls.crt;
    ssl_certificate_key %s/tls.key;
    location / {
        root %s;
        index index.html index.htm;
    }
}
`, ws.Spec.Port, httpsPort, ws.Spec.TLS.Path, ws.Spec.TLS.Path, root)
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
