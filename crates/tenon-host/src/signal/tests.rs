//! Against a stub that plays CloudFormation and the kubelet.

use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use tenon_core::facts::Instance;

use super::*;
use crate::gather::environment::Environment;

/// Answers each request with this body and hands the request over.
fn stub(body: &'static str) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = vec![0; 8192];
            let mut length = 0;
            // The body of a form comes with the head or right after it.
            while length == 0 || !whole(&request[..length]) {
                match stream.read(&mut request[length..]) {
                    Ok(0) | Err(_) => break,
                    Ok(more) => length += more,
                }
            }
            let _ = sender.send(String::from_utf8_lossy(&request[..length]).into_owned());
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (address, receiver)
}

fn whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| {
        line.to_ascii_lowercase().strip_prefix("content-length: ")?.trim().parse().ok()
    });
    body.len() >= length.unwrap_or(0)
}

fn run(exit_code: u8, kubelet: SocketAddr, stack: SocketAddr, root: &Root) -> Sent {
    let url = format!("http://{stack}");
    let environment = Environment::from([
        ("AWS_ENDPOINT_URL_CLOUDFORMATION", url.as_str()),
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
    ]);
    let instance = Instance { region: "eu-west-1".into(), ..Instance::default() };
    let mut cloud = Cloud::new(&instance, environment, None);
    let wish = Wish {
        health: kubelet,
        ..Wish::new("my stack".into(), "NodeGroup".into(), exit_code, Duration::ZERO)
    };
    send(root, &mut cloud, "i-1", &wish).unwrap()
}

const DONE: &str = "<SignalResourceResponse/>";

#[test]
fn success_is_signed_and_sent_once() {
    let directory = tempfile::tempdir().unwrap();
    let root = Root::open(directory.path()).unwrap();
    let (kubelet, _) = stub("ok");
    let (stack, requests) = stub(DONE);
    let sent = run(0, kubelet, stack, &root);
    assert_eq!((sent.status, sent.before), (Status::Success, false));
    let request = requests.recv().unwrap();
    assert!(request.contains("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"));
    assert!(request.contains("/eu-west-1/cloudformation/aws4_request"));
    let form = "Action=SignalResource&Version=2010-05-15&StackName=my%20stack\
        &LogicalResourceId=NodeGroup&UniqueId=i-1&Status=SUCCESS";
    assert!(request.ends_with(form), "{request}");
    let again = run(0, kubelet, stack, &root);
    assert!(again.before && again.status == Status::Success);
    assert!(requests.try_recv().is_err());
}

#[test]
fn a_failed_bootstrap_or_kubelet_is_a_failure() {
    let (stack, requests) = stub(DONE);
    let closed = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    for code in [0, 3] {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::open(directory.path()).unwrap();
        assert_eq!(run(code, closed, stack, &root).status, Status::Failure);
        assert!(requests.recv().unwrap().ends_with("Status=FAILURE"));
    }
}
