package store

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/task"
)

// verb is what is done.
type verb string

const (
	opening  verb = "open"
	reading  verb = "read"
	writing  verb = "write"
	deleting verb = "delete"
	listing  verb = "list"
)

// operation is what went wrong, for messages.
type operation struct {
	verb    verb
	key     string
	place   task.Place
	watch   *watch
	size, n int64 // of an object that is read: its size, and how many bytes of it came
}

// what names the operation.
func (o *operation) what() string {
	switch o.verb {
	case opening:
		return fmt.Sprintf("Cannot open %s %q", o.place.KindOfBucket(), o.place.Bucket)
	case listing:
		return fmt.Sprintf("Cannot list the objects of %s %q", o.place.KindOfBucket(), o.place.Bucket)
	default:
		return fmt.Sprintf("Cannot %s %s", o.verb, o.place.Of(o.key))
	}
}

// server names the server.
func (o *operation) server() string {
	switch {
	case o.place.Endpoint != "":
		return o.place.Endpoint
	case o.place.Type == v1beta2.StorageClaim:
		return fmt.Sprintf("PersistentVolumeClaim %q", o.place.Bucket)
	}
	return "the storage " + string(o.place.Type)
}

func (o *operation) problem(reason string, retriable bool, format string, args ...any) *task.Problem {
	return &task.Problem{Reason: reason, Retriable: retriable, Message: o.what() + ": " + fmt.Sprintf(format, args...)}
}

// maxMessage is how long a message may be: the agent's answer has 4096 bytes in all.
const maxMessage = 1000

// problem is what an error means. The order is from what is known best.
func (s *Store) problem(op *operation, err error) error {
	p := op.known(err)
	if p == nil && s.storage != nil {
		p = s.storage.problem(op, err)
	}
	if p == nil {
		p = op.network(err)
	}
	if p == nil {
		p = op.problem(task.ReasonStorageFailed, true, "%v", err)
	}
	said := *p
	said.Message = s.secret.scrub(strings.Join(strings.Fields(said.Message), " "))
	if len(said.Message) > maxMessage {
		said.Message = strings.ToValidUTF8(said.Message[:maxMessage], "") + "…"
	}
	return &said
}

// known are the errors of this package, and of contexts.
func (o *operation) known(err error) *task.Problem {
	if p, ok := errors.AsType[*task.Problem](err); ok {
		return p
	}
	kind := o.place.KindOfBucket()
	switch {
	case errors.Is(err, errHangs):
		return o.problem(task.ReasonStorageHangs, true, "%s has not sent or taken a byte for %v: check the storage and the network to it, or set a longer timeoutInSecond", o.server(), o.watch.timeout.Round(time.Millisecond))
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return o.problem(task.ReasonInterrupted, true, "interrupted")
	case errors.Is(err, errNoBucket):
		return o.problem(task.ReasonBucketNotFound, true, "there is no %s %q: create it, or correct the path", kind, o.place.Bucket)
	case errors.Is(err, errNoObject):
		return o.problem(task.ReasonObjectNotFound, true, "there is none: check the path")
	case errors.Is(err, errOccupied):
		verb := "replaced"
		if o.verb == deleting {
			verb = "deleted"
		}
		return o.problem(task.ReasonObjectOfAnother, false, "it was not written by this EtcdBackup, and is not %s: choose another path, or delete it yourself", verb)
	case o.size > 0 && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
		// A connection that breaks off cannot be told from an object that is too short.
		return o.problem(task.ReasonObjectDamaged, true, "it ended after %d of %d bytes: if that happens again, the object is damaged", o.n, o.size)
	}
	return nil
}

// network is what is wrong between here and the server.
func (o *operation) network(err error) *task.Problem {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return o.problem(task.ReasonStorageUnreachable, true, "the host %q cannot be resolved: check the endpoint", dns.Name)
	}
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, host := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case unknown:
		return o.problem(task.ReasonStorageUnreachable, false, "the certificate of %s is of no known CA: put the CA's into the key %s of the Secret", o.server(), caKey)
	case host || invalid:
		return o.problem(task.ReasonStorageUnreachable, false, "the certificate of %s is not valid: %v", o.server(), innermost(err))
	case errors.Is(err, http.ErrSchemeMismatch):
		return o.problem(task.ReasonStorageUnreachable, false, "%s does not speak TLS: write http:// if that is right", o.server())
	}
	_, op := errors.AsType[*net.OpError](err)
	var timeout net.Error
	switch {
	case op, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.As(err, &timeout) && timeout.Timeout():
		return o.problem(task.ReasonStorageUnreachable, true, "%s does not answer: %v: check the endpoint, and NetworkPolicies", o.server(), innermost(err))
	}
	return nil
}

// answered is what the code of an answer means, if the storage has no better word for it. The text is the
// server's own.
func (o *operation) answered(status int, code, text string) *task.Problem {
	said := strings.Trim(strings.TrimSpace(code+": "+text), ": ")
	if said == "" {
		said = http.StatusText(status)
	}
	switch {
	case status == http.StatusUnauthorized:
		return o.problem(task.ReasonCredentialsInvalid, true, "%s does not know the credentials (%s): correct the Secret", o.server(), said)
	case status == http.StatusForbidden:
		return o.problem(task.ReasonAccessDenied, true, "%s does not allow it (%s): it takes the permissions to read, write, list and delete objects", o.server(), said)
	case status == http.StatusInsufficientStorage:
		return o.full(said)
	case status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status >= 500:
		return o.problem(task.ReasonStorageFailed, true, "%s answers %d (%s)", o.server(), status, said)
	}
	return o.problem(task.ReasonStorageFailed, false, "%s answers %d (%s)", o.server(), status, said)
}

func (o *operation) full(said string) *task.Problem {
	return o.problem(task.ReasonStorageFull, true, "%s is full (%s): make room, or keep fewer backups", o.server(), said)
}

// retained is of an object that the storage keeps by a rule of its own: to try again before it is over is no use.
func (o *operation) retained(said string) *task.Problem {
	return o.problem(task.ReasonObjectRetained, true, "%s keeps it until its retention is over (%s)", o.server(), said)
}

// innermost is the error that others have wrapped: those have URLs, and all that was tried.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
