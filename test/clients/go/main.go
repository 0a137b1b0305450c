// A client of grantty in Go: what docs/clients.md says, done. Exits with 0 when all of it holds.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	pb "grantty.test/client/gen/grantty/v1"
)

// bearer reads the token for every call, so that a renewed one is used as soon as it is there.
type bearer struct{ file string }

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	token, err := os.ReadFile(b.file)
	return map[string]string{"authorization": "Bearer " + strings.TrimSpace(string(token))}, err
}

func (bearer) RequireTransportSecurity() bool { return true }

// reason is what to branch on; empty where the server gave none.
func reason(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.Domain == "grantty" {
			return info.Reason
		}
	}
	return ""
}

func must(err error) {
	if err != nil {
		log.Fatalf("%v %s", err, reason(err))
	}
}

func check(truth bool, what string) {
	if !truth {
		log.Fatalf("it does not hold: %s", what)
	}
	fmt.Println("ok", what)
}

func main() {
	creds, err := credentials.NewClientTLSFromFile(os.Getenv("GRANTTY_CA"), "")
	must(err)
	conn, err := grpc.NewClient(os.Getenv("GRANTTY_ADDRESS"),
		grpc.WithTransportCredentials(creds),
		grpc.WithPerRPCCredentials(bearer{os.Getenv("GRANTTY_TOKEN_FILE")}),
		// Flow control by the receiver: a stream that is not read holds back itself alone.
		grpc.WithInitialWindowSize(1<<20), grpc.WithInitialConnWindowSize(4<<20))
	must(err)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	terminals := pb.NewTerminalServiceClient(conn)

	// A call with a request_id may be repeated: one effect, the same answer.
	create := &pb.CreateTerminalRequest{
		Agent: "go", Command: []string{"/bin/cat"}, RequestId: "go-create-1",
	}
	created, err := terminals.CreateTerminal(ctx, create)
	must(err)
	again, err := terminals.CreateTerminal(ctx, create)
	must(err)
	check(created.Terminal.Uid == again.Terminal.Uid, "a repeated create has one effect")
	create.Command = []string{"/bin/true"}
	_, err = terminals.CreateTerminal(ctx, create)
	check(reason(err) == "REQUEST_ID_REUSED", "another body under the same request_id is refused")

	ref := created.Terminal.Ref
	epoch, lastSeq := attach(ctx, terminals, ref)

	_, err = terminals.Kill(ctx, &pb.KillRequest{Terminal: ref})
	must(err)
	resume(ctx, terminals, ref, epoch, lastSeq)

	_, err = terminals.Write(ctx, &pb.WriteRequest{Terminal: ref, Data: []byte("x")})
	check(reason(err) == "TERMINAL_EXITED", "errors carry a reason to branch on")
	nobody := "nobody"
	_, err = terminals.GetTerminal(ctx, &pb.GetTerminalRequest{
		Terminal: &pb.TerminalRef{Owner: &nobody, Id: ref.Id}})
	check(reason(err) == "GRANT_MISSING", "what cannot be seen cannot be told from what is not there")
}

// attach types in two streams of one attachment and tells where the log stood.
func attach(ctx context.Context, terminals pb.TerminalServiceClient, ref *pb.TerminalRef) (uint32, uint64) {
	open := &pb.AttachOpen{Terminal: ref, Kind: pb.AttachmentKind_ATTACHMENT_KIND_SERVICE}
	var lastSeq, taken uint64
	var output []byte
	for round, line := range []string{"first\n", "second\n"} {
		streamCtx, leave := context.WithCancel(ctx)
		stream, err := terminals.Attach(streamCtx)
		must(err)
		must(stream.Send(&pb.AttachRequest{Frame: &pb.AttachRequest_Open{Open: open}}))
		response, err := stream.Recv()
		must(err)
		started := response.GetStarted()
		check(started.AttachmentResumed == (round > 0), fmt.Sprint("resumed: ", round > 0))
		check(started.InputBytes == taken, "the server knows what was taken of the input")
		must(stream.Send(&pb.AttachRequest{Frame: &pb.AttachRequest_Input{
			Input: &pb.AttachInput{Data: []byte(line)}}}))
		for want := taken + uint64(len(line)); taken < want || !bytes.HasSuffix(output, echoed(line)); {
			response, err := stream.Recv()
			must(err)
			switch event := response.Event.(type) {
			case *pb.AttachResponse_Output:
				lastSeq = event.Output.Seq
				output = append(output, event.Output.Data...)
			case *pb.AttachResponse_InputAck:
				taken = event.InputAck.Bytes
			case *pb.AttachResponse_Denied:
				log.Fatal(event.Denied)
			}
		}
		// A stream that breaks is resumed so: the attachment by its id, the output after the last seq.
		leave()
		open.AttachmentId = started.AttachmentId
		open.Start = &pb.AttachOpen_After{
			After: &pb.LogPosition{AfterSeq: lastSeq, LogEpoch: &started.LogEpoch}}
		if round > 0 {
			check(bytes.Equal(output, append(echoed("first\n"), echoed("second\n")...)),
				"no byte is missing or twice over two streams")
			return started.LogEpoch, lastSeq
		}
	}
	panic("unreachable")
}

// echoed is what a terminal prints of a line that is typed to cat(1).
func echoed(line string) []byte {
	text := strings.ReplaceAll(line, "\n", "\r\n")
	return []byte(text + text)
}

// resume watches the rest from a position, then everything, and compares.
func resume(ctx context.Context, terminals pb.TerminalServiceClient, ref *pb.TerminalRef, epoch uint32, seq uint64) {
	stream, err := terminals.Watch(ctx, &pb.WatchRequest{Terminal: ref, Start: &pb.WatchRequest_After{
		After: &pb.LogPosition{AfterSeq: seq, LogEpoch: &epoch}}})
	must(err)
	var exit *pb.Exited
	for {
		response, err := stream.Recv()
		if err == io.EOF {
			break
		}
		must(err)
		if output := response.GetOutput(); output != nil && output.Seq <= seq {
			log.Fatal("a seq came twice")
		}
		if exited := response.GetExited(); exited != nil {
			exit = exited
		}
	}
	check(exit != nil && exit.Status.Signal == "SIGKILL" && exit.Status.GetExitCode() == 137,
		"a watch that is resumed ends with the exit, then OK")
}
