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

/// A registry that wants a token, has an index of two architectures, and serves parts by digest.
fn registry(parts: BTreeMap<String, Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let host = address.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines: Vec<String> = BufReader::new(stream.try_clone().unwrap())
                .lines()
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .collect();
            let path = lines[0].split(' ').nth(1).unwrap();
            let known =
                lines.iter().any(|line| line.eq_ignore_ascii_case("authorization: Bearer t0"));
            let part = path.rsplit(':').next().and_then(|hex| parts.get(hex));
            let answer = match (path, known, part) {
                ("/v2/", ..) => format!(
                    "HTTP/1.1 401 No\r\nwww-authenticate: Bearer realm=\"http://{host}/token\",\
                     service=\"s\"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                )
                .into_bytes(),
                ("/token?service=s&scope=repository:pause:pull", ..) => {
                    whole(b"{\"token\": \"t0\"}", 0, 0)
                }
                (path, true, Some(part)) if path.starts_with("/v2/pause/") => whole(part, 0, 0),
                _ => gone(b"", 0, 0),
            };
            let _ = stream.write_all(&answer);
        }
    });
    address
}

#[test]
fn a_container_image_is_pulled_and_placed() {
    let (config, layer) = (b"{}".to_vec(), b"layer".to_vec());
    let digest = |bytes: &[u8]| format!("sha256:{}", sha256(bytes));
    let manifest = serde_json::json!({
        "config": {"digest": digest(&config)}, "layers": [{"digest": digest(&layer)}],
    })
    .to_string()
    .into_bytes();
    let name = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let index = serde_json::json!({"manifests": [
        {"digest": "sha256:00", "platform": {"architecture": "s390x", "os": "linux"}},
        {"digest": digest(&manifest), "platform": {"architecture": name, "os": "linux"}},
    ]})
    .to_string()
    .into_bytes();
    let top = digest(&index);
    let parts = [config, layer, manifest, index].map(|bytes| (sha256(&bytes), bytes));
    let address = registry(parts.into_iter().collect());
    let mut stage = Stage::new();
    stage.plan = plan(&format!(
        "about = 'x'\n[[cached-image]]\nname = 'pause'\nreference = '{address}/pause:3.10'\n\
         digest = '{top}'\nreason = 'r'\n"
    ));
    let fetched = fetch(&stage.plan, None, &stage.cache()).unwrap();
    assert_eq!(fetched.files, [format!("{address}/pause:3.10@{top}")]);
    let archive = stage.place.path().join(format!("cache/images/{}.tar", &top[7..]));
    let first = fs::read(&archive).unwrap();
    let names: Vec<_> = tar::Archive::new(&first[..])
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap().path().unwrap().into_owned())
        .collect();
    assert_eq!(names.len(), 6, "{names:?}");
    fs::remove_file(&archive).unwrap();
    fetch(&stage.plan, None, &stage.cache()).unwrap();
    assert_eq!(fs::read(&archive).unwrap(), first, "the same parts give the same bytes");
    stage.apply().unwrap();
    assert!(stage.at(&format!("var/lib/tenon/images/{}.tar", &top[7..])).exists());
}
