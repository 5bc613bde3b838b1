//! `sd_notify`: one line of status for the service manager, if it listens.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Sends the line. Nobody listening is no fault: the journal has it too.
pub fn status(line: &str) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let name = name.to_string_lossy();
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&*name),
    };
    let first = line.lines().next().unwrap_or_default();
    if let (Ok(address), Ok(socket)) = (address, UnixDatagram::unbound()) {
        let _ = socket.send_to_addr(format!("STATUS={first}").as_bytes(), &address);
    }
}
