package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"gocloud.dev/blob/s3blob"

	"example.com/fairlead/operators/etcd/task"
)

// The keys of the Secret, as the AWS CLI calls its files.
const (
	s3Credentials = "credentials"
	s3Config      = "config"
	s3Profile     = "default"
)

// s3Bucket is a bucket of S3. The library's bucket does all but uploads: its own leave parts behind
// when they are cancelled, and take twice the memory.
type s3Bucket struct {
	bucket
	client   *s3.Client
	uploads  *transfermanager.Client
	name     string
	checksum aws.RequestChecksumCalculation
	// cleanup is how long each of the two aborts of an upload that failed may take: together no longer
	// than who cancels it waits.
	cleanup time.Duration
}

func openS3(ctx context.Context, o opened) (storage, error) {
	t, err := newTransport(o.secret, o.watch)
	if err != nil {
		return nil, err
	}
	cfg, err := s3Configuration(ctx, o, &http.Client{Transport: t})
	if err != nil {
		return nil, err
	}
	if cfg.Region == "" && o.Endpoint == "" {
		if cfg.Region, err = regionOf(ctx, cfg.HTTPClient, "https://s3.us-east-1.amazonaws.com", o.Bucket); err != nil {
			return nil, err
		}
	}
	if cfg.Region == "" {
		cfg.Region = "us-east-1" // what storage that is not AWS's takes
	}
	b := &s3Bucket{name: o.Bucket, bucket: bucket{transport: t}, cleanup: min(o.watch.timeout, 10*time.Second) / 2}
	b.client = s3.NewFromConfig(cfg, func(s *s3.Options) {
		s.UsePathStyle = o.ForcePathStyle
		if o.Endpoint != "" {
			// What storage that is not AWS's knows.
			s.BaseEndpoint = aws.String(o.Endpoint)
			s.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
			s.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		}
		b.checksum = s.RequestChecksumCalculation
		s.APIOptions = append(s.APIOptions, b.withoutCondition)
		if b.checksum == aws.RequestChecksumCalculationWhenRequired {
			s.APIOptions = append(s.APIOptions, withMD5)
		}
	})
	b.uploads = transfermanager.New(b.client, func(u *transfermanager.Options) {
		u.PartSizeBytes, u.MultipartUploadThreshold, u.Concurrency = partSize, partSize, partsAtOnce
		u.RequestChecksumCalculation = b.checksum
		u.FailTimeout = b.cleanup
	})
	b.Bucket, err = s3blob.OpenBucket(ctx, b.client, o.Bucket, nil)
	return b, err
}

// s3Configuration has the credentials: those of the Secret and nothing of the environment, or if no
// Secret is named those of the pod.
func s3Configuration(ctx context.Context, o opened, client *http.Client) (aws.Config, error) {
	if o.Identity {
		cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(client))
		if err == nil {
			_, err = cfg.Credentials.Retrieve(ctx)
		}
		if err != nil && ctx.Err() == nil {
			return cfg, o.secret.invalid("no Secret is named, and the pod has no identity in the cloud: name a Secret, or a ServiceAccount with a role (%v)", innermost(err))
		}
		return cfg, err
	}
	s := o.secret
	if !s.has(s3Credentials) {
		return aws.Config{}, s.missing(s3Credentials)
	}
	shared, err := config.LoadSharedConfigProfile(ctx, s3Profile, func(l *config.LoadSharedConfigOptions) {
		l.CredentialsFiles, l.ConfigFiles = []string{s.path(s3Credentials)}, []string{}
		if s.has(s3Config) {
			l.ConfigFiles = []string{s.path(s3Config)}
		}
	})
	if err != nil {
		// The error may have lines of the file.
		return aws.Config{}, s.invalid("keys %s and %s are not in the format of the AWS CLI's files, or have no profile %s", s3Credentials, s3Config, s3Profile)
	}
	cfg := aws.Config{HTTPClient: client, Region: shared.Region}
	if cfg.Region == "" {
		cfg.Region = os.Getenv("AWS_REGION")
	}
	keys := shared.Credentials
	if shared.RoleARN != "" && shared.Source != nil {
		keys = shared.Source.Credentials
	}
	for _, c := range []aws.Credentials{shared.Credentials, keys} {
		s.hide(c.AccessKeyID, c.SecretAccessKey, c.SessionToken)
	}
	if !keys.HasKeys() {
		if more := takesMore(shared); more != "" {
			return cfg, s.invalid("profile %s has %s, which needs what is not in the Secret: write aws_access_key_id and aws_secret_access_key, or name no Secret and a ServiceAccount with a role", s3Profile, more)
		}
		return cfg, s.invalid("profile %s has no aws_access_key_id and aws_secret_access_key", s3Profile)
	}
	cfg.Credentials = aws.NewCredentialsCache(credentials.StaticCredentialsProvider{Value: keys})
	if shared.RoleARN == "" {
		return cfg, nil
	}
	if shared.MFASerial != "" {
		return cfg, s.invalid("profile %s has mfa_serial: nobody is there to enter a code", s3Profile)
	}
	region := cfg.Copy()
	if region.Region == "" {
		region.Region = "us-east-1"
	}
	cfg.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(region), shared.RoleARN, func(a *stscreds.AssumeRoleOptions) {
		a.RoleSessionName = "fairlead-etcd-backup"
		if shared.ExternalID != "" {
			a.ExternalID = aws.String(shared.ExternalID)
		}
	}))
	return cfg, nil
}

// takesMore names what a profile has instead of keys.
func takesMore(c config.SharedConfig) string {
	for name, value := range map[string]string{
		"role_arn": c.RoleARN, "credential_process": c.CredentialProcess, "credential_source": c.CredentialSource,
		"web_identity_token_file": c.WebIdentityTokenFile, "sso_session": c.SSOSessionName + c.SSOStartURL, "source_profile": c.SourceProfileName,
	} {
		if value != "" {
			return name
		}
	}
	return ""
}

// regionOf asks AWS where a bucket is: it says so even to those whom it refuses.
func regionOf(ctx context.Context, client aws.HTTPClient, base, bucket string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, base+"/"+bucket, nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	_ = resp.Body.Close()
	region := resp.Header.Get("x-amz-bucket-region")
	if region == "" && resp.StatusCode == http.StatusNotFound {
		return "", errNoBucket
	}
	return region, nil
}

func (b *s3Bucket) stat(ctx context.Context, key string) (Object, error) {
	o, err := b.attributes(ctx, key)
	switch {
	case err == nil:
		return o, nil
	case statusIn(err) < 400 || statusIn(err) >= 500:
		return Object{}, err
	}
	// The answer to HEAD has no text, which would say what is not there, or what is wrong with the
	// credentials.
	out, named := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(b.name), Key: aws.String(key), Range: aws.String("bytes=0-0")})
	if named == nil {
		_ = out.Body.Close()
		return b.attributes(ctx, key) // it is there since, or only reading is allowed
	}
	if code := codeOf(named); code == "NoSuchKey" || code == "NotFound" {
		return Object{}, errNoObject
	}
	return Object{}, named
}

func (b *s3Bucket) write(ctx context.Context, key string, meta Meta, replace bool, r io.Reader) error {
	in := &transfermanager.UploadObjectInput{
		Bucket: aws.String(b.name), Key: aws.String(key), Body: r,
		ContentType: aws.String(contentType), Metadata: meta.metadata(),
	}
	if !replace {
		in.IfNoneMatch = aws.String("*")
	}
	_, err := b.uploads.UploadObject(ctx, in)
	if failed, ok := errors.AsType[transfermanager.MultipartUploadError](err); ok {
		b.abort(ctx, key, failed.UploadID())
	}
	switch codeOf(err) {
	case "PreconditionFailed", "ConditionalRequestConflict":
		return errOccupied
	}
	return err
}

// abort aborts an upload again, which the library has aborted: a part that was on its way then may
// have brought it back, with what it takes of the bucket (S3's API reference, AbortMultipartUpload).
// What is left even so, because the storage cannot be reached for example, [Store.Tidy] removes.
func (b *s3Bucket) abort(ctx context.Context, key, upload string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.cleanup)
	defer cancel()
	for _, wait := range []time.Duration{50 * time.Millisecond, 200 * time.Millisecond, 750 * time.Millisecond} {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		_, _ = b.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: aws.String(b.name), Key: aws.String(key), UploadId: aws.String(upload)})
	}
}

func (b *s3Bucket) tidy(ctx context.Context, path string, before time.Time) error {
	pages := s3.NewListMultipartUploadsPaginator(b.client, &s3.ListMultipartUploadsInput{Bucket: aws.String(b.name), Prefix: aws.String(path)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, u := range page.Uploads {
			if !mayBe(path, aws.ToString(u.Key)) || u.Initiated == nil || !u.Initiated.Before(before) {
				continue
			}
			_, err := b.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: aws.String(b.name), Key: u.Key, UploadId: u.UploadId})
			if _, gone := errors.AsType[*types.NoSuchUpload](err); err != nil && !gone {
				return err
			}
		}
	}
	return nil
}

// codeOf is the code of S3's answer.
func codeOf(err error) string {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e.ErrorCode()
	}
	return ""
}

// statusIn is that of the answer's HTTP; 0 if there is none.
func statusIn(err error) int {
	if e, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		return e.HTTPStatusCode()
	}
	return 0
}

// isLocked says whether an object is not deleted because of Object Lock. Servers have no code for that in common:
// AWS's is AccessDenied, MinIO's InvalidRequest.
func isLocked(e smithy.APIError) bool {
	text := strings.ToLower(e.ErrorCode() + " " + e.ErrorMessage())
	for _, word := range []string{"object lock", "objectlock", "worm protected", "retention", "legal hold"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

func (b *s3Bucket) problem(o *operation, err error) *task.Problem {
	status := statusIn(err)
	e, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		if status == 0 {
			return nil
		}
		return o.answered(status, "", "")
	}
	said := fmt.Sprintf("%s: %s", e.ErrorCode(), e.ErrorMessage())
	if o.verb == deleting && isLocked(e) {
		return o.retained(said)
	}
	switch e.ErrorCode() {
	case "NoSuchBucket":
		return o.known(errNoBucket)
	case "NoSuchKey", "NotFound":
		return o.known(errNoObject)
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken", "TokenRefreshRequired", "InvalidClientTokenId",
		"UnrecognizedClientException", "InvalidSecurity", "CredentialsNotSupported", "InvalidIdentityToken", "XAdminUserNotFound":
		return o.problem(task.ReasonCredentialsInvalid, true, "%s does not accept the credentials (%s): correct the Secret", o.server(), said)
	case "RequestTimeTooSkewed":
		return o.problem(task.ReasonCredentialsInvalid, true, "the node's clock differs from that of %s (%s): correct it", o.server(), said)
	case "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		return o.problem(task.ReasonStorageFailed, false, "the bucket is in another region (%s): write it into the key %s of the Secret", said, s3Config)
	case "QuotaExceeded", "XMinioStorageFull", "InsufficientStorage", "StorageFull", "ServiceQuotaExceeded", "InsufficientCapacity":
		return o.full(said)
	case "NoSuchUpload":
		return o.problem(task.ReasonStorageFailed, true, "the upload was removed meanwhile (%s): look for a lifecycle rule, or another program, that aborts uploads", said)
	}
	if status == 0 {
		status = http.StatusInternalServerError
	}
	return o.answered(status, e.ErrorCode(), e.ErrorMessage())
}
