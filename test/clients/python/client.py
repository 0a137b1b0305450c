"""A client of grantty in Python: what docs/clients.md says, done. Exits with 0 when all of it holds."""

import os
import queue
import sys

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "gen"))
from grantty.v1 import stream_pb2, terminal_pb2, terminal_service_pb2 as pb  # noqa: E402
from grantty.v1 import terminal_service_pb2_grpc as rpc  # noqa: E402

TIMEOUT_S = 60


class Bearer(grpc.AuthMetadataPlugin):
    """Reads the token for every call, so that a renewed one is used as soon as it is there."""

    def __call__(self, context, callback):
        with open(os.environ["GRANTTY_TOKEN_FILE"]) as file:
            callback((("authorization", "Bearer " + file.read().strip()),), None)


def reason(error):
    """What to branch on; empty where the server gave none."""
    for detail in rpc_status.from_call(error).details:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info) and info.domain == "grantty":
            return info.reason
    return ""


def refused(call, *args):
    try:
        call(*args, timeout=TIMEOUT_S)
    except grpc.RpcError as error:
        return reason(error)
    return "not refused"


def check(truth, what):
    if not truth:
        sys.exit(f"it does not hold: {what}")
    print("ok", what, flush=True)


def main():
    with open(os.environ["GRANTTY_CA"], "rb") as file:
        tls = grpc.ssl_channel_credentials(root_certificates=file.read())
    credentials = grpc.composite_channel_credentials(tls, grpc.metadata_call_credentials(Bearer()))
    with grpc.secure_channel(os.environ["GRANTTY_ADDRESS"], credentials) as channel:
        run(rpc.TerminalServiceStub(channel))


def run(terminals):
    # A call with a request_id may be repeated: one effect, the same answer.
    create = pb.CreateTerminalRequest(agent="python", command=["/bin/cat"], request_id="py-create-1")
    created = terminals.CreateTerminal(create, timeout=TIMEOUT_S).terminal
    again = terminals.CreateTerminal(create, timeout=TIMEOUT_S).terminal
    check(created.uid == again.uid, "a repeated create has one effect")
    create.command[:] = ["/bin/true"]
    check(
        refused(terminals.CreateTerminal, create) == "REQUEST_ID_REUSED",
        "another body under the same request_id is refused",
    )

    position = attach(terminals, created.ref)
    terminals.Kill(pb.KillRequest(terminal=created.ref), timeout=TIMEOUT_S)
    resume(terminals, created.ref, position)

    write = pb.WriteRequest(terminal=created.ref, data=b"x")
    check(refused(terminals.Write, write) == "TERMINAL_EXITED", "errors carry a reason to branch on")
    unseen = terminal_pb2.TerminalRef(owner="nobody", id=created.ref.id)
    check(
        refused(terminals.GetTerminal, pb.GetTerminalRequest(terminal=unseen)) == "GRANT_MISSING",
        "what cannot be seen cannot be told from what is not there",
    )


def attach(terminals, ref):
    """Types in two streams of one attachment and tells where the log stood."""
    opening = pb.AttachOpen(terminal=ref, kind=terminal_pb2.ATTACHMENT_KIND_SERVICE)
    output, taken = b"", 0
    for resumed, line in ((False, b"first\n"), (True, b"second\n")):
        frames = queue.SimpleQueue()
        frames.put(pb.AttachRequest(open=opening))
        stream = terminals.Attach(iter(frames.get, None), timeout=TIMEOUT_S)
        started = next(stream).started
        check(started.attachment_resumed == resumed, f"resumed: {resumed}")
        check(started.input_bytes == taken, "the server knows what was taken of the input")
        frames.put(pb.AttachRequest(input=pb.AttachInput(data=line)))
        want = taken + len(line)
        while taken < want or not output.endswith(echoed(line)):
            event = next(stream)
            match event.WhichOneof("event"):
                case "output":
                    position = stream_pb2.LogPosition(
                        after_seq=event.output.seq, log_epoch=started.log_epoch
                    )
                    output += event.output.data
                case "input_ack":
                    taken = event.input_ack.bytes
                case "denied":
                    sys.exit(str(event.denied))
        # A stream that breaks is resumed so: the attachment by its id, the output after the last seq.
        stream.cancel()
        frames.put(None)
        opening.attachment_id = started.attachment_id
        opening.after.CopyFrom(position)
    check(
        output == echoed(b"first\n") + echoed(b"second\n"),
        "no byte is missing or twice over two streams",
    )
    return position


def echoed(line):
    """What a terminal prints of a line that is typed to cat(1)."""
    return line.replace(b"\n", b"\r\n") * 2


def resume(terminals, ref, position):
    exited = None
    for event in terminals.Watch(pb.WatchRequest(terminal=ref, after=position), timeout=TIMEOUT_S):
        match event.WhichOneof("event"):
            case "output":
                if event.output.seq <= position.after_seq:
                    sys.exit("a seq came twice")
            case "exited":
                exited = event.exited
    check(
        exited is not None and exited.status.signal == "SIGKILL" and exited.status.exit_code == 137,
        "a watch that is resumed ends with the exit, then OK",
    )


main()
