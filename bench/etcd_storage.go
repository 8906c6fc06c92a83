package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
)

const (
	// storageImage has versitygw, and s3pipe.
	storageImage = "fairlead-bench-storage:dev"
	gatewayPort  = 7070
	bucketName   = "backups"
	storageUser  = "fairlead"
	// storagePassword is of a gateway that lives as long as the measure.
	storagePassword = "a-password-for-benchmarks"
	storageSecret   = "aws"
	storageRegion   = "us-east-1"

	// valueSize is the size of the values of a large database, and valuesAtOnce after how many of
	// them its size is looked at.
	valueSize, valuesAtOnce = 16 << 10, 1024
)

// storage is an S3 gateway, for one measure. It is a pod, so that whatever copies to it and from it goes
// the same way, and its files are in memory: storage has other disks than etcd, which
// waits for its own with every write.
type storage struct {
	*bench
	namespace string
	outside   *s3.Client
	pipes     int
}

// newStorage starts the gateway, makes a bucket, and the Secret by which EtcdBackups use it.
func (b *bench) newStorage(ctx context.Context, namespace string) (*storage, error) {
	if err := b.command(ctx, b.localcluster, "load", "--dir", b.dir, storageImage, "versitygw="+b.versitygw, "s3pipe="+b.s3pipe); err != nil {
		return nil, fmt.Errorf("%w (make bench-programs builds them)", err)
	}
	labels := map[string]string{"app": "gateway"}
	port := corev1.ServicePort{Port: gatewayPort}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gateway", Labels: labels},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(1)),
			Volumes:                       []corev1.Volume{inMemory("objects"), inMemory("metadata")},
			Containers: []corev1.Container{{
				Name: "versitygw", Image: storageImage, ImagePullPolicy: corev1.PullIfNotPresent,
				Command: []string{"/versitygw", "--port", fmt.Sprintf(":%d", gatewayPort), "--region", storageRegion, "--quiet",
					"posix", "--sidecar", "/metadata", "/objects"}, // not every kernel's memory takes attributes of files
				Env:            []corev1.EnvVar{{Name: "ROOT_ACCESS_KEY", Value: storageUser}, {Name: "ROOT_SECRET_KEY", Value: storagePassword}},
				Resources:      requests("250m"),
				VolumeMounts:   []corev1.VolumeMount{{Name: "objects", MountPath: "/objects"}, {Name: "metadata", MountPath: "/metadata"}},
				ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(gatewayPort)}}},
			}},
		},
	}
	inside := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s3"},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{port}},
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: storageSecret},
		StringData: map[string]string{"credentials": fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\nregion = %s\n",
			storageUser, storagePassword, storageRegion)},
	}
	for _, object := range []client.Object{pod, inside, secret} {
		if err := b.client.Create(ctx, object); err != nil {
			return nil, err
		}
	}
	address, err := b.nodePort(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s3-outside"},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{port}},
	})
	if err != nil {
		return nil, err
	}
	s := &storage{bench: b, namespace: namespace, outside: s3.New(s3.Options{
		BaseEndpoint: aws.String("http://" + address), UsePathStyle: true, Region: storageRegion,
		Credentials: credentials.NewStaticCredentialsProvider(storageUser, storagePassword, ""),
	})}
	var refused error
	err = eventually(ctx, 2*time.Minute, "a bucket of the S3 gateway", func() (bool, error) {
		_, refused = s.outside.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(bucketName)})
		return refused == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, refused)
	}
	return s, nil
}

// inMemory is a volume without a disk.
func inMemory(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}}
}

// requests are a container's share of the processors when all of them want more than there is.
func requests(cpu string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("64Mi"),
	}}
}

func (s *storage) endpoint() string {
	return fmt.Sprintf("http://s3.%s.svc:%d", s.namespace, gatewayPort)
}

// source is an object, as EtcdBackups and EtcdRestores have it.
func (s *storage) source(key string) v1beta2.BackupSource {
	return v1beta2.BackupSource{S3: &v1beta2.S3Source{
		Path: bucketName + "/" + key, AWSSecret: storageSecret, Endpoint: s.endpoint(), ForcePathStyle: true,
	}}
}

// size is that of an object, which has to be there, and to be as large as the database.
func (s *storage) size(ctx context.Context, key string) (int64, error) {
	object, err := s.outside.HeadObject(ctx, &s3.HeadObjectInput{Bucket: aws.String(bucketName), Key: aws.String(key)})
	if err != nil {
		return 0, err
	}
	size := aws.ToInt64(object.ContentLength)
	if size < s.databaseSize() {
		return 0, fmt.Errorf("object %s has %d bytes, where the database has at least %d", key, size, s.databaseSize())
	}
	return size, nil
}

// remove makes room for the next object.
func (s *storage) remove(ctx context.Context, key string) error {
	_, err := s.outside.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(bucketName), Key: aws.String(key)})
	return err
}

// piped is what s3pipe reports: of itself, without what its pod took.
type piped struct {
	Bytes int64
	Took  time.Duration
}

// pipe runs s3pipe in a pod, and returns also how long that took: from the pod's creation until it
// was seen to have succeeded.
func (s *storage) pipe(ctx context.Context, args ...string) (time.Duration, piped, error) {
	s.pipes++
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("pipe-%d", s.pipes)},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			// As the pods of EtcdBackups.
			AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false), TerminationGracePeriodSeconds: new(int64(5)),
			Volumes: []corev1.Volume{{Name: "files", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			Containers: []corev1.Container{{
				Name: "s3pipe", Image: storageImage, ImagePullPolicy: corev1.PullIfNotPresent,
				Command:      append([]string{"/s3pipe"}, args...),
				Resources:    requests("10m"),
				VolumeMounts: []corev1.VolumeMount{{Name: "files", MountPath: filesPath}},
				Env: []corev1.EnvVar{
					{Name: "AWS_ENDPOINT_URL", Value: s.endpoint()}, {Name: "AWS_REGION", Value: storageRegion},
					{Name: "AWS_ACCESS_KEY_ID", Value: storageUser}, {Name: "AWS_SECRET_ACCESS_KEY", Value: storagePassword},
					{Name: "AWS_REQUEST_CHECKSUM_CALCULATION", Value: "when_required"},
					{Name: "AWS_RESPONSE_CHECKSUM_VALIDATION", Value: "when_required"},
				},
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			}},
		},
	}
	var said piped
	began := time.Now()
	if err := s.client.Create(ctx, pod); err != nil {
		return 0, said, err
	}
	for {
		if err := s.client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return 0, said, err
		}
		now := time.Now()
		switch {
		case pod.Status.Phase == corev1.PodSucceeded:
			if err := json.Unmarshal([]byte(lastMessage(pod)), &said); err != nil {
				return 0, said, fmt.Errorf("pod %s reports %q: %w", pod.Name, lastMessage(pod), err)
			}
			return now.Sub(began), said, s.client.Delete(ctx, pod)
		case pod.Status.Phase == corev1.PodFailed:
			return 0, said, fmt.Errorf("pod %s failed: %s", pod.Name, lastMessage(pod))
		case now.Sub(began) > etcdPatience:
			return 0, said, fmt.Errorf("not within %s: the end of pod %s", etcdPatience, pod.Name)
		}
		if err := sleep(ctx, etcdPoll); err != nil {
			return 0, said, err
		}
	}
}

// filesPath is where s3pipe may write files: a disk.
const filesPath = "/files"

func lastMessage(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		if end := c.State.Terminated; end != nil {
			return end.Message
		}
	}
	return ""
}

// databaseSize is how large databases are at least, in bytes.
func (b *bench) databaseSize() int64 { return int64(b.database) << 20 }

// newLargeEtcd makes a cluster of three with volumes and a large database, and returns where clients
// here reach it. Its members have requests, as those of whoever has that much data: what copies it gets what
// they leave.
func (b *bench) newLargeEtcd(ctx context.Context, namespace string) (*v1beta2.EtcdCluster, string, error) {
	ec := newEtcd(namespace, "etcd", etcdMembers)
	room := max(8<<30, 2*b.databaseSize()) // also for what is written beside
	ec.Spec.Pod = &v1beta2.PodPolicy{
		Resources: requests("250m"), EtcdEnv: []corev1.EnvVar{{Name: "ETCD_QUOTA_BACKEND_BYTES", Value: strconv.FormatInt(room, 10)}},
		PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(room, resource.BinarySI)}},
		},
	}
	if _, err := b.etcd(ctx, ec); err != nil {
		return nil, "", err
	}
	address, err := b.etcdOutside(ctx, ec)
	if err != nil {
		return nil, "", err
	}
	began := time.Now()
	size, err := b.fillEtcd(ctx, address)
	if err != nil {
		return nil, "", err
	}
	b.say("the database has %d MiB after %s", size>>20, inSeconds(time.Since(began)))
	return ec, address, nil
}

// fillEtcd writes values, which nothing can make smaller, until the database is large. It returns
// its size.
func (b *bench) fillEtcd(ctx context.Context, address string) (int64, error) {
	c, err := etcdClient(address)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }() // nothing is under way
	for written := 0; ; written += valuesAtOnce {
		status, err := c.Status(ctx, address)
		if err != nil {
			return 0, err
		}
		if status.DbSize >= b.databaseSize() {
			return status.DbSize, nil
		}
		if err := parallel(ctx, valuesAtOnce, func(i int) error {
			_, err := c.Put(ctx, fmt.Sprintf("large/%08d", written+i), string(noise(uint64(written+i))))
			return err
		}); err != nil {
			return 0, err
		}
	}
}

// noise is a value of a large database.
func noise(n uint64) []byte {
	var seed [32]byte
	for i := range 8 {
		seed[i] = byte(n >> (8 * i))
	}
	value := make([]byte, valueSize)
	_, _ = rand.NewChaCha8(seed).Read(value) // which never fails
	return value
}

// etcdClient is a client of etcd at an address of the node.
func etcdClient(address string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{address}, Logger: zap.NewNop(), DialTimeout: time.Second})
}

// answers is what etcd says about a key at an address of the node, as a client sees it that connects only now.
func answers(ctx context.Context, address, key string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	// Etcd's client would wait for somebody to listen.
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	_ = conn.Close()
	c, err := etcdClient(address)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }() // nothing is under way
	got, err := c.Get(ctx, key)
	if err != nil || len(got.Kvs) == 0 {
		return "", err
	}
	return string(got.Kvs[0].Value), nil
}
