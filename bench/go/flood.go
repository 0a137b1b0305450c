package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// What every flooding command prints first. It then waits for a line, and what it prints after that
// is the flood: so no contestant has anything buffered when the clock starts.
var ready = []byte("ready\r\n")

type floodResult struct {
	Seconds float64 `json:"seconds"`
	// Delivered to all watchers together, after the start.
	Bytes int64 `json:"bytes"`
	// The greatest that every watcher has seen.
	LastSeq uint64 `json:"last_seq"`
	// CPU seconds of the processes asked for.
	CPU float64 `json:"cpu"`
}

// Creates a terminal, has any number of watchers on it, lets it flood.
func flood(ctx context.Context, o *options) (any, error) {
	s, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.create(0, o, o.owner, o.id, o.command); err != nil {
		return nil, err
	}
	type end struct {
		lastSeq uint64
		at      time.Time
		err     error
	}
	started := make(chan error, o.watchers)
	ended := make(chan end, o.watchers)
	watchCtx, stop := context.WithCancel(s.ctx)
	defer stop()
	for i := range o.watchers {
		stream, err := s.watch(watchCtx, i, message(nil).bytes(1, ref(o.owner, o.id)))
		if err != nil {
			return nil, err
		}
		go func() {
			var total int64
			var lastSeq uint64
			wanted := int64(len(ready)) + o.bytes
			isReady := false
			for total < wanted {
				var event []byte
				if err := stream.RecvMsg(&event); err != nil {
					started <- err
					ended <- end{err: fmt.Errorf("after %d of %d bytes: %w", total, wanted, err)}
					return
				}
				kind, body := arm(event)
				if kind != armOutput {
					continue
				}
				total += int64(len(field(body, 3)))
				lastSeq = number(body, 1)
				if !isReady && total >= int64(len(ready)) {
					isReady = true
					started <- nil
				}
			}
			ended <- end{lastSeq: lastSeq, at: time.Now()}
		}()
	}
	for range o.watchers {
		if err := <-started; err != nil {
			return nil, err
		}
	}
	before, err := cpuSeconds(o.pids)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := s.write(o.owner, o.id, []byte("\n")); err != nil {
		return nil, err
	}
	result := floodResult{Bytes: o.bytes * int64(o.watchers)}
	for range o.watchers {
		end := <-ended
		if end.err != nil {
			return nil, end.err
		}
		result.Seconds = max(result.Seconds, end.at.Sub(begin).Seconds())
		if result.LastSeq == 0 || end.lastSeq < result.LastSeq {
			result.LastSeq = end.lastSeq
		}
	}
	after, err := cpuSeconds(o.pids)
	result.CPU = after - before
	return result, err
}

// The same through another program's standard input and output: `ssh -tt`.
func execFlood(ctx context.Context, o *options) (any, error) {
	child, err := spawn(ctx, o.command)
	if err != nil {
		return nil, err
	}
	defer child.end()
	if err := child.untilReady(); err != nil {
		return nil, err
	}
	begin := time.Now()
	if _, err := child.in.Write([]byte("\n")); err != nil {
		return nil, err
	}
	buffer := make([]byte, 1<<20)
	var total int64
	for total < o.bytes {
		n, err := child.out.Read(buffer)
		total += int64(n)
		if err != nil && total < o.bytes {
			return nil, fmt.Errorf("after %d of %d bytes: %w", total, o.bytes, err)
		}
	}
	return floodResult{Seconds: time.Since(begin).Seconds(), Bytes: total}, nil
}

type process struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     io.Reader
}

func spawn(ctx context.Context, argv []string) (*process, error) {
	if len(argv) == 0 {
		return nil, errors.New("name a command")
	}
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &process{command, in, out}, command.Start()
}

func (p *process) untilReady() error {
	var seen []byte
	buffer := make([]byte, 256)
	for !bytes.Contains(seen, ready[:5]) || !bytes.HasSuffix(seen, []byte("\n")) {
		n, err := p.out.Read(buffer)
		if err != nil {
			return fmt.Errorf("before it was ready: %w", err)
		}
		seen = append(seen, buffer[:n]...)
	}
	return nil
}

func (p *process) end() {
	_ = p.in.Close()
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}
