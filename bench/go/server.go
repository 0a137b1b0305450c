package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

const terminals = "/grantty.v1.TerminalService/"

// Windows that never hold the server back: what is measured is how fast it can send.
const (
	streamWindow     = 4 << 20
	connectionWindow = 16 << 20
)

// Connections to the server, used in turn, and a context that carries the token.
type server struct {
	conns []*grpc.ClientConn
	ctx   context.Context
}

func dial(ctx context.Context, o *options) (*server, error) {
	transport := insecure.NewCredentials()
	if o.caFile != "" {
		pem, err := os.ReadFile(o.caFile)
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, errors.New("no certificate in " + o.caFile)
		}
		transport = credentials.NewTLS(&tls.Config{RootCAs: roots})
	}
	token := ""
	if o.tokenFile != "" {
		text, err := os.ReadFile(o.tokenFile)
		if err != nil {
			return nil, err
		}
		token = strings.TrimSpace(string(text))
	}
	s := &server{ctx: metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)}
	for range max(1, o.conns) {
		conn, err := grpc.DialContext(ctx, o.address, grpc.WithBlock(),
			grpc.WithTransportCredentials(transport),
			grpc.WithInitialWindowSize(streamWindow),
			grpc.WithInitialConnWindowSize(connectionWindow),
			grpc.WithReadBufferSize(128<<10),
			grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}), grpc.MaxCallRecvMsgSize(64<<20)))
		if err != nil {
			return nil, err
		}
		s.conns = append(s.conns, conn)
	}
	return s, nil
}

func (s *server) close() {
	for _, conn := range s.conns {
		_ = conn.Close()
	}
}

func (s *server) call(i int, path string, request message) ([]byte, error) {
	var response []byte
	err := s.conns[i%len(s.conns)].Invoke(s.ctx, path, request, &response)
	return response, err
}

func (s *server) create(i int, o *options, owner, id string, command []string) error {
	request := message(nil).text(1, owner).text(2, o.agent).text(4, id)
	for _, argument := range command {
		request = request.bytes(5, []byte(argument))
	}
	_, err := s.call(i, terminals+"CreateTerminal", request)
	return err
}

func (s *server) write(owner, id string, data []byte) error {
	_, err := s.call(0, terminals+"Write", message(nil).bytes(1, ref(owner, id)).bytes(2, data))
	return err
}

var streamDesc = &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}

func (s *server) stream(ctx context.Context, i int, path string, first message) (grpc.ClientStream, error) {
	stream, err := s.conns[i%len(s.conns)].NewStream(ctx, streamDesc, path)
	if err != nil {
		return nil, err
	}
	return stream, stream.SendMsg(first)
}

func (s *server) watch(ctx context.Context, i int, request message) (grpc.ClientStream, error) {
	stream, err := s.stream(ctx, i, terminals+"Watch", request)
	if err != nil {
		return nil, err
	}
	return stream, stream.CloseSend()
}

// Seconds of CPU, user and system, that the processes have used since they began (proc(5), stat).
func cpuSeconds(pids string) (float64, error) {
	const ticksPerSecond = 100
	total := 0.0
	for _, pid := range strings.Split(pids, ",") {
		if pid == "" {
			continue
		}
		text, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			return 0, err
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+2:]))
		for _, field := range fields[11:13] {
			ticks, err := strconv.ParseFloat(field, 64)
			if err != nil {
				return 0, err
			}
			total += ticks / ticksPerSecond
		}
	}
	return total, nil
}

func ids(o *options, n int) (owners, names []string) {
	list := strings.Split(o.owners, ",")
	if o.owners == "" {
		list = []string{o.owner}
	}
	for i := o.first; i < o.first+n; i++ {
		owners = append(owners, list[i%len(list)])
		names = append(names, fmt.Sprintf("%s%d", o.id, i))
	}
	return owners, names
}

// The terminals that watchers or calls are spread over.
func targets(o *options) (owners, names []string) {
	if o.spread == 0 {
		return []string{o.owner}, []string{o.id}
	}
	return ids(o, o.spread)
}
