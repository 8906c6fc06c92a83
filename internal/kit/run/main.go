package run

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// All is the word on the command line for every operator in one process.
const All = "all"

// Version is the version of the program, set by the linker.
var Version = "dev"

// Commit is the revision that it was built from, set by the linker.
var Commit string

const (
	// serverPatience is how long the API server may take to answer at first, and
	// serverPause how long until the next try.
	serverPatience, serverPause = 5 * time.Second, time.Second
)

var errUsage = errors.New("usage")

// Main is the program: it reads the command line, runs the operators that it
// names until ctx ends, and returns the exit code. options have what no flag sets.
func Main(ctx context.Context, args []string, operators []Operator, options Options) int {
	err := runCommand(ctx, args, operators, options)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage): // the flag package has printed what is wrong
		return 2
	}
	fmt.Fprintf(os.Stderr, "fairlead: %v\n", err)
	return 1
}

// logOptions are those that the flags give. By default an error has no stack
// trace: one that is retried says what is wrong, and comes from the same place
// every time.
func logOptions(flags *flag.FlagSet) *zap.Options {
	logs := &zap.Options{}
	logs.BindFlags(flags)
	if err := flags.Set("zap-stacktrace-level", "panic"); err != nil {
		panic(err) // a flag of another name: a mistake here
	}
	return logs
}

func runCommand(ctx context.Context, args []string, operators []Operator, options Options) error {
	flags := flag.NewFlagSet("fairlead", flag.ContinueOnError)
	flags.Usage = func() { usage(flags, operators) }
	flags.SetOutput(os.Stderr)
	options.bind(flags)
	config.RegisterFlags(flags) // --kubeconfig
	logs := logOptions(flags)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil {
		return errUsage
	}

	if flags.NArg() == 1 && flags.Arg(0) == "version" {
		fmt.Printf("fairlead %s, commit %s\n", Version, commit())
		return nil
	}
	chosen, err := choose(flags.Args(), operators)
	if err != nil {
		return err
	}

	logger := zap.New(zap.UseFlagOptions(logs))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger) // client-go's leader election logs through klog
	logger.Info("starting", "operators", names(chosen), "version", Version, "commit", commit())

	cfg, err := config.GetConfig()
	if err != nil {
		return fmt.Errorf("no cluster to work for: run in a pod, or give --kubeconfig or $KUBECONFIG: %w", err)
	}
	if options.ElectionNamespace == "" && options.Election != NoElection {
		if options.ElectionNamespace, err = electionNamespace(flags.Lookup("kubeconfig").Value.String()); err != nil {
			return err
		}
	}
	if err := waitForServer(ctx, logger, cfg, options.ProbeAddress); err != nil {
		return err
	}
	return runManagers(ctx, logger, cfg, options, chosen...)
}

// waitForServer returns once the API server answers. To make a manager takes an API
// server; a process that ended without one would be restarted later and later, and so
// start long after the API server does. For the same reason the liveness probe is
// answered meanwhile.
func waitForServer(ctx context.Context, log logr.Logger, cfg *rest.Config, probes string) error {
	stop, err := answerProbes(ctx, probes)
	if err != nil {
		return err
	}
	defer stop()
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = serverPatience
	server, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return err
	}
	for logged := false; ; logged = true {
		_, err := server.ServerVersion()
		if err == nil {
			return nil
		}
		if !logged {
			log.Info("waiting for the API server", "host", cfg.Host, "why", err.Error())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the API server at %s did not answer: %w", cfg.Host, err)
		case <-time.After(serverPause):
		}
	}
}

// answerProbes serves what a manager does that is alive and not ready, until stop
// is called.
func answerProbes(ctx context.Context, address string) (stop func(), err error) {
	if address = disabledIfEmpty(address); address == "0" {
		return func() {}, nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--health-probe-bind-address: %w", err)
	}
	server := &http.Server{ReadHeaderTimeout: serverPatience, Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasPrefix(req.URL.Path, "/healthz") {
			_, _ = fmt.Fprint(w, "ok")
			return
		}
		http.Error(w, "waiting for the API server", http.StatusServiceUnavailable)
	})}
	go func() { _ = server.Serve(listener) }()
	return func() { _ = server.Close() }, nil
}

// choose finds the operators that the command line names.
func choose(args []string, operators []Operator) ([]Operator, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("say which operator to run, one of: %s", strings.Join(words(operators), ", "))
	}
	if args[0] == All {
		return operators, nil
	}
	for _, operator := range operators {
		if operator.Name == args[0] {
			return []Operator{operator}, nil
		}
	}
	return nil, fmt.Errorf("there is no operator %q, only: %s", args[0], strings.Join(words(operators), ", "))
}

func words(operators []Operator) []string {
	var words []string
	for _, operator := range operators {
		words = append(words, operator.Name)
	}
	return append(words, All)
}

func usage(flags *flag.FlagSet, operators []Operator) {
	_, _ = fmt.Fprintf(flags.Output(), "Usage: fairlead [flags] %s\n       fairlead version\n\nFlags:\n", strings.Join(words(operators), "|"))
	flags.PrintDefaults()
}

// commit is the revision that the program was built from, if the linker or Go
// recorded it.
func commit() string {
	if Commit != "" {
		return Commit
	}
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				return setting.Value
			}
		}
	}
	return "unknown"
}
