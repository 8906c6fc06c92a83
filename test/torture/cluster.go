package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// outside is a Service for clients outside.
const outside = `---
apiVersion: v1
kind: Service
metadata: {name: %[1]s-outside}
spec: {type: NodePort, selector: {etcd_cluster: %[1]s}, ports: [{port: 2379}]}
`

// manifest is an EtcdCluster whose members keep their data wherever they run.
const manifest = `
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdCluster
metadata: {name: %[1]s}
spec:
  size: 3
  version: %[2]s
  pod: {persistentVolumeClaimSpec: {storageClassName: shared, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
`

const (
	namespace = "default"
	// wholeWithin is how soon all has to be as requested after a fault.
	wholeWithin = 5 * time.Minute
)

// cluster is an EtcdCluster of the local Kubernetes.
type cluster struct {
	name, version string
	endpoints     []string // a port of each node, behind which is any member that is ready
	logs          string   // the folder of the members' logs, as far as they were copied
	pods          string   // the label of its members' pods
}

// member is a pod of it.
type member struct{ name, node string }

func command(ctx context.Context, stdin, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), err
}

func kubectl(ctx context.Context, args ...string) (string, error) {
	return command(ctx, "", "kubectl", append([]string{"-n", namespace}, args...)...)
}

// localcluster runs a command of the program that made the cluster.
func localcluster(ctx context.Context, name string, args ...string) error {
	_, err := command(ctx, "", "bin/localcluster", append([]string{name, "--dir", os.Getenv("LOCALCLUSTER_DIR")}, args...)...)
	return err
}

func create(ctx context.Context, name, version, logs string) (*cluster, error) {
	c := &cluster{name: name, version: version, logs: logs, pods: "etcd_cluster=" + name}
	if err := c.begin(ctx, fmt.Sprintf(manifest, name, version)+fmt.Sprintf(outside, name)); err != nil {
		return nil, err
	}
	return c, c.whole(ctx)
}

func apply(ctx context.Context, objects string) error {
	_, err := command(ctx, objects, "kubectl", "-n", namespace, "apply", "-f", "-")
	return err
}

// begin creates its objects, and finds out where clients reach the Service among them.
func (c *cluster) begin(ctx context.Context, objects string) error {
	if err := apply(ctx, objects); err != nil {
		return err
	}
	port, err := kubectl(ctx, "get", "service", c.name+"-outside", "-o", "jsonpath={.spec.ports[0].nodePort}")
	if err != nil {
		return err
	}
	addresses, err := kubectl(ctx, "get", "nodes", "-o", `jsonpath={.items[*].status.addresses[?(@.type=="InternalIP")].address}`)
	for address := range strings.FieldsSeq(addresses) {
		c.endpoints = append(c.endpoints, net.JoinHostPort(address, port))
	}
	return err
}

func (c *cluster) remove(ctx context.Context) error {
	_, err := kubectl(ctx, "delete", "etcd/"+c.name, "service/"+c.name+"-outside", "--wait=false")
	_, before := kubectl(ctx, "delete", "statefulset,service", "-l", "app="+c.name+"-before", "--wait=false")
	return errors.Join(err, before)
}

func (c *cluster) set(ctx context.Context, spec string) error {
	if _, err := kubectl(ctx, "patch", "etcd", c.name, "--type=merge", "-p", `{"spec":`+spec+`}`); err != nil {
		return err
	}
	return c.whole(ctx)
}

// whole waits until all is as requested, and stays so for a moment: a pod that was killed counts as ready until it is seen.
func (c *cluster) whole(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, wholeWithin)
	defer cancel()
	for since := time.Now(); time.Since(since) < 3*time.Second; {
		err := c.isWhole(ctx)
		if err != nil {
			since = time.Now()
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s is not as requested after %s: %w", c.name, wholeWithin, err)
		}
	}
	return nil
}

func (c *cluster) isWhole(ctx context.Context) error {
	var ec struct {
		Metadata struct{ Generation int64 }
		Spec     struct {
			Size    int
			Version string
		}
		Status struct {
			ObservedGeneration int64
			Conditions         []struct{ Type, Status, Message string }
			MemberList         []struct{ Name, Version string }
		}
	}
	out, err := kubectl(ctx, "get", "etcd", c.name, "-o", "json")
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(out), &ec); err != nil {
		return err
	}
	for _, condition := range ec.Status.Conditions {
		if condition.Type == "Ready" && condition.Status != "True" || ec.Status.ObservedGeneration != ec.Metadata.Generation {
			return errors.New(condition.Message)
		}
	}
	for _, m := range ec.Status.MemberList {
		if m.Version != ec.Spec.Version {
			return fmt.Errorf("%s has version %s, want %s", m.Name, m.Version, ec.Spec.Version)
		}
	}
	members, err := c.members(ctx)
	if err == nil && (len(members) != ec.Spec.Size || len(ec.Status.MemberList) != ec.Spec.Size) {
		err = fmt.Errorf("%d members have a pod that is ready, and %d are listed, want %d", len(members), len(ec.Status.MemberList), ec.Spec.Size)
	}
	return err
}

// members are those whose pods are ready and stay.
func (c *cluster) members(ctx context.Context) ([]member, error) {
	var list struct {
		Items []struct {
			Metadata struct{ Name, DeletionTimestamp string }
			Spec     struct{ NodeName string }
			Status   struct {
				Conditions []struct{ Type, Status string }
			}
		}
	}
	out, err := kubectl(ctx, "get", "pods", "-l", c.pods, "-o", "json")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, err
	}
	var members []member
	for _, pod := range list.Items {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == "Ready" && condition.Status == "True" && pod.Metadata.DeletionTimestamp == "" {
				members = append(members, member{pod.Metadata.Name, pod.Spec.NodeName})
			}
		}
	}
	return members, nil
}

// leader returns the member that leads, by etcd's own word, and the others.
func (c *cluster) leader(ctx context.Context) (leader member, others []member, err error) {
	members, err := c.members(ctx)
	if err != nil {
		return member{}, nil, err
	}
	etcd, err := clientv3.New(clientv3.Config{Endpoints: c.endpoints, Logger: zap.NewNop()})
	if err != nil {
		return member{}, nil, err
	}
	defer func() { _ = etcd.Close() }()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	status, err := etcd.Status(ctx, c.endpoints[0])
	if err != nil {
		return member{}, nil, err
	}
	list, err := etcd.MemberList(ctx)
	if err != nil {
		return member{}, nil, err
	}
	for _, m := range list.Members {
		if i := slices.IndexFunc(members, func(pod member) bool { return pod.name == m.Name }); m.ID == status.Leader && i >= 0 {
			leader = members[i]
			return leader, slices.Delete(members, i, i+1), nil
		}
	}
	return member{}, nil, fmt.Errorf("%s has no leader", c.name)
}

// process finds etcd of a member, whatever the namespaces that it runs in, by the name in its environment.
func process(name string) (pid int, environment map[string]string, err error) {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return 0, nil, err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(data, []byte("ETCD_NAME="+name+"\x00")) {
			continue
		}
		if program, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "comm")); strings.TrimSpace(string(program)) != "etcd" {
			continue
		}
		environment := map[string]string{}
		for line := range strings.SplitSeq(string(data), "\x00") {
			key, value, _ := strings.Cut(line, "=")
			environment[key] = value
		}
		pid, err := strconv.Atoi(strings.Split(file, "/")[2])
		return pid, environment, err
	}
	return 0, nil, fmt.Errorf("there is no process of member %s", name)
}

// copyLogs copies the members' logs into folders like their data directories. One of a member that is gone by now stays.
func (c *cluster) copyLogs(ctx context.Context) error {
	members, err := c.members(ctx)
	if err != nil {
		return err
	}
	for _, m := range members {
		pid, environment, err := process(m.name)
		if err != nil {
			return err
		}
		files, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "root", environment["ETCD_DATA_DIR"], "member/wal/*.wal"))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("no log of member %s was found: %w", m.name, err)
		}
		to := filepath.Join(c.logs, m.name, "member", "wal")
		if err := errors.Join(os.RemoveAll(to), os.MkdirAll(to, 0o700)); err != nil {
			return err
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), data, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// dataDirs are the folders of the logs that were copied.
func (c *cluster) dataDirs() ([]string, error) {
	return filepath.Glob(filepath.Join(c.logs, "*"))
}
