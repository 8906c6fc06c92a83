//go:build e2e

package network

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"example.com/fairlead/test/e2e"
)

// recorder sees who answers whom in the network of the node, where all pods are connected.
type recorder struct {
	mu sync.Mutex
	// seen are the connections, with when they were last.
	seen map[flow]time.Time
	// pods are those that have had an address, the latest last.
	pods map[netip.Addr][]version
	// killed are those that were deleted before their address was reported, as tests beside this one do to managers.
	killed []version
	// node are the addresses of the node.
	node []netip.Addr
	// service and server are those of the API.
	service, server netip.AddrPort
	// machine is this one, which serves the storage.
	machine netip.Addr
}

// flow is a connection as packets have it. A pod's labels can change, so that one is another one after ten seconds.
type flow struct {
	from     netip.Addr
	to       netip.AddrPort
	protocol corev1.Protocol
	tens     int64
}

// version is a pod as it was from then on, until it was over.
type version struct {
	since, until time.Time
	pod          *corev1.Pod
}

// record begins to record, until the test ends.
func record(t *testing.T) *recorder {
	t.Helper()
	config, err := e2e.Config()
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{seen: map[flow]time.Time{}, pods: map[netip.Addr][]version{}}
	r.findAPI(t, cluster)
	r.machine = netip.MustParseAddr(e2e.Host(t))

	factory := informers.NewSharedInformerFactory(cluster, 0)
	pods := factory.Core().V1().Pods().Informer()
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { r.note(obj, false) },
		UpdateFunc: func(_, obj any) { r.note(obj, false) },
		DeleteFunc: func(obj any) { r.note(obj, true) },
	}); err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(t.Context())
	if !cache.WaitForCacheSync(t.Context().Done(), pods.HasSynced) {
		t.Fatal("the pods cannot be watched")
	}
	var packets int
	packets, r.node, err = listen(nodeProcess(t), r.service.Addr())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = unix.Close(packets) }()
		packet := make([]byte, 128)
		for t.Context().Err() == nil {
			if n, _, err := unix.Recvfrom(packets, packet, 0); err == nil { // or nothing has come for a while
				r.receive(packet[:n])
			}
		}
	}()
	t.Cleanup(func() { <-done })
	return r
}

func (r *recorder) findAPI(t *testing.T, cluster kubernetes.Interface) {
	t.Helper()
	service, err := cluster.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := cluster.DiscoveryV1().EndpointSlices("default").List(t.Context(), metav1.ListOptions{
		LabelSelector: "kubernetes.io/service-name=kubernetes",
	})
	if err != nil {
		t.Fatal(err)
	}
	at := func(address string, port int32) netip.AddrPort {
		return netip.AddrPortFrom(netip.MustParseAddr(address), uint16(port))
	}
	r.service = at(service.Spec.ClusterIP, service.Spec.Ports[0].Port)
	r.server = at(list.Items[0].Endpoints[0].Addresses[0], *list.Items[0].Ports[0].Port)
}

// nodeProcess is the first process of the local cluster, as its registry has it.
func nodeProcess(t *testing.T) int {
	t.Helper()
	files, err := filepath.Glob("/run/localcluster/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		var entry struct {
			Dir  string
			Init struct{ PID int }
		}
		if text, err := os.ReadFile(file); err == nil && json.Unmarshal(text, &entry) == nil && entry.Dir == os.Getenv("LOCALCLUSTER_DIR") {
			return entry.Init.PID
		}
	}
	t.Fatalf("no local cluster is in %s: %q", os.Getenv("LOCALCLUSTER_DIR"), files)
	return 0
}

// listen opens a socket that gets what comes to the node from pods and from this machine. The process is one in the
// network namespace of the node, whose addresses are returned as well, and a Service's address says which family's packets.
func listen(pid int, service netip.Addr) (socket int, addresses []netip.Addr, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread is in the other namespace, and ends with this function
		socket, addresses, err = listenIn(fmt.Sprintf("/proc/%d/ns/net", pid), service)
	}()
	<-done
	return socket, addresses, err
}

func listenIn(namespace string, service netip.Addr) (int, []netip.Addr, error) {
	file, err := os.Open(namespace)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = file.Close() }()
	if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
		return 0, nil, err
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return 0, nil, err
	}
	var addresses []netip.Addr
	for _, a := range all {
		addresses = append(addresses, netip.MustParsePrefix(a.String()).Addr())
	}
	h, filter := headerOf(service), filterFor(service)
	socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(bits.ReverseBytes16(h.family))) // in the order of the network
	if err != nil {
		return 0, nil, err
	}
	return socket, addresses, errors.Join(
		unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 32<<20), // nothing is lost while other tests have the processors
		unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 200_000}),
		unix.SetsockoptSockFprog(socket, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}))
}

// header is where the packets of a family have what.
type header struct {
	family                uint16
	protocol, source, end uint32 // end is of the addresses: the destination's follows the source's
	// length puts the header's length into the filter's index register.
	length unix.SockFilter
}

var (
	ipv4 = header{unix.ETH_P_IP, 9, 12, 20, unix.SockFilter{Code: unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH, K: 0}}
	ipv6 = header{unix.ETH_P_IPV6, 6, 8, 40, unix.SockFilter{Code: unix.BPF_LDX | unix.BPF_IMM, K: 40}} // without extensions
)

func headerOf(address netip.Addr) header {
	if address.Is4() {
		return ipv4
	}
	return ipv6
}

// filterFor lets the kernel keep most packets to itself: what is left is UDP, TCP with SYN, and all to a Service.
func filterFor(service netip.Addr) []unix.SockFilter {
	h, address := headerOf(service), service.AsSlice()
	destination, words := h.end-uint32(len(address)), len(address)/4
	var filter []unix.SockFilter
	for i := range words {
		filter = append(filter,
			unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: destination + uint32(4*i)},
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: binary.BigEndian.Uint32(address[4*i:]), Jf: uint8(2*(words-1-i) + 1)})
	}
	return append(filter, []unix.SockFilter{
		{Code: unix.BPF_RET | unix.BPF_K, K: 128},
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: h.protocol},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.IPPROTO_UDP, Jt: 4},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.IPPROTO_TCP, Jf: 4},
		h.length,
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_IND, K: 13}, // the flags
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: syn, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 128},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}...)
}

const syn, ack = 0x02, 0x10

// receive looks for answers: they come from who serves, and not from the address of a Service. The API server's do not
// come by here, and those of this machine come to the node: of these, what pods send is seen. Managers have been connected
// to the API server for long, so that each packet counts.
func (r *recorder) receive(packet []byte) {
	h := headerOf(r.service.Addr())
	length := int(h.end)
	if h == ipv4 {
		length = int(packet[0]&0xf) * 4
	}
	if len(packet) < length+14 {
		return
	}
	size := (h.end - h.source) / 2
	at := func(address uint32, port int) netip.AddrPort {
		ip, _ := netip.AddrFromSlice(packet[address : address+size])
		return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(packet[length+port:]))
	}
	source, destination := at(h.source, 0), at(h.source+size, 2)
	f := flow{from: destination.Addr(), to: source, protocol: corev1.ProtocolTCP, tens: time.Now().Unix() / 10}
	switch isTCP, flags := packet[h.protocol] == unix.IPPROTO_TCP, packet[length+13]; {
	case isTCP && destination == r.service:
		f.from, f.to = source.Addr(), r.server
	case isTCP && destination.Addr() == r.machine && flags&ack == 0:
		f.from, f.to = source.Addr(), destination
	case isTCP && flags&ack != 0:
	case !isTCP && source.Port() < 32768: // those of clients are above
		f.protocol = corev1.ProtocolUDP
	default:
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[f] = time.Now()
}

// note keeps which pod has an address, with the labels that it has.
func (r *recorder) note(obj any, isOver bool) {
	if last, is := obj.(cache.DeletedFinalStateUnknown); is {
		obj = last.Obj
	}
	pod, is := obj.(*corev1.Pod)
	if !is || pod.Spec.HostNetwork {
		return
	}
	if pod.Status.PodIP == "" {
		if isOver && pod.Spec.NodeName != "" { // or else it never had one
			r.mu.Lock()
			defer r.mu.Unlock()
			r.killed = append(r.killed, version{since: pod.CreationTimestamp.Time, until: time.Now(), pod: pod})
		}
		return
	}
	address := netip.MustParseAddr(pod.Status.PodIP)
	isOver = isOver || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.pods[address]
	isKnown := len(known) > 0 && known[len(known)-1].pod.UID == pod.UID
	if !isKnown || !maps.Equal(known[len(known)-1].pod.Labels, pod.Labels) {
		known = append(known, version{since: time.Now(), pod: pod})
	}
	if last := &known[len(known)-1]; isOver && last.until.IsZero() {
		last.until = time.Now()
	}
	r.pods[address] = known
}

// endOf is who had an address then.
func (r *recorder) endOf(address netip.Addr, at time.Time) end {
	pod := r.podAt(address, at)
	if pod == nil {
		return end{name: address.String(), isNode: slices.Contains(r.node, address)}
	}
	e := end{name: pod.Name, namespace: pod.Namespace, labels: pod.Labels, ports: map[string]int32{}}
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			e.ports[port.Name] = port.ContainerPort
		}
	}
	return e
}

// podAt is the pod that had an address then; nil if none had. The address of a new pod is known after its first
// connections, or never: then it is one of those that were killed.
func (r *recorder) podAt(address netip.Addr, at time.Time) *corev1.Pod {
	wasThere := func(v version) bool {
		return v.since.Before(at) && (v.until.IsZero() || at.Before(v.until.Add(late)))
	}
	isNew := func(v version) bool { return at.Before(v.since) && v.since.Before(at.Add(unknown)) }
	known := r.pods[address]
	for _, v := range slices.Backward(known) {
		if wasThere(v) {
			return v.pod
		}
	}
	if i := slices.IndexFunc(known, isNew); i >= 0 {
		return known[i].pod
	}
	if i := slices.IndexFunc(r.killed, wasThere); i >= 0 && address != r.machine && !slices.Contains(r.node, address) {
		return r.killed[i].pod
	}
	return nil
}

const (
	// late is by how much what a pod sent last may come after the pod was gone: one that is deleted by force runs on
	// until its kubelet hears of it.
	late = 10 * time.Second
	// unknown is for how long a pod may have an address before it is reported.
	unknown = time.Minute
)

// connections are those that were seen until now.
func (r *recorder) connections() []connection {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]connection{}
	for f, at := range r.seen {
		c := connection{r.endOf(f.from, at), r.endOf(f.to.Addr(), at), f.protocol, int32(f.to.Port())}
		all[fmt.Sprint(c, c.from.labels, c.to.labels)] = c
	}
	return slices.SortedFunc(maps.Values(all), func(a, b connection) int { return cmp.Compare(a.String(), b.String()) })
}

// TestPodAt: an address is a pod's from before it is known until a moment after the pod was gone.
func TestPodAt(t *testing.T) {
	address, start := netip.MustParseAddr("10.0.0.7"), time.Now()
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	of := func(name string, since, until int) version {
		v := version{since: at(since), pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}}
		if until > 0 {
			v.until = at(until)
		}
		return v
	}
	r := recorder{
		pods:   map[netip.Addr][]version{address: {of("first", 100, 200), of("second", 400, 500), of("last", 550, 0)}},
		killed: []version{of("killed", 290, 300)},
	}
	for seconds, want := range map[int]string{
		30: "", 60: "first", 150: "first", 205: "first", 215: "", 295: "killed", 305: "killed", 315: "",
		350: "second", 505: "second", 515: "last", 600: "last",
	} {
		if got := r.podAt(address, at(seconds)); got == nil && want != "" || got != nil && got.Name != want {
			t.Errorf("after %d s it is %v, want %q", seconds, got, want)
		}
	}
}
