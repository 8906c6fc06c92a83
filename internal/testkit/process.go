package testkit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// reaper is what remains when the tests are gone: it reads process ids until
// the tests' end of the pipe closes, for whatever reason, then kills those
// processes and removes the folder. A dying server may still create a file,
// hence the loop.
const reaper = `
pids=
while read -r pid; do pids="$pids $pid"; done
[ -z "$pids" ] || kill -9 $pids 2>/dev/null
until rm -rf "$0" 2>/dev/null; do sleep 0.1; done
`

// launcher reports its process id to the reaper before it becomes the server,
// so there is no moment at which the server runs and nobody would end it.
const launcher = `echo $$ >&3 && exec "$@" 3>&-`

// servers is a folder and the processes that live in it. Both are gone soon
// after this process is, also after a kill -9.
type servers struct {
	dir    string
	pipe   *os.File // to the reaper
	reaper *exec.Cmd
}

// server is one running process.
type server struct {
	name string
	log  string
	done chan struct{} // closed when the process has ended
}

func newServers() (*servers, error) {
	dir, err := os.MkdirTemp("", "testkit-")
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	defer func() { _ = read.Close() }()
	cmd := exec.CommandContext(context.Background(), "sh", "-c", reaper, dir)
	cmd.Stdin = read
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what kills the tests' process group spares it
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, write.Close(), os.RemoveAll(dir))
	}
	return &servers{dir: dir, pipe: write, reaper: cmd}, nil
}

// start runs a server with its output in a file of the folder.
func (s *servers) start(path string, args ...string) (*server, error) {
	name := filepath.Base(path)
	srv := &server{name: name, log: filepath.Join(s.dir, name+".log"), done: make(chan struct{})}
	out, err := os.Create(srv.log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	args = append([]string{"-c", launcher, "sh", path}, args...)
	cmd := exec.CommandContext(context.Background(), "sh", args...) // the reaper ends it
	cmd.Dir = s.dir
	cmd.Stdout, cmd.Stderr = out, out
	cmd.ExtraFiles = []*os.File{s.pipe} // file descriptor 3
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = cmd.Wait() // how a killed server ended is of no interest
		close(srv.done)
	}()
	return srv, nil
}

// stop ends every server, removes the folder, and returns when that is done.
func (s *servers) stop() error {
	return errors.Join(s.pipe.Close(), s.reaper.Wait())
}

// tail is the end of the server's log.
func (s *server) tail() string {
	const most = 4 << 10
	f, err := os.Open(s.log)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.Size() > most {
		_, _ = f.Seek(-most, io.SeekEnd)
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(text))
}
