// Package contents reads what ConfigMaps and Secrets hold. Caches have their metadata
// only: a content is read from the API server when it has changed, and what is kept
// of it in memory is a hash.
package contents

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/memo"
	"example.com/fairlead/internal/kit/names"
	"example.com/fairlead/internal/kit/pods"
)

// The kinds of sources.
const (
	ConfigMap = "ConfigMap"
	Secret    = "Secret"
)

// Source is a ConfigMap or a Secret, and what it is read for: Use distinguishes those who
// make something else of the same content.
type Source struct {
	Kind string
	types.NamespacedName
	Use string
}

// Check is what is made of a content, or what is wrong with it.
type Check func(data map[string][]byte) (made map[string][]byte, wrong string)

// Digest is what a content amounts to. The zero value is of a source that is not
// there.
type Digest struct {
	// Version is that of the object which was read.
	Version string
	// Hash is of what the check made of it.
	Hash string
	// Wrong is what the check found.
	Wrong string
}

// Digests remembers digests. The zero value knows none, and is safe for concurrent use.
type Digests struct {
	known memo.Map[source, Digest]
}

// source is that of an owner: what another owner's is checked for may be something else.
type source struct {
	owner types.NamespacedName
	Source
}

// Of is the digest of a source for an owner, with what the check made of the content
// if that had to be read.
func (d *Digests) Of(ctx context.Context, r *loop.Reader, owner types.NamespacedName, from Source, check Check) (Digest, map[string][]byte, error) {
	meta := Metadata(from.Kind)
	if err := r.Get(ctx, from.NamespacedName, meta); apierrors.IsNotFound(err) {
		d.known.Forget(source{owner, from})
		return Digest{}, nil, nil
	} else if err != nil {
		return Digest{}, nil, err
	}
	if known, ok := d.known.Get(source{owner, from}); ok && known.Version == versionOf(meta) {
		return known, nil, nil
	}
	data, version, err := Read(ctx, r.Live, from)
	if apierrors.IsNotFound(err) {
		return Digest{}, nil, nil
	} else if err != nil {
		return Digest{}, nil, err
	}
	made, wrong := check(data)
	known := Digest{Version: version, Hash: Hash(made), Wrong: wrong}
	d.known.Set(source{owner, from}, known)
	return known, made, nil
}

// Forget drops what is known for an owner that is gone.
func (d *Digests) Forget(owner types.NamespacedName) {
	d.known.ForgetAll(func(s source) bool { return s.owner == owner })
}

// Read reads a content from the API server.
func Read(ctx context.Context, live client.Reader, from Source) (data map[string][]byte, version string, err error) {
	data = map[string][]byte{}
	if from.Kind == Secret {
		var secret corev1.Secret
		err := live.Get(ctx, from.NamespacedName, &secret)
		maps.Copy(data, secret.Data)
		return data, versionOf(&secret), err
	}
	var configMap corev1.ConfigMap
	err = live.Get(ctx, from.NamespacedName, &configMap)
	maps.Copy(data, configMap.BinaryData)
	for name, text := range configMap.Data {
		data[name] = []byte(text)
	}
	return data, versionOf(&configMap), err
}

func versionOf(obj client.Object) string {
	return string(obj.GetUID()) + "/" + obj.GetResourceVersion()
}

// Metadata is an empty object of a kind, of which the cache has the metadata.
func Metadata(kind string) *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return obj
}

// Hash is that of a content.
func Hash(data map[string][]byte) string {
	all := ""
	for _, name := range slices.Sorted(maps.Keys(data)) {
		all += fmt.Sprintf("%q=%q\n", name, data[name])
	}
	return names.Hash(all)
}

// AsIs takes a content as it is.
func AsIs(data map[string][]byte) (map[string][]byte, string) { return data, "" }

// Pair takes a certificate and its key out of a Secret of the type
// kubernetes.io/tls, if they fit together.
func Pair(data map[string][]byte) (map[string][]byte, string) {
	pair := map[string][]byte{}
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if len(data[key]) == 0 {
			return nil, fmt.Sprintf("has no key %q", key)
		}
		pair[key] = data[key]
	}
	if _, err := tls.X509KeyPair(pair[corev1.TLSCertKey], pair[corev1.TLSPrivateKeyKey]); err != nil {
		return nil, fmt.Sprintf("has no certificate and key that fit together: %v", err)
	}
	return pair, ""
}

// Missing are the ConfigMaps or Secrets, of the kinds that the cache has, that unprepared pods mount and that are not there.
func Missing(ctx context.Context, r client.Reader, of []corev1.Pod, kinds ...string) ([]pods.Mount, error) {
	var missing []pods.Mount
	for i := range of {
		if !pods.IsUnprepared(&of[i]) {
			continue
		}
		for _, m := range pods.Mounts(&of[i]) {
			if !slices.Contains(kinds, m.Kind) || slices.Contains(missing, m) {
				continue
			}
			err := r.Get(ctx, types.NamespacedName{Namespace: of[i].Namespace, Name: m.Name}, Metadata(m.Kind))
			if apierrors.IsNotFound(err) {
				missing = append(missing, m)
			} else if err != nil {
				return nil, err
			}
		}
	}
	return missing, nil
}
