package store

import (
	"context"
	"crypto/md5" //nolint:gosec // S3's checksum of what is sent, not a secret's
	"encoding/base64"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
)

// This file is about storage with the API of S3 that is not AWS's, and does not know all of it.

// withoutCondition is for storage that does not know conditional writes and says so: whether there is
// an object is then seen just before.
func (b *s3Bucket) withoutCondition(stack *middleware.Stack) error {
	f := func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		out, metadata, err := next.HandleInitialize(ctx, in)
		if codeOf(err) != "NotImplemented" {
			return out, metadata, err
		}
		switch p := in.Parameters.(type) {
		case *s3.PutObjectInput:
			body, ok := p.Body.(io.Seeker)
			if !ok || p.IfNoneMatch == nil {
				return out, metadata, err
			}
			if _, err := body.Seek(0, io.SeekStart); err != nil {
				return out, metadata, err
			}
			once := *p
			once.IfNoneMatch, in.Parameters = nil, &once
			err = b.vacant(ctx, p.Key)
		case *s3.CompleteMultipartUploadInput:
			if p.IfNoneMatch == nil {
				return out, metadata, err
			}
			once := *p
			once.IfNoneMatch, in.Parameters = nil, &once
			err = b.vacant(ctx, p.Key)
		default:
			return out, metadata, err
		}
		if err != nil {
			return out, metadata, err
		}
		return next.HandleInitialize(ctx, in)
	}
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("FairleadWithoutCondition", f), middleware.After)
}

// withMD5 sends the checksum of what is uploaded in the header that all storage knows, since the others are not sent.
// Buckets with a retention (Object Lock) refuse uploads without one.
func withMD5(stack *middleware.Stack) error {
	f := func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (out middleware.InitializeOutput, metadata middleware.Metadata, err error) {
		switch p := in.Parameters.(type) {
		case *s3.PutObjectInput:
			summed := *p
			summed.ContentMD5, err = sumOf(p.Body)
			in.Parameters = &summed
		case *s3.UploadPartInput:
			summed := *p
			summed.ContentMD5, err = sumOf(p.Body)
			in.Parameters = &summed
		}
		if err != nil {
			return out, metadata, err
		}
		return next.HandleInitialize(ctx, in)
	}
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("FairleadMD5", f), middleware.After)
}

// sumOf is the MD5 of a body, which is read from its begin again then: parts are in memory. Nil if it cannot be.
func sumOf(body io.Reader) (*string, error) {
	part, ok := body.(io.ReadSeeker)
	if !ok {
		return nil, nil
	}
	sum := md5.New() //nolint:gosec // see the import
	if _, err := io.Copy(sum, part); err != nil {
		return nil, err
	}
	if _, err := part.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return aws.String(base64.StdEncoding.EncodeToString(sum.Sum(nil))), nil
}

// vacant is an error if there is an object.
func (b *s3Bucket) vacant(ctx context.Context, key *string) error {
	_, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: aws.String(b.name), Key: key})
	switch codeOf(err) {
	case "NotFound", "NoSuchKey":
		return nil
	}
	if err == nil {
		return &smithy.GenericAPIError{Code: "PreconditionFailed"}
	}
	return err
}
