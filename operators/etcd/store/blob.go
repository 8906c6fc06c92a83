package store

import (
	"context"
	"errors"
	"io"
	"net/http"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// Uploads are in parts of this size. Etcd's database has at most 8 GiB by its own documentation, and
// S3 allows 10000 parts: 78 GiB.
const (
	partSize    = 8 << 20
	partsAtOnce = 2
)

// contentType is that of all objects: nobody guesses from the first bytes.
const contentType = "application/octet-stream"

// bucket is what all clouds have in common.
type bucket struct {
	*blob.Bucket
	transport *http.Transport
}

func (b *bucket) close() error {
	defer b.transport.CloseIdleConnections()
	return b.Close()
}

func (b *bucket) attributes(ctx context.Context, key string) (Object, error) {
	a, err := b.Attributes(ctx, key)
	if err != nil {
		return Object{}, err
	}
	return Object{Key: key, Size: a.Size, Time: a.ModTime, Meta: metaOf(a.Metadata)}, nil
}

// upload stores r. That the context is cancelled before the library hears of an error of r is how
// it leaves no object: on other ways it would complete what it has.
func (b *bucket) upload(ctx context.Context, key string, meta Meta, replace bool, r io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := b.Upload(ctx, key, &cancelling{r: r, cancel: cancel}, &blob.WriterOptions{
		BufferSize: partSize, MaxConcurrency: partsAtOnce, ContentType: contentType, Metadata: meta.metadata(), IfNotExist: !replace,
	})
	if gcerrors.Code(err) == gcerrors.FailedPrecondition {
		return errOccupied
	}
	return err
}

// cancelling cancels what reads from it when r fails.
type cancelling struct {
	r      io.Reader
	cancel context.CancelFunc
}

func (c *cancelling) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		c.cancel()
	}
	return n, err
}

func (b *bucket) read(ctx context.Context, key string) (io.ReadCloser, error) {
	r, err := b.NewReader(ctx, key, nil)
	if err != nil {
		return nil, err // and no reader that is nil but has a type
	}
	return r, nil
}

func (b *bucket) list(ctx context.Context, prefix string, page []byte) ([]Object, []byte, error) {
	if page == nil {
		page = blob.FirstPageToken
	}
	found, next, err := b.ListPage(ctx, page, 1000, &blob.ListOptions{Prefix: prefix})
	if err != nil {
		return nil, nil, err
	}
	objects := make([]Object, 0, len(found))
	for _, o := range found {
		objects = append(objects, Object{Key: o.Key, Size: o.Size, Time: o.ModTime})
	}
	return objects, next, nil
}

func (b *bucket) remove(ctx context.Context, key string) error { return b.Delete(ctx, key) }
