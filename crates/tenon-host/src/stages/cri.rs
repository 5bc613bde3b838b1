//! Asks a container runtime over CRI which one it is: one call, `Version`.
//!
//! A gRPC call is an HTTP/2 request with one small message. The request here is constant bytes,
//! and of the answer only its data frames are read, so no library for either is needed.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: [(&str, &str); 6] = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/runtime.v1.RuntimeService/Version"),
    (":authority", "localhost"),
    ("content-type", "application/grpc"),
    ("te", "trailers"),
];
/// Types of frames.
const DATA: u8 = 0;
const HEADER: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
/// Flags of frames.
const END_STREAM: u8 = 1;
const ACKNOWLEDGED: u8 = 1;
const END_HEADERS: u8 = 4;
/// In front of a message: not compressed, and its length.
const PREFIX: usize = 5;
/// Fields of `VersionResponse`.
const RUNTIME_NAME: u8 = 2;
const RUNTIME_VERSION: u8 = 3;
/// No answer to this question is near it.
const LARGEST: usize = 64 << 10;

/// What a runtime says it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Runtime {
    pub name: String,
    pub version: String,
}

/// Asks the runtime behind a socket.
pub fn version(socket: &Path, patience: Duration) -> io::Result<Runtime> {
    let mut stream = UnixStream::connect(socket)?;
    let end = Instant::now() + patience;
    stream.set_write_timeout(Some(patience))?;
    stream.write_all(&request())?;
    let message = answer(&mut stream, end)?;
    let runtime = parse(message.get(PREFIX..).unwrap_or_default());
    match runtime.version.is_empty() {
        true => Err(io::Error::other("the runtime does not speak CRI v1")),
        false => Ok(runtime),
    }
}

fn frame(kind: u8, flags: u8, stream: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap_or_default().to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [head.as_slice(), body].concat()
}

fn request() -> Vec<u8> {
    let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    // Each header as a literal with a new name, not remembered.
    let headers = HEADERS.map(|(name, value)| [vec![0], text(name), text(value)].concat()).concat();
    [
        PREFACE.to_vec(),
        frame(SETTINGS, 0, 0, &[]),
        frame(HEADER, END_HEADERS, 1, &headers),
        frame(DATA, END_STREAM, 1, &[0; PREFIX]),
    ]
    .concat()
}

/// Reads frames until the stream of our request has ended.
fn answer(stream: &mut UnixStream, end: Instant) -> io::Result<Vec<u8>> {
    let mut message = Vec::new();
    loop {
        let mut head = [0; 9];
        fill(stream, &mut head, end)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        if length > LARGEST || message.len() > LARGEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut body = vec![0; length];
        fill(stream, &mut body, end)?;
        let (kind, flags) = (head[3], head[4]);
        match kind {
            DATA => message.extend(body),
            SETTINGS if flags & ACKNOWLEDGED == 0 => {
                // A peer that has hung up has sent its answer already.
                let _ = stream.write_all(&frame(SETTINGS, ACKNOWLEDGED, 0, &[]));
            }
            RESET | GOAWAY => return Err(io::ErrorKind::ConnectionReset.into()),
            _ => {}
        }
        if matches!(kind, DATA | HEADER) && flags & END_STREAM != 0 {
            return Ok(message);
        }
    }
}

/// Fills a buffer before the end, however slowly the other side sends.
fn fill(stream: &mut UnixStream, buffer: &mut [u8], end: Instant) -> io::Result<()> {
    let mut have = 0;
    while have < buffer.len() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer[have..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => have += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads the texts of a protobuf message; every field of this one is a text.
fn parse(mut bytes: &[u8]) -> Runtime {
    let mut runtime = Runtime::default();
    while let [key, length, rest @ ..] = bytes {
        let length = usize::from(*length);
        // Texts above 127 bytes would have a longer length; no version is.
        let Some(text) = rest.get(..length).filter(|_| length < 128) else { break };
        let text = String::from_utf8_lossy(text).into_owned();
        match key >> 3 {
            RUNTIME_NAME => runtime.name = text,
            RUNTIME_VERSION => runtime.version = text,
            _ => {}
        }
        bytes = &rest[length..];
    }
    runtime
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// What containerd 1.6.20 answers, frame by frame.
    fn served() -> Vec<u8> {
        let field =
            |key: u8, text: &str| [&[key << 3 | 2, text.len() as u8], text.as_bytes()].concat();
        let message =
            [field(1, "0.1.0"), field(2, "containerd"), field(3, "1.6.20~ds1"), field(4, "v1")]
                .concat();
        let data = [vec![0, 0, 0, 0, message.len() as u8], message].concat();
        [
            frame(SETTINGS, 0, 0, &[0, 5, 0, 0, 64, 0]),
            frame(8, 0, 0, &[0, 0, 0, 5]),
            frame(SETTINGS, ACKNOWLEDGED, 0, &[]),
            frame(HEADER, END_HEADERS, 1, &[0x88]),
            frame(DATA, 0, 1, &data),
            frame(HEADER, END_HEADERS | END_STREAM, 1, &[]),
        ]
        .concat()
    }

    fn ask(answer: Vec<u8>) -> io::Result<Runtime> {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("cri.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = vec![0; request().len()];
            stream.read_exact(&mut asked).unwrap();
            stream.write_all(&answer).unwrap();
            // A runtime does not hang up before the other side does; one that lies does.
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
            asked
        });
        let result = version(&socket, Duration::from_secs(5));
        assert!(server.join().unwrap().starts_with(PREFACE));
        result
    }

    #[test]
    fn a_runtime_says_its_name_and_version() {
        let runtime = ask(served()).unwrap();
        assert_eq!(runtime, Runtime { name: "containerd".into(), version: "1.6.20~ds1".into() });
    }

    #[test]
    fn a_runtime_that_drips_does_not_outlast_the_patience() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("cri.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let drip = served();
            // A byte now and then: each read succeeds well within the patience.
            drip.iter()
                .take_while(|byte| {
                    std::thread::sleep(Duration::from_millis(50));
                    stream.write_all(&[**byte]).is_ok()
                })
                .count()
        });
        let error = version(&socket, Duration::from_millis(200)).unwrap_err();
        assert!(
            matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock),
            "{error}"
        );
        assert!(server.join().unwrap() < served().len() / 2);
    }

    #[test]
    fn refusals_cuts_and_lies_are_errors() {
        let whole = served();
        assert!(ask(whole[..whole.len() - 20].to_vec()).is_err());
        assert!(ask(frame(GOAWAY, 0, 0, &[0; 8])).is_err());
        assert!(
            ask(frame(HEADER, END_HEADERS | END_STREAM, 1, &[])).is_err(),
            "trailers alone: an error"
        );
        assert!(ask(vec![0xff; 32]).is_err());
        assert_eq!(parse(&[0x1a, 200, b'x']), Runtime::default());
    }
}
