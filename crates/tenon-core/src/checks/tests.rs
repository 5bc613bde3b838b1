use serde_json::json;

use super::*;

#[test]
fn only_what_cannot_be_a_secret_is_shown() {
    for (value, expected) in [
        (json!(true), "true"),
        (json!(10255), "10255"),
        (json!("4h0m0s"), "4h0m0s"),
        (json!("AlwaysAllow"), "AlwaysAllow"),
        (json!("/etc/kubernetes/pki/ca.crt"), "/etc/kubernetes/pki/ca.crt"),
        (json!(["TLS_A", "TLS_B"]), "TLS_A, TLS_B"),
        (Value::Null, "not set"),
    ] {
        assert_eq!(shown(&value), expected);
    }
    let veiled = shown(&json!("hunter2"));
    assert!(veiled.starts_with("sha256:") && veiled.ends_with("(7 bytes)"), "{veiled}");
    assert!(!shown(&json!(["hunter2"])).contains("hunter2"));
}

#[test]
fn names_are_read_back() {
    for family in Family::ALL {
        assert_eq!(Family::parse(family.name()), Some(family));
    }
    assert_eq!(Family::parse("stig"), None);
}
