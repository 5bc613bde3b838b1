//! Fetch against a server on loopback that stops, refuses and lies.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::sync::Arc;

use super::*;
use crate::image::fetch::fetch;

/// What the server does with a request, by the number of bytes that the client has.
type Answer = fn(&[u8], usize, usize) -> Vec<u8>;

/// Serves a body; gives its address and the ranges that were asked for.
fn serve(body: Vec<u8>, answer: Answer) -> (String, Arc<Mutex<Vec<usize>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/component", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut from = 0;
            for line in BufReader::new(stream.try_clone().unwrap()).lines() {
                let line = line.unwrap_or_default().to_ascii_lowercase();
                if let Some(range) = line.strip_prefix("range: bytes=") {
                    from = range.trim_end_matches('-').parse().unwrap();
                }
                if line.is_empty() {
                    break;
                }
            }
            let number = seen.lock().unwrap().len();
            seen.lock().unwrap().push(from);
            let _ = stream.write_all(&answer(&body, from, number));
        }
    });
    (address, asked)
}

fn head(status: &str, length: usize) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n")
        .into_bytes()
}

fn whole(body: &[u8], from: usize, _: usize) -> Vec<u8> {
    let status = if from > 0 { "206 Partial" } else { "200 OK" };
    [&head(status, body.len() - from), &body[from..]].concat()
}

/// Half of what is left, then silence.
fn half(body: &[u8], from: usize, number: usize) -> Vec<u8> {
    let mut all = whole(body, from, number);
    if number < 3 {
        all.truncate(all.len() - (body.len() - from) / 2);
    }
    all
}

fn busy_first(body: &[u8], from: usize, number: usize) -> Vec<u8> {
    match number {
        0 => head("503 Busy", 0),
        1 => head("429 Slow", 0),
        _ => whole(body, from, number),
    }
}

fn gone(_: &[u8], _: usize, _: usize) -> Vec<u8> {
    head("404 Not Found", 0)
}

fn stage(address: &str, hash: &str) -> Stage {
    let stage = Stage::with("");
    let profile = download("/usr/bin/kubelet", hash, "").replace("http://x/c", address);
    Stage { plan: plan(&format!("about = 'x'\n{profile}")), ..stage }
}

#[test]
fn a_download_goes_on_where_it_stopped() {
    let body: Vec<u8> = (0..200_000_u32).map(|n| (n % 251) as u8).collect();
    let (address, asked) = serve(body.clone(), half);
    let stage = stage(&address, &sha256(&body));
    let fetched = fetch(&stage.plan, None, &stage.cache()).unwrap();
    assert_eq!((fetched.files.len(), fetched.bytes), (1, 200_000));
    assert_eq!(*asked.lock().unwrap(), [0, 100_000, 150_000, 175_000]);
    let again = fetch(&stage.plan, None, &stage.cache()).unwrap();
    assert_eq!((again.files.len(), again.had), (0, 1));
    assert_eq!(asked.lock().unwrap().len(), 4);
    stage.apply().unwrap();
    assert_eq!(fs::read(stage.at("usr/bin/kubelet")).unwrap(), body);
}

#[test]
fn a_busy_server_is_asked_again() {
    let (address, asked) = serve(b"content".to_vec(), busy_first);
    let stage = stage(&address, &sha256(b"content"));
    fetch(&stage.plan, None, &stage.cache()).unwrap();
    assert_eq!(asked.lock().unwrap().len(), 3);
}

#[test]
fn a_refusal_is_final_and_wrong_content_is_not_kept() {
    let (address, asked) = serve(Vec::new(), gone);
    let refused = stage(&address, &sha256(b"x"));
    let problem = fetch(&refused.plan, None, &refused.cache()).unwrap_err();
    assert_eq!((problem.exit(), problem.page.code), (10, "TN10814"));
    assert_eq!(asked.lock().unwrap().len(), 1);

    let (address, _) = serve(b"changed".to_vec(), whole);
    let wrong = stage(&address, &sha256(b"pinned"));
    let problem = fetch(&wrong.plan, None, &wrong.cache()).unwrap_err();
    assert_eq!((problem.exit(), problem.page.code), (10, "TN10813"));
    let kept = fs::read_dir(wrong.place.path().join("cache/sha256")).unwrap().count();
    assert_eq!(kept, 0);
}
