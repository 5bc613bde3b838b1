//! systemd's private socket, made fit for a strict D-Bus library.
//!
//! On this socket systemd signs its messages with its well-known name. The specification wants
//! a unique name there, and zbus refuses the whole message. A relay stands in between and turns
//! the first letter of that name into the colon that unique names begin with; nothing else is
//! changed, and nothing is added.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::NAME;

/// Length of the fixed part of a message.
const HEADER: usize = 16;
/// systemd's answers are far smaller.
const LARGEST: usize = 16 << 20;
/// How the header field `sender` begins: its number, and the signature of a string.
const SENDER: [u8; 4] = [7, 1, b's', 0];

/// Connects to the socket. The stream that comes back speaks D-Bus as others do.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    let manager = UnixStream::connect(path)?;
    let (ours, relayed) = UnixStream::pair()?;
    let (mut calls_in, mut calls_out) = (relayed.try_clone()?, manager.try_clone()?);
    std::thread::spawn(move || {
        // Either end closing is the end of the talk, on both sides.
        let _ = io::copy(&mut calls_in, &mut calls_out);
        let _ = calls_out.shutdown(Shutdown::Both);
    });
    std::thread::spawn(move || {
        let _ = relay(BufReader::new(&manager), &relayed);
        let _ = relayed.shutdown(Shutdown::Both);
    });
    Ok(ours)
}

/// Passes the lines of the handshake as they are, then every message with its sender mended.
fn relay(mut from: impl BufRead, mut to: impl Write) -> io::Result<()> {
    let mut line = Vec::new();
    // A message begins with its byte order; no line of the handshake begins with these letters.
    while !matches!(from.fill_buf()?.first(), Some(b'l' | b'B') | None) {
        line.clear();
        from.by_ref().take(1024).read_until(b'\n', &mut line)?;
        to.write_all(&line)?;
    }
    while let Some(mut message) = read_message(&mut from)? {
        mend_sender(&mut message);
        to.write_all(&message)?;
    }
    Ok(())
}

fn read_message(from: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    if from.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let mut message = vec![0; HEADER];
    from.read_exact(&mut message)?;
    let (body, fields) = (number(&message, 4), number(&message, 12));
    let length = body.saturating_add(fields.next_multiple_of(8));
    if length > LARGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    message.resize(HEADER + length, 0);
    from.read_exact(&mut message[HEADER..])?;
    Ok(Some(message))
}

/// A number of the fixed part, in the byte order that the message names.
fn number(message: &[u8], at: usize) -> usize {
    let bytes = [message[at], message[at + 1], message[at + 2], message[at + 3]];
    let number = match message[0] {
        b'B' => u32::from_be_bytes(bytes),
        _ => u32::from_le_bytes(bytes),
    };
    // The cap on a message comes right after.
    usize::try_from(number.min(1 << 28)).unwrap_or(usize::MAX)
}

fn mend_sender(message: &mut [u8]) {
    let end = (HEADER + number(message, 12)).min(message.len());
    let fields = &mut message[HEADER..end];
    let skip = SENDER.len() + 4;
    let found = (0..fields.len()).step_by(8).find(|at| {
        fields[*at..].starts_with(&SENDER)
            && fields.get(at + skip..).is_some_and(|rest| rest.starts_with(NAME.as_bytes()))
    });
    if let Some(at) = found {
        fields[at + skip] = b':';
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A signal as systemd sends it: path, sender, no body.
    fn message() -> Vec<u8> {
        let mut fields = vec![1, 1, b'o', 0, 1, 0, 0, 0, b'/', 0];
        fields.resize(16, 0);
        fields.extend(SENDER);
        fields.extend(24_u32.to_le_bytes());
        fields.extend(NAME.as_bytes());
        fields.push(0);
        let mut message = vec![b'l', 4, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0];
        message.extend(u32::try_from(fields.len()).unwrap().to_le_bytes());
        message.extend(&fields);
        message.resize(HEADER + fields.len().next_multiple_of(8), 0);
        message
    }

    #[test]
    fn only_the_first_letter_of_the_sender_changes() {
        let handshake = b"OK 0123456789abcdef\r\nAGREE_UNIX_FD\r\n".to_vec();
        let input = [handshake.clone(), message(), message()].concat();
        let mut output = Vec::new();
        relay(&input[..], &mut output).unwrap();
        assert_eq!(output.len(), input.len());
        let differ: Vec<_> = (0..input.len()).filter(|at| input[*at] != output[*at]).collect();
        let first = handshake.len() + HEADER + 16 + 8;
        assert_eq!(differ, [first, first + message().len()]);
        assert_eq!((input[first], output[first]), (b'o', b':'));
    }

    #[test]
    fn a_message_that_lies_about_its_length_ends_the_talk() {
        let mut lie = message();
        lie[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(relay(&lie[..], io::sink()).is_err());
        assert!(relay(&message()[..20], io::sink()).is_err());
        assert!(relay(&b""[..], io::sink()).is_ok());
    }
}
