//! A store on loopback that is not ready at first.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub struct Store {
    pub url: String,
    count: Arc<AtomicUsize>,
}

impl Store {
    /// Answers 503 so many times, then with the body.
    pub fn start(body: Vec<u8>, refusals: usize) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(stream);
                let mut head = String::new();
                while reader.read_line(&mut head).is_ok_and(|length| length > 2) {}
                let refused = counted.fetch_add(1, Ordering::SeqCst) < refusals;
                let (status, body): (u16, &[u8]) = if refused { (503, b"") } else { (200, &body) };
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 {status} x\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
                );
                // A client that went away asks again.
                let _ = reader.get_mut().write_all(&[head.as_bytes(), body].concat());
            }
        });
        Ok(Store { url, count })
    }

    pub fn requests(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}
