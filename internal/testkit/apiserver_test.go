//go:build apiserver

package testkit

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/testkit/example"
	"example.com/fairlead/internal/testkit/internal/flawed"
)

// serveVariable makes the test binary a process that has a server and waits to
// be killed.
const serveVariable = "TESTKIT_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(serveVariable) != "" {
		s, err := StartAPIServer(Options{})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(s.servers.dir)
		select {}
	}
	Main(m, Options{CRDs: []string{"example"}})
}

func TestNothingIsLeftBehind(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveVariable+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	dir := strings.TrimSpace(line)
	if err != nil || !filepath.IsAbs(dir) {
		_ = cmd.Process.Kill()
		t.Fatalf("the server did not start: %q, %v", line, err)
	}
	if pids := processesOf(t, dir); len(pids) != 4 {
		t.Errorf("processes of %s: %v, want etcd, kube-apiserver, kube-controller-manager and the reaper", dir, pids)
	}

	if err := cmd.Process.Kill(); err != nil { // SIGKILL
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	err = poll(t.Context(), 10*time.Second, func() error {
		if pids := processesOf(t, dir); len(pids) > 0 {
			return fmt.Errorf("processes: %v", pids)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			return fmt.Errorf("%s is still there", dir)
		}
		return nil
	})
	if err != nil {
		t.Errorf("after kill -9 of the tests: %v", err)
	}
}

// processesOf are the processes with the folder in their command line.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err == nil && strings.Contains(string(text), dir) {
			found = append(found, strings.ReplaceAll(string(text[:min(len(text), 60)]), "\x00", " "))
		}
	}
	return found
}

func TestDeletedOwnerTakesItsChildrenAlong(t *testing.T) {
	s := Server(t)
	ns := s.NewNamespace(t)
	c, err := client.New(s.Config, client.Options{Scheme: flawed.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	order := &example.Order{ObjectMeta: metav1.ObjectMeta{Name: "tea", Namespace: ns}}
	if err := c.Create(t.Context(), order); err != nil {
		t.Fatal(err)
	}
	receipt := flawed.ReceiptOf(order)
	if err := c.Create(t.Context(), receipt); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), order); err != nil {
		t.Fatal(err)
	}
	gone(t, c, receipt)

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	if err := c.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	gone(t, c, namespace)
}

func gone(t *testing.T, c client.Client, obj client.Object) {
	t.Helper()
	err := poll(t.Context(), 30*time.Second, func() error {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("%T %s is still there", obj, obj.GetName()))
	})
	if err != nil {
		t.Fatal(err)
	}
}
