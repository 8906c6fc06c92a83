package objects

import (
	"bytes"
	"fmt"
	"slices"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/contents"
)

const (
	// UsersFile is the key in the copy, whatever it is in the Secret.
	UsersFile = "users"
	// mostUsers and longestUser are memcached's own limits (authfile.c).
	mostUsers, longestUser = 8, 255
)

// Role is what a Secret is for.
type Role struct {
	Name   string // of the role, and the end of the copy's name
	Secret string
	// Check returns what goes into the copy, or what is wrong.
	Check contents.Check
}

// Roles are the Secrets that a Memcached names.
func Roles(mc *v1alpha1.Memcached) []Role {
	var all []Role
	if auth := mc.Spec.Auth; auth != nil {
		all = append(all, Role{"auth", auth.SecretName, func(data map[string][]byte) (map[string][]byte, string) {
			return CheckUsers(data, auth.Key)
		}})
	}
	if mc.Spec.TLS != nil {
		all = append(all, Role{"tls", mc.Spec.TLS.SecretName, contents.Pair})
	}
	return all
}

// SecretsOf are the Secrets whose change is news for a Memcached.
func SecretsOf(mc *v1alpha1.Memcached) []string {
	var names []string
	for _, role := range Roles(mc) {
		names = append(names, role.Secret)
	}
	return names
}

// CopyName is the name of the copy for a role: one that no Secret has that the
// Memcached names.
func CopyName(mc *v1alpha1.Memcached, role string) string {
	name := firstCopyName(mc, role)
	for slices.Contains(SecretsOf(mc), name) {
		name += "-copy"
	}
	return name
}

// firstCopyName may be the name of the user's own Secret, which 0.0.1 then
// mounted in place of a copy.
func firstCopyName(mc *v1alpha1.Memcached, role string) string { return PoolName(mc) + "-" + role }

// CheckUsers reads a file of users as memcached does, with the line ends of any
// system. A name or password with a space can never log in: memcached takes what
// a client sends apart at spaces.
func CheckUsers(data map[string][]byte, key string) (map[string][]byte, string) {
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
	return map[string][]byte{UsersFile: append(bytes.Join(lines, []byte("\n")), '\n')}, ""
}
