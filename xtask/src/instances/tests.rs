use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use tenon_core::max_pods::find;

use super::*;

/// A dozen types of every kind, cut to the members that the table is made of.
const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/instances.fixture.json");

fn fixture() -> Vec<Value> {
    source::file(FIXTURE.as_ref()).unwrap()
}

/// A value as EC2 writes it: small first letters, `item` in lists, `member` in one of them.
fn to_xml(name: &str, value: &Value) -> String {
    let mut letters = name.chars();
    let name: String = letters.next().unwrap().to_lowercase().chain(letters).collect();
    let inner = match value {
        Value::Array(items) => {
            let item = if name == "accelerators" { "Member" } else { "Item" };
            items.iter().map(|value| to_xml(item, value)).collect()
        }
        Value::Object(fields) => fields.iter().map(|(key, value)| to_xml(key, value)).collect(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    format!("<{name}>{inner}</{name}>")
}

/// Answers two requests, one page each, and gives what was asked.
fn serve(listener: &TcpListener, types: &[Value]) -> Vec<String> {
    let (first, second) = types.split_at(types.len() / 2);
    let pages = [(first, "<nextToken>page 2/+</nextToken>"), (second, "")];
    let answer = |(types, token): &(&[Value], &str)| {
        let set = to_xml("InstanceTypeSet", &Value::Array(types.to_vec()));
        let xml =
            format!("<DescribeInstanceTypesResponse>{set}{token}</DescribeInstanceTypesResponse>");
        let (mut stream, _) = listener.accept().unwrap();
        let request = read_request(&mut stream);
        let head = format!(
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            xml.len()
        );
        stream.write_all((head + &xml).as_bytes()).unwrap();
        request
    };
    pages.iter().map(answer).collect()
}

fn read_request(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).unwrap();
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.trim().parse::<usize>().ok())?
        });
        if count == 0 || length.is_none_or(|length| body.len() >= length) {
            return text;
        }
    }
}

#[test]
fn the_sources_give_the_same_rows() {
    let types = fixture();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (requests, asked) = std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(&listener, &types));
        let asked = source::moto(&endpoint).unwrap();
        (server.join().unwrap(), asked)
    });
    assert_eq!(rows(&asked).unwrap(), rows(&types).unwrap());
    assert!(requests[0].contains("Action=DescribeInstanceTypes"), "{}", requests[0]);
    assert!(requests[1].contains("NextToken=page%202%2F%2B"), "{}", requests[1]);
    assert!(requests.iter().all(|request| request.contains("/us-east-1/ec2/aws4_request")));
}

#[test]
fn every_shape_of_saved_output_is_read() {
    let list = Value::Array(fixture());
    let by_name: serde_json::Map<String, Value> = fixture()
        .into_iter()
        .map(|entry| (entry["InstanceType"].as_str().unwrap().to_owned(), entry))
        .collect();
    let expected = rows(&fixture()).unwrap();
    for value in [list, Value::Object(by_name)] {
        assert_eq!(rows(&source::entries(value).unwrap()).unwrap(), expected);
    }
    assert!(source::entries(Value::Null).is_err());
}

/// The fixture is real data, so its rows stand in the embedded table as well.
#[test]
fn rows_are_those_of_the_embedded_table() {
    let rows = rows(&fixture()).unwrap();
    assert_eq!(rows.len(), 14);
    for (name, line) in &rows {
        let table = Table::parse(line).unwrap();
        assert_eq!(table.find(name), find(name), "{name}");
    }
    let ends = |name: &str| rows[name].split('\t').skip(6).collect::<Vec<_>>().join(" ");
    assert_eq!(ends("c6in.32xlarge"), "x n 2 16 2 - - -");
    assert_eq!(ends("inf1.2xlarge"), "x n 1 4 0 t1.4:Inferentia:8192 - -");
    assert_eq!(ends("g6f.large"), "x n 1 2 0 n1:L4:2861 1x100n -");
    assert_eq!(ends("dl2q.24xlarge"), "x n 1 15 1 q8:Qualcomm-AI100:16000 - -");
    assert_eq!(ends("d2.xlarge"), "x x 1 4 0 - 3x2048h -");
    assert_eq!(ends("mac1.metal"), "m m 1 8 0 - - -");
}

#[test]
fn regions_that_disagree_stop_the_run() {
    let mut types = fixture();
    types.extend(fixture());
    assert_eq!(rows(&types).unwrap().len(), 14, "two regions that agree");
    types[0]["MemoryInfo"]["SizeInMiB"] = 1.into();
    let error = rows(&types).unwrap_err().to_string();
    assert!(error.contains("t3.micro disagree") && error.lines().count() == 3, "{error}");
}

#[test]
fn metal_with_a_hypervisor_stops_the_run() {
    let mut types = fixture();
    types[0]["BareMetal"] = true.into();
    let error = format!("{:#}", rows(&types).unwrap_err());
    assert!(error.contains("reading t3.micro: BareMetal and Hypervisor"), "{error}");
}

#[test]
fn a_vanished_type_stops_the_run() {
    let present = compose("test", "2026-11-15", &rows(&fixture()).unwrap()).unwrap();
    let mut left = rows(&fixture()).unwrap();
    left.remove("m5.large");
    let error = refuse_vanished(Table::parse(&present).unwrap(), &left).unwrap_err().to_string();
    assert!(error.contains("m5.large") && error.contains("overlay"), "{error}");
}

#[test]
fn the_report_names_changed_limits_first() {
    let before = rows(&fixture()).unwrap();
    let mut after = before.clone();
    after.remove("m4.xlarge");
    let wider = before["m5.large"].replacen("\t3\t10", "\t4\t10", 1);
    after.insert("m5.large".into(), wider);
    after.insert("t3.micro".into(), before["t3.micro"].replacen("\t1024\t", "\t2048\t", 1));
    after.insert("x9.large".into(), before["m5.large"].replacen("m5", "x9", 1));
    let old = compose("test", "2026-11-15", &before).unwrap();
    let new = compose("test", "2026-11-22", &after).unwrap();
    let text = report::markdown(Table::parse(&old).unwrap(), Table::parse(&new).unwrap());
    let expected = "# Instance table 2026-11-15 → 2026-11-22\n\n\
        ## Changed pod limits (1)\n\n- m5.large: 29 → 38 pods\n\n\
        ## Changed otherwise (1)\n\n- t3.micro\n\n\
        ## Added (1)\n\n- x9.large: 29 pods\n\n\
        ## Removed (1)\n\n- m4.xlarge\n";
    assert_eq!(text, expected);
}

#[test]
fn the_same_rows_give_the_same_bytes() {
    let compose = || compose("moto 5.2.5", "2026-11-15", &rows(&fixture()).unwrap()).unwrap();
    assert_eq!(compose(), compose());
    assert!(compose().starts_with(
        "# tenon-instances 1\n# source moto 5.2.5\n# date 2026-11-15\n# types 14\n# rows-sha256 "
    ));
}

#[test]
fn a_date_is_needed() {
    assert!(compose("test", "", &BTreeMap::new()).is_err());
    assert!(compose("test", "yesterday", &BTreeMap::new()).is_err());
}
