package memcached

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/names"
)

// This file reads the Secrets that a Memcached names. Pods never mount those:
// they mount copies, which change only to what memcached can read. So a bad
// file reaches neither a running server nor one that starts anew.

const (
	usersFile = "users" // in the copy, whatever its key in the Secret
	// mostUsers and longestUser are memcached's own limits (authfile.c).
	mostUsers, longestUser = 8, 255
)

// role is what a Secret is for.
type role struct {
	name   string // of the role, and the end of the copy's name
	secret string
	// check returns what goes into the copy, or what is wrong.
	check func(map[string][]byte) (data map[string][]byte, wrong string)
}

// roles are the Secrets that a Memcached names.
func roles(mc *v1alpha1.Memcached) []role {
	var all []role
	if auth := mc.Spec.Auth; auth != nil {
		all = append(all, role{"auth", auth.SecretName, func(data map[string][]byte) (map[string][]byte, string) {
			return checkUsers(data, auth.Key)
		}})
	}
	if mc.Spec.TLS != nil {
		all = append(all, role{"tls", mc.Spec.TLS.SecretName, checkPair})
	}
	return all
}

// copyName is the name of the copy for a role: one that no Secret has that the
// Memcached names.
func copyName(mc *v1alpha1.Memcached, role string) string {
	name := firstCopyName(mc, role)
	for slices.Contains(secretsOf(mc), name) {
		name += "-copy"
	}
	return name
}

// firstCopyName may be the name of the user's own Secret, which 0.0.1 then
// mounted in place of a copy.
func firstCopyName(mc *v1alpha1.Memcached, role string) string { return poolName(mc) + "-" + role }

// checkUsers reads a file of users as memcached does, with the line ends of any
// system. A name or password with a space can never log in: memcached takes what
// a client sends apart at spaces.
func checkUsers(data map[string][]byte, key string) (map[string][]byte, string) {
	file, ok := data[key]
	if !ok {
		return nil, fmt.Sprintf("has no key %q", key)
	}
	lines := bytes.Split(bytes.TrimSuffix(file, []byte("\n")), []byte("\n"))
	for i := range lines {
		lines[i] = bytes.TrimSuffix(lines[i], []byte("\r"))
		line := lines[i]
		user, password, ok := bytes.Cut(line, []byte(":"))
		switch {
		case !ok || len(user) == 0 || len(password) == 0 || bytes.ContainsAny(line, "\x00\r"):
			return nil, fmt.Sprintf("has no user:password in line %d of %q", i+1, key)
		case bytes.IndexByte(line, ' ') >= 0:
			return nil, fmt.Sprintf("has a space in line %d of %q, with which nobody can log in to memcached: remove it", i+1, key)
		case len(line) >= longestUser:
			return nil, fmt.Sprintf("has a line %d of %d bytes in %q, memcached reads %d at most", i+1, len(line), key, longestUser-1)
		}
	}
	if len(lines) > mostUsers {
		return nil, fmt.Sprintf("has %d users in %q, memcached reads %d at most", len(lines), key, mostUsers)
	}
	return map[string][]byte{usersFile: append(bytes.Join(lines, []byte("\n")), '\n')}, ""
}

// checkPair takes a certificate and its key.
func checkPair(data map[string][]byte) (map[string][]byte, string) {
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

// inputs are the Secrets as they are.
type inputs struct {
	// hash is of the contents of all copies, as they are or are to be; empty
	// without Secrets.
	hash string
	// stale are the copies that are to be written.
	stale []staleCopy
	// missing is true when a copy cannot be made and there is none yet.
	missing bool
	// trouble is what is wrong with the first Secret that has something wrong.
	trouble *problem
}

// staleCopy is a copy, and what it is to hold.
type staleCopy struct {
	role string
	seen *corev1.Secret
	data map[string][]byte
}

// digests remembers what Secrets amount to, so that one is read again only when
// it has changed.
type digests struct {
	mu    sync.Mutex
	known map[digestKey]digest
}

type digestKey struct {
	owner       types.NamespacedName // the Memcached
	secret, use string
}

// useCopy is the use of a Secret that is a copy.
const useCopy = "copy"

type digest struct {
	version, hash, wrong string
}

func newDigests() *digests { return &digests{known: map[digestKey]digest{}} }

func (d *digests) get(k digestKey, version string) (digest, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known, ok := d.known[k]
	return known, ok && known.version == version
}

func (d *digests) set(k digestKey, value digest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known[k] = value
}

// forget drops what is known for a Memcached that is gone.
func (d *digests) forget(owner types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.known, func(k digestKey, _ digest) bool { return k.owner == owner })
}

// observeInputs reads the Secrets that the spec names, and their copies.
func (o *observer) observeInputs(ctx context.Context, r *loop.Reader, mc *v1alpha1.Memcached) (inputs, error) {
	var in inputs
	for _, role := range roles(mc) {
		copied, _, err := o.digest(ctx, r, mc, copyName(mc, role.name), useCopy, func(data map[string][]byte) (map[string][]byte, string) { return data, "" })
		if err != nil {
			return in, err
		}
		use := role.name
		if mc.Spec.Auth != nil {
			use += "/" + mc.Spec.Auth.Key
		}
		source, data, err := o.digest(ctx, r, mc, role.secret, use, role.check)
		if err != nil {
			return in, err
		}
		hash := source.hash
		switch trouble := troubleWith(role, source); {
		case trouble != nil && copied.version == "":
			in.missing, in.trouble = true, firstOf(in.trouble, trouble)
			continue
		case trouble != nil:
			hash, in.trouble = copied.hash, firstOf(in.trouble, trouble)
		case copied.hash != source.hash:
			stale, err := newCopy(ctx, r.Live, mc, role, data)
			if err != nil {
				return in, err
			}
			in.stale = append(in.stale, stale)
		}
		in.hash = names.Hash(in.hash + hash)
	}
	return in, nil
}

func firstOf(a, b *problem) *problem {
	if a != nil {
		return a
	}
	return b
}

func troubleWith(role role, source digest) *problem {
	switch {
	case source.version == "":
		return &problem{reason: reasonNoSecret, message: fmt.Sprintf("Secret %q does not exist: create it, or correct spec.%s.secretName", role.secret, role.name)}
	case source.wrong != "":
		return &problem{reason: reasonBadSecret, message: fmt.Sprintf("Secret %q %s. The servers go on with what they have", role.secret, source.wrong)}
	}
	return nil
}

// newCopy prepares the writing of a copy. Its content is not kept in memory,
// so the source may have to be read again.
func newCopy(ctx context.Context, live client.Reader, mc *v1alpha1.Memcached, role role, data map[string][]byte) (staleCopy, error) {
	if data == nil {
		var source corev1.Secret
		if err := live.Get(ctx, types.NamespacedName{Namespace: mc.Namespace, Name: role.secret}, &source); err != nil {
			return staleCopy{}, err
		}
		var wrong string
		if data, wrong = role.check(source.Data); wrong != "" {
			return staleCopy{}, apierrors.NewConflict(corev1.Resource("secrets"), role.secret, errors.New("it has just changed"))
		}
	}
	seen := &corev1.Secret{}
	err := live.Get(ctx, types.NamespacedName{Namespace: mc.Namespace, Name: copyName(mc, role.name)}, seen)
	if apierrors.IsNotFound(err) {
		seen, err = &corev1.Secret{}, nil
	}
	return staleCopy{role.name, seen, data}, err
}

// digest is what a Secret amounts to: the zero value if there is none. data is
// what check made of it, if it had to be read.
func (o *observer) digest(ctx context.Context, r *loop.Reader, mc *v1alpha1.Memcached, name, use string, check func(map[string][]byte) (map[string][]byte, string)) (digest, map[string][]byte, error) {
	k := digestKey{key(mc), name, use}
	at := types.NamespacedName{Namespace: mc.Namespace, Name: name}
	meta := secretMetadata()
	if err := r.Get(ctx, at, meta); apierrors.IsNotFound(err) {
		return digest{}, nil, nil
	} else if err != nil {
		return digest{}, nil, err
	}
	if use == useCopy && !isOurs(meta, mc) {
		return digest{}, nil, nil // to write it shows the conflict
	}
	if known, ok := o.digests.get(k, stampOf(meta)); ok {
		return known, nil, nil
	}
	var secret corev1.Secret
	if err := r.Live.Get(ctx, at, &secret); apierrors.IsNotFound(err) {
		return digest{}, nil, nil
	} else if err != nil {
		return digest{}, nil, err
	}
	data, wrong := check(secret.Data)
	known := digest{version: stampOf(&secret), hash: hashOf(data), wrong: wrong}
	o.digests.set(k, known)
	return known, data, nil
}

func stampOf(obj client.Object) string { return string(obj.GetUID()) + "/" + obj.GetResourceVersion() }

func hashOf(data map[string][]byte) string {
	all := ""
	for _, name := range slices.Sorted(maps.Keys(data)) {
		all += fmt.Sprintf("%q=%q\n", name, data[name])
	}
	return names.Hash(all)
}

// isOurs says whether an object belongs to this Memcached.
func isOurs(obj client.Object, mc *v1alpha1.Memcached) bool {
	return obj.GetUID() != "" && apply.Owns(managedBy, mc, obj)
}
