//! A client of grantty in Rust: what docs/clients.md says, done. Exits with 0 when all of it holds.
use std::{env, fs, time::Duration};

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::AsciiMetadataValue;
use tonic::service::interceptor::InterceptedService;
use tonic::service::Interceptor;
use tonic::transport::{Certificate, Channel, ClientTlsConfig};
use tonic::{Request, Status};
use tonic_types::StatusExt;

#[allow(clippy::all)]
mod pb {
    tonic::include_proto!("grantty.v1");
}

use pb::attach_request::Frame;
use pb::attach_response::Event as AttachEvent;
use pb::terminal_service_client::TerminalServiceClient;
use pb::watch_response::Event as WatchEvent;

type Terminals = TerminalServiceClient<InterceptedService<Channel, Bearer>>;
type Fault = Box<dyn std::error::Error>;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Reads the token for every call, so that a renewed one is used as soon as it is there.
#[derive(Clone)]
struct Bearer {
    file: String,
}

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let token = fs::read_to_string(&self.file)
            .map_err(|error| Status::unauthenticated(format!("{}: {error}", self.file)))?;
        let value = AsciiMetadataValue::try_from(format!("Bearer {}", token.trim()))
            .map_err(|_| Status::unauthenticated("the token file holds no token"))?;
        request.metadata_mut().insert("authorization", value);
        Ok(request)
    }
}

/// What to branch on; empty where the server gave none.
fn reason(status: &Status) -> String {
    match status.get_details_error_info() {
        Some(info) if info.domain == "grantty" => info.reason,
        _ => String::new(),
    }
}

fn refused<T>(result: Result<T, Status>) -> String {
    match result {
        Ok(_) => "not refused".into(),
        Err(status) => reason(&status),
    }
}

fn check(truth: bool, what: &str) -> Result<(), Fault> {
    if !truth {
        return Err(format!("it does not hold: {what}").into());
    }
    println!("ok {what}");
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Fault> {
    let tls = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(fs::read(env::var("GRANTTY_CA")?)?));
    let channel = Channel::from_shared(format!("https://{}", env::var("GRANTTY_ADDRESS")?))?
        .tls_config(tls)?
        // Flow control by the receiver: a stream that is not read holds back itself alone.
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(4 << 20)
        .connect()
        .await?;
    let bearer = Bearer { file: env::var("GRANTTY_TOKEN_FILE")? };
    let terminals = TerminalServiceClient::with_interceptor(channel, bearer);
    tokio::time::timeout(TIMEOUT, run(terminals)).await?
}

async fn run(mut terminals: Terminals) -> Result<(), Fault> {
    // A call with a request_id may be repeated: one effect, the same answer.
    let mut create = pb::CreateTerminalRequest {
        agent: "rust".into(),
        command: vec!["/bin/cat".into()],
        request_id: "rust-create-1".into(),
        ..Default::default()
    };
    let created = terminals.create_terminal(create.clone()).await?.into_inner().terminal.unwrap();
    let again = terminals.create_terminal(create.clone()).await?.into_inner().terminal.unwrap();
    check(created.uid == again.uid, "a repeated create has one effect")?;
    create.command = vec!["/bin/true".into()];
    check(
        refused(terminals.create_terminal(create).await) == "REQUEST_ID_REUSED",
        "another body under the same request_id is refused",
    )?;

    let terminal = created.r#ref;
    let position = attach(&mut terminals, &terminal).await?;
    terminals
        .kill(pb::KillRequest { terminal: terminal.clone(), ..Default::default() })
        .await?;
    resume(&mut terminals, &terminal, position).await?;

    let write = pb::WriteRequest {
        terminal: terminal.clone(),
        data: b"x".to_vec(),
        ..Default::default()
    };
    check(
        refused(terminals.write(write).await) == "TERMINAL_EXITED",
        "errors carry a reason to branch on",
    )?;
    let unseen = terminal.map(|at| pb::TerminalRef { owner: Some("nobody".into()), ..at });
    check(
        refused(terminals.get_terminal(pb::GetTerminalRequest { terminal: unseen }).await)
            == "GRANT_MISSING",
        "what cannot be seen cannot be told from what is not there",
    )
}

/// Types in two streams of one attachment and tells where the log stood.
async fn attach(
    terminals: &mut Terminals,
    terminal: &Option<pb::TerminalRef>,
) -> Result<pb::LogPosition, Fault> {
    let mut opening = pb::AttachOpen {
        terminal: terminal.clone(),
        kind: pb::AttachmentKind::Service.into(),
        ..Default::default()
    };
    let mut position = pb::LogPosition::default();
    let (mut output, mut taken) = (Vec::new(), 0);
    for (resumed, line) in [(false, "first\n"), (true, "second\n")] {
        let (frames, queue) = mpsc::channel(4);
        frames.send(frame(Frame::Open(opening.clone()))).await?;
        let mut stream = terminals.attach(ReceiverStream::new(queue)).await?.into_inner();
        let Some(AttachEvent::Started(started)) = stream.message().await?.and_then(|m| m.event)
        else {
            return Err("the first message is not `started`".into());
        };
        check(started.attachment_resumed == resumed, &format!("resumed: {resumed}"))?;
        check(started.input_bytes == taken, "the server knows what was taken of the input")?;
        let input = pb::AttachInput { data: line.into() };
        frames.send(frame(Frame::Input(input))).await?;
        let want = taken + line.len() as u64;
        while taken < want || !output.ends_with(&echoed(line)) {
            match stream.message().await?.and_then(|message| message.event) {
                Some(AttachEvent::Output(event)) => {
                    position.after_seq = event.seq;
                    position.log_epoch = Some(started.log_epoch);
                    output.extend(event.data);
                }
                Some(AttachEvent::InputAck(ack)) => taken = ack.bytes,
                Some(AttachEvent::Denied(denied)) => return Err(format!("{denied:?}").into()),
                Some(_) => {}
                None => return Err("the stream ended early".into()),
            }
        }
        // A stream that breaks is resumed so: the attachment by its id, the output after the last seq.
        drop(stream);
        opening.attachment_id = started.attachment_id;
        opening.start = Some(pb::attach_open::Start::After(position.clone()));
    }
    check(
        output == [echoed("first\n"), echoed("second\n")].concat(),
        "no byte is missing or twice over two streams",
    )?;
    Ok(position)
}

fn frame(frame: Frame) -> pb::AttachRequest {
    pb::AttachRequest { frame: Some(frame) }
}

/// What a terminal prints of a line that is typed to cat(1).
fn echoed(line: &str) -> Vec<u8> {
    line.replace('\n', "\r\n").repeat(2).into_bytes()
}

/// Watches the rest from a position, to its end.
async fn resume(
    terminals: &mut Terminals,
    terminal: &Option<pb::TerminalRef>,
    position: pb::LogPosition,
) -> Result<(), Fault> {
    let seq = position.after_seq;
    let request = pb::WatchRequest {
        terminal: terminal.clone(),
        start: Some(pb::watch_request::Start::After(position)),
        ..Default::default()
    };
    let mut stream = terminals.watch(request).await?.into_inner();
    let mut exit = None;
    while let Some(message) = stream.message().await? {
        match message.event {
            Some(WatchEvent::Output(output)) if output.seq <= seq => {
                return Err("a seq came twice".into());
            }
            Some(WatchEvent::Exited(exited)) => exit = exited.status,
            _ => {}
        }
    }
    check(
        exit.is_some_and(|status| status.signal == "SIGKILL" && status.exit_code == Some(137)),
        "a watch that is resumed ends with the exit, then OK",
    )
}
