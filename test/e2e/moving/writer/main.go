//go:build e2e

// Command writer is an application that is moved from one etcd to another: it writes keys one after the other, as the
// user $USER_NAME with $PASSWORD if there is one, to $ENDPOINT, by TLS if there are certificates in the folder
// $CERTIFICATES, and prints each key that etcd has acknowledged. If $WRITERS is more than one, so many write at the same
// time, each [perSecond] keys a second at most. It also prints how many members have a vote, whenever that has changed.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// patience is how long a write may take. A write that takes longer may be there or not.
const patience = 2 * time.Second

// perSecond is how many keys one of several writers writes.
const perSecond = 25

func main() {
	log.SetFlags(0)
	name := os.Getenv("HOSTNAME")
	go count(context.Background())
	n, err := strconv.Atoi(os.Getenv("WRITERS"))
	if err != nil || n <= 1 {
		write(context.Background(), name, time.Nanosecond)
	}
	for i := range n {
		go write(context.Background(), fmt.Sprintf("%s-%d", name, i), time.Second/perSecond)
	}
	select {}
}

// count asks the members ten times a second how many of them have a vote.
func count(ctx context.Context) {
	c, last := connect(), 0
	for range time.Tick(time.Second / 10) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		if list, err := c.MemberList(ctx); err == nil {
			voting := slices.DeleteFunc(list.Members, func(m *etcdserverpb.Member) bool { return m.IsLearner })
			if len(voting) != last {
				last = len(voting)
				fmt.Println("voting members:", last)
			}
		}
		cancel()
	}
}

// write goes on until it is killed, with that much time from one write to the next at least.
func write(ctx context.Context, name string, pace time.Duration) {
	c := connect()
	next := time.Tick(pace)
	for n := 1; ; n++ {
		<-next
		key := fmt.Sprintf("/application/%s/%d", name, n)
		ctx, cancel := context.WithTimeout(ctx, patience)
		if _, err := c.Put(ctx, key, key); err != nil {
			log.Print(err)
		} else {
			fmt.Println(key)
		}
		cancel()
	}
}

// connect is a client of $ENDPOINT, as soon as that lets it in.
func connect() *clientv3.Client {
	config := clientv3.Config{
		Endpoints: []string{os.Getenv("ENDPOINT")}, DialTimeout: patience,
		Username: os.Getenv("USER_NAME"), Password: os.Getenv("PASSWORD"),
	}
	if folder := os.Getenv("CERTIFICATES"); folder != "" {
		files := transport.TLSInfo{
			CertFile: filepath.Join(folder, "tls.crt"), KeyFile: filepath.Join(folder, "tls.key"), TrustedCAFile: filepath.Join(folder, "ca.crt"),
		}
		var err error
		if config.TLS, err = files.ClientConfig(); err != nil {
			log.Fatal(err)
		}
	}
	c, err := clientv3.New(config)
	for ; err != nil; c, err = clientv3.New(config) { // it logs in, which takes its time on a busy machine
		log.Print(err)
		time.Sleep(time.Second / 10)
	}
	return c
}
