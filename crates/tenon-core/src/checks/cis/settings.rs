//! Rules about one setting of the kubelet, or a few that belong together.

use serde_json::{Value, json};

use super::items::Want;
use crate::checks::kubelet::{Effective, Layer, Setting, duration_ms};
use crate::checks::mend::{HARDEN_NAME, Mend};
use crate::checks::{Finding, State, shown};

/// The suites that the benchmark accepts.
const SUITES: [&str; 10] = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
];
/// What a mended list holds: forward secrecy only.
const FIX_SUITES: [&str; 6] = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
];

/// Judges a setting by what it must be.
pub(super) fn value(kubelet: &Effective, blank: Finding, field: &str, want: Want) -> Finding {
    let blank = blank.at(field);
    let setting = match kubelet.get(field) {
        Ok(setting) => setting,
        Err(why) => return blank.unknown(why),
    };
    let (expected, right, fix) = judge(&setting, want);
    let finding = blank.values(expected, shown(&setting.value)).origin(&setting.origin);
    if right {
        return finding;
    }
    let finding = mended(finding.state(State::Fail), &setting, field, fix);
    match want {
        Want::Chosen { unset, .. } | Want::On { unset } if setting.layer == Layer::Default => {
            finding.excused(unset)
        }
        _ => finding,
    }
}

/// What is expected in words, whether it is so, and the value that would make it so.
fn judge(setting: &Setting, want: Want) -> (String, bool, Value) {
    let value = &setting.value;
    let words = |text: &str| text.to_owned();
    match want {
        Want::Is(wanted) => (wanted.to_string(), *value == json!(wanted), json!(wanted)),
        Want::NotFalse => {
            let unset = matches!(setting.layer, Layer::Default | Layer::Legacy);
            (words("true or absent"), unset || *value == json!(true), json!(true))
        }
        Want::Not { word, fix } => {
            (format!("anything but {word}"), value.as_str() != Some(word), json!(fix))
        }
        Want::Zero => (words("0"), *value == json!(0), json!(0)),
        Want::NotZeroTime { fix } => {
            let zero = value
                .as_str()
                .map_or(value.as_i64() == Some(0), |text| duration_ms(text) == Some(0));
            (words("not 0"), !zero, json!(fix))
        }
        Want::AtLeast { least, fix } => {
            let right = value.as_i64().is_some_and(|number| number >= least);
            (format!("{least} or more"), right, json!(fix))
        }
        Want::Chosen { fix, .. } => {
            let right = value.as_i64().is_some_and(|number| number > 0);
            (words("more than 0"), right, json!(fix))
        }
        Want::On { .. } => (words("true"), *value == json!(true), json!(true)),
        Want::NotOldTls => {
            let old = ["VersionTLS10", "VersionTLS11"];
            let right = value.as_str().is_none_or(|version| !old.contains(&version));
            (words("VersionTLS12 or newer"), right, json!("VersionTLS12"))
        }
        Want::Suites => {
            let known = |suite: &Value| suite.as_str().is_some_and(|name| SUITES.contains(&name));
            let right =
                value.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(known));
            (words("a subset of the benchmark's suites"), right, json!(FIX_SUITES))
        }
    }
}

/// Adds what to do: through a drop-in, unless something of higher rank would win over it.
pub(super) fn mended(finding: Finding, setting: &Setting, field: &str, fix: Value) -> Finding {
    let told = match &fix {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match &setting.layer {
        Layer::Flag => finding.remedy(format!("remove the {}", setting.origin)),
        Layer::Legacy => {
            finding.remedy("start the kubelet with --config; `tenon init` writes both")
        }
        Layer::DropIn(path) if path.rsplit('/').next() > Some(HARDEN_NAME) => {
            finding.remedy(format!("set {field} to {told} in {path}, which is read last"))
        }
        _ => {
            let remedy =
                format!("set {field} to {told}, or run `tenon harden --fix` with this profile");
            finding.remedy(remedy).mend(Mend::Setting { field: field.to_owned(), value: fix })
        }
    }
}

pub(super) fn serving_rotation(kubelet: &Effective, blank: Finding) -> Finding {
    for field in ["featureGates.RotateKubeletServerCertificate", "serverTLSBootstrap"] {
        let finding = value(kubelet, blank.clone(), field, Want::Is(true));
        if finding.state != State::Pass {
            return finding;
        }
    }
    blank.at("serverTLSBootstrap").values("true, and its gate open", "both")
}

pub(super) fn ciphers(kubelet: &Effective, blank: Finding) -> Finding {
    let version = value(kubelet, blank.clone(), "tlsMinVersion", Want::NotOldTls);
    match version.state {
        State::Pass => value(kubelet, blank, "tlsCipherSuites", Want::Suites),
        _ => version,
    }
}

pub(super) fn serving_certificate(kubelet: &Effective, blank: Finding) -> Finding {
    let set = |field: &str| kubelet.get(field).map(|setting| setting.value.is_string());
    let pair = set("tlsCertFile").and_then(|one| Ok(one && set("tlsPrivateKeyFile")?));
    match pair {
        Err(why) => blank.at("tlsCertFile").unknown(why),
        Ok(true) => blank.at("tlsCertFile").values("certificate and key", "both are set"),
        Ok(false) => {
            let mut finding = value(kubelet, blank, "serverTLSBootstrap", Want::Is(true));
            finding.expected =
                "tlsCertFile and tlsPrivateKeyFile, or serverTLSBootstrap".to_owned();
            if finding.state == State::Pass {
                finding.actual = "satisfied by rotation".to_owned();
            }
            finding
        }
    }
}
