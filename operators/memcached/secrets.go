package memcached

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/contents"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/names"
	"example.com/fairlead/internal/kit/status"
)

// This file reads the Secrets that a Memcached names. Pods never mount those: they mount
// copies, which change only to what memcached can read. So a bad file reaches neither a
// running server nor one that starts.

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
	check contents.Check
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
		all = append(all, role{"tls", mc.Spec.TLS.SecretName, contents.Pair})
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

// inputs are the Secrets as they are.
type inputs struct {
	// hash is of the contents of all copies, as they are or are to be; empty
	// without Secrets.
	hash string
	// stale are the copies that are to be written.
	stale []staleCopy
	// missing are the roles of which a copy cannot be made and there is none yet.
	missing []string
	// problem is what is wrong with the first Secret that has something wrong.
	problem *status.Problem
}

// staleCopy is a copy, and what it is to hold.
type staleCopy struct {
	role string
	seen *corev1.Secret
	data map[string][]byte
}

// observeInputs reads the Secrets that the spec names, and their copies.
func (o *observer) observeInputs(ctx context.Context, r *loop.Reader, mc *v1alpha1.Memcached) (inputs, error) {
	var in inputs
	for _, role := range roles(mc) {
		copied, err := o.digestOfCopy(ctx, r, mc, role)
		if err != nil {
			return in, err
		}
		use := role.name
		if mc.Spec.Auth != nil {
			use += "/" + mc.Spec.Auth.Key
		}
		source, data, err := o.digests.Of(ctx, r, key(mc), secret(mc, role.secret, use), role.check)
		if err != nil {
			return in, err
		}
		hash := source.Hash
		switch problem := problemWith(role, source); {
		case problem != nil && copied.Version == "":
			in.missing, in.problem = append(in.missing, role.name), cmp.Or(in.problem, problem)
			continue
		case problem != nil:
			hash, in.problem = copied.Hash, cmp.Or(in.problem, problem)
		case copied.Hash != source.Hash:
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

// copySecrets writes the copies, before the pods get them.
func copySecrets(mc *v1alpha1.Memcached, v *view) (p plan) {
	for _, c := range v.inputs.stale {
		if slices.ContainsFunc(roles(mc), func(r role) bool { return r.name == c.role }) {
			p.Do(loop.Apply{Object: c.seen, Want: secretCopy(mc, c.role, c.data), Private: true})
		}
	}
	return p
}

// reloadSecrets makes the kubelets read the Secrets of their pods at once.
func reloadSecrets(_ *v1alpha1.Memcached, v *view) (p plan) {
	if v.inputs.hash == "" || len(v.inputs.missing) > 0 {
		return p
	}
	for i := range v.pods {
		if pod := &v.pods[i]; pod.DeletionTimestamp == nil && pod.Annotations[secretsAnnotation] != v.inputs.hash {
			p.Then = append(p.Then, annotate(pod, "secrets", secretsAnnotation, v.inputs.hash))
		}
	}
	return p
}

// annotate sets one annotation.
func annotate(obj client.Object, part, name, value string) loop.Patch {
	return loop.Patch{Object: obj, Part: part, Metadata: map[string]any{"annotations": map[string]any{name: value}}}
}

func problemWith(role role, source contents.Digest) *status.Problem {
	switch {
	case source.Version == "":
		return &status.Problem{Reason: reasonNoSecret, Message: fmt.Sprintf("Secret %q does not exist: create it, or correct spec.%s.secretName", role.secret, role.name)}
	case source.Wrong != "":
		return &status.Problem{Reason: reasonBadSecret, Message: fmt.Sprintf("Secret %q %s. The servers keep the previous version", role.secret, source.Wrong)}
	}
	return nil
}

// newCopy prepares the writing of a copy. Its content is not kept in memory,
// so the source may have to be read again.
func newCopy(ctx context.Context, live client.Reader, mc *v1alpha1.Memcached, role role, data map[string][]byte) (staleCopy, error) {
	if data == nil {
		read, _, err := contents.Read(ctx, live, secret(mc, role.secret, ""))
		if err != nil {
			return staleCopy{}, err
		}
		var wrong string
		if data, wrong = role.check(read); wrong != "" {
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

// secret is a Secret that is read for some use.
func secret(mc *v1alpha1.Memcached, name, use string) contents.Source {
	return contents.Source{Kind: contents.Secret, NamespacedName: types.NamespacedName{Namespace: mc.Namespace, Name: name}, Use: use}
}

// digestOfCopy is that of the copy for a role, if it is the Memcached's: to write one
// that is not shows the conflict.
func (o *observer) digestOfCopy(ctx context.Context, r *loop.Reader, mc *v1alpha1.Memcached, role role) (contents.Digest, error) {
	from := secret(mc, copyName(mc, role.name), "copy")
	meta := contents.Metadata(contents.Secret)
	if err := r.Get(ctx, from.NamespacedName, meta); apierrors.IsNotFound(err) || err == nil && !isOwned(meta, mc) {
		return contents.Digest{}, nil
	} else if err != nil {
		return contents.Digest{}, err
	}
	found, _, err := o.digests.Of(ctx, r, key(mc), from, contents.AsIs)
	return found, err
}

// isOwned says whether an object belongs to this Memcached.
func isOwned(obj client.Object, mc *v1alpha1.Memcached) bool {
	return obj.GetUID() != "" && apply.Owns(managedBy, mc, obj)
}
