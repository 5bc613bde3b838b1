//! Fetch against a server on loopback that stops, refuses and lies.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::gather::environment::Environment;
use crate::image::download::{Limits, Source, download as download_file};
use crate::image::fetch::fetch;
use crate::image::place::Pinned;

/// What the server does with a request, by the number of bytes that the client has.
pub(super) type Answer = fn(&[u8], usize, usize) -> Vec<u8>;

/// Serves a body; gives its address and the ranges that were asked for.
pub(super) fn serve(body: Vec<u8>, answer: Answer) -> (String, Arc<Mutex<Vec<usize>>>) {
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

pub(super) fn whole(body: &[u8], from: usize, _: usize) -> Vec<u8> {
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

pub(super) fn stage(address: &str, hash: &str) -> Stage {
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
fn a_damaged_entry_of_the_cache_is_fetched_again() {
    let (address, _) = serve(b"content".to_vec(), whole);
    let stage = stage(&address, &sha256(b"content"));
    fetch(&stage.plan, None, &stage.cache()).unwrap();
    let entry = stage.place.path().join("cache/sha256").join(sha256(b"content"));
    fs::write(&entry, "contemt").unwrap();
    let again = fetch(&stage.plan, None, &stage.cache()).unwrap();
    assert_eq!((again.files.len(), again.had), (1, 0));
    assert_eq!(fs::read(entry).unwrap(), b"content");
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

/// Quick enough for a test, and not so quick that a busy machine fails it.
const LIMITS: Limits = Limits {
    silence: Duration::from_secs(5),
    whole: Duration::from_secs(60),
    pause: Duration::from_millis(2),
    bytes: 1 << 20,
};

/// Downloads into an empty directory, in which `part` is left by an earlier attempt. Gives the
/// result, and the names that are there afterwards.
fn try_it(
    url: &str,
    content: &[u8],
    part: Option<&[u8]>,
    limits: Limits,
) -> (Result<u64, Problem>, Vec<String>) {
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("entry");
    if let Some(part) = part {
        fs::write(place.path().join("entry.part"), part).unwrap();
    }
    let sha256 = sha256(content);
    let source = Source { pinned: Pinned { sha256: &sha256, name: url }, headers: &[] };
    let result = download_file(source, &to, &Environment::default(), limits);
    let names = fs::read_dir(place.path()).unwrap().map(|entry| {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        assert!(name != "entry" || fs::read(&to).unwrap() == content, "the cache holds a lie");
        name
    });
    let names = names.collect();
    (result, names)
}

fn asked_for(url: &str, asked: &Arc<Mutex<Vec<usize>>>) -> Vec<usize> {
    assert!(url.starts_with("http://127.0.0.1:"));
    asked.lock().unwrap().clone()
}

fn no_ranges(body: &[u8], _: usize, number: usize) -> Vec<u8> {
    let mut all = whole(body, 0, number);
    all.truncate(all.len() - if number == 0 { 3 } else { 0 });
    all
}

fn from_zero(body: &[u8], from: usize, _: usize) -> Vec<u8> {
    let range = format!("HTTP/1.1 206 P\r\ncontent-range: bytes 0-{}/{0}\r\n", body.len());
    let head = format!("{range}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
    if from > 0 { [head.as_bytes(), body].concat() } else { whole(body, 0, 0) }
}

fn too_far(body: &[u8], from: usize, _: usize) -> Vec<u8> {
    let head = "HTTP/1.1 206 P\r\ncontent-range: bytes 900-901/902\r\ncontent-length: 2\r\n\r\nxx";
    if from > 0 { head.into() } else { whole(body, 0, 0) }
}

fn long_lie(body: &[u8], from: usize, _: usize) -> Vec<u8> {
    [&head("200 OK", body.len() + 100), &body[from.min(body.len())..]].concat()
}

fn short_lie(body: &[u8], _: usize, _: usize) -> Vec<u8> {
    [&head("200 OK", body.len() - 2), body].concat()
}

fn endless(_: &[u8], _: usize, _: usize) -> Vec<u8> {
    let chunk = format!("100000\r\n{}\r\n", "x".repeat(1 << 20));
    format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{}", chunk.repeat(3)).into()
}

fn chunked(body: &[u8], _: usize, _: usize) -> Vec<u8> {
    let text = String::from_utf8_lossy(body);
    let chunk = format!("{:x}\r\n{text}\r\n0\r\n\r\n", body.len());
    format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n{chunk}")
        .into()
}

fn failing(_: &[u8], _: usize, number: usize) -> Vec<u8> {
    head(if number == 0 { "502 Bad" } else { "500 Oops" }, 0)
}

fn forbidden(_: &[u8], _: usize, _: usize) -> Vec<u8> {
    head("403 Forbidden", 0)
}

fn redirected(body: &[u8], from: usize, number: usize) -> Vec<u8> {
    match number {
        0 => b"HTTP/1.1 302 F\r\nlocation: /elsewhere\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec(),
        _ => whole(body, from, number),
    }
}

fn in_circles(body: &[u8], from: usize, _: usize) -> Vec<u8> {
    redirected(body, from, 0)
}

fn reset(_: &[u8], _: usize, _: usize) -> Vec<u8> {
    Vec::new()
}

/// What a server does, what an earlier attempt left, and what comes of it: the exit code (0 for
/// success), what is left beside nothing, and from where it was asked for.
#[test]
fn whatever_a_server_does_the_cache_holds_the_pinned_content_or_nothing() {
    const BODY: &[u8] = b"0123456789";
    type Row = (
        &'static str,
        Answer,
        Option<&'static [u8]>,
        u8,
        &'static [&'static str],
        &'static [usize],
    );
    let rows: &[Row] = &[
        ("whole", whole, None, 0, &["entry"], &[0]),
        ("goes on", whole, Some(b"0123"), 0, &["entry"], &[4]),
        (
            "part is whole",
            |b, f, n| if f < b.len() { whole(b, f, n) } else { head("416 R", 0) },
            Some(BODY),
            0,
            &["entry"],
            &[10],
        ),
        ("part is wrong", whole, Some(b"9999"), 0, &["entry"], &[4, 0]),
        (
            "part is too long",
            |b, f, n| if f < b.len() { whole(b, f, n) } else { head("416 R", 0) },
            Some(b"0123456789abc"),
            0,
            &["entry"],
            &[13, 0],
        ),
        ("no ranges", no_ranges, None, 0, &["entry"], &[0, 7]),
        ("answers from zero", from_zero, Some(b"0123"), 0, &["entry"], &[4]),
        ("answers from elsewhere", too_far, Some(b"0123"), 10, &["entry.part"], &[4, 4, 4, 4]),
        ("announces more", long_lie, None, 10, &["entry.part"], &[0, 10, 0, 10, 0]),
        ("announces less", short_lie, None, 10, &[], &[0]),
        ("without a length", chunked, None, 0, &["entry"], &[0]),
        ("without an end", endless, None, 10, &[], &[0]),
        ("always failing", failing, None, 10, &[], &[0, 0, 0, 0]),
        ("not found", gone, None, 10, &[], &[0]),
        ("forbidden", forbidden, Some(b"0123"), 10, &["entry.part"], &[4]),
        ("elsewhere", redirected, None, 0, &["entry"], &[0, 0]),
        ("in circles", in_circles, None, 10, &[], &[0, 0, 0, 0, 0, 0]),
        ("closing at once", reset, None, 10, &[], &[0, 0, 0, 0]),
    ];
    for (name, answer, part, exit, left, asked) in rows {
        let (url, seen) = serve(BODY.to_vec(), *answer);
        let (result, names) = try_it(&url, BODY, *part, LIMITS);
        let code = result.as_ref().map_or_else(|problem| problem.exit(), |_| 0);
        assert_eq!(
            (code, &names[..]),
            (*exit, &left[..].iter().map(|n| (*n).to_owned()).collect::<Vec<_>>()[..]),
            "{name}: {result:?}"
        );
        assert_eq!(asked_for(&url, &seen), *asked, "{name}");
        if let Err(problem) = result {
            assert!(problem.what.contains(&url), "{name}: {}", problem.what);
        }
    }
}

#[test]
fn the_first_and_the_last_cause_are_told() {
    let (url, _) = serve(Vec::new(), failing);
    let problem = try_it(&url, b"x", None, LIMITS).0.unwrap_err();
    assert_eq!(
        (problem.page.code, &problem.causes[..]),
        ("TN10815", &["status 502".to_owned(), "status 500".to_owned()][..])
    );
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let problem = try_it(&format!("http://{nobody}/x"), b"x", None, LIMITS).0.unwrap_err();
    assert_eq!(problem.exit(), 10);
    assert!(problem.causes[0].contains("refused"), "{:?}", problem.causes);
}

/// A byte now and then keeps an attempt alive; all of them together have an end.
#[test]
fn a_server_that_drips_is_given_up_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/x", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.write_all(&head("200 OK", 1000));
            let _ = stream.write_all(b"x");
        }
    });
    // Less than the pause before a second attempt: the time ends before the attempts do.
    let limits = Limits { whole: Duration::from_millis(1), ..LIMITS };
    let problem = try_it(&url, b"content", None, limits).0.unwrap_err();
    assert_eq!((problem.exit(), problem.page.code), (10, "TN10815"));
    assert!(problem.causes.last().unwrap().starts_with("not whole after"), "{problem:?}");
}

/// Many fetches into one cache: each entry is asked for once, and every fetch ends well.
#[test]
fn fetches_at_once_take_turns() {
    let body: Vec<u8> = (0..500_000_u32).map(|n| (n % 249) as u8).collect();
    let (address, asked) = serve(body.clone(), half);
    let stage = stage(&address, &sha256(&body));
    std::thread::scope(|scope| {
        let fetch_it = || fetch(&stage.plan, None, &stage.cache()).unwrap();
        let running: Vec<_> = (0..4).map(|_| scope.spawn(fetch_it)).collect();
        let had: usize = running.into_iter().map(|one| one.join().unwrap().had).sum();
        assert_eq!(had, 3);
    });
    assert_eq!(asked.lock().unwrap().len(), 4, "three were cut, the fourth was whole");
    let entry = stage.place.path().join("cache/sha256").join(sha256(&body));
    assert_eq!(fs::read(entry).unwrap(), body);
    let turn = stage.cache().turn(Duration::ZERO).unwrap();
    let busy = stage.cache().turn(Duration::from_millis(60)).unwrap_err();
    assert_eq!((busy.exit(), busy.what.contains("another fetch")), (11, true));
    drop(turn);
    let _reader = stage.cache().reading(Duration::ZERO).unwrap();
    stage.cache().reading(Duration::ZERO).unwrap();
    stage.cache().turn(Duration::ZERO).unwrap_err();
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
