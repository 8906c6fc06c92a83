package testkit

import (
	"io"
	"sync"
	"time"
)

// lateBody delivers what it reads a fixed time later, in order: a watch of an
// API server that is behind.
type lateBody struct {
	src    io.ReadCloser
	dead   <-chan struct{}
	chunks chan chunk
	now    chunk // being delivered
	once   sync.Once
	closed chan struct{}
}

type chunk struct {
	data []byte
	err  error
	due  time.Time
}

func newLateBody(src io.ReadCloser, delay time.Duration, dead <-chan struct{}) *lateBody {
	b := &lateBody{src: src, dead: dead, chunks: make(chan chunk, 1024), closed: make(chan struct{})}
	go b.pump(delay)
	return b
}

func (b *lateBody) pump(delay time.Duration) {
	for {
		buf := make([]byte, 16<<10)
		n, err := b.src.Read(buf)
		select {
		case b.chunks <- chunk{data: buf[:n], err: err, due: time.Now().Add(delay)}:
		case <-b.closed:
			return
		}
		if err != nil {
			return
		}
	}
}

func (b *lateBody) Read(p []byte) (int, error) {
	for len(b.now.data) == 0 {
		if b.now.err != nil {
			return 0, b.now.err
		}
		select {
		case b.now = <-b.chunks:
		case <-b.dead:
			return 0, errKilled
		case <-b.closed:
			return 0, io.ErrClosedPipe
		}
		select {
		case <-after(time.Until(b.now.due)):
		case <-b.dead:
			return 0, errKilled
		case <-b.closed:
			return 0, io.ErrClosedPipe
		}
	}
	n := copy(p, b.now.data)
	b.now.data = b.now.data[n:]
	return n, nil
}

func (b *lateBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.src.Close()
}
