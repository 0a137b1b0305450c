// The load generator and stopwatch of the bench: one measurement a run, one line of JSON.
//
// It is no Node.js program, so that the program under test is not timed by another event loop, and
// it speaks gRPC by the plain bytes of its messages, so that decoding them costs next to nothing.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

type options struct {
	address, caFile, tokenFile string
	owner, id, agent           string
	owners                     string
	count, watchers, conns     int
	parallel, page             int
	first, spread              int
	bytes, after               int64
	seconds, timeout           float64
	pattern, pids              string
	method                     string
	command                    []string
}

// A mode measures one thing; what it answers is printed as JSON.
var modes = map[string]func(context.Context, *options) (any, error){
	"create":     createMany,
	"call":       call,
	"kill":       kill,
	"flood":      flood,
	"exec-flood": execFlood,
	"echo":       echo,
	"exec-echo":  execEcho,
	"type":       typeLine,
	"unary":      unary,
	"churn":      churn,
	"list":       list,
	"replay":     replay,
	"seek":       seek,
	"pattern":    pattern,
	"hold":       hold,
	"revoke":     revoke,
}

func main() {
	if len(os.Args) < 2 || modes[os.Args[1]] == nil {
		fail(fmt.Errorf("name a mode: %s", strings.Join(names(), ", ")))
	}
	var o options
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	flags.StringVar(&o.address, "address", "", "host:port of the server")
	flags.StringVar(&o.caFile, "ca", "", "PEM of its authority; absent: plain TCP")
	flags.StringVar(&o.tokenFile, "token-file", "", "file with the bearer token")
	flags.StringVar(&o.owner, "owner", "", "owner of the terminal")
	flags.StringVar(&o.owners, "owners", "", "comma-separated owners to spread terminals over")
	flags.StringVar(&o.agent, "agent", "bench", "agent of new terminals")
	flags.StringVar(&o.id, "id", "", "id of the terminal, or the beginning of several")
	flags.IntVar(&o.count, "count", 1, "how many times, or how many")
	flags.IntVar(&o.watchers, "watchers", 1, "streams")
	flags.IntVar(&o.conns, "conns", 1, "connections that streams or calls are spread over")
	flags.IntVar(&o.parallel, "parallel", 1, "calls in flight")
	flags.IntVar(&o.first, "first", 0, "number of the first of several terminals")
	flags.IntVar(&o.spread, "spread", 0, "terminals that watchers or calls are spread over; 0: the one that the id names")
	flags.IntVar(&o.page, "page", 100, "page size")
	flags.Int64Var(&o.bytes, "bytes", 0, "output bytes to wait for once it was told to go")
	flags.Int64Var(&o.after, "after", 0, "seq to start after")
	flags.Float64Var(&o.seconds, "seconds", 1, "how long to measure")
	flags.Float64Var(&o.timeout, "timeout", 60, "seconds after which it has failed")
	flags.StringVar(&o.pattern, "pattern", "", "what to wait for")
	flags.StringVar(&o.pids, "pids", "", "comma-separated processes whose CPU time is counted")
	flags.StringVar(&o.method, "method", "/grantty.v1.TerminalService/GetTerminal", "path of a unary method that takes a terminal")
	_ = flags.Parse(os.Args[2:])
	o.command = flags.Args()

	// What it has started ends with it: a child that it left would go on flooding.
	told, quiet := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer quiet()
	ctx, cancel := context.WithTimeout(told, time.Duration(o.timeout*float64(time.Second)))
	defer cancel()
	result, err := modes[os.Args[1]](ctx, &o)
	if err != nil {
		fail(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		fail(err)
	}
}

func names() []string {
	var all []string
	for name := range modes {
		all = append(all, name)
	}
	return all
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
