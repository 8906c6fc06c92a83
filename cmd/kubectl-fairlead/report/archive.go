package report

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"time"
)

// archive is a tar.gz that is being written. Whatever goes into it is in one folder.
type archive struct {
	folder string
	now    time.Time
	zipped *gzip.Writer
	tar    *tar.Writer
}

func newArchive(to io.Writer, folder string, now time.Time) *archive {
	zipped := gzip.NewWriter(to)
	return &archive{folder, now, zipped, tar.NewWriter(zipped)}
}

func (a *archive) add(name, content string) error {
	header := &tar.Header{Name: a.folder + "/" + name, Mode: 0o600, Size: int64(len(content)), ModTime: a.now.Truncate(time.Second)}
	if err := a.tar.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.WriteString(a.tar, content)
	return err
}

func (a *archive) close() error { return errors.Join(a.tar.Close(), a.zipped.Close()) }
