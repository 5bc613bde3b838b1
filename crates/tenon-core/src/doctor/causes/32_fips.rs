//! FIPS mode and a server without approved ciphers.

use super::super::snapshot::Tls;
use super::*;

pub(super) static CAUSE: Cause = Cause {
    number: 32,
    slug: "fips",
    title: "FIPS mode, and the other side offers no approved cipher",
    step: Step::Tls,
    signals: &[
        Signal::tentative(Log::Kubelet, &["handshake failure"]),
        Signal::tentative(Log::Containerd, &["handshake failure"]),
        Signal::tentative(Log::Bootstrap, &["handshake failure"]),
    ],
    checks: &[
        Check::excludes("fips-mode", mode),
        Check::supports("fips-on", |view| match is_on(view) {
            true => Found::fail(Evidence::file("/proc/sys/crypto/fips_enabled", "FIPS mode is on")),
            false => Found::Pass,
        }),
        Check::supports("tls-alert", alert),
    ],
    why: "in FIPS mode programs refuse ciphers that are not approved; a proxy, a registry or an endpoint that offers only others cannot be talked to",
    fix: "use the FIPS endpoints of the services and registries, and a proxy with approved ciphers",
    ..Cause::BLANK
};

fn is_on(view: &View) -> bool {
    view.value("/proc/sys/crypto/fips_enabled") == Some("1")
}

fn mode(view: &View) -> Found {
    match is_on(view) {
        true => Found::Pass,
        false => Found::fail(Evidence::file("/proc/sys/crypto/fips_enabled", "FIPS mode is off")),
    }
}

fn alert(view: &View) -> Found {
    match network::reach(view) {
        None => Found::Unknown("no connection to the API server was tried"),
        Some(reach) if reach.tls == Some(Tls::Alert) => {
            Found::fail(Evidence::probe("tls", format!("the server ends the handshake: {}", reach.detail)))
        }
        Some(_) => Found::Pass,
    }
}
