//go:build e2e

// Command writer is an application that is moved from one etcd to another: it writes keys one after the other, as the
// user $USER_NAME with $PASSWORD if there is one, to $ENDPOINT, and prints each key that etcd has acknowledged.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// patience is how long a write may take. A write that takes longer may be there or not.
const patience = 2 * time.Second

func main() {
	log.SetFlags(0)
	log.Fatal("writer: ", write(context.Background(), os.Getenv("HOSTNAME")))
}

// write goes on until it is killed.
func write(ctx context.Context, name string) error {
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{os.Getenv("ENDPOINT")}, DialTimeout: patience,
		Username: os.Getenv("USER_NAME"), Password: os.Getenv("PASSWORD"),
	})
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
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
