//! Calls against a scripted server, and AWS's own signature examples.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use tenon_core::config::{Cluster, MaxPods};

use super::credentials::Signer;
use super::endpoint::Service;
use super::transport::{Call, signed};
use super::*;
use crate::gather::environment::Environment;
use crate::gather::imds::{Imds, Options};
use crate::simulator::Simulator;
use crate::simulator::faults::{Faults, Rule};
use crate::simulator::profile::Profile;

/// A server that gives scripted answers in turn, the last one for ever.
struct Script {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Script {
    fn new(answers: &[(u16, &str)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (log, answers) = (
            Arc::clone(&requests),
            answers.iter().map(|(status, body)| (*status, (*body).to_owned())).collect::<Vec<_>>(),
        );
        std::thread::spawn(move || {
            for (turn, stream) in listener.incoming().enumerate() {
                let mut stream = stream.unwrap();
                log.lock().unwrap().push(request(&mut stream));
                let (status, body) = &answers[turn.min(answers.len() - 1)];
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
                );
                stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
            }
        });
        Script { url, requests }
    }

    fn seen(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    fn environment(&self) -> Environment {
        Environment::from([
            ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
            ("AWS_SECRET_ACCESS_KEY", "canary-secret"),
            ("AWS_SESSION_TOKEN", "canary-token"),
            ("AWS_ENDPOINT_URL", self.url.as_str()),
        ])
    }
}

/// Reads a head and the body that it announces.
fn request(stream: &mut std::net::TcpStream) -> String {
    let (mut text, mut chunk) = (String::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut chunk).unwrap();
        text.push_str(&String::from_utf8_lossy(&chunk[..count]));
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().unwrap())
        });
        if count == 0 || body.len() >= length.unwrap_or(0) {
            return text;
        }
    }
}

fn instance() -> Instance {
    Instance {
        id: "i-0abc12345678def90".into(),
        region: "eu-west-1".into(),
        instance_type: "x99.large".into(),
        account: "111122223333".into(),
        ..Instance::default()
    }
}

const CLUSTER: &str = r#"{"cluster": {"endpoint": "https://x", "certificateAuthority": {"data": "LS0t"},
    "kubernetesNetworkConfig": {"serviceIpv4Cidr": "172.20.0.0/16"}}}"#;
const DENIED: &str = "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>You are not authorized to perform this operation.</Message></Error></Errors></Response>";
const NAMED: &str = "<DescribeInstancesResponse><reservationSet><item><instancesSet><item><privateDnsName>ip-10-0-0-1.eu-west-1.compute.internal</privateDnsName></item></instancesSet></item></reservationSet></DescribeInstancesResponse>";
const UNNAMED: &str = "<DescribeInstancesResponse><reservationSet><item><instancesSet><item><privateDnsName/></item></instancesSet></item></reservationSet></DescribeInstancesResponse>";

fn config(api: AwsApi) -> Config {
    let cluster = Cluster { name: "demo".into(), ..Cluster::default() };
    Config { aws_api: api, cluster, ..Config::default() }
}

#[test]
fn the_official_signature_examples_come_out() {
    let key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    let credentials = Credentials::new("AKIDEXAMPLE", key, None, None, "test");
    // 2015-08-30T12:36:00Z
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_440_938_160);
    let rows = [
        ("GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        (
            "GET",
            "/?Param2=value2&Param1=value1",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
    ];
    for (method, path, expected) in rows {
        let settings = aws_sigv4::http_request::SigningSettings::default();
        let identity = credentials.clone().into();
        let parameters = aws_sigv4::sign::v4::SigningParams::builder()
            .identity(&identity)
            .region("us-east-1")
            .name("service")
            .time(now)
            .settings(settings)
            .build()
            .unwrap()
            .into();
        let body = aws_sigv4::http_request::SignableBody::Bytes(&[]);
        let uri = format!("https://example.amazonaws.com{path}");
        let request =
            aws_sigv4::http_request::SignableRequest::new(method, uri, std::iter::empty(), body);
        let signed = aws_sigv4::http_request::sign(request.unwrap(), &parameters).unwrap();
        assert_eq!(signed.signature(), expected, "{method} {path}");
    }
}

#[test]
fn our_requests_carry_the_signature_and_the_session_token() {
    let credentials =
        Credentials::new("AKIDEXAMPLE", "secret", Some("session".into()), None, "test");
    let signer = Signer { credentials, identity: "test".into() };
    let call = Call {
        service: Service::Ec2,
        action: "ec2:DescribeInstances",
        method: "POST",
        path: "/".into(),
        body: "Action=DescribeInstances".into(),
        bound: Duration::from_secs(1),
    };
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_440_938_160);
    let request =
        signed(&call, "https://ec2.eu-west-1.amazonaws.com", "eu-west-1", &signer, now).unwrap();
    let header = |name| request.headers()[name].to_str().unwrap();
    assert_eq!(header("x-amz-date"), "20150830T123600Z");
    assert_eq!(header("x-amz-security-token"), "session");
    let scope = "Credential=AKIDEXAMPLE/20150830/eu-west-1/ec2/aws4_request, \
                 SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, Signature=";
    assert!(header("authorization").contains(scope), "{}", header("authorization"));
}

#[test]
fn a_complete_config_calls_nobody() {
    let script = Script::new(&[(200, CLUSTER)]);
    let mut whole = config(AwsApi::IfNeeded);
    whole.cluster.api_server_endpoint = "https://x".into();
    whole.cluster.certificate_authority = b"ca".to_vec();
    whole.cluster.cidr = Some("10.100.0.0/16".parse().unwrap());
    let mut cloud = Cloud::new(&instance(), script.environment(), None);
    assert_eq!(discover(&whole, &mut cloud).unwrap(), None);
    assert_eq!(discover(&config(AwsApi::Never), &mut cloud).unwrap(), None);
    let mut facts = instance();
    assert_eq!(enrich(&whole, &mut facts, true, &mut cloud), []);
    assert_eq!(enrich(&config(AwsApi::Never), &mut facts, false, &mut cloud), []);
    assert_eq!(script.seen(), Vec::<String>::new());
}

#[test]
fn a_missing_endpoint_is_discovered() {
    let script = Script::new(&[(503, "busy"), (200, CLUSTER)]);
    let mut cloud = Cloud::new(&instance(), script.environment(), None);
    let cluster = discover(&config(AwsApi::IfNeeded), &mut cloud).unwrap().unwrap();
    assert_eq!(cluster.cidr.to_string(), "172.20.0.0/16");
    let seen = script.seen();
    assert_eq!(seen.len(), 2, "the server error was repeated");
    assert!(seen[0].starts_with("GET /clusters/demo HTTP/1.1\r\n"), "{}", seen[0]);
}

#[test]
fn row_25_throttling_is_bounded_and_leaves_the_derived_name() {
    let script = Script::new(&[(503, "<Code>RequestLimitExceeded</Code>")]);
    let environment = script.environment();
    let two = std::collections::BTreeMap::from([(
        "AWS_MAX_ATTEMPTS".to_owned(),
        tenon_core::secret::Secret::new("2"),
    )]);
    let mut cloud = Cloud::new(&instance(), environment.overlay(&two), None);
    let mut facts = instance();
    let warnings = enrich(&config(AwsApi::Verify), &mut facts, true, &mut cloud);
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].page.code, "TN10002");
    assert_eq!(facts.private_dns_name, None);
    assert_eq!(script.seen().len(), 2);
}

#[test]
fn row_25_no_route_ends_within_the_attempts_allowed() {
    let environment = Environment::from([
        ("AWS_ACCESS_KEY_ID", "a"),
        ("AWS_SECRET_ACCESS_KEY", "b"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
        ("AWS_MAX_ATTEMPTS", "1"),
    ]);
    let mut cloud = Cloud::new(&instance(), environment, None);
    let problem = eks::describe_cluster(&mut cloud, "demo").unwrap_err();
    assert_eq!((problem.page.code, problem.exit()), ("TN10002", 10));
}

#[test]
fn row_97_a_denial_is_final_on_the_first_answer_and_keeps_its_text() {
    let script = Script::new(&[(403, DENIED)]);
    let mut cloud = Cloud::new(&instance(), script.environment(), None);
    let mut facts = instance();
    let warnings = enrich(&config(AwsApi::Verify), &mut facts, false, &mut cloud);
    assert_eq!(script.seen().len(), 2, "one for each of the two calls");
    for (warning, action) in
        warnings.iter().zip(["ec2:DescribeInstanceTypes", "ec2:DescribeInstances"])
    {
        assert_eq!(warning.page.code, "TN10001");
        assert!(warning.what.contains(action) && warning.fix_text().contains(action));
        assert!(warning.causes[0].contains("not authorized"));
        assert!(!warning.render("warning").contains("canary"));
    }
}

#[test]
fn row_26_an_empty_name_is_no_name() {
    let script = Script::new(&[(200, UNNAMED), (200, NAMED)]);
    let mut cloud = Cloud::new(&instance(), script.environment(), None);
    assert_eq!(ec2::private_dns_name(&mut cloud, "i-12345678").unwrap(), None);
    let name = ec2::private_dns_name(&mut cloud, "i-12345678").unwrap();
    assert_eq!(name.as_deref(), Some("ip-10-0-0-1.eu-west-1.compute.internal"));
    assert!(script.seen()[0].ends_with("&InstanceId.1=i-12345678"), "{}", script.seen()[0]);
}

#[test]
fn pages_are_followed_to_the_end() {
    let page = |name: &str, token: &str| {
        format!(
            "<DescribeInstanceTypesResponse><instanceTypeSet><item><instanceType>{name}</instanceType></item></instanceTypeSet>{token}</DescribeInstanceTypesResponse>"
        )
    };
    let (first, second) =
        (page("m5.large", "<nextToken>a/b=</nextToken>"), page("a1.large", "<nextToken/>"));
    let script = Script::new(&[(200, &first), (200, &second)]);
    let mut cloud = Cloud::new(&instance(), script.environment(), None);
    let types = ec2::describe_instance_types(&mut cloud).unwrap();
    let names: Vec<_> = types.iter().map(|t| t["InstanceType"].as_str().unwrap()).collect();
    assert_eq!(names, ["a1.large", "m5.large"]);
    assert!(script.seen()[1].ends_with("&MaxResults=100&NextToken=a%2Fb%3D"));
}

#[test]
fn a_fixed_pod_limit_needs_no_instance_limits() {
    let script = Script::new(&[(200, "")]);
    let mut fixed = config(AwsApi::IfNeeded);
    fixed.kubelet.max_pods = MaxPods { mode: MaxPodsMode::Fixed(20), ..MaxPods::default() };
    let mut cloud = Cloud::new(&instance(), script.environment(), None);
    assert_eq!(enrich(&fixed, &mut instance(), false, &mut cloud), []);
    assert_eq!(script.seen().len(), 0);
}

#[test]
fn the_instance_role_signs_with_two_more_requests() {
    let late = Rule { status: Some(404), times: Some(1), ..Rule::on("*/security-credentials/") };
    let simulator = Simulator::start(&Profile::new("m5.large"), Faults::of([late])).unwrap();
    let script = Script::new(&[(200, CLUSTER)]);
    let endpoint = simulator.endpoint();
    let environment = Environment::from([
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", endpoint.as_str()),
        ("AWS_ENDPOINT_URL_EKS", script.url.as_str()),
    ]);
    let mut imds = Imds::new(Options::new(&environment).unwrap());
    let mut cloud = Cloud::new(&instance(), environment, Some(&mut imds));
    for _ in 0..2 {
        eks::describe_cluster(&mut cloud, "demo").unwrap();
    }
    // Token, the role's name (absent once, as early in a boot), its credentials; kept after that.
    assert_eq!(simulator.log().len(), 4);
    assert!(script.seen()[0].contains("ASIAEXAMPLEEXAMPLE00"));
}

#[test]
fn without_credentials_the_problem_says_so() {
    let mut cloud = Cloud::new(&instance(), Environment::default(), None);
    let problem = eks::describe_cluster(&mut cloud, "demo").unwrap_err();
    assert_eq!(problem.page.code, "TN10005");
}

#[test]
fn a_proxy_is_honoured_unless_excluded() {
    let proxy = Script::new(&[(502, "")]);
    let target = Script::new(&[(200, CLUSTER)]);
    for (exclude, reaches_target) in [("", false), ("example.com, 127.0.0.1", true)] {
        let environment = Environment::from([
            ("AWS_ACCESS_KEY_ID", "a"),
            ("AWS_SECRET_ACCESS_KEY", "b"),
            ("AWS_ENDPOINT_URL", target.url.as_str()),
            ("AWS_MAX_ATTEMPTS", "1"),
            ("http_proxy", proxy.url.as_str()),
            ("NO_PROXY", exclude),
        ]);
        let mut cloud = Cloud::new(&instance(), environment, None);
        assert_eq!(eks::describe_cluster(&mut cloud, "demo").is_ok(), reaches_target);
    }
    assert_eq!((proxy.seen().len(), target.seen().len()), (1, 1));
    assert!(proxy.seen()[0].starts_with("CONNECT 127.0.0.1:"), "{}", proxy.seen()[0]);
}

/// A server that answers a PUT with a status and headers in turn, or breaks off at status 0.
fn bucket(answers: &'static [(u16, &'static str)]) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&requests);
    std::thread::spawn(move || {
        for (turn, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let (status, headers) = answers[turn.min(answers.len() - 1)];
            log.lock().unwrap().push(request(&mut stream));
            if status != 0 {
                let answer = format!(
                    "HTTP/1.1 {status} X\r\n{headers}Content-Length: 2\r\nConnection: close\r\n\r\nno"
                );
                stream.write_all(answer.as_bytes()).unwrap();
            }
        }
    });
    (url, requests)
}

fn upload(url: &str) -> Result<(), Problem> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "bundle").unwrap();
    let environment = Environment::from([
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "canary-secret"),
        ("AWS_ENDPOINT_URL_S3", url),
    ]);
    let instance = Instance { region: "eu-west-1".into(), ..Instance::default() };
    let mut cloud = Cloud::new(&instance, environment, None);
    s3::put(&mut cloud, "my-bucket", "logs/a b.tar.gz", file.path())
}

#[test]
fn an_upload_is_signed_for_its_bucket() {
    let (url, requests) = bucket(&[(200, "")]);
    upload(&url).unwrap();
    let seen = requests.lock().unwrap().join("");
    assert!(seen.starts_with("PUT /my-bucket/logs/a%20b.tar.gz HTTP/1.1"), "{seen}");
    let lower = seen.to_ascii_lowercase();
    for part in [
        "/eu-west-1/s3/aws4_request",
        "x-amz-server-side-encryption: aes256",
        "x-amz-checksum-sha256: ",
        "x-amz-content-sha256: ",
        "content-length: 6",
    ] {
        assert!(lower.contains(part), "{part} in {lower}");
    }
    assert!(!seen.contains("canary-secret"));
}

#[test]
fn an_upload_goes_where_the_bucket_lives_and_takes_no_for_an_answer() {
    let (url, requests) = bucket(&[(301, "x-amz-bucket-region: ap-south-1\r\n"), (200, "")]);
    upload(&url).unwrap();
    assert!(requests.lock().unwrap()[1].contains("/ap-south-1/s3/"));
    let (url, requests) = bucket(&[(403, "")]);
    let problem = upload(&url).unwrap_err();
    assert_eq!((problem.exit(), requests.lock().unwrap().len()), (10, 1));
    let (url, requests) = bucket(&[(503, ""), (0, ""), (200, "")]);
    upload(&url).unwrap();
    assert_eq!(requests.lock().unwrap().len(), 3);
    let (url, requests) = bucket(&[(0, "")]);
    assert_eq!(upload(&url).unwrap_err().exit(), 10);
    assert_eq!(requests.lock().unwrap().len(), 3);
    // A redirect without a region is not followed: it may lead anywhere.
    let (url, _) = bucket(&[(307, "Location: http://127.0.0.1:1/\r\n")]);
    assert_eq!(upload(&url).unwrap_err().exit(), 10);
}

#[test]
fn a_presigned_address_is_used_as_it_is_and_not_shown() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (url, requests) = bucket(&[(200, "")]);
    s3::put_presigned(
        &Environment::default(),
        &format!("{url}/k?X-Amz-Signature=canary"),
        file.path(),
    )
    .unwrap();
    assert!(requests.lock().unwrap()[0].contains("/k?X-Amz-Signature=canary"));
    let gone = "http://127.0.0.1:9/k?X-Amz-Signature=canary";
    let problem = s3::put_presigned(&Environment::default(), gone, file.path()).unwrap_err();
    assert!(!problem.render("error").contains("canary"));
}

mod tokens {
    use std::collections::BTreeMap;

    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use hmac::{Hmac, KeyInit, Mac};
    use sha2::{Digest, Sha256};

    use super::super::eks_token::{self, Minted};
    use super::*;

    /// 2015-08-30T12:36:00Z
    fn then() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_440_938_160)
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn hmac(key: &[u8], text: &str) -> Vec<u8> {
        let mut hmac = Hmac::<Sha256>::new_from_slice(key).unwrap();
        hmac.update(text.as_bytes());
        hmac.finalize().into_bytes().to_vec()
    }

    /// What the service does with a request: takes its signature off and makes it again.
    fn is_genuine(request: &str, secret: &str) -> bool {
        let mut lines = request.lines();
        let target = lines.next().unwrap().split(' ').nth(1).unwrap().to_owned();
        let header = |name: &str| {
            let line = request.lines().find(|line| line.to_ascii_lowercase().starts_with(name));
            line.unwrap_or_default().split_once(": ").unwrap_or_default().1.to_owned()
        };
        let query = target.split_once('?').unwrap().1;
        let mut pairs: BTreeMap<&str, &str> =
            query.split('&').map(|pair| pair.split_once('=').unwrap()).collect();
        let signature = pairs.remove("X-Amz-Signature").unwrap();
        let canonical: Vec<_> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let request = format!(
            "GET\n/\n{}\nhost:{}\nx-k8s-aws-id:{}\n\nhost;x-k8s-aws-id\n{}",
            canonical.join("&"),
            header("host"),
            header("x-k8s-aws-id"),
            hex(&Sha256::digest(b"")),
        );
        let date = pairs["X-Amz-Date"];
        let scope = format!("{}/eu-west-1/sts/aws4_request", &date[..8]);
        let text = format!(
            "AWS4-HMAC-SHA256\n{date}\n{scope}\n{}",
            hex(&Sha256::digest(request.as_bytes()))
        );
        let mut key = format!("AWS4{secret}").into_bytes();
        for part in scope.split('/') {
            key = hmac(&key, part);
        }
        hex(&hmac(&key, &text)) == signature
    }

    fn url(minted: &Minted) -> String {
        let encoded = minted.token.expose().strip_prefix("k8s-aws-v1.").unwrap();
        String::from_utf8(URL_SAFE_NO_PAD.decode(encoded).unwrap()).unwrap()
    }

    /// Sends what the token holds, as the cluster does.
    fn redeem(minted: &Minted, cluster: &str, script: &Script) -> String {
        let agent: ureq::Agent = ureq::Agent::config_builder().proxy(None).build().into();
        agent.get(url(minted)).header("x-k8s-aws-id", cluster).call().unwrap();
        script.seen().pop().unwrap()
    }

    #[test]
    fn a_token_is_a_genuine_call_for_one_cluster() {
        let script = Script::new(&[(200, "")]);
        let mut cloud = Cloud::new(&instance(), script.environment(), None);
        let minted = eks_token::mint(&mut cloud, "demo", None, then()).unwrap();
        assert!(script.seen().is_empty(), "nothing is sent to make a token");
        assert_eq!(minted.expires, "2015-08-30T12:50:00Z");
        let seen = redeem(&minted, "demo", &script);
        assert!(is_genuine(&seen, "canary-secret"), "{seen}");
        for part in [
            "X-Amz-Expires=60",
            "X-Amz-Date=20150830T123600Z",
            "Action=GetCallerIdentity",
            "X-Amz-Security-Token=canary-token",
            "X-Amz-SignedHeaders=host%3Bx-k8s-aws-id",
        ] {
            assert!(seen.contains(part), "{part}: {seen}");
        }
        assert!(!is_genuine(&redeem(&minted, "other", &script), "canary-secret"));
        assert!(!is_genuine(&seen, "another secret"));
    }

    #[test]
    fn the_document_has_the_version_that_was_asked_for() {
        let minted = Minted { token: tenon_core::secret::Secret::new("t"), expires: "e".into() };
        for (info, version) in [
            (None, "client.authentication.k8s.io/v1"),
            (
                Some(r#"{"apiVersion":"client.authentication.k8s.io/v1beta1"}"#),
                "client.authentication.k8s.io/v1beta1",
            ),
            (
                Some(r#"{"apiVersion":"client.authentication.k8s.io/v1"}"#),
                "client.authentication.k8s.io/v1",
            ),
        ] {
            let found = eks_token::api_version(info).unwrap();
            assert_eq!(minted.credential(&found)["apiVersion"], version);
        }
        let old = eks_token::api_version(Some(
            r#"{"apiVersion":"client.authentication.k8s.io/v1alpha1"}"#,
        ));
        assert_eq!(old.unwrap_err().exit(), 3);
    }

    #[test]
    fn the_instance_role_and_the_container_can_sign() {
        let script = Script::new(&[(200, "")]);
        let simulator = Simulator::start(&Profile::new("m5.large"), Faults::default()).unwrap();
        let endpoint = simulator.endpoint();
        let environment = Environment::from([
            ("AWS_EC2_METADATA_SERVICE_ENDPOINT", endpoint.as_str()),
            ("AWS_ENDPOINT_URL_STS", script.url.as_str()),
        ]);
        let mut imds = Imds::new(Options::new(&environment).unwrap());
        let mut cloud = Cloud::new(&instance(), environment, Some(&mut imds));
        let minted = eks_token::mint(&mut cloud, "demo", None, then()).unwrap();
        assert!(url(&minted).contains("ASIAEXAMPLEEXAMPLE00"));

        let given = r#"{"AccessKeyId": "ASIACONTAINER", "SecretAccessKey": "s", "Token": "t"}"#;
        let container = Script::new(&[(200, given)]);
        let environment = Environment::from([
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", container.url.as_str()),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "who-asks"),
            ("AWS_ENDPOINT_URL_STS", script.url.as_str()),
        ]);
        let mut cloud = Cloud::new(&instance(), environment, None);
        let minted = eks_token::mint(&mut cloud, "demo", None, then()).unwrap();
        assert!(url(&minted).contains("ASIACONTAINER"));
        assert!(container.seen()[0].contains("who-asks"));

        let elsewhere =
            Environment::from([("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://192.0.2.1/x")]);
        let mut cloud = Cloud::new(&instance(), elsewhere, None);
        assert_eq!(
            eks_token::mint(&mut cloud, "demo", None, then()).unwrap_err().page.code,
            "TN10005"
        );
    }

    #[test]
    fn another_role_is_assumed_first() {
        let answer = "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>rs</SecretAccessKey><SessionToken>rt</SessionToken></Credentials></AssumeRoleResult></AssumeRoleResponse>";
        let script = Script::new(&[(200, answer)]);
        let mut cloud = Cloud::new(&instance(), script.environment(), None);
        let role = Some("arn:aws:iam::111122223333:role/admin");
        let minted = eks_token::mint(&mut cloud, "demo", role, then()).unwrap();
        assert!(url(&minted).contains("ASIAROLE"));
        assert!(
            script.seen()[0].contains("RoleArn=arn%3Aaws%3Aiam%3A%3A111122223333%3Arole%2Fadmin")
        );
        assert!(is_genuine(&redeem(&minted, "demo", &script), "rs"));
        let denied = Script::new(&[(403, DENIED)]);
        let mut cloud = Cloud::new(&instance(), denied.environment(), None);
        assert_eq!(
            eks_token::mint(&mut cloud, "demo", role, then()).unwrap_err().page.code,
            "TN10001"
        );
    }
}
