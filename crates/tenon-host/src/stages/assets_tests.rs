//! The stage against a store on loopback: cuts, refusals, waits, signatures, wrong digests.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};
use tenon_core::stages::bundle::Index;

use super::super::{Failure, Opened, Order, build, read_state};
use super::*;

/// What the store answers to one request.
#[derive(Clone)]
enum Answer {
    Status(u16),
    /// The object, cut after so many bytes.
    Cut(usize),
    /// The object, from the offset that was asked for.
    Whole,
    Empty,
}

/// A store with one object. The last answer repeats.
struct Store {
    url: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Store {
    fn start(object: Vec<u8>, script: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&seen);
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                let mut reader = BufReader::new(stream);
                let mut head = String::new();
                while reader.read_line(&mut head).is_ok_and(|count| count > 2) {}
                log.lock().unwrap().push(head.clone());
                let answer = script[number.min(script.len() - 1)].clone();
                let offset = head
                    .lines()
                    .find_map(|line| {
                        line.to_lowercase()
                            .strip_prefix("range: bytes=")?
                            .strip_suffix('-')?
                            .parse()
                            .ok()
                    })
                    .unwrap_or(0_usize);
                let rest = &object[offset.min(object.len())..];
                let (status, body): (u16, &[u8]) = match answer {
                    Answer::Status(status) => (status, b""),
                    Answer::Empty => (200, b""),
                    Answer::Cut(_) | Answer::Whole if offset > 0 => (206, rest),
                    Answer::Cut(_) | Answer::Whole => (200, rest),
                };
                let sent = if let Answer::Cut(count) = answer { &body[..count] } else { body };
                let stream = reader.get_mut();
                let head = format!(
                    "HTTP/1.1 {status} x\r\ncontent-length: {}\r\netag: \"1\"\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all(head.as_bytes());
                let _ = stream.write_all(sent);
            }
        });
        Store { url, seen }
    }

    fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

/// A bundle as a tar.gz and its digest.
fn bundle() -> (Vec<u8>, String) {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("addons")).unwrap();
    fs::create_dir_all(dir.path().join("pki")).unwrap();
    fs::write(dir.path().join("addons/10.yaml"), "kind: Namespace").unwrap();
    fs::write(dir.path().join("pki/ca.key"), "secret").unwrap();
    let (index, digest): (Index, String) = build::build(dir.path(), "prod").unwrap();
    let path = dir.path().join("b.tar.gz");
    build::pack(dir.path(), &index, &path).unwrap();
    (fs::read(path).unwrap(), digest)
}

struct Place {
    dir: tempfile::TempDir,
    root: Root,
    environment: Environment,
}

impl Place {
    fn new(role: &str, assets: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let place = Place { dir, root, environment: Environment::default() };
        let config = format!(
            "apiVersion: tenon.dev/v1alpha1\nkind: MachineConfig\nspec:\n  role: {role}\n  \
             cluster: {{name: prod, endpoint: \"https://api.example:6443\", kubernetesVersion: v1.34.2}}\n  \
             bootstrapToken: {{token: abcdef.0123456789abcdef}}\n  assets: {{{assets}}}\n"
        );
        place.put("etc/tenon/config.yaml", config.as_bytes());
        place.put("proc/sys/kernel/random/boot_id", b"boot-1");
        place
    }

    fn put(&self, path: &str, body: &[u8]) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, body).unwrap();
    }

    fn run(&self, stage: &'static str) -> Result<(), Problem> {
        let order = Order { stage, config: paths::CONFIG.into(), forced: Vec::new() };
        let pause = Some((Duration::from_millis(1), Duration::from_millis(1)));
        let mut work = Assets { environment: self.environment.clone(), pause };
        match Run::open(&self.root, &order) {
            Ok(Opened::Run(run)) if stage == "cleanup" => clean_up(run, &mut work),
            Ok(Opened::Run(run)) => super::run(run, &mut work),
            Ok(Opened::Done { .. }) => Ok(()),
            Err(Failure::Problem(problem)) => Err(problem),
            Err(Failure::Findings(list)) => panic!("{list:?}"),
        }
    }

    fn slug(&self) -> &'static str {
        self.run("assets").map_or_else(|problem| problem.page.slug, |()| "done")
    }
}

fn remote(store: &Store, digest: &str) -> String {
    format!("source: \"{}/b.tar.gz\", digest: \"{digest}\"", store.url)
}

#[test]
fn a_cut_download_is_resumed_and_published_and_arms_the_first_master() {
    let (object, digest) = bundle();
    let store = Store::start(object, vec![Answer::Cut(40), Answer::Status(503), Answer::Whole]);
    let place = Place::new("first-master", &remote(&store, &digest));
    assert_eq!(place.slug(), "done");
    let requests = store.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[2].to_lowercase().contains("range: bytes=40-"), "{}", requests[2]);
    assert!(place.root.exists("/var/lib/tenon/assets/addons/10.yaml"));
    for stage in ["bootstrap", "addons"] {
        assert!(place.root.exists(&paths::trigger(stage)), "{stage}");
    }
    assert!(!place.root.exists(DOWNLOAD));
    let worker = Place::new("worker", &remote(&store, &digest));
    assert_eq!(worker.slug(), "done");
    assert!(!worker.root.exists("/var/lib/tenon/trigger"), "only one machine starts the cluster");
}

#[test]
fn a_missing_object_is_waited_for_and_a_refusal_is_final() {
    let (object, digest) = bundle();
    let store = Store::start(object.clone(), vec![Answer::Status(404), Answer::Whole]);
    let place = Place::new("worker", &remote(&store, &digest));
    assert_eq!(place.slug(), "waiting-for-inputs");
    assert_eq!(read_state(&place.root).unwrap().attempts("assets", "fetch"), 0);
    assert_eq!(place.slug(), "done");
    let store = Store::start(object.clone(), vec![Answer::Status(403)]);
    assert_eq!(Place::new("worker", &remote(&store, &digest)).slug(), "assets-refused");
    assert_eq!(store.requests().len(), 1, "a refusal is not repeated");
    let store = Store::start(object, vec![Answer::Status(500)]);
    assert_eq!(Place::new("worker", &remote(&store, &digest)).slug(), "assets-unreachable");
    assert_eq!(store.requests().len(), 5);
}

#[test]
fn a_wrong_digest_is_put_aside_and_blocks() {
    let (object, _) = bundle();
    let store = Store::start(object, vec![Answer::Whole]);
    let other = format!("sha256:{}", "0".repeat(64));
    let place = Place::new("first-master", &remote(&store, &other));
    assert_eq!(place.slug(), "wrong-bundle-digest");
    assert_eq!(read_state(&place.root).unwrap().status("assets"), Status::Blocked);
    assert!(place.root.exists("/var/lib/tenon/rejected/bundle"));
    assert!(
        !place.root.exists(paths::ASSETS) && !place.root.exists("/var/lib/tenon/trigger/bootstrap")
    );
}

#[test]
fn an_empty_object_means_that_the_cluster_is_there() {
    let (object, digest) = bundle();
    let store = Store::start(object, vec![Answer::Empty]);
    let place = Place::new("first-master", &remote(&store, &digest));
    assert_eq!(place.slug(), "done");
    let state = read_state(&place.root).unwrap();
    assert_eq!(state.status("bootstrap"), Status::Skipped);
    assert!(state.output("bootstrap", "why").unwrap().contains("bootstrapped"));
    assert!(!place.root.exists("/var/lib/tenon/trigger/bootstrap"));
}

#[test]
fn a_pushed_bundle_counts_only_once_it_is_announced() {
    let (object, _) = bundle();
    let place = Place::new("first-master", "source: push");
    place.put("var/lib/tenon/incoming/bundle.tar.gz", &object[..object.len() / 2]);
    assert_eq!(place.slug(), "waiting-for-inputs", "a slow copy starts nothing");
    place.put("var/lib/tenon/incoming/bundle.tar.gz", &object);
    place.put("var/lib/tenon/incoming/ready", b"");
    assert_eq!(place.slug(), "done");
    assert!(!place.root.exists(paths::INCOMING));
    let broken = Place::new("first-master", "source: push");
    broken.put("var/lib/tenon/incoming/bundle.tar.gz", &object[..object.len() / 2]);
    broken.put("var/lib/tenon/incoming/ready", b"");
    assert_eq!(broken.slug(), "bad-bundle");
    assert!(
        broken.root.exists("/var/lib/tenon/rejected/bundle/ready"),
        "moved with its announcement"
    );
}

#[test]
fn a_bundle_of_another_cluster_is_refused_and_a_file_source_is_read() {
    let (object, digest) = bundle();
    let place =
        Place::new("worker", &format!("source: \"file:/srv/b.tar.gz\", digest: \"{digest}\""));
    assert_eq!(place.slug(), "waiting-for-inputs");
    place.put("srv/b.tar.gz", &object);
    assert_eq!(place.slug(), "done");
    let other = Place::new("worker", "source: \"file:/srv/b.tar.gz\"");
    let config = fs::read_to_string(other.dir.path().join("etc/tenon/config.yaml")).unwrap();
    other.put("etc/tenon/config.yaml", config.replace("name: prod", "name: test").as_bytes());
    other.put("srv/b.tar.gz", &object);
    assert_eq!(other.slug(), "bad-bundle");
}

#[test]
fn the_cleanup_leaves_no_key_and_waits_for_its_users() {
    let (object, digest) = bundle();
    let store = Store::start(object, vec![Answer::Whole]);
    let place = Place::new("first-master", &remote(&store, &digest));
    assert_eq!(place.slug(), "done");
    assert_eq!(place.run("cleanup").unwrap_err().page.slug, "waiting-for-inputs");
    super::super::update(&place.root, |state| {
        state.set_status("bootstrap", Status::Done);
        state.set_status("addons", Status::Done);
    })
    .unwrap();
    place.run("cleanup").unwrap();
    assert_eq!(place.root.list(paths::ASSETS).unwrap(), [INDEX]);
}

fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut block = [0_u8; 64];
    block[..key.len()].copy_from_slice(key);
    let pad = |byte: u8| block.map(|b| b ^ byte).to_vec();
    let inner = Sha256::digest([pad(0x36), text.to_vec()].concat());
    Sha256::digest([pad(0x5c), inner.to_vec()].concat()).to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Computes the signature of a request anew, from what arrived and the secret alone.
fn signature_holds(head: &str, secret: &str) -> bool {
    let mut lines = head.lines();
    let mut words = lines.next().unwrap().split(' ');
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let header = |name: &str| {
        head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    };
    let Some(authorization) = header("authorization") else { return false };
    let part = |name: &str| {
        authorization.split(name).nth(1).unwrap().split(',').next().unwrap().to_owned()
    };
    let (credential, signed, given) =
        (part("Credential="), part("SignedHeaders="), part("Signature="));
    let headers: String =
        signed.split(';').map(|name| format!("{name}:{}\n", header(name).unwrap())).collect();
    let payload = header("x-amz-content-sha256").unwrap();
    let canonical = format!("{method}\n{path}\n\n{headers}\n{signed}\n{payload}");
    let scope = credential.split_once('/').unwrap().1;
    let date = header("x-amz-date").unwrap();
    let text = format!(
        "AWS4-HMAC-SHA256\n{date}\n{scope}\n{}",
        hex(&Sha256::digest(canonical.as_bytes()))
    );
    let key = scope
        .split('/')
        .fold(format!("AWS4{secret}").into_bytes(), |key, part| hmac(&key, part.as_bytes()));
    hex(&hmac(&key, text.as_bytes())) == given
}

#[test]
fn s3_requests_carry_a_signature_that_holds_and_the_object_is_retired() {
    let (object, digest) = bundle();
    let store = Store::start(object, vec![Answer::Whole]);
    let assets = format!(
        "source: \"s3://clusters/prod/a b.tar.gz\", digest: \"{digest}\", endpoint: \"{}\", \
         region: eu-west-1, credentialsFile: /etc/tenon/s3, retire: truncate",
        store.url
    );
    let place = Place::new("first-master", &assets.replace("a b", "a+b"));
    place.put("etc/tenon/s3", b"aws_access_key_id = AKID\naws_secret_access_key = wJalr\n");
    assert_eq!(place.slug(), "done");
    let head = store.requests().remove(0);
    assert!(head.starts_with("GET /clusters/prod/a%2Bb.tar.gz "), "{head}");
    assert!(signature_holds(&head, "wJalr"), "{head}");
    assert!(!signature_holds(&head, "other"));
    super::super::update(&place.root, |state| {
        state.set_status("bootstrap", Status::Done);
        state.set_status("addons", Status::Done);
    })
    .unwrap();
    place.run("cleanup").unwrap();
    let head = store.requests().pop().unwrap();
    assert!(
        head.starts_with("PUT /clusters/prod/")
            && head.to_lowercase().contains("content-length: 0"),
        "{head}"
    );
    assert!(signature_holds(&head, "wJalr"), "{head}");
}

#[test]
fn an_import_is_the_same_as_a_push() {
    let (object, digest) = bundle();
    let place = Place::new("first-master", "source: push");
    place.put("desk/b.tar.gz", &object);
    let sent = import(&place.root, &place.root, &Source::Tar("/desk/b.tar.gz".into())).unwrap();
    assert_eq!(sent, digest);
    assert_eq!(place.slug(), "done");
    let mut text = String::new();
    fs::File::open(place.dir.path().join("var/lib/tenon/assets/addons/10.yaml"))
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(text, "kind: Namespace");
}
