//! The fault matrix of the metadata service, row by row, against the simulator.

use std::net::SocketAddr;

use super::session::SILENT_ATTEMPTS;
use super::*;
use crate::simulator::Simulator;
use crate::simulator::faults::{Faults, Framing, Rule};
use crate::simulator::profile::Profile;

/// Bounds for runs that end by an answer: wide, so that a loaded machine does not matter.
fn calm() -> Patience {
    Patience {
        whole: Duration::from_secs(20),
        attempt: Duration::from_secs(5),
        missing: Duration::from_millis(50),
        pause: (Duration::from_micros(500), Duration::from_millis(5)),
    }
}

/// Bounds for runs that end by waiting.
fn quick() -> Patience {
    Patience { whole: Duration::from_millis(400), attempt: Duration::from_millis(40), ..calm() }
}

fn profile() -> Profile {
    Profile::new("m5.large").with_user_data("#cloud-config\n").with_ipv6()
}

fn client(simulator: &Simulator) -> Imds {
    patient(simulator, calm())
}

fn patient(simulator: &Simulator, patience: Patience) -> Imds {
    let endpoints = vec![Endpoint::at(simulator.address())];
    Imds::new(Options { endpoints, patience, allow_version_1: false })
}

fn start(rules: impl Into<Vec<Rule>>) -> Simulator {
    Simulator::start(&profile(), Faults::of(rules)).unwrap()
}

/// Runs both rounds against a faulty service.
fn run(
    rules: impl Into<Vec<Rule>>,
    patience: Patience,
) -> (Result<First, Problem>, Simulator, Imds) {
    let simulator = start(rules);
    let mut imds = patient(&simulator, patience);
    let needs = Needs { ipv6: true, vpc_cidrs: true, services_domain: false };
    let result = imds.first_round(true).and_then(|mut first| {
        imds.second_round(&mut first.instance, needs)?;
        Ok(first)
    });
    (result, simulator, imds)
}

/// The run must end as if nothing had been wrong.
fn recovers(rules: impl Into<Vec<Rule>>) -> (Simulator, Imds) {
    let (result, simulator, imds) = run(rules, calm());
    let first = result.unwrap();
    let expected = profile();
    assert_eq!(first.instance.id, expected.id);
    assert_eq!(first.instance.mac, expected.mac);
    assert_eq!(first.instance.local_ipv4, expected.ipv4);
    assert_eq!(first.instance.ipv6, expected.ipv6);
    let ranges: Vec<_> = first.instance.vpc_cidrs.iter().map(ToString::to_string).collect();
    assert_eq!(ranges, ["10.0.0.0/16", "2a05:d018::/56"]);
    assert_eq!(first.user_data, expected.user_data);
    (simulator, imds)
}

/// The run must end with this code and exit 5.
fn fails(rules: impl Into<Vec<Rule>>, code: &str) -> (Problem, Simulator) {
    let patience = match code {
        "TN05001" => quick(),
        "TN05004" => Patience { attempt: Duration::from_millis(20), ..calm() },
        _ => calm(),
    };
    let (result, simulator, _) = run(rules, patience);
    let problem = result.unwrap_err();
    assert_eq!((problem.page.code, problem.exit()), (code, 5), "{}", problem.render("error"));
    (problem, simulator)
}

#[test]
fn a_whole_run_takes_one_token_and_at_most_nine_requests_on_one_connection() {
    let (simulator, imds) = recovers([]);
    let log = simulator.log();
    assert_eq!(log.len(), 9);
    assert_eq!(imds.requests(), 9);
    assert_eq!(log.iter().filter(|request| request.method == "PUT").count(), 1);
    assert!(log.iter().all(|request| request.connection == 1 && request.status == Some(200)));
}

#[test]
fn a_plain_ipv4_node_needs_six_requests() {
    let simulator = start([]);
    let mut imds = client(&simulator);
    let mut first = imds.first_round(true).unwrap();
    imds.second_round(&mut first.instance, Needs::default()).unwrap();
    assert_eq!(simulator.log().len(), 6);
}

#[test]
fn requests_of_a_round_are_sent_together() {
    // The first answer never comes, so whatever else arrives was not waiting for it.
    let simulator = start([Rule { hang: true, times: Some(1), ..Rule::on("*/document") }]);
    let patience = Patience { attempt: Duration::from_millis(200), ..calm() };
    let mut imds = patient(&simulator, patience);
    imds.first_round(false).unwrap();
    let log = simulator.log();
    let together = log.iter().filter(|request| request.connection == 1).count();
    assert_eq!(together, 5, "token and four values: {log:?}");
}

#[test]
fn a_service_that_closes_each_connection_is_asked_on_several() {
    let (simulator, _) = recovers([Rule { close: true, ..Rule::on("*") }]);
    let log = simulator.log();
    assert_eq!(log.len(), 9, "{log:?}");
    assert_eq!(log.iter().map(|request| request.connection).max(), Some(9));
}

#[test]
fn a_service_that_drops_what_was_sent_together_costs_one_attempt() {
    let deaf = Rule { hang: true, times: Some(1), ..Rule::on("*/mac") };
    let patience = Patience { attempt: Duration::from_millis(200), ..calm() };
    let (result, simulator, imds) = run([deaf], patience);
    assert_eq!(result.unwrap().instance.mac, profile().mac);
    assert_eq!(imds.retries(), 1);
    let later: Vec<_> = simulator.log().into_iter().filter(|r| r.connection > 1).collect();
    let connections: std::collections::BTreeSet<_> = later.iter().map(|r| r.connection).collect();
    assert_eq!(connections.len(), later.len(), "one request per connection: {later:?}");
}

#[test]
fn a_connection_that_went_stale_between_the_rounds_is_replaced_without_a_pause() {
    let simulator = start([Rule { truncate: Some(9999), ..Rule::on("*/user-data") }]);
    let mut imds = client(&simulator);
    let mut first = imds.first_round(true).unwrap();
    let needs = Needs { ipv6: true, ..Needs::default() };
    imds.second_round(&mut first.instance, needs).unwrap();
    assert_eq!(first.instance.ipv6, profile().ipv6);
    assert_eq!(imds.retries(), 0);
}

#[test]
fn row_01_token_403_means_switched_off_and_is_not_retried() {
    let (_, simulator) = fails([Rule { status: Some(403), ..Rule::on("*/token") }], "TN05002");
    assert_eq!(simulator.log().len(), 1);
}

#[test]
fn row_02_a_service_without_tokens_is_refused_unless_allowed() {
    for status in [404, 405] {
        let rule = || Rule { status: Some(status), ..Rule::on("*/token") };
        let (_, simulator) = fails([rule()], "TN05003");
        assert_eq!(simulator.log().len(), 1);
        let old = Profile { allow_version_1: true, ..profile() };
        let simulator = Simulator::start(&old, Faults::of([rule()])).unwrap();
        let endpoints = vec![Endpoint::at(simulator.address())];
        let options = Options { endpoints, patience: calm(), allow_version_1: true };
        assert_eq!(Imds::new(options).first_round(false).unwrap().instance.id, old.id);
    }
}

#[test]
fn row_03_a_token_that_never_comes_names_the_hop_limit() {
    let (problem, simulator) = fails([Rule { hang: true, ..Rule::on("*/token") }], "TN05004");
    assert!(problem.fix_text().contains("hop-limit"));
    assert_eq!(simulator.log().len(), SILENT_ATTEMPTS as usize);
}

#[test]
fn row_04_an_expired_token_is_replaced_once() {
    let expired = Rule { expire_tokens: true, times: Some(1), ..Rule::on("*/mac") };
    let (simulator, _) = recovers([expired]);
    assert_eq!(simulator.count("/token"), 2);
}

#[test]
fn row_05_a_token_that_is_always_refused_is_replaced_three_times() {
    let rule = Rule { status: Some(401), method: Some("GET".into()), ..Rule::on("*") };
    let (_, simulator) = fails([rule], "TN05005");
    assert_eq!(simulator.count("/token"), 4);
}

#[test]
fn row_06_an_optional_value_may_be_absent() {
    let simulator = start([
        Rule { status: Some(404), ..Rule::on("*/local-hostname") },
        Rule { status: Some(404), ..Rule::on("*/local-ipv4") },
        Rule { status: Some(404), ..Rule::on("*/ipv6s") },
    ]);
    let mut imds = client(&simulator);
    let mut first = imds.first_round(false).unwrap();
    let needs = Needs { ipv6: true, ..Needs::default() };
    imds.second_round(&mut first.instance, needs).unwrap();
    assert_eq!(first.instance.local_hostname, None);
    assert_eq!(first.instance.local_ipv4, profile().ipv4, "from the identity document");
    assert_eq!(first.instance.ipv6, Vec::<std::net::Ipv6Addr>::new());
    assert_eq!(imds.retries(), 0);
}

#[test]
fn row_07_a_mandatory_value_is_waited_for() {
    let (_, imds) = recovers([Rule { status: Some(404), times: Some(2), ..Rule::on("*/mac") }]);
    assert_eq!(imds.retries(), 2);
    let (problem, _) = fails([Rule { status: Some(404), ..Rule::on("*/mac") }], "TN05006");
    assert!(problem.what.contains("meta-data/mac"), "{}", problem.what);
}

#[test]
fn row_08_absent_user_data_is_no_user_data() {
    let simulator = Simulator::start(&Profile::new("m5.large"), Faults::default()).unwrap();
    assert_eq!(client(&simulator).first_round(true).unwrap().user_data, None);
    assert_eq!(simulator.count("/user-data"), 1);
}

#[test]
fn row_09_throttling_is_obeyed() {
    for status in [429, 503] {
        let rule = Rule { status: Some(status), times: Some(3), ..Rule::on("*/document") };
        let (_, imds) = recovers([rule]);
        assert_eq!(imds.retries(), 3, "{status}");
        // A wait beyond the budget is not slept through.
        let slow = Rule { status: Some(status), retry_after: Some(60), ..Rule::on("*/document") };
        let began = Instant::now();
        let (problem, simulator) = fails([slow], "TN05001");
        assert!(began.elapsed() < Duration::from_secs(30));
        assert_eq!(simulator.count("/document"), 1);
        assert!(problem.causes[0].contains(&status.to_string()));
    }
}

#[test]
fn row_09_a_rate_limit_only_slows_down() {
    let limit = Rule { per_second: Some(4), status: Some(503), times: Some(4), ..Rule::on("*") };
    recovers([limit]);
}

#[test]
fn row_10_a_few_server_errors_are_counted_and_survived() {
    let (_, imds) = recovers([
        Rule { status: Some(500), times: Some(2), ..Rule::on("*/token") },
        Rule { status: Some(502), times: Some(1), ..Rule::on("*/document") },
    ]);
    assert_eq!(imds.retries(), 3);
}

#[test]
fn row_11_a_refused_connection_is_retried_until_the_service_is_up() {
    let faults = Faults { refuse_for_ms: 60, rules: Vec::new() };
    let simulator = Simulator::start(&profile(), faults).unwrap();
    let mut imds = client(&simulator);
    assert_eq!(imds.first_round(false).unwrap().instance.id, profile().id);
    assert!(imds.retries() > 0);
}

#[test]
fn row_11_the_error_names_endpoint_and_cause() {
    let address = "127.0.0.1:1".parse().unwrap();
    let endpoints = vec![Endpoint::at(address)];
    let patience = Patience { whole: Duration::from_millis(30), ..quick() };
    let mut imds = Imds::new(Options { endpoints, patience, allow_version_1: false });
    let problem = imds.first_round(true).unwrap_err();
    assert_eq!((problem.page.code, problem.exit()), ("TN05001", 5));
    assert!(problem.what.contains("127.0.0.1:1"), "{}", problem.what);
    assert_eq!(problem.causes, ["connection refused"]);
}

#[test]
fn row_12_vanishing_packets_end_with_the_deadline() {
    use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
    // A listener whose queue is full drops every further packet of a connection.
    let listener = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&listener, &"127.0.0.1:0".parse::<SocketAddr>().unwrap()).unwrap();
    listen(&listener, 0).unwrap();
    let address = SocketAddr::try_from(getsockname(&listener).unwrap()).unwrap();
    let short = Duration::from_millis(50);
    let mut queue = Vec::new();
    while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, short) {
        queue.push(stream);
    }
    let endpoints = vec![Endpoint::at(address)];
    let mut imds = Imds::new(Options { endpoints, patience: quick(), allow_version_1: false });
    let problem = imds.first_round(true).unwrap_err();
    assert_eq!((problem.page.code, problem.exit()), ("TN05001", 5));
    assert_eq!(problem.causes, ["connecting took too long"]);
    assert!(imds.retries() > 0, "each attempt had its own bound");
}

#[test]
fn row_13_a_reset_in_a_body_is_retried_and_partial_bytes_are_not_used() {
    let reset =
        |times| Rule { reset: true, truncate: Some(3), times, ..Rule::on("*/local-hostname") };
    recovers([reset(Some(2))]);
    fails([reset(None)], "TN05001");
}

#[test]
fn row_14_a_body_shorter_than_announced_is_retried() {
    let short = |times| Rule { truncate: Some(5), times, ..Rule::on("*/mac") };
    let (simulator, _) = recovers([short(Some(1))]);
    assert_eq!(simulator.count("/mac"), 2);
    let (problem, _) = fails([short(None)], "TN05001");
    assert!(problem.causes.iter().any(|cause| cause.contains("ended before")), "{problem:?}");
}

#[test]
fn row_15_chunks_and_bodies_without_length_are_read_up_to_the_cap() {
    for framing in [Framing::Chunked, Framing::Close] {
        recovers([Rule { framing, ..Rule::on("*") }]);
        let body = Some("x".repeat(http::BODY_CAP + 1));
        fails([Rule { framing, body, ..Rule::on("*/user-data") }], "TN05008");
    }
    let body = Some("x".repeat(http::BODY_CAP + 1));
    fails([Rule { body, ..Rule::on("*/user-data") }], "TN05008");
    let simulator =
        start([Rule { body: Some("x".repeat(http::BODY_CAP)), ..Rule::on("*/user-data") }]);
    let first = client(&simulator).first_round(true).unwrap();
    assert_eq!(first.user_data.unwrap().len(), http::BODY_CAP);
}

#[test]
fn row_16_the_deadline_is_for_the_request_not_for_each_byte() {
    let began = Instant::now();
    fails([Rule { drip_ms: Some(15), ..Rule::on("*/document") }], "TN05001");
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn row_17_a_web_page_is_not_believed() {
    let page = || Some("<!DOCTYPE html><html>Please sign in".to_owned());
    for path in ["*/token", "*/document", "*/mac", "*/local-ipv4", "*/ipv6s"] {
        let (problem, _) = fails([Rule { body: page(), ..Rule::on(path) }], "TN05012");
        assert!(problem.causes[0].contains("Please sign in"));
    }
    let (problem, _) =
        fails([Rule { body: Some("\u{7}noise".into()), ..Rule::on("*/mac") }], "TN05011");
    assert_eq!(problem.causes, ["it begins with `noise`"]);
}

#[test]
fn row_18_a_redirect_is_not_followed() {
    let other = start([]);
    let location = Some(format!("{}/latest/meta-data/mac", other.endpoint()));
    let rule = Rule { status: Some(302), location, ..Rule::on("*/mac") };
    fails([rule], "TN05007");
    assert_eq!(other.log(), []);
}

#[test]
fn row_19_a_bad_identity_document_is_refused() {
    fails([Rule { body: Some("{\"region\": ".into()), ..Rule::on("*/document") }], "TN05013");
}

#[test]
fn row_20_facts_that_change_between_two_reads_are_read_again() {
    let moved = |times| Rule { body: Some("10.9.9.9".into()), times, ..Rule::on("*/local-ipv4") };
    let (simulator, _) = recovers([moved(Some(2))]);
    assert_eq!(simulator.count("/document"), 3);
    assert_eq!(simulator.count("/user-data"), 1);
    let (_, simulator) = fails([moved(None)], "TN05014");
    assert_eq!(simulator.count("/document"), 4);
}

#[test]
fn row_21_the_first_endpoint_that_answers_is_used_for_everything() {
    let simulator = start([]);
    let dead = Endpoint::at("127.0.0.1:1".parse().unwrap());
    let alive = Endpoint::at(simulator.address());
    for endpoints in [vec![dead.clone(), alive.clone()], vec![alive, dead]] {
        let mut imds = Imds::new(Options { endpoints, patience: calm(), allow_version_1: false });
        assert_eq!(imds.first_round(true).unwrap().instance.id, profile().id);
        assert_eq!(imds.retries(), 0);
    }
    let both = start([]);
    let endpoints = vec![Endpoint::at(both.address()), Endpoint::at(simulator.address())];
    let before = simulator.log().len();
    let mut imds = Imds::new(Options { endpoints, patience: calm(), allow_version_1: false });
    imds.first_round(true).unwrap();
    assert_eq!((both.log().len(), simulator.log().len()), (6, before));
}

#[test]
fn row_21_an_ipv6_endpoint_is_asked() {
    let Ok(simulator) =
        Simulator::listen("[::1]:0".parse().unwrap(), &profile(), Faults::default())
    else {
        // The machine that runs the test has no IPv6.
        return;
    };
    let mut imds = client(&simulator);
    assert_eq!(imds.first_round(true).unwrap().instance.id, profile().id);
}

#[test]
fn row_22_proxy_variables_do_not_move_the_endpoint() {
    let proxy = start([]);
    let simulator = start([]);
    let endpoint = simulator.endpoint();
    let environment = Environment::from([
        ("HTTP_PROXY", proxy.endpoint().as_str()),
        ("http_proxy", proxy.endpoint().as_str()),
        ("ALL_PROXY", proxy.endpoint().as_str()),
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", endpoint.as_str()),
    ]);
    let options = Options { patience: calm(), ..Options::new(&environment).unwrap() };
    Imds::new(options).first_round(true).unwrap();
    assert_eq!((proxy.log().len(), simulator.log().len()), (0, 6));
}

#[test]
fn row_24_losses_keep_the_requests_on_few_connections() {
    let lossy = Rule { hang: true, times: Some(1), ..Rule::on("*/local-hostname") };
    let patience = Patience { attempt: Duration::from_millis(200), ..calm() };
    let (result, simulator, _) = run([lossy], patience);
    assert_eq!(result.unwrap().instance.id, profile().id);
    let log = simulator.log();
    let asked: std::collections::BTreeSet<_> = log.iter().map(|request| &request.path).collect();
    assert!(asked.len() <= 10, "{log:?}");
    assert!(log.len() <= asked.len() + 2, "only what was lost is asked again: {log:?}");
    assert!(log.iter().all(|request| request.connection <= 7), "{log:?}");
}

#[test]
fn row_101_several_ipv6_addresses_stay_a_list_in_the_order_of_the_service() {
    let body = Some("2a05:d018::9\n2a05:d018::1\n".to_owned());
    let simulator = start([Rule { body, ..Rule::on("*/ipv6s") }]);
    let mut imds = client(&simulator);
    let mut first = imds.first_round(false).unwrap();
    imds.second_round(&mut first.instance, Needs { ipv6: true, ..Needs::default() }).unwrap();
    let listed: Vec<_> = first.instance.ipv6.iter().map(ToString::to_string).collect();
    assert_eq!(listed, ["2a05:d018::9", "2a05:d018::1"]);
}

#[test]
fn first_and_last_cause_survive_to_the_end() {
    let (problem, _) = fails(
        [
            Rule { status: Some(500), times: Some(1), ..Rule::on("*/token") },
            Rule { status: Some(503), retry_after: Some(60), ..Rule::on("*/token") },
        ],
        "TN05001",
    );
    assert_eq!(problem.causes, ["status 500 for api/token", "status 503 for api/token"]);
}

#[test]
fn user_data_and_tokens_never_reach_a_message() {
    let canary = Profile::new("m5.large").with_user_data("canary");
    for rule in [
        Rule { status: Some(400), body: Some("canary".into()), ..Rule::on("*/user-data") },
        Rule { body: Some("canary token\u{1}".into()), ..Rule::on("*/token") },
    ] {
        let simulator = Simulator::start(&canary, Faults::of([rule])).unwrap();
        let mut imds = client(&simulator);
        let problem = imds.first_round(true).unwrap_err();
        assert!(!problem.render("error").contains("canary"));
        assert!(!format!("{imds:?}").contains("simulated-token"));
    }
}

#[test]
fn the_services_domain_has_a_fallback_by_region() {
    for (region, domain) in [("eu-west-1", "amazonaws.com"), ("cn-north-1", "amazonaws.com.cn")] {
        let profile = Profile::new("m5.large").in_region(region);
        let rule = Rule { status: Some(404), ..Rule::on("*/services/domain") };
        let simulator = Simulator::start(&profile, Faults::of([rule])).unwrap();
        let mut imds = client(&simulator);
        let mut first = imds.first_round(false).unwrap();
        let needs = Needs { services_domain: true, ..Needs::default() };
        imds.second_round(&mut first.instance, needs).unwrap();
        assert_eq!(first.instance.services_domain.as_deref(), Some(domain));
    }
}
