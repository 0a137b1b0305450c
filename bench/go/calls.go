package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Runs `work` for every index below `count`, so many at a time; the first failure ends it.
func inParallel(count, parallel int, work func(i int) error) error {
	var next atomic.Int64
	failures := make(chan error, parallel)
	for range parallel {
		go func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= count {
					failures <- nil
					return
				}
				if err := work(i); err != nil {
					next.Store(int64(count))
					failures <- err
					return
				}
			}
		}()
	}
	var first error
	for range parallel {
		if err := <-failures; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Terminals that stay, and how long each call took.
func createMany(ctx context.Context, o *options) (any, error) {
	s, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	owners, names := ids(o, o.count)
	samples := make([]time.Duration, o.count)
	err = inParallel(o.count, o.parallel, func(i int) error {
		begin := time.Now()
		err := s.create(i, o, owners[i], names[i], o.command)
		samples[i] = time.Since(begin)
		return err
	})
	if err != nil {
		return nil, err
	}
	return latencyOf(samples), nil
}

// One unary call after the other, about terminals in turn: how long each takes.
func call(ctx context.Context, o *options) (any, error) {
	s, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	owners, names := targets(o)
	warmUp := o.count/10 + 1
	var samples []time.Duration
	for i := range warmUp + o.count {
		request := message(nil).bytes(1, ref(owners[i%len(owners)], names[i%len(names)]))
		begin := time.Now()
		if _, err := s.call(0, o.method, request); err != nil {
			return nil, err
		}
		if i >= warmUp {
			samples = append(samples, time.Since(begin))
		}
	}
	return latencyOf(samples), nil
}

// Gives each of several terminals the line that it waits for.
func typeLine(ctx context.Context, o *options) (any, error) {
	s, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	owners, names := targets(o)
	for i := range owners {
		if err := s.write(owners[i], names[i], []byte("\n")); err != nil {
			return nil, err
		}
	}
	return struct{}{}, nil
}

// Ends a terminal's processes.
func kill(ctx context.Context, o *options) (any, error) {
	s, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	_, err = s.call(0, terminals+"Kill", message(nil).bytes(1, ref(o.owner, o.id)))
	return struct{}{}, err
}

type rate struct {
	PerSecond float64 `json:"per_second"`
	// CPU seconds of the processes asked for, a second: 1 is a whole core.
	CPU float64 `json:"cpu"`
}

// Calls a unary method that takes a terminal, as often as the server answers.
func unary(ctx context.Context, o *options) (any, error) {
	const warmUpSeconds = 0.5
	s, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	request := message(nil).bytes(1, ref(o.owner, o.id))
	var calls atomic.Int64
	var over atomic.Bool
	var group sync.WaitGroup
	failures := make(chan error, o.parallel)
	for i := range o.parallel {
		group.Add(1)
		go func() {
			defer group.Done()
			for !over.Load() {
				response, err := s.call(i, o.method, request)
				if err == nil && len(response) == 0 {
					err = errors.New("an empty answer")
				}
				if err != nil {
					failures <- err
					return
				}
				calls.Add(1)
			}
		}()
	}
	time.Sleep(time.Duration(warmUpSeconds * float64(time.Second)))
	before, cpuBefore, begin := calls.Load(), 0.0, time.Now()
	if cpuBefore, err = cpuSeconds(o.pids); err != nil {
		return nil, err
	}
	time.Sleep(time.Duration(o.seconds * float64(time.Second)))
	took := time.Since(begin).Seconds()
	made := calls.Load() - before
	cpuAfter, err := cpuSeconds(o.pids)
	over.Store(true)
	group.Wait()
	select {
	case failure := <-failures:
		return nil, failure
	default:
		return rate{float64(made) / took, (cpuAfter - cpuBefore) / took}, err
	}
}

// Creates terminals whose command ends at once, and waits for the exit of each.
func churn(ctx context.Context, o *options) (any, error) {
	s, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	owners, names := ids(o, o.count)
	begin := time.Now()
	err = inParallel(o.count, o.parallel, func(i int) error {
		if err := s.create(i, o, owners[i], names[i], o.command); err != nil {
			return err
		}
		_, err := s.call(i, terminals+"Wait", message(nil).bytes(1, ref(owners[i], names[i])).number(2, 1))
		return err
	})
	return rate{PerSecond: float64(o.count) / time.Since(begin).Seconds()}, err
}

// One page of a list, again and again.
func list(ctx context.Context, o *options) (any, error) {
	s, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	request := message(nil).number(2, uint64(o.page))
	var samples []time.Duration
	for i := range o.count + o.count/10 + 1 {
		begin := time.Now()
		response, err := s.call(0, terminals+"ListTerminals", request)
		if err != nil {
			return nil, err
		}
		if found := countOf(response, 1); found != o.page {
			return nil, fmt.Errorf("a page of %d terminals instead of %d", found, o.page)
		}
		if i > o.count/10 {
			samples = append(samples, time.Since(begin))
		}
	}
	return latencyOf(samples), nil
}

// Waits for a pattern in what a terminal has printed.
func pattern(ctx context.Context, o *options) (any, error) {
	s, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	begin := time.Now()
	request := message(nil).bytes(1, ref(o.owner, o.id)).text(4, o.pattern).number(5, 0)
	response, err := s.call(0, terminals+"Wait", request)
	if err != nil {
		return nil, err
	}
	seconds := time.Since(begin).Seconds()
	return map[string]any{"seconds": seconds, "response_bytes": len(response)}, nil
}

func isUnimplemented(err error) bool { return status.Code(err) == codes.Unimplemented }
