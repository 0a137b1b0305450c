package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
)

func history(o *options, after int64) message {
	position := message(nil).number(1, uint64(after))
	return message(nil).bytes(1, ref(o.owner, o.id)).bytes(2, position).number(5, 0)
}

// Reads all history of a terminal.
func replay(ctx context.Context, o *options) (any, error) {
	s, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	begin := time.Now()
	stream, err := s.watch(s.ctx, 0, history(o, o.after))
	if err != nil {
		return nil, err
	}
	result := floodResult{}
	for {
		var event []byte
		err := stream.RecvMsg(&event)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if kind, body := arm(event); kind == armOutput {
			result.Bytes += int64(len(field(body, 3)))
			result.LastSeq = number(body, 1)
		}
	}
	result.Seconds = time.Since(begin).Seconds()
	return result, nil
}

// Watches from one event before the end, again and again: until that event is there.
func seek(ctx context.Context, o *options) (any, error) {
	s, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	var samples []time.Duration
	for i := range o.count + 10 {
		begin := time.Now()
		stream, err := s.watch(s.ctx, 0, history(o, o.after))
		if err != nil {
			return nil, err
		}
		found := false
		for {
			var event []byte
			err := stream.RecvMsg(&event)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			kind, body := arm(event)
			if !found && (kind == armOutput || kind == armExited) {
				found = true
				if seq := int64(number(body, 1)); seq != o.after+1 {
					return nil, fmt.Errorf("seq %d instead of %d", seq, o.after+1)
				}
				if i >= 10 {
					samples = append(samples, time.Since(begin))
				}
			}
		}
		if !found {
			return nil, fmt.Errorf("no event after seq %d", o.after)
		}
	}
	return latencyOf(samples), nil
}

// Opens streams, says so when all have begun, and takes what they give until standard input ends. A
// number on standard input: so many more.
func hold(ctx context.Context, o *options) (any, error) {
	s, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	owners, names := targets(o)
	ended := make(chan error, 1)
	held := 0
	open := func(more int) error {
		for ; more > 0; more-- {
			target := ref(owners[held%len(owners)], names[held%len(names)])
			stream, err := s.watch(s.ctx, held, message(nil).bytes(1, target).number(4, 1))
			if err != nil {
				return err
			}
			var event []byte
			if err := stream.RecvMsg(&event); err != nil {
				return err
			}
			if kind, _ := arm(event); kind != armStarted {
				return fmt.Errorf("arm %d instead of the start of a stream", kind)
			}
			held++
			go func() { ended <- drain(stream) }()
		}
		fmt.Println("held")
		return nil
	}
	told := make(chan error)
	go func() {
		wanted := bufio.NewScanner(os.Stdin)
		err := open(o.watchers)
		for err == nil && wanted.Scan() {
			more := 0
			if more, err = strconv.Atoi(wanted.Text()); err == nil {
				err = open(more)
			}
		}
		told <- err
	}()
	select {
	case err = <-told:
	case err = <-ended:
		err = fmt.Errorf("a stream ended while it was held: %w", err)
	}
	return map[string]int{"watchers": held}, err
}

// Takes all that a stream gives.
func drain(stream grpc.ClientStream) error {
	for {
		var event []byte
		if err := stream.RecvMsg(&event); err != nil {
			return err
		}
	}
}

type revokeResult struct {
	Unimplemented bool `json:"unimplemented"`
	// Milliseconds from the call to its answer, and to the last byte that any stream was given.
	AnswerMs   float64 `json:"answer_ms"`
	LastByteMs float64 `json:"last_byte_ms"`
}

// Watches a terminal that floods by many streams, then revokes the token that they stand on.
func revoke(ctx context.Context, o *options) (any, error) {
	s, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	var lastByte atomic.Int64
	delivering := make(chan struct{}, o.watchers)
	ended := make(chan error, o.watchers)
	begin := time.Now()
	for i := range o.watchers {
		stream, err := s.watch(s.ctx, i, message(nil).bytes(1, ref(o.owner, o.id)).number(4, 1))
		if err != nil {
			return nil, err
		}
		go func() {
			for seen := 0; ; {
				var event []byte
				if err := stream.RecvMsg(&event); err != nil {
					ended <- err
					return
				}
				if kind, _ := arm(event); kind != armOutput {
					continue
				}
				lastByte.Store(int64(time.Since(begin)))
				if seen++; seen == 1 {
					delivering <- struct{}{}
				}
			}
		}()
	}
	for range o.watchers {
		select {
		case <-delivering:
		case err := <-ended:
			return nil, fmt.Errorf("a stream ended before the revocation: %w", err)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	called := time.Since(begin)
	if _, err := s.call(0, "/grantty.v1.GrantService/Revoke", message(nil)); err != nil {
		if isUnimplemented(err) {
			return revokeResult{Unimplemented: true}, nil
		}
		return nil, err
	}
	answered := time.Since(begin)
	for range o.watchers {
		if err := <-ended; errors.Is(err, io.EOF) {
			return nil, errors.New("a stream ended well after its token was revoked")
		}
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
	last := max(0, time.Duration(lastByte.Load())-called)
	return revokeResult{AnswerMs: ms(answered - called), LastByteMs: ms(last)}, nil
}
