package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "example.com/fairlead/api/cache/v1alpha1"
	webv1 "example.com/fairlead/api/web/v1"
)

const (
	servedName = "served"
	// servedPoll is how often a client that is refused tries again, and how often the object is looked at.
	servedPoll = 10 * time.Millisecond
	// servedPatience is for the whole of it.
	servedPatience = time.Minute
)

// served is a kind of three pods, of which the time is taken from its creation until a client that
// connects through a Service is answered, and until it is Ready.
type served struct {
	measure string
	make    func(namespace string) (client.Object, *[]metav1.Condition)
	label   string // has the object's name as its value, on all of its pods
	port    int32
	ask     func(ctx context.Context, address string) error
}

var (
	servedEtcd = served{
		measure: "etcd-served",
		make: func(namespace string) (client.Object, *[]metav1.Condition) {
			ec := newEtcd(namespace, servedName, etcdMembers)
			return ec, &ec.Status.Conditions
		},
		label: "etcd_cluster", port: 2379,
		ask: func(ctx context.Context, address string) error { return askHTTP(ctx, "http://"+address+"/health") },
	}
	servedMemcached = served{
		measure: "memcached-served",
		make: func(namespace string) (client.Object, *[]metav1.Condition) {
			mc := &cachev1alpha1.Memcached{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: servedName},
				Spec:       cachev1alpha1.MemcachedSpec{Size: new(int32(3)), Version: newVersion},
			}
			return mc, &mc.Status.Conditions
		},
		label: "memcached_cr", port: 11211,
		ask: func(ctx context.Context, address string) error {
			answer, err := askMemcached(ctx, address)
			if err == nil && !strings.HasPrefix(answer, "VERSION ") {
				err = fmt.Errorf("answer %q", answer)
			}
			return err
		},
	}
	servedWebServer = served{
		measure: "webserver-served",
		make: func(namespace string) (client.Object, *[]metav1.Condition) {
			ws := &webv1.WebServer{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: servedName},
				Spec:       webv1.WebServerSpec{Image: webImage, Replicas: new(int32(3))},
			}
			return ws, &ws.Status.Conditions
		},
		label: "webserver_cr", port: 80,
		ask: func(ctx context.Context, address string) error { return askHTTP(ctx, "http://"+address+"/") },
	}
)

func (s served) take(ctx context.Context, b *bench) ([]figure, error) {
	namespace := "bench-" + s.measure
	remove, err := b.scratch(ctx, namespace)
	if err != nil {
		return nil, err
	}
	// It is there before the pods are, and leads to them as soon as the object's own does.
	address, err := b.nodePort(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "outside"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{s.label: servedName}, Ports: []corev1.ServicePort{{Port: s.port}},
		},
	})
	if err != nil {
		return nil, err
	}
	var answers, readies []time.Duration
	for round := range b.rounds + 1 {
		if err := b.quiet(ctx); err != nil {
			return nil, err
		}
		answered, ready, err := s.once(ctx, b, namespace, address)
		if err != nil {
			return nil, err
		}
		b.say("round %d: a client is answered after %s, Ready after %s", round, inSeconds(answered), inSeconds(ready))
		if round > 0 { // the first warms up
			answers, readies = append(answers, answered), append(readies, ready)
		}
	}
	return []figure{
		{measure: s.measure, what: "three pods, until a client behind the Service is answered", value: inSeconds(median(answers)), spread: "each: " + spread(answers, inSeconds)},
		{measure: s.measure, what: "the same, until it is Ready", value: inSeconds(median(readies)), spread: "each: " + spread(readies, inSeconds)},
	}, remove(ctx)
}

// once creates the object, takes the times, and deletes it.
func (s served) once(ctx context.Context, b *bench, namespace, address string) (answered, ready time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, servedPatience)
	defer cancel()
	obj, conditions := s.make(namespace)
	began := time.Now()
	if err := b.client.Create(ctx, obj); err != nil {
		return 0, 0, err
	}
	for answered == 0 || ready == 0 {
		if answered == 0 {
			if asked := s.ask(ctx, address); asked == nil {
				answered = time.Since(began)
			}
		}
		if ready == 0 {
			if err := b.client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
				return 0, 0, err
			}
			if meta.IsStatusConditionTrue(*conditions, "Ready") {
				ready = time.Since(began)
			}
		}
		if err := sleep(ctx, servedPoll); err != nil {
			return 0, 0, fmt.Errorf("within %s: answered after %s, Ready after %s (0: not at all): %w", servedPatience, answered, ready, err)
		}
	}
	if err := b.client.Delete(ctx, obj); err != nil {
		return 0, 0, err
	}
	return answered, ready, eventually(ctx, servedPatience, "the end of the pods of "+s.measure, func() (bool, error) {
		var pods corev1.PodList
		err := b.client.List(ctx, &pods, client.InNamespace(namespace))
		return len(pods.Items) == 0, err
	})
}

func askHTTP(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	request.Close = true // a connection of its own each time
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", response.Status)
	}
	return nil
}
