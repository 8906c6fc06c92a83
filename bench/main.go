// Command bench measures the operators, deployed as they are for users, in pods
// on a real local cluster, against bare clients and against CronJob. See
// README.md for what the figures mean and how they are taken.
//
//	localcluster run -- go run ./bench [-run burst,idle] [-rounds 5]
//
// It needs KUBECONFIG, LOCALCLUSTER_DIR and kubectl, as localcluster run gives
// them, and bin/fairlead, bin/fairlead-at-start, bin/fairlead-etcd-agent and
// bin/localcluster, as make build builds them; and for etcd-backup and
// etcd-restore bin/versitygw and bin/s3pipe, as make bench-programs does. The
// exit code is 1 when a bound is missed or a measure could not be taken.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// measure is one of the measures, by the word that selects it.
type measure struct {
	name     string
	operator operator
	images   []string // that it needs, besides the operator's
	take     func(context.Context, *bench) ([]figure, error)
}

// measures are in the order in which they are taken: what leaves the most
// behind comes last.
var measures = []measure{
	{"burst", atOperator, nil, burst},
	{"steady", atOperator, nil, steady},
	{"process", atOperator, []string{processImage}, processes},
	{"pulled", atOperator, nil, pulled},
	{"cronjob", atOperator, nil, cronJobs},
	{"writes", atOperator, nil, writes},
	{"idle", atOperator, nil, idle},
	{"webservers", webServerOperator, []string{webImage}, webServers.measure},
	{"webserver-repair", webServerOperator, []string{webImage}, repair},
	{servedWebServer.measure, webServerOperator, []string{webImage}, servedWebServer.take},
	{"configmaps", webServerOperator, []string{webImage}, beside},
	{"memcacheds", memcachedOperator, memcachedImages, memcacheds.measure},
	{"memcached-warm", memcachedOperator, memcachedImages, warm},
	{"memcached-ring", memcachedOperator, memcachedImages, remapped},
	{servedMemcached.measure, memcachedOperator, memcachedImages, servedMemcached.take},
	{"etcd-bootstrap", etcdOperator, etcdImages, bootstrap},
	{servedEtcd.measure, etcdOperator, etcdImages, servedEtcd.take},
	{"etcd-repair", etcdOperator, etcdImages, repairMembers},
	{"etcd-kills", etcdOperator, etcdImages, killMembers},
	{"etcd-upgrade", etcdOperator, etcdImages, upgradeMembers},
	{"etcd-history", etcdOperator, etcdImages, overwriteKey},
	{"etcd-backup", etcdOperator, etcdImages, backUpEtcd},
	{"etcd-restore", etcdOperator, etcdImages, restoreEtcd},
	{"etcd-idle", etcdOperator, etcdImages, restingEtcds},
	{"etcd-waiting", etcdOperator, etcdImages, waitingEtcds},
	{"etcd-silent", etcdOperator, etcdImages, besideSilentEtcds},
	{scaleEtcds.measure, etcdOperator, nil, scaleEtcds.take},
	{scaleMemcacheds.measure, memcachedOperator, nil, scaleMemcacheds.take},
	{scaleWebServers.measure, webServerOperator, nil, scaleWebServers.take},
	{scaleAts.measure, atOperator, nil, scaleAts.take},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := takeMeasures(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
	}
	if err != nil || !ok {
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

// takeMeasures takes the measures that the command line asks for and prints the table.
// ok is false when a bound was missed.
func takeMeasures(ctx context.Context) (ok bool, err error) {
	var options options
	wanted := flag.String("run", strings.Join(names(), ","), "the `measures` to take, separated by commas")
	flag.IntVar(&options.rounds, "rounds", 5, "how often the measures that are ratios are repeated; medians count")
	flag.IntVar(&options.burst, "burst", 1000, "how many Ats are due in the same second")
	flag.IntVar(&options.processes, "processes", 60, "how many commands are due in the same second in the measure process")
	flag.IntVar(&options.idle, "idle", 10_000, "how many Ats wait in the measure idle")
	flag.IntVar(&options.scale, "scale", 100_000, "how many Ats wait in the measure scale at last; of the other kinds there are a tenth as many, and a thousandth of EtcdClusters")
	flag.IntVar(&options.fleet, "fleet", 500, "how many WebServers, and Memcacheds, are created at once")
	flag.IntVar(&options.etcds, "etcds", 100, "how many EtcdClusters there are in the measures etcd-idle and etcd-waiting")
	flag.IntVar(&options.database, "database", 1024, "how large the database is, in MiB, in the measures etcd-backup and etcd-restore")
	flag.DurationVar(&options.overwrite, "overwrite", 10*time.Minute, "for how long a key is overwritten in the measure etcd-history")
	flag.StringVar(&options.charts, "charts", "", "the `folder` for what make plots draws, if any")
	flag.StringVar(&options.manager, "manager", "bin/fairlead", "the `program` that is deployed as the operators")
	flag.StringVar(&options.start, "start", "bin/fairlead-at-start", "the `program` by which the processes of Ats wait")
	flag.StringVar(&options.agent, "agent", "bin/fairlead-etcd-agent", "the `program` in the pods of backups")
	flag.StringVar(&options.localcluster, "localcluster", "bin/localcluster", "the `program` that loads it into the cluster")
	flag.StringVar(&options.slowregistry, "slowregistry", "bin/slowregistry", "the registry of the measure pulled, a `program` that runs in the cluster")
	flag.StringVar(&options.versitygw, "versitygw", "bin/versitygw", "the S3 gateway, a `program` that runs in the cluster")
	flag.StringVar(&options.s3pipe, "s3pipe", "bin/s3pipe", "the `program` that backups are measured against")
	flag.Parse()

	selected, err := choose(*wanted)
	if err != nil {
		return false, err
	}
	b, err := newBench(options)
	if err != nil {
		return false, err
	}
	started := time.Now()
	var figures []figure
	deployed := map[operator]bool{}
	for _, m := range selected {
		b.say("== %s", m.name)
		if !deployed[m.operator] {
			if err := b.deploy(ctx, m.operator, m.images...); err != nil {
				return false, err
			}
			deployed[m.operator] = true
		}
		taken, failure := m.take(ctx, b)
		figures = append(figures, taken...)
		if failure != nil {
			err = errors.Join(err, fmt.Errorf("measure %s: %w", m.name, failure))
		}
		if ctx.Err() != nil {
			err = errors.Join(err, context.Cause(ctx))
			break
		}
	}
	b.say("took %s, of which %s were spent waiting for the machine and the cluster to be quiet",
		time.Since(started).Round(time.Second), b.waited.Round(time.Second))
	fmt.Print(table(figures))
	return allMet(figures), err
}

func names() []string {
	var names []string
	for _, m := range measures {
		names = append(names, m.name)
	}
	return names
}

// choose finds the measures that a list names, in their own order.
func choose(list string) ([]measure, error) {
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(list, ",") {
		wanted[strings.TrimSpace(name)] = true
	}
	var chosen []measure
	for _, m := range measures {
		if wanted[m.name] {
			chosen = append(chosen, m)
			delete(wanted, m.name)
		}
	}
	for name := range wanted {
		return nil, fmt.Errorf("there is no measure %q, only: %s", name, strings.Join(names(), ", "))
	}
	return chosen, nil
}
