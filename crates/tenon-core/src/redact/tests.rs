//! The corpus: secrets of each class in each format, at each border of chunks.

use super::*;

const JWT: &str = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW06bm9kZTp4In0.c2lnbmF0dXJlCANARY";
const SESSION: &str = "IQoJb3JpZ2luX2VjEHsaCXVzLXdlc3QtMiJHMEUCIQDCANARY0123456789abcdefghijklmnop";
const KEY: &str =
    "-----BEGIN RSA PRIVATE KEY-----\nMIIECANARY0123\nQUJDCANARY\n-----END RSA PRIVATE KEY-----";
const SECRET40: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYCANARY0KEY";

/// Text, the secret in it, its class.
fn corpus() -> Vec<(String, &'static str, Class)> {
    let mut rows: Vec<(String, &'static str, Class)> = Vec::new();
    let mut add = |text: String, secret, class| rows.push((text, secret, class));
    for text in [
        "password={}",
        "PASSWORD={} next",
        "\"password\": \"{}\"",
        "password: {}",
        "  - password: '{}'",
        "password = \"{}\"",
        "--password={} -v",
        "--password {} -v",
        "[\"--password\",\"{}\"]",
        "{\"log\":\"{\\\"password\\\":\\\"{}\\\"}\"}",
        "Config{Password:{} User:x}",
        "DB_PASSWD={}",
        "client_secret: {}",
        "\"apiKey\" : \"{}\"",
        "MY_API_KEY={}",
        "credential='{}'",
        "token: {}",
        "export SOME_TOKEN={}",
        "password: |\n  {}\nnext: x",
        "secret = [\"{}\"]",
        "password: >-\n    {}\n",
        "  \"X-Token\": [\n    \"{}\"\n  ],\n  \"next\": 1\n",
        "[Service]\nEnvironment=\"B={} and blanks\" \"LOG_LEVEL=3\"\n",
        "Environment=A=1 B={}\n",
        "DefaultEnvironment=\"B=a {}\"\n",
        "password: ab\"{}",
        "{\"password\":\n  \"{}\", \"x\": 1}",
        "token:\n  {}\nnext: x",
        "\"secret\" :\n\n\"{}\"\n",
        "pass={}",
        "DB_PASS={} next",
        "db.pass: {}",
        "pass: {}",
        "\"pass\":\"{}\"",
        "PASS={}",
        "MYSQL_PWD={}",
        "--pass {} -v",
        "openssl pkcs12 -passin pass:{} -nodes",
        "curl -u admin:{} https://h/x",
        "curl -s -uadmin:{} https://h/x",
        "curl --user admin:{} https://h",
        "curl \\\n  --proxy-user 'me:{}' x",
        "[\"curl\",\"-u\",\"admin:{}\"]",
        "ctr images pull -u admin:{} repo/x:1",
        "the password is {}",
        "Password is: {}.",
        "password was '{}', change it",
        "credentials:\n  username: bob\n  key: {}\nnext: x",
        "credentials:\n- user: bob\n  value: '{}'\n",
        "\"dbCredentials\": {\"user\": \"bob\", \"k\": \"{}\"}, \"next\": \"kept\"",
        "\"credentials\": {\n  \"inner\": {\n    \"k\": \"{}\"\n  }\n}\n",
        "  passwords: {root: {}}",
        "x {\\\"credentials\\\":{\\\"k\\\":\\\"{}\\\"}}",
    ] {
        add(
            text.replacen("{}", "hunter2CANARY", 1).replace("\\n", "\n"),
            "hunter2CANARY",
            Class::KeyValue,
        );
    }
    for secret in ["$ecret1CANARY", "$2y$10$CANARY", "{CANARY", "<CANARY", "%CANARY", "*CANARY"] {
        for text in ["password={}", "\"password\": \"{}\"", "token: {}", "--password {}"] {
            add(text.replace("{}", secret), secret, Class::KeyValue);
        }
    }
    for text in ["{}", "id {} used", "X-Amz-Credential={}%2F2026", "\"AccessKeyId\" : \"{}\","] {
        add(text.replace("{}", "AKIACANARY0123456789"), "AKIACANARY0123456789", Class::AwsKey);
        add(text.replace("{}", "ASIACANARY0123456789"), "ASIACANARY0123456789", Class::AwsKey);
    }
    for text in
        ["aws_secret_access_key = {}", "\"SecretAccessKey\" : \"{}\"", "the secret is {} there"]
    {
        add(text.replace("{}", SECRET40), SECRET40, Class::AwsKey);
    }
    for text in
        ["\"Token\" : \"{}\"", "got {} now", "X-Amz-Security-Token={}&x=1", "AWS_SESSION_TOKEN={}"]
    {
        let class = if text.contains("\"Token") { Class::KeyValue } else { Class::AwsSession };
        add(text.replace("{}", SESSION), SESSION, class);
    }
    add("GET /x?X-Amz-Signature=0123CANARY&a=b".into(), "0123CANARY", Class::AwsSession);
    for text in ["got {} here", "x={}", "(\"{}\")"] {
        add(text.replace("{}", JWT), JWT, Class::Jwt);
    }
    for text in
        ["Authorization: Bearer {}", "-H 'Authorization: Basic {}'", "\"Authorization\":\"{}\""]
    {
        add(text.replace("{}", "dXNlcjpDQU5BUlk0"), "dXNlcjpDQU5BUlk0", Class::Bearer);
    }
    add("using bearer abcCANARY012345".into(), "abcCANARY012345", Class::Bearer);
    add("k8s-aws-v1.aHR0cHM6CANARY".into(), "aHR0cHM6CANARY", Class::Bearer);
    for text in
        ["kubeadm join --discovery-file x # token {}", "TOKEN   TTL\n{}  23h", "bootstrap with {}."]
    {
        let text = text.replace("{}", "canary.0123456789abcdef");
        add(text, "0123456789abcdef", Class::BootstrapToken);
    }
    add(format!("a\n{KEY}\nb"), "CANARY", Class::PemKey);
    add(format!("{{\"k\":\"{}\"}}", KEY.replace('\n', "\\n")), "CANARY", Class::PemKey);
    add(KEY.replace('\n', "\nNov 1 host app: "), "CANARY", Class::PemKey);
    add("client-key-data: TUlJRUNBTkFSWQ==".into(), "TUlJRUNBTkFSWQ", Class::Kubeconfig);
    add(
        "{\"auths\":{\"r\":{\"auth\":\"dXNlcjpDQU5BUlk=\"}}}".into(),
        "dXNlcjpDQU5BUlk",
        Class::RegistryAuth,
    );
    add(
        "[host.\"https://r\".header]\n  x-meta = [\"CANARY\"]\n[other]\n".into(),
        "CANARY",
        Class::RegistryAuth,
    );
    add(
        "[plugins.configs.\"r\".auth]\n  username = \"CANARY\"\n".into(),
        "CANARY",
        Class::RegistryAuth,
    );
    for text in
        ["HTTPS_PROXY=http://user:{}@proxy:3128", "\"http://u:{}@h/p\"", "see ftp://a:{}@h."]
    {
        add(text.replace("{}", "pwCANARY"), "pwCANARY", Class::UrlUserinfo);
    }
    let address = "http_proxy=http://user:pw$CANARY@proxy:3128";
    add(address.into(), "pw$CANARY", Class::UrlUserinfo);
    add("the proxy said pwOfProxyCANARY".into(), "pwOfProxyCANARY", Class::KnownValue);
    add("activationCode: CANARY0123".into(), "CANARY0123", Class::Activation);
    add("\"activation-id\": \"CANARY-0123\"".into(), "CANARY-0123", Class::Activation);
    add("free text known-CANARY-value here".into(), "known-CANARY-value", Class::KnownValue);
    add("host node-CANARY.internal".into(), "node-CANARY", Class::User);
    rows
}

fn book() -> Book {
    let mut book = Book::default();
    book.know(Class::KnownValue, "known-CANARY-value");
    book.know(Class::KnownValue, "http://user:pwOfProxyCANARY@proxy:3128/x");
    book.know(Class::User, "node-CANARY\n");
    book
}

fn in_chunks(book: &Book, text: &str, sizes: &[usize]) -> String {
    let (mut redactor, mut out) = (Redactor::default(), Vec::new());
    let mut rest = text.as_bytes();
    for size in sizes.iter().chain(std::iter::repeat(&usize::MAX)) {
        let (chunk, tail) = rest.split_at((*size).min(rest.len()));
        redactor.feed(book, chunk, &mut out);
        rest = tail;
        if rest.is_empty() {
            break;
        }
    }
    redactor.finish(book, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn no_canary_survives_at_any_border() {
    for (input, secret, class) in corpus() {
        let book = book();
        let whole = text(&book, &input);
        assert!(!whole.contains(secret), "{input}\n{whole}");
        let mark = format!("<redacted:{}:1>", class.name());
        assert!(whole.contains(&mark), "{input}\n{whole}");
        for border in 1..input.len() {
            assert_eq!(in_chunks(&book, &input, &[border]), whole, "{input} cut at {border}");
        }
        let ones = vec![1; input.len()];
        assert_eq!(in_chunks(&book, &input, &ones), whole);
        assert_eq!(text(&book, &whole), whole, "a second pass changes nothing");
    }
}

#[test]
fn near_misses_are_kept() {
    for input in [
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "commit 6f1ed002ab5595859014ebf0951522d9b1e3ad55 has the secret fix",
        "123e4567-e89b-12d3-a456-426614174000",
        "i-0abc123def4567890 vol-0123456789abcdef0 eni-0a1b2c3d4e5f60718 arn:aws:iam::123456789012:role/x",
        "AROAABCDEFGHIJKLMNOP:session AIDAABCDEFGHIJKLMNOP",
        "image: repo/token:v1",
        "FLAG: --authentication-token-webhook=\"true\"",
        "FLAG: --tls-private-key-file=\"/var/lib/kubelet/pki/kubelet.key\"",
        "authorization:\n  mode: Webhook",
        "\"authorization\": {\"mode\": \"Webhook\"}",
        "secretName: my-certs",
        "HttpTokens: required",
        "X-aws-ec2-metadata-token-ttl-seconds: 600",
        "TOKEN=\"$(curl -X PUT http://169.254.169.254/latest/api/token)\"",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "https://host/x@y:z and git@github.com:a/b",
        "worker.abcdefgh01234567 is a host",
        "tokens: 3",
        "--image-credential-provider-config=/etc/eks/x.json",
        "bearer authentication is used",
        "auth: webhook",
        "Environment='KUBELET_ARGS=--node-ip=10.0.0.1 --node-labels=team=web --v=2' \"NO_PROXY=10.0.0.0/8\" HOME=/root",
        "\"list\": [\n  \"x\"\n]",
        "passwd:         files systemd",
        "GET /latest/api/token 200",
        "password: ${DB_PASSWORD}\ntoken=$TOKEN\nsecret: {{ .secret }}\ntoken=%s token: <unset>",
        "http://user:${PASSWORD}@proxy:3128 http://user:$PASSWORD@proxy:3128",
        "secret:\n  secretName: my-certs\n  optional: true",
        "credentials:\n  - name: x",
        "\"secret\":\n  {\n  \"secretName\": \"x\"\n}",
        "token:\nnext: x",
        "no token:\nstarted the next step",
        "pass=12 fail=0 skip=1",
        "pass: 12, fail: 3",
        "test_pass=88",
        "PASS: test-foo2 (0.03 s)",
        "--- PASS: TestFoo1 (0.00s)",
        "pass: all of the 9 checks are green",
        "result pass=true pass=ok",
        "bypass=yes1 compass=n0rth bypass: 10.0.0.0/8",
        "PWD=/root/x1 OLDPWD=/var",
        "journalctl -u kubelet:x1",
        "docker run -u 1000:1000 x",
        "curl -u 1000:1000 -o x:y",
        "curl -U http://h",
        "the password is required; the password is not set; password is Incorrect.",
        "password was changed",
        "no credentials:\nkey: x1y2",
        "credentials:\n  username: bob1\n  server: h1\n  region: eu-west-1\nkey: x1y2",
        "\"credentials\": {\"username\": \"bob1\"}, \"key\": \"x1y2\"",
        "imagePullSecrets:\n- name: regcred1",
        "secrets:\n  - name: x1",
    ] {
        let book = Book::default();
        assert_eq!(text(&book, input), input);
    }
}

#[test]
fn equal_secrets_have_equal_numbers_and_others_do_not() {
    let book = Book::default();
    let out = text(&book, "password=aaa1\ntoken=bbb2\n\"password\": \"aaa1\"\n");
    let marks = ["<redacted:key-value:1>", "<redacted:key-value:2>"];
    assert_eq!(
        out,
        format!("password={0}\ntoken={1}\n\"password\": \"{0}\"\n", marks[0], marks[1])
    );
    assert_eq!(text(&book, "x: {token=bbb2}"), "x: {token=<redacted:key-value:3>");
}

#[test]
fn a_certificate_is_told_by_subject_and_end() {
    let encoded = crate::userdata::samples::cluster().certificate_authority.unwrap();
    let out = text(&Book::default(), &format!("    certificate-authority-data: {encoded}\n"));
    assert!(out.starts_with("    certificate-authority-data: <certificate: CN="), "{out}");
    let broken = text(&Book::default(), "certificate-authority-data: bm90IHBlbQ==\n");
    assert_eq!(broken, "certificate-authority-data: <certificate: does not parse>\n");
}

#[test]
fn a_line_without_an_end_is_held_in_bounds_and_still_clean() {
    for lead in [0, 10, LONG_LINE - HOLD - 20, LONG_LINE - HOLD - 5, LONG_LINE - 4, LONG_LINE + 100]
    {
        let filler = "x ".repeat(lead / 2);
        for secret in
            ["\"password\": \"hunter2CANARY\" ", "got AKIACANARY0123456789 ", "token=CANARYlong "]
        {
            let input = format!("{filler}{secret}{}", "y ".repeat(LONG_LINE));
            let out = in_chunks(&Book::default(), &input, &[1000; 300]);
            assert!(!out.contains("CANARY"), "{lead} {secret}");
            assert!(out.len() > LONG_LINE * 2 + lead - 100, "nothing else is lost");
        }
    }
    let endless = format!("token={} after", "CANARY".repeat(LONG_LINE));
    let out = text(&Book::default(), &endless);
    assert_eq!(out, "token=<redacted:key-value:1> after");
}

#[test]
fn a_key_without_an_end_does_not_hide_the_rest_of_a_log() {
    let input =
        format!("-----BEGIN PRIVATE KEY-----\nCANARY\n{}after\n", "A\n".repeat(LONGEST_KEY));
    let out = text(&Book::default(), &input);
    assert!(out.starts_with("<redacted:pem-key:1>") && out.ends_with("after\n"));
    assert!(!out.contains("CANARY"));
}

#[test]
fn what_stands_beside_credentials_is_kept() {
    let input = "\"credentials\": {\"user\": \"bob\", \"k\": \"x1\"}, \"next\": \"kept\"";
    let out = text(&Book::default(), input);
    assert!(
        out.ends_with("{\"user\": \"bob\", \"k\": \"<redacted:key-value:1>\"}, \"next\": \"kept\"")
    );
    let out = text(&Book::default(), "curl -u admin:hunter2 https://h/x");
    assert_eq!(out, "curl -u admin:<redacted:key-value:1> https://h/x");
}

#[test]
fn the_book_of_numbers_is_bounded() {
    let book = Book::default();
    for number in 0..=MOST_NUMBERS {
        text(&book, &format!("password=p{number}"));
    }
    assert_eq!(text(&book, "password=pX"), "password=<redacted:key-value:more>");
}
