//! `tenon max-pods` from outside: flags reach the core, output is pure, exit codes hold.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;
use tenon_core::max_pods::Table;
use tenon_host::simulator::Simulator;
use tenon_host::simulator::faults::Faults;
use tenon_host::simulator::profile::Profile;

fn tenon(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tenon"))
        .arg("max-pods")
        .args(arguments)
        .env_remove("COLUMNS")
        .output()
        .unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

/// The answer of a command that must succeed.
fn answer(arguments: &[&str]) -> String {
    let output = tenon(arguments);
    assert_eq!(code(&output), 0, "{arguments:?}: {}", stderr(&output));
    stdout(&output).to_owned()
}

#[test]
fn one_type_is_one_number() {
    for (arguments, expected) in [
        (&["m5.large"][..], "29\n"),
        (&["--instance-type", "m5.large"], "29\n"),
        (&["m5.large", "--prefix-delegation"], "110\n"),
        (&["m5.large", "--prefix-delegation", "--cap", "none"], "434\n"),
        (&["m5.large", "--prefix-delegation", "--show-max-allowed"], "434\n"),
        (&["m5.large", "--custom-networking"], "20\n"),
        (&["m5.large", "--max-enis", "2"], "20\n"),
        (&["m5.24xlarge", "--recommended"], "250\n"),
        (&["m5.24xlarge", "--cap", "300"], "300\n"),
        (&["m5.large", "--cni", "none"], "110\n"),
        (&["m5.large", "--ip-family", "ipv6"], "110\n"),
        (&["m5.large", "--mode", "fixed", "--value", "12"], "12\n"),
        (&["m5.large", "--mode", "min", "--value", "12"], "12\n"),
        (&["m5.xlarge", "--mode", "expression", "--expression", "max_pods * 2 / 3"], "38\n"),
        (&["m4.large", "--prefix-delegation=auto"], "20\n"),
        (&["m5.24xlarge", "--memory-share", "0.01"], "334\n"),
        (&["x99.large", "--on-unknown", "default"], "110\n"),
    ] {
        assert_eq!(answer(arguments), expected, "{arguments:?}");
    }
}

/// Calls as scripts around the retired calculator make them, with its numbers.
#[test]
fn old_spellings_give_the_old_numbers() {
    for (line, expected) in [
        ("--instance-type m5.large --cni-version 1.9.0", "29\n"),
        ("--instance-type m5.24xlarge --cni-version v1.19.0-eksbuild.1", "250\n"),
        ("--instance-type m5.large --cni-version 1.9.0 --cni-prefix-delegation-enabled", "110\n"),
        ("--instance-type m5.large --cni-version 1.8.0 --cni-prefix-delegation-enabled", "29\n"),
        ("--instance-type m4.large --cni-version 1.9.0 --cni-prefix-delegation-enabled", "20\n"),
        ("--instance-type m5.large --cni-version 1.9.0 --cni-custom-networking-enabled", "20\n"),
        ("--instance-type m5.large --cni-version 1.9.0 --cni-max-eni 2", "20\n"),
        ("--instance-type m5.24xlarge --cni-version 1.9.0 --show-max-allowed", "737\n"),
        (
            "--instance-type m5.metal --cni-version 1.19.0 --cni-prefix-delegation-enabled \
          --show-max-allowed",
            "737\n",
        ),
    ] {
        let mut arguments: Vec<&str> = line.split_whitespace().collect();
        arguments.extend(["--compat", "calculator"]);
        assert_eq!(answer(&arguments), expected, "{line}");
    }
    assert_eq!(answer(&["m5.24xlarge", "--compat", "nodeadm"]), "737\n");
}

#[test]
fn old_spellings_are_hidden_and_help_is_narrow() {
    let help = answer(&["--help"]);
    assert!(!help.contains("cni-max-eni") && !help.contains("from-imds-"), "{help}");
    for line in help.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn unknown_types_exit_with_3_and_patterns_with_64() {
    let output = tenon(&["m5.larg"]);
    assert_eq!((code(&output), stdout(&output)), (3, ""));
    assert!(stderr(&output).contains("m5.large, m5.xlarge, m5.2xlarge"), "{}", stderr(&output));
    let output = tenon(&["m5x.*"]);
    assert_eq!((code(&output), stdout(&output)), (64, ""));
    assert!(stderr(&output).contains("nearest names are m5.large"), "{}", stderr(&output));
    let output = tenon(&["m5.larg", "--on-unknown", "default"]);
    assert!(stderr(&output).starts_with("warning TN03360"), "{}", stderr(&output));
}

#[test]
fn conflicting_flags_are_named() {
    for (arguments, first, second) in [
        (&["m5.large", "--cap", "5", "--recommended"][..], "--cap", "--recommended"),
        (
            &["m5.large", "--show-max-allowed", "--recommended"],
            "--recommended",
            "--show-max-allowed",
        ),
        (&["m5.large", "--from-imds"], "--from-imds", "TYPE"),
        (&["m5.large", "--value", "3"], "--value", "--mode"),
        (&["m5.large", "--mode", "fixed"], "--mode", "--value"),
        (&["m5.large", "--mode", "expression"], "--mode", "--expression"),
        (&["m5.large", "--expression", "1"], "--expression", "--mode"),
        (&["m5.large", "--cni", "none", "--max-enis", "3"], "--cni none", "--max-enis"),
        (
            &["m5.large", "--cni", "none", "--prefix-delegation"],
            "--cni none",
            "--prefix-delegation",
        ),
        (&["m5.large", "--compat", "calculator", "--cap", "none"], "--compat", "--cap"),
        (&["m5.large", "--facts", "f.json"], "--facts", "instance types"),
        (&["--facts", "f.json", "--from-imds"], "--facts", "--from-imds"),
        (&["--config", "n.yaml", "--mode", "eni"], "--config", "--mode"),
        (&["--config", "n.yaml"], "--config", "--facts or --from-imds"),
    ] {
        let output = tenon(arguments);
        assert_eq!(code(&output), 64, "{arguments:?}");
        let told = stderr(&output);
        assert!(told.contains(first) && told.contains(second), "{arguments:?}: {told}");
        assert_eq!(stdout(&output), "", "{arguments:?}");
    }
}

#[test]
fn bad_values_exit_with_64_or_3() {
    for (arguments, expected) in [
        (&[][..], 64),
        (&["m5.large", "--cap", "0"], 64),
        (&["m5.large", "--cni-version", "new"], 64),
        (&["m5.large", "--memory-share", "2"], 64),
        (&["m5.{large"], 64),
        (&["m5.*", "--arch", "arm64"], 64),
        (&["m4.large", "--prefix-delegation"], 3),
        (&["m4.large", "--ip-family", "ipv6"], 3),
        (&["m5.large", "--cni-version", "1.8", "--prefix-delegation"], 3),
        (&["t3.nano", "--memory-share", "0.25"], 3),
        (&["m5.large", "--mode", "expression", "--expression", "max_pods /"], 3),
        (&["*", "--prefix-delegation"], 3),
        (&["m5.large", "--table", "/nonexistent/table.tsv"], 3),
    ] {
        let output = tenon(arguments);
        assert_eq!(code(&output), expected, "{arguments:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{arguments:?}");
    }
    let output = tenon(&["t3.nano", "--memory-share", "0.25"]);
    assert!(stderr(&output).contains("--memory-share 0.52"), "{}", stderr(&output));
}

#[test]
fn warnings_leave_the_number_alone() {
    let output = tenon(&["t3.nano"]);
    assert_eq!((code(&output), stdout(&output)), (0, "4\n"));
    assert!(stderr(&output).starts_with("warning TN03367: 299 of 512 MiB"), "{}", stderr(&output));
}

#[test]
fn lists_are_tables_maps_and_csv() {
    let text = answer(&["{c,m}5.large", "t3.nano"]);
    let rows: Vec<_> = text.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(rows, ["c5.large", "m5.large", "t3.nano"], "no header into a pipe");
    let table = answer(&["m5.*", "--output", "table"]);
    assert!(table.starts_with("TYPE "), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let map = answer(&["--instance-type", "m5.xlarge,{c,m}5.large", "--output", "map"]);
    assert_eq!(map, "c5.large 29\nm5.large 29\nm5.xlarge 58\n");
    assert_eq!(answer(&["m5.large", "--output", "map"]), "m5.large 29\n");
    let csv = answer(&["m5.large,t3.nano", "--output", "csv", "--sort", "pods"]);
    assert_eq!(csv.lines().nth(1).unwrap(), "t3.nano,x86_64,2,512,2,2,4,70,299,");
    assert_eq!(csv.lines().count(), 3);
}

#[test]
fn filters_cut_patterns() {
    let names = |arguments: &[&str]| {
        let text = answer(arguments);
        text.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let gpus = names(&["g4*", "--gpu", "--output", "map"]);
    assert!(gpus.contains(&"g4dn.xlarge".into()) && gpus.contains(&"g4ad.xlarge".into()));
    assert_eq!(
        names(&["m7*.large", "--arch", "arm64", "--output", "map"]),
        ["m7g.large", "m7gd.large"]
    );
    let disks = names(&["m5{,d}.large", "--local-disks", "--output", "map"]);
    assert_eq!(disks, ["m5d.large"]);
    assert_eq!(names(&["m5{,n}.24xlarge", "--efa", "--output", "map"]), ["m5n.24xlarge"]);
}

#[test]
fn json_is_an_object_for_one_and_a_list_for_several() {
    let one: Value = serde_json::from_str(&answer(&["m5.large", "--output", "json"])).unwrap();
    assert_eq!((&one["type"], &one["pods"]), (&json!("m5.large"), &json!(29)));
    assert_eq!(
        one["reserved"],
        json!({"cpuMillis": 70, "memoryMib": 574, "ephemeralStorage": "1Gi"})
    );
    let many: Value = serde_json::from_str(&answer(&["m5.larg?", "--output", "json"])).unwrap();
    assert_eq!(many.as_array().unwrap().len(), 1);
    let output = tenon(&["m5.larg", "--output", "json"]);
    let error: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!((code(&output), &error["error"]["code"]), (3, &json!("TN03360")));
}

#[test]
fn the_schema_and_the_table_say_what_they_are() {
    let output = Command::new(env!("CARGO_BIN_EXE_tenon")).args(["schema", "max-pods"]).output();
    let schema: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    assert_eq!(schema["$id"], "urn:tenon:max-pods:v1");
    let info: Value = serde_json::from_str(&answer(&["--table-info", "--output", "json"])).unwrap();
    assert_eq!(info["types"], json!(Table::embedded().rows().count()));
    assert_eq!(info["date"], json!(Table::embedded().head().date));
}

#[test]
fn the_whole_table_is_one_answer() {
    let map = answer(&["*", "--output", "map"]);
    assert_eq!(map.lines().count(), Table::embedded().rows().count());
}

const ROW: &str = "x9.large\t4\t15\t15\t4\t8192\tx\tn\t1\t4\t0\t-\t-\t-\n";

#[test]
fn brought_tables_know_newer_types() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("new.tsv");
    fs::write(&file, ROW).unwrap();
    assert_eq!(answer(&["x9.large", "--table", file.to_str().unwrap()]), "58\n");
    let tables = root.path().join("etc/tenon/instances.d");
    fs::create_dir_all(&tables).unwrap();
    fs::copy(&file, tables.join("new.tsv")).unwrap();
    let at = root.path().to_str().unwrap();
    assert_eq!(answer(&["x9.*", "--root", at, "--output", "map"]), "x9.large 58\n");
    fs::write(tables.join("bad.tsv"), "no row\n").unwrap();
    let output = tenon(&["m5.large", "--root", at]);
    assert_eq!(code(&output), 3);
    assert!(stderr(&output).contains("bad.tsv, line 1"), "{}", stderr(&output));
}

/// The documents of a golden case, for machines of any type.
struct Desk {
    directory: TempDir,
    config: String,
    facts: Value,
}

impl Desk {
    fn new() -> Self {
        let case = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/instance-c5-4xlarge");
        let config = fs::read_to_string(format!("{case}/config.yaml")).unwrap();
        let facts = fs::read_to_string(format!("{case}/facts.json")).unwrap();
        let facts = serde_json::from_str(&facts).unwrap();
        Desk { directory: tempfile::tempdir().unwrap(), config, facts }
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.directory.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The facts file of a machine.
    fn machine(&self, instance_type: &str, cpus: u32, memory_mib: u64) -> String {
        let mut facts = self.facts.clone();
        facts["instance"]["type"] = json!(instance_type);
        facts["machine"]["onlineCpus"] = json!(cpus);
        facts["machine"]["onlineMemoryBytes"] = json!(memory_mib << 20);
        self.write("facts.json", &facts.to_string())
    }

    /// `maxPods` of the kubelet config that `plan` would write; None when it refuses.
    fn planned(&self, config: &str, facts: &str) -> Option<u64> {
        let root = self.directory.path().to_str().unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_tenon"))
            .args(["plan", "-c", config, "--facts", facts, "--root", root, "--output", "json"])
            .output()
            .unwrap();
        let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
        let steps = plan["steps"].as_array()?;
        let file = steps.iter().find(|step| step["path"] == "/etc/kubernetes/kubelet/config.json");
        let content: Value = serde_json::from_str(file?["content"].as_str()?).unwrap();
        content["maxPods"].as_u64()
    }
}

#[test]
fn facts_of_another_machine_count() {
    let desk = Desk::new();
    let facts = desk.machine("m5.large", 1, 7000);
    let text = answer(&["--facts", &facts, "--explain"]);
    assert!(text.starts_with("m5.large   29 pods\n"), "{text}");
    assert!(text.contains("cpu 60m, memory 574Mi (255 + 11 * 29), 8.2 % of 7000 MiB"), "{text}");
    assert!(text.contains("(1 CPUs online)"), "{text}");
}

/// A plain generator of the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[usize::try_from(self.below(list.len() as u64)).unwrap()]
    }
}

#[test]
fn plan_and_max_pods_agree_on_a_hundred_configurations() {
    let desk = Desk::new();
    let rows: Vec<_> = Table::embedded().rows().collect();
    let mut numbers = Numbers(7);
    let mut answered = 0;
    for round in 0..100 {
        let row = rows[usize::try_from(numbers.below(rows.len() as u64)).unwrap()];
        let mode = match numbers.below(4) {
            0 => "mode: eni".to_owned(),
            1 => format!("mode: fixed, value: {}", 1 + numbers.below(300)),
            2 => format!("mode: min, value: {}", 1 + numbers.below(300)),
            _ => "mode: expression, expression: 'max(default_enis, max_pods / 2)'".to_owned(),
        };
        let flags = format!(
            "{mode}, prefixDelegation: {}, customNetworking: {}, maxEnis: {}, cap: {}",
            numbers.pick(&["true", "false"]),
            numbers.pick(&["true", "false"]),
            numbers.below(9),
            numbers.pick(&["auto", "none", "77"]),
        );
        let text = format!("{}  kubelet:\n    maxPods: {{{flags}}}\n", desk.config);
        let config = desk.write("config.yaml", &text);
        let facts = desk.machine(row.name, row.vcpu, row.memory_mib);
        let output = tenon(&["--config", &config, "--facts", &facts]);
        let pods = (code(&output) == 0).then(|| stdout(&output).trim().parse::<u64>().unwrap());
        assert_eq!(desk.planned(&config, &facts), pods, "{round}: {} {flags}", row.name);
        answered += u32::from(pods.is_some());
    }
    assert!(answered > 50, "{answered} of 100 had an answer");
}

#[test]
fn this_machine_is_asked_through_its_metadata() {
    let simulator = Simulator::start(&Profile::new("m5.xlarge"), Faults::default()).unwrap();
    for flag in ["--from-imds", "--instance-type-from-imds"] {
        let output = Command::new(env!("CARGO_BIN_EXE_tenon"))
            .args(["max-pods", flag])
            .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", simulator.endpoint())
            .output()
            .unwrap();
        assert_eq!((code(&output), stdout(&output)), (0, "58\n"), "{}", stderr(&output));
    }
}

/// EC2 with one answer: a type with 4 interfaces of 15 addresses.
fn serve_one_type(listener: &TcpListener) -> String {
    const ANSWER: &str = "<DescribeInstanceTypesResponse><instanceTypeSet><item>\
        <instanceType>x9.large</instanceType><vCpuInfo><defaultVCpus>4</defaultVCpus></vCpuInfo>\
        <networkInfo><defaultNetworkCardIndex>0</defaultNetworkCardIndex>\
        <ipv4AddressesPerInterface>15</ipv4AddressesPerInterface><networkCards><item>\
        <networkCardIndex>0</networkCardIndex><maximumNetworkInterfaces>4</maximumNetworkInterfaces>\
        </item></networkCards></networkInfo></item></instanceTypeSet></DescribeInstanceTypesResponse>";
    let (mut stream, _) = listener.accept().unwrap();
    let mut request = String::new();
    let mut buffer = [0; 4096];
    while !request.contains("InstanceType.1=x9.large") {
        let count = stream.read(&mut buffer).unwrap();
        assert_ne!(count, 0, "the request ended early: {request}");
        request.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    let length = ANSWER.len();
    let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all((head + ANSWER).as_bytes()).unwrap();
    request
}

#[test]
fn ec2_is_asked_only_when_allowed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let ask = |when: &str| {
        Command::new(env!("CARGO_BIN_EXE_tenon"))
            .args(["max-pods", "x9.large", "--aws-api", when, "--output", "json"])
            .env("AWS_ENDPOINT_URL_EC2", &endpoint)
            .env("AWS_ACCESS_KEY_ID", "key")
            .env("AWS_SECRET_ACCESS_KEY", "secret")
            .env("AWS_REGION", "eu-west-1")
            .env("AWS_MAX_ATTEMPTS", "1")
            .output()
            .unwrap()
    };
    // Nobody accepts here, so a call would not end well.
    assert_eq!(code(&ask("never")), 3);
    let (request, output) = std::thread::scope(|scope| {
        let server = scope.spawn(|| serve_one_type(&listener));
        let output = ask("ifNeeded");
        (server.join().unwrap(), output)
    });
    let answer: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!((&answer["pods"], &answer["source"]["kind"]), (&json!(58), &json!("ec2")));
    assert!(request.contains("/eu-west-1/ec2/aws4_request"), "{request}");
    drop(listener);
    let output = ask("ifNeeded");
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert!(stderr(&output).starts_with("warning TN10"), "{}", stderr(&output));
}
