// Command sigstore is a Sigstore of its own, on loopback, for the test of what is signed without a key: Fulcio, Rekor and
// a timestamp authority, which are those of the public one, a stand-in for GitHub that gives out the tokens of a
// workflow, one for the log of certificates, and a TUF repository that says which of them to trust.
//
// It prints the environment in which cosign uses them, a variable a line, then an empty line, and serves until its
// input ends. The other programs are in its own folder, but for cosign.
//
// Usage: sigstore COSIGN
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "sigstore: %v\n", err)
		os.Exit(1)
	}
}

func run() (err error) {
	if len(os.Args) != 2 {
		return errors.New("usage: sigstore COSIGN")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	s := &sigstore{programs: filepath.Dir(self), cosign: os.Args[1]}
	if s.dir, err = os.MkdirTemp("", "sigstore-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	environment, err := s.start()
	if err != nil {
		return err
	}
	for _, variable := range environment {
		fmt.Println(variable)
	}
	fmt.Println()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// sigstore is what runs, and its files.
type sigstore struct {
	programs string
	cosign   string
	dir      string
	running  []*exec.Cmd
}

// start starts all of it, and returns the environment for cosign.
func (s *sigstore) start() (environment []string, err error) {
	workflows, err := serveTokens()
	if err != nil {
		return nil, err
	}
	certificates, err := s.serveCertificateLog()
	if err != nil {
		return nil, err
	}
	fulcio, err := s.startFulcio(workflows, certificates)
	if err != nil {
		return nil, err
	}
	rekor, err := s.startRekor()
	if err != nil {
		return nil, err
	}
	stamps, err := s.startTimestamps()
	if err != nil {
		return nil, err
	}

	since := ",start-time=" + time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	used := since + ",operator=test"
	trusted, services := s.file("trusted_root.json"), s.file("signing_config.v0.2.json")
	if err := errors.Join(
		s.tell("trusted-root", "create", "--out", trusted,
			"--fulcio=url="+fulcio+",certificate-chain="+s.file("fulcio.pem")+since,
			"--ctfe=url="+certificates+",public-key="+s.file("certificates.pub")+since,
			"--rekor=url="+rekor+",public-key="+s.file("rekor.pub")+",origin="+rekorOrigin+since,
			"--tsa=url="+stamps+",certificate-chain="+s.file("stamps.pem")+since),
		s.tell("signing-config", "create", "--out", services, "--rekor-config=ANY", "--tsa-config=ANY",
			"--oidc-provider=url="+workflows+",api-version=1"+used, "--fulcio=url="+fulcio+",api-version=1"+used,
			"--rekor=url="+rekor+",api-version=2"+used, "--tsa=url="+stamps+",api-version=1"+used),
	); err != nil {
		return nil, err
	}
	mirror, root, err := s.serveTUF(trusted, services)
	if err != nil {
		return nil, err
	}
	if err := s.tell("initialize", "--mirror="+mirror, "--root="+root); err != nil {
		return nil, err
	}
	return []string{
		s.tufRoot(), "ACTIONS_ID_TOKEN_REQUEST_URL=" + workflows + "/token?api-version=2.0", "ACTIONS_ID_TOKEN_REQUEST_TOKEN=" + jobToken,
		"COSIGN_ISSUER=" + workflows, "COSIGN_IDENTITY=https://github.com/" + workflow,
	}, nil
}

func (s *sigstore) file(name string) string { return filepath.Join(s.dir, name) }

// tufRoot says where cosign keeps whom it trusts: not in the home of whoever runs this.
func (s *sigstore) tufRoot() string { return "TUF_ROOT=" + s.file("trusted") }

func (s *sigstore) tell(args ...string) error {
	command := exec.CommandContext(context.Background(), s.cosign, args...)
	command.Env = append(os.Environ(), s.tufRoot())
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("cosign %s: %w:\n%s", args[0], err, said)
	}
	return nil
}

// startFulcio starts the authority that gives a certificate for a token. Its own certificate is in fulcio.pem.
func (s *sigstore) startFulcio(issuer, log string) (url string, err error) {
	config := fmt.Sprintf("oidc-issuers:\n  %[1]s: {issuer-url: %[1]q, client-id: sigstore, type: github-workflow}\n", issuer)
	if err := os.WriteFile(s.file("fulcio.yaml"), []byte(config), 0o600); err != nil {
		return "", err
	}
	ports, err := freePorts(3)
	if err != nil {
		return "", err
	}
	url = "http://127.0.0.1:" + ports[0]
	return url, s.launch("fulcio", url+"/api/v1/rootCert", "fulcio.pem", "serve", "--ca=ephemeralca", "--ct-log-url="+log,
		"--config-path="+s.file("fulcio.yaml"), "--host=127.0.0.1", "--port="+ports[0], "--grpc-host=127.0.0.1", "--grpc-port="+ports[1],
		"--metrics-port="+ports[2], "--legacy-unix-domain-socket="+s.file("fulcio.socket"))
}

// rekorOrigin is the log's name, by which signatures refer to it: a client takes the host of its URL for that.
const rekorOrigin = "127.0.0.1"

// startRekor starts the log of signatures. Its public key is in rekor.pub.
func (s *sigstore) startRekor() (url string, err error) {
	if _, err := s.newKey("rekor"); err != nil {
		return "", err
	}
	ports, err := freePorts(3)
	if err != nil {
		return "", err
	}
	url = "http://" + rekorOrigin + ":" + ports[0]
	// The program's name is that of its folder: the log is in files.
	return url, s.launch("posix", url+"/healthz", "", "serve", "--http-address=127.0.0.1", "--http-port="+ports[0],
		"--grpc-address=127.0.0.1", "--grpc-port="+ports[1], "--http-metrics-port="+ports[2], "--hostname="+rekorOrigin,
		"--storage-dir="+s.file("rekor"), "--signer-filepath="+s.file("rekor.key"), "--checkpoint-interval=200ms", "--batch-max-age=50ms")
}

// startTimestamps starts the authority that says when something was signed. Its certificates are in stamps.pem.
func (s *sigstore) startTimestamps() (url string, err error) {
	ports, err := freePorts(1)
	if err != nil {
		return "", err
	}
	url = "http://127.0.0.1:" + ports[0] + "/api/v1/timestamp"
	return url, s.launch("timestamp-server", url+"/certchain", "stamps.pem", "serve", "--host=127.0.0.1", "--port="+ports[0],
		"--timestamp-signer=memory", "--disable-ntp-monitoring")
}

// launch starts a program, and returns when it answers at a URL. The answer is kept in a file, if that has a name.
func (s *sigstore) launch(program, url, answer string, args ...string) error {
	command := exec.CommandContext(context.Background(), filepath.Join(s.programs, program), args...)
	var said bytes.Buffer
	command.Stdout, command.Stderr, command.Dir = &said, &said, s.dir
	if err := command.Start(); err != nil {
		return err
	}
	content, err := get(url)
	if err != nil {
		_ = command.Process.Kill()
		_ = command.Wait() // what it said is complete
		return fmt.Errorf("%s: %w:\n%s", program, err, &said)
	}
	s.running = append(s.running, command)
	if answer == "" {
		return nil
	}
	return os.WriteFile(s.file(answer), content, 0o600)
}

// get asks a program that starts, until it answers, for a minute.
func get(url string) (content []byte, err error) {
	c := http.Client{Timeout: 10 * time.Second}
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(50 * time.Millisecond) {
		if content, err = getOnce(&c, url); err == nil {
			return content, nil
		}
	}
	return nil, err
}

func getOnce(c *http.Client, url string) ([]byte, error) {
	response, err := c.Get(url) //nolint:noctx // it has a timeout
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(response.Status)
	}
	return io.ReadAll(response.Body)
}

func (s *sigstore) stop() error {
	for _, command := range s.running {
		_ = command.Process.Kill()
		_ = command.Wait()
	}
	return os.RemoveAll(s.dir)
}

// serve serves at a free port, as long as the program runs.
func serve(handler http.Handler) (url string, err error) {
	listener, err := listen()
	if err != nil {
		return "", err
	}
	go func() { _ = http.Serve(listener, handler) }() //nolint:gosec // ends with the program
	return "http://" + listener.Addr().String(), nil
}

func freePorts(n int) ([]string, error) {
	var ports []string
	for range n {
		listener, err := listen()
		if err != nil {
			return nil, err
		}
		defer func() { _ = listener.Close() }() // all are held until all are known
		_, port, err := net.SplitHostPort(listener.Addr().String())
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}

func listen() (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
}
