package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

const (
	// quietRequests a second, besides leases and watches, are what an idle
	// cluster makes.
	quietRequests = 5
	// quietCPU is how much of the machine may be busy. What runs at a low
	// priority (nice) does not count: it gives way.
	quietCPU = 0.35
	// cpuPatience is how long a machine that others use is waited for.
	cpuPatience = time.Minute
	// requestPatience is how long the cluster is waited for.
	requestPatience = 15 * time.Minute
)

// quiet waits until the cluster has nothing left to do and the machine is
// mostly idle, for two seconds in a row. A machine that stays busy is used as
// it is, after a while, and this is said, because the figures then show it.
func (b *bench) quiet(ctx context.Context) error {
	runtime.GC() // now, rather than while measuring
	started := time.Now()
	defer func() { b.waited += time.Since(started) }()
	tail, err := b.tailAudit()
	if err != nil {
		return err
	}
	defer tail.close()
	for quiet := 0; quiet < 2; {
		before, err := readCPU()
		if err != nil {
			return err
		}
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
		after, err := readCPU()
		if err != nil {
			return err
		}
		requests, err := tail.next()
		if err != nil {
			return err
		}
		busy := after.busySince(before)
		made := count(requests, func(r request) bool { return r.isWrite() || r.isRead() })
		waited := time.Since(started)
		switch {
		case made > quietRequests && waited > requestPatience:
			return fmt.Errorf("the cluster is not quiet after %s: in the last second %s", requestPatience, summary(requests))
		case made > quietRequests:
			quiet = 0
		case busy > quietCPU && waited > cpuPatience:
			b.say("the machine is %.0f%% busy with other things: the figures suffer", 100*busy)
			return nil
		case busy > quietCPU:
			quiet = 0
		default:
			quiet++
		}
	}
	return nil
}

// cpuTimes are the machine's clock ticks since it started.
type cpuTimes struct{ idle, total uint64 }

func readCPU() (cpuTimes, error) {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return cpuTimes{}, err
	}
	line, _, _ := strings.Cut(string(content), "\n")
	var user, nice, system, idle, wait, irq, softirq, steal uint64
	n, _ := fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &wait, &irq, &softirq, &steal)
	if n != 8 {
		return cpuTimes{}, errors.New("/proc/stat does not tell the CPU's times")
	}
	return cpuTimes{idle: idle + wait + nice, total: user + nice + system + idle + wait + irq + softirq + steal}, nil
}

// busySince is the part of the machine that was in use.
func (c cpuTimes) busySince(before cpuTimes) float64 {
	total := c.total - before.total
	if total == 0 {
		return 0
	}
	return 1 - float64(c.idle-before.idle)/float64(total)
}
