import com.google.protobuf.ByteString;
import com.google.rpc.ErrorInfo;
import grantty.v1.AttachInput;
import grantty.v1.AttachOpen;
import grantty.v1.AttachRequest;
import grantty.v1.AttachResponse;
import grantty.v1.AttachmentKind;
import grantty.v1.CreateTerminalRequest;
import grantty.v1.ExitStatus;
import grantty.v1.GetTerminalRequest;
import grantty.v1.KillRequest;
import grantty.v1.LogPosition;
import grantty.v1.TerminalRef;
import grantty.v1.TerminalServiceGrpc;
import grantty.v1.WatchRequest;
import grantty.v1.WriteRequest;
import io.grpc.CallCredentials;
import io.grpc.Context;
import io.grpc.Grpc;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.StatusRuntimeException;
import io.grpc.Status;
import io.grpc.TlsChannelCredentials;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.StreamObserver;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** A client of grantty in Java: what docs/clients.md says, done. Exits with 0 when all of it holds. */
public final class Client {
  private static final long TIMEOUT_S = 60;

  /** Reads the token for every call, so that a renewed one is used as soon as it is there. */
  private static final class Bearer extends CallCredentials {
    private static final Metadata.Key<String> AUTHORIZATION =
        Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);
    private final Path file = Path.of(System.getenv("GRANTTY_TOKEN_FILE"));

    @Override
    public void applyRequestMetadata(RequestInfo info, Executor executor, MetadataApplier applier) {
      executor.execute(
          () -> {
            try {
              Metadata metadata = new Metadata();
              metadata.put(AUTHORIZATION, "Bearer " + Files.readString(file).strip());
              applier.apply(metadata);
            } catch (IOException error) {
              applier.fail(Status.UNAUTHENTICATED.withCause(error));
            }
          });
    }
  }

  /** What to branch on; empty where the server gave none. */
  private static String reason(StatusRuntimeException error) throws IOException {
    com.google.rpc.Status status = StatusProto.fromThrowable(error);
    for (com.google.protobuf.Any detail : status.getDetailsList()) {
      if (!detail.is(ErrorInfo.class)) continue;
      ErrorInfo info = detail.unpack(ErrorInfo.class);
      if (info.getDomain().equals("grantty")) return info.getReason();
    }
    return "";
  }

  private static String refused(Runnable call) throws IOException {
    try {
      call.run();
      return "not refused";
    } catch (StatusRuntimeException error) {
      return reason(error);
    }
  }

  private static void check(boolean truth, String what) {
    if (!truth) throw new IllegalStateException("it does not hold: " + what);
    System.out.println("ok " + what);
  }

  public static void main(String[] args) throws Exception {
    var tls = TlsChannelCredentials.newBuilder().trustManager(new File(System.getenv("GRANTTY_CA")));
    ManagedChannel channel =
        Grpc.newChannelBuilder(System.getenv("GRANTTY_ADDRESS"), tls.build()).build();
    try {
      run(channel);
    } finally {
      channel.shutdownNow();
    }
  }

  private static void run(ManagedChannel channel) throws Exception {
    var credentials = new Bearer();
    var terminals =
        TerminalServiceGrpc.newBlockingStub(channel)
            .withCallCredentials(credentials)
            .withDeadlineAfter(TIMEOUT_S, TimeUnit.SECONDS);

    // A call with a request_id may be repeated: one effect, the same answer.
    var create =
        CreateTerminalRequest.newBuilder()
            .setAgent("java")
            .addCommand("/bin/cat")
            .setRequestId("java-create-1");
    var created = terminals.createTerminal(create.build()).getTerminal();
    var again = terminals.createTerminal(create.build()).getTerminal();
    check(created.getUid().equals(again.getUid()), "a repeated create has one effect");
    create.clearCommand().addCommand("/bin/true");
    check(
        refused(() -> terminals.createTerminal(create.build())).equals("REQUEST_ID_REUSED"),
        "another body under the same request_id is refused");

    TerminalRef ref = created.getRef();
    var streams = TerminalServiceGrpc.newStub(channel).withCallCredentials(credentials);
    LogPosition position = attach(streams, ref);
    terminals.kill(KillRequest.newBuilder().setTerminal(ref).build());
    resume(terminals, ref, position);

    var write =
        WriteRequest.newBuilder().setTerminal(ref).setData(ByteString.copyFromUtf8("x")).build();
    check(
        refused(() -> terminals.write(write)).equals("TERMINAL_EXITED"),
        "errors carry a reason to branch on");
    var unseen = GetTerminalRequest.newBuilder().setTerminal(ref.toBuilder().setOwner("nobody"));
    check(
        refused(() -> terminals.getTerminal(unseen.build())).equals("GRANT_MISSING"),
        "what cannot be seen cannot be told from what is not there");
  }

  /** The responses of one stream, to be taken one after another. */
  private static final class Responses implements StreamObserver<AttachResponse> {
    private final BlockingQueue<AttachResponse> queue = new LinkedBlockingQueue<>();
    private volatile Throwable end = new IllegalStateException("no response came in time");

    AttachResponse take() throws Exception {
      AttachResponse response = queue.poll(TIMEOUT_S, TimeUnit.SECONDS);
      if (response == null) throw new IllegalStateException(end);
      return response;
    }

    @Override
    public void onNext(AttachResponse response) {
      queue.add(response);
    }

    @Override
    public void onError(Throwable error) {
      end = error;
    }

    @Override
    public void onCompleted() {
      end = new IllegalStateException("the stream ended early");
    }
  }

  /** Types in two streams of one attachment and tells where the log stood. */
  private static LogPosition attach(
      TerminalServiceGrpc.TerminalServiceStub terminals, TerminalRef ref) throws Exception {
    var opening =
        AttachOpen.newBuilder().setTerminal(ref).setKind(AttachmentKind.ATTACHMENT_KIND_SERVICE);
    LogPosition position = LogPosition.getDefaultInstance();
    ByteString output = ByteString.EMPTY;
    long taken = 0;
    for (String line : new String[] {"first\n", "second\n"}) {
      boolean resumed = line.equals("second\n");
      var responses = new Responses();
      Context.CancellableContext context = Context.current().withCancellation();
      StreamObserver<AttachRequest> frames = context.call(() -> terminals.attach(responses));
      frames.onNext(AttachRequest.newBuilder().setOpen(opening).build());
      var started = responses.take().getStarted();
      check(started.getAttachmentResumed() == resumed, "resumed: " + resumed);
      check(started.getInputBytes() == taken, "the server knows what was taken of the input");
      var input = AttachInput.newBuilder().setData(ByteString.copyFromUtf8(line));
      frames.onNext(AttachRequest.newBuilder().setInput(input).build());
      long want = taken + line.length();
      while (taken < want || !output.endsWith(echoed(line))) {
        AttachResponse response = responses.take();
        switch (response.getEventCase()) {
          case OUTPUT -> {
            position =
                LogPosition.newBuilder()
                    .setAfterSeq(response.getOutput().getSeq())
                    .setLogEpoch(started.getLogEpoch())
                    .build();
            output = output.concat(response.getOutput().getData());
          }
          case INPUT_ACK -> taken = response.getInputAck().getBytes();
          case DENIED -> throw new IllegalStateException(response.getDenied().toString());
          default -> {}
        }
      }
      // A stream that breaks is resumed so: the attachment by its id, the output after the last seq.
      context.cancel(null);
      opening.setAttachmentId(started.getAttachmentId()).setAfter(position);
    }
    check(
        output.equals(echoed("first\n").concat(echoed("second\n"))),
        "no byte is missing or twice over two streams");
    return position;
  }

  /** What a terminal prints of a line that is typed to cat(1). */
  private static ByteString echoed(String line) {
    return ByteString.copyFromUtf8(line.replace("\n", "\r\n").repeat(2));
  }

  /** Watches the rest from a position, to its end. */
  private static void resume(
      TerminalServiceGrpc.TerminalServiceBlockingStub terminals,
      TerminalRef ref,
      LogPosition position) {
    ExitStatus exit = null;
    var request = WatchRequest.newBuilder().setTerminal(ref).setAfter(position).build();
    var events = terminals.watch(request);
    while (events.hasNext()) {
      var event = events.next();
      if (event.hasOutput() && event.getOutput().getSeq() <= position.getAfterSeq()) {
        throw new IllegalStateException("a seq came twice");
      }
      if (event.hasExited()) exit = event.getExited().getStatus();
    }
    check(
        exit != null && exit.getSignal().equals("SIGKILL") && exit.getExitCode() == 137,
        "a watch that is resumed ends with the exit, then OK");
  }

  private Client() {}
}
