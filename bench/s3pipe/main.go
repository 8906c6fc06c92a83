// Command s3pipe is what backups and restores are measured against: what somebody writes who has
// etcdctl and a client of S3.
//
//	s3pipe save ENDPOINT BUCKET KEY   `etcdctl snapshot save` of a member, piped to an object
//	s3pipe fetch BUCKET KEY FILE      an object copied to a file
//
// The real etcdctl cannot be piped: it writes to FILE.part, asks for that to be on the disk, and renames
// it, none of which /dev/stdout or a fifo takes. So save has what it does of the same library: the
// snapshot of etcd's client, whose length is checked as etcdctl checks it. It goes to the AWS SDK's upload manager
// as that is by default: parts of 8 MiB, five at once. Like the agent of backups, and as the SDK's
// environment variables have it that the benchmark sets, it makes no checksums beside the signature's
// when storage does not require them: with them it would be slower.
//
// Fetch takes the object in one request, and does not wait until the file is on the disk.
//
// Where the storage is, and the credentials, are the SDK's environment variables. The result is the
// container's termination message, see piped in bench/etcd_storage.go.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const usage = "s3pipe save ENDPOINT BUCKET KEY, or s3pipe fetch BUCKET KEY FILE"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "s3pipe: %v\n", err)
		os.Exit(1)
	}
}

// run does what the arguments say, and reports it.
func run(ctx context.Context, args []string) error {
	if len(args) != 4 {
		return errors.New(usage)
	}
	began := time.Now()
	client, err := connect(ctx)
	if err != nil {
		return err
	}
	var size int64
	switch args[0] {
	case "save":
		size, err = save(ctx, client, args[1], args[2], args[3])
	case "fetch":
		size, err = fetch(ctx, client, args[1], args[2], args[3])
	default:
		return errors.New(usage)
	}
	if err != nil {
		return err
	}
	return report(size, time.Since(began))
}

// connect is a client of the storage that the environment names.
func connect(ctx context.Context) (*s3.Client, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	return s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true }), nil
}

// save pipes a snapshot of the member at the endpoint to an object, and returns its size.
func save(ctx context.Context, client *s3.Client, endpoint, bucket, key string) (int64, error) {
	member, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		return 0, err
	}
	defer func() { _ = member.Close() }() // nothing is under way
	taken, err := member.SnapshotWithVersion(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = taken.Snapshot.Close() }() // all was read, or the error is known
	from := &snapshot{r: taken.Snapshot}
	uploads := transfermanager.New(client, func(o *transfermanager.Options) {
		o.RequestChecksumCalculation = client.Options().RequestChecksumCalculation // it has a default of its own
	})
	_, err = uploads.UploadObject(ctx, &transfermanager.UploadObjectInput{Bucket: aws.String(bucket), Key: aws.String(key), Body: from})
	return from.size, err
}

// snapshot ends well only if it is as long as one: a number of sectors, and a SHA-256.
type snapshot struct {
	r    io.Reader
	size int64
}

func (s *snapshot) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.size += int64(n)
	if errors.Is(err, io.EOF) && s.size%512 != 32 {
		return n, fmt.Errorf("the snapshot has %d bytes, and no SHA-256 at its end", s.size)
	}
	return n, err
}

// fetch copies an object to a file, and returns its size.
func fetch(ctx context.Context, client *s3.Client, bucket, key, path string) (int64, error) {
	object, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String(key)})
	if err != nil {
		return 0, err
	}
	defer func() { _ = object.Body.Close() }() // all was read, or the error is known
	file, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	size, err := io.Copy(file, object.Body)
	if err := errors.Join(err, file.Close()); err != nil {
		return 0, err
	}
	if want := aws.ToInt64(object.ContentLength); size != want {
		return 0, fmt.Errorf("the object has %d bytes, of which %d came", want, size)
	}
	return size, nil
}

// report writes the result where the kubelet finds it, and to the log.
func report(size int64, took time.Duration) error {
	result, err := json.Marshal(struct {
		Bytes int64
		Took  time.Duration
	}{size, took})
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", result)
	err = os.WriteFile("/dev/termination-log", result, 0o600)
	if errors.Is(err, os.ErrPermission) || errors.Is(err, os.ErrNotExist) {
		return nil // not in a pod
	}
	return err
}
