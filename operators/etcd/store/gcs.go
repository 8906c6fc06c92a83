package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	gcs "cloud.google.com/go/storage"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/gcp"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"example.com/fairlead/operators/etcd/task"
)

// The keys of the Secret.
const (
	gcsToken       = "access-token"
	gcsCredentials = "credentials.json"
)

const (
	gcsScope    = "https://www.googleapis.com/auth/devstorage.read_write"
	gcsAttempts = 4 // by itself the library would never end
)

type gcsBucket struct{ bucket }

func openGCS(ctx context.Context, o opened) (storage, error) {
	t, err := newTransport(o.secret, o.watch)
	if err != nil {
		return nil, err
	}
	// Tokens are got by the same way, and for as long as the bucket is used.
	tokens, err := gcsTokens(context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, &http.Client{Transport: t}), o)
	if err != nil {
		return nil, err
	}
	client, err := gcp.NewHTTPClient(t, tokens)
	if err != nil {
		return nil, err
	}
	options := []option.ClientOption{gcs.WithJSONReads()}
	if o.Endpoint != "" {
		options = append(options, option.WithEndpoint(strings.TrimSuffix(o.Endpoint, "/")+"/storage/v1/"))
	}
	b, err := gcsblob.OpenBucket(ctx, client, o.Bucket, &gcsblob.Options{ClientOptions: options})
	if err != nil {
		return nil, err
	}
	var c *gcs.Client
	if b.As(&c) {
		c.SetRetry(gcs.WithMaxAttempts(gcsAttempts))
	}
	return &gcsBucket{bucket{Bucket: b, transport: t}}, nil
}

// gcsTokens has the credentials: those of the Secret, or if none is named those of the pod.
func gcsTokens(ctx context.Context, o opened) (oauth2.TokenSource, error) {
	s := o.secret
	if o.Identity {
		c, err := google.FindDefaultCredentials(ctx, gcsScope)
		if err != nil {
			return nil, s.invalid("no Secret is named, and the pod has no identity in the cloud: name a Secret, or a ServiceAccount with one")
		}
		return c.TokenSource, nil
	}
	token, err := s.line(gcsToken)
	if err != nil {
		return nil, err
	}
	if token != "" {
		s.hide(token)
		return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token}), nil
	}
	file, err := s.read(gcsCredentials)
	if err != nil {
		return nil, err
	}
	if len(file) == 0 {
		return nil, s.missing(gcsToken + " or " + gcsCredentials)
	}
	var has struct {
		Type         string `json:"type"`
		PrivateKey   string `json:"private_key"`
		PrivateKeyID string `json:"private_key_id"`
		ClientSecret string `json:"client_secret"`
		RefreshToken string `json:"refresh_token"`
	}
	if json.Unmarshal(file, &has) != nil {
		return nil, s.invalid("key %s is not JSON", gcsCredentials)
	}
	s.hide(has.PrivateKey, has.PrivateKeyID, has.ClientSecret, has.RefreshToken)
	kind := google.CredentialsType(has.Type)
	switch kind {
	case google.ServiceAccount, google.AuthorizedUser:
	default:
		return nil, s.invalid("key %s is of type %q, which needs what is not in the Secret: use a key of a service account, or name no Secret and a ServiceAccount with an identity", gcsCredentials, has.Type)
	}
	c, err := google.CredentialsFromJSONWithType(ctx, file, kind, gcsScope)
	if err != nil {
		return nil, s.invalid("key %s is no key of a service account", gcsCredentials)
	}
	return c.TokenSource, nil
}

func (b *gcsBucket) stat(ctx context.Context, key string) (Object, error) {
	o, err := b.attributes(ctx, key)
	if err == nil || !errors.Is(err, gcs.ErrObjectNotExist) && statusOf(err) != http.StatusNotFound {
		return o, err
	}
	// Whether it is the bucket that is not there is not in all answers.
	switch _, _, err = b.list(ctx, key, nil); {
	case err == nil:
		return Object{}, errNoObject
	case statusOf(err) == http.StatusNotFound:
		return Object{}, errNoBucket
	}
	return Object{}, err
}

func (b *gcsBucket) write(ctx context.Context, key string, meta Meta, replace bool, r io.Reader) error {
	err := b.upload(ctx, key, meta, replace, r)
	if statusOf(err) == http.StatusPreconditionFailed {
		return errOccupied
	}
	return err
}

// tidy has nothing to do: uploads that are not complete end by themselves, after a week.
func (*gcsBucket) tidy(context.Context, string, time.Time) error { return nil }

func statusOf(err error) int {
	if e, ok := errors.AsType[*googleapi.Error](err); ok {
		return e.Code
	}
	return 0
}

func (b *gcsBucket) problem(o *operation, err error) *task.Problem {
	if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		status := 0
		if e.Response != nil {
			status = e.Response.StatusCode
		}
		if status >= 500 {
			return o.problem(task.ReasonStorageFailed, true, "Google's server of tokens answers %d", status)
		}
		return o.problem(task.ReasonCredentialsInvalid, true, "Google does not accept the credentials (%s): correct the Secret", strings.TrimSpace(fmt.Sprint(status, " ", e.ErrorCode)))
	}
	switch {
	case errors.Is(err, gcs.ErrBucketNotExist):
		return o.known(errNoBucket)
	case errors.Is(err, gcs.ErrObjectNotExist):
		return o.known(errNoObject)
	}
	e, ok := errors.AsType[*googleapi.Error](err)
	if !ok {
		return nil
	}
	reason := ""
	if len(e.Errors) > 0 {
		reason = e.Errors[0].Reason
	}
	switch {
	case e.Code == http.StatusNotFound && o.verb == listing, e.Code == http.StatusNotFound && strings.Contains(e.Message, "bucket"):
		return o.known(errNoBucket)
	case e.Code == http.StatusNotFound:
		return o.known(errNoObject)
	case o.verb == deleting && e.Code == http.StatusForbidden && (reason == "retentionPolicyNotMet" || strings.Contains(e.Message, "hold and cannot be deleted")):
		return o.retained(reason + ": " + e.Message)
	case strings.Contains(strings.ToLower(reason), "ratelimit"):
		return o.answered(http.StatusTooManyRequests, reason, e.Message)
	case strings.Contains(reason, "quotaExceeded"):
		return o.full(e.Message)
	}
	return o.answered(e.Code, reason, e.Message)
}
