package main

import (
	"context"
	"fmt"
	"sort"
	"time"
)

type latency struct {
	P50     float64 `json:"p50_us"`
	P99     float64 `json:"p99_us"`
	Max     float64 `json:"max_us"`
	Samples int     `json:"samples"`
}

func latencyOf(samples []time.Duration) latency {
	sort.Slice(samples, func(a, b int) bool { return samples[a] < samples[b] })
	at := func(share float64) float64 {
		return float64(samples[int(share*float64(len(samples)-1))].Nanoseconds()) / 1e3
	}
	return latency{at(0.5), at(0.99), at(1), len(samples)}
}

// Keystrokes that are not counted: connections, caches and compilers settle.
const warmUp = 200

// Sends one byte, waits for it to come back, so many times.
func ping(count int, send func(byte) error, receive func() (byte, error)) (any, error) {
	var samples []time.Duration
	for i := range warmUp + count {
		key := byte('a' + i%26)
		begin := time.Now()
		if err := send(key); err != nil {
			return nil, err
		}
		got, err := receive()
		if err != nil {
			return nil, err
		}
		if got != key {
			return nil, fmt.Errorf("typed %q, got %q", key, got)
		}
		if i >= warmUp {
			samples = append(samples, time.Since(begin))
		}
	}
	return latencyOf(samples), nil
}

// Through Attach. The command prints `ready`, and from then on what it reads.
func echo(ctx context.Context, o *options) (any, error) {
	const kindHuman = 2
	s, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.create(0, o, o.owner, o.id, o.command); err != nil {
		return nil, err
	}
	open := message(nil).bytes(1, ref(o.owner, o.id)).number(2, kindHuman)
	attachCtx, stop := context.WithCancel(s.ctx)
	defer stop()
	stream, err := s.stream(attachCtx, 0, terminals+"Attach", message(nil).bytes(1, open))
	if err != nil {
		return nil, err
	}
	output := func() ([]byte, error) {
		for {
			var event []byte
			if err := stream.RecvMsg(&event); err != nil {
				return nil, err
			}
			if kind, body := arm(event); kind == armOutput {
				return field(body, 3), nil
			}
		}
	}
	for seen := 0; seen < len("ready\n"); {
		data, err := output()
		if err != nil {
			return nil, err
		}
		seen += len(data)
	}
	return ping(o.count,
		func(key byte) error {
			return stream.SendMsg(message(nil).bytes(2, message(nil).bytes(1, []byte{key})))
		},
		func() (byte, error) {
			data, err := output()
			if err != nil || len(data) != 1 {
				return 0, fmt.Errorf("%d bytes for one key: %w", len(data), err)
			}
			return data[0], nil
		})
}

// Through another program's standard input and output: `ssh -tt`.
func execEcho(ctx context.Context, o *options) (any, error) {
	child, err := spawn(ctx, o.command)
	if err != nil {
		return nil, err
	}
	defer child.end()
	if err := child.untilReady(); err != nil {
		return nil, err
	}
	buffer := make([]byte, 1)
	return ping(o.count,
		func(key byte) error { _, err := child.in.Write([]byte{key}); return err },
		func() (byte, error) { _, err := child.out.Read(buffer); return buffer[0], err })
}
