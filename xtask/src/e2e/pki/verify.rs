//! Certificates before openssl and etcd.

use std::path::Path;
use std::process::Command;

use anyhow::ensure;
use serde_json::json;
use tenon_core::pki::{CERTIFICATES, KUBECONFIGS};
use tenon_host::cluster::read_kubeconfig;

use super::plane::{Plane, told};

/// Asks openssl about the files of the plane; it must end with 0.
pub fn openssl(plane: &Plane, line: &str) -> anyhow::Result<String> {
    openssl_in(Path::new(&plane.kubernetes("pki")), line)
}

/// The same in another directory.
pub fn openssl_in(directory: &Path, line: &str) -> anyhow::Result<String> {
    let output =
        Command::new("openssl").args(line.split_whitespace()).current_dir(directory).output()?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    ensure!(output.status.success(), "openssl {line}: {said}");
    Ok(said)
}

/// Chains, purposes, hosts and addresses.
pub fn with_openssl(plane: &Plane) -> anyhow::Result<usize> {
    let mut cases = 0;
    for row in CERTIFICATES {
        let issuer = row.issuer.unwrap_or(row.name);
        let name = row.name;
        openssl(plane, &format!("verify -x509_strict -CAfile {issuer}.crt {name}.crt"))?;
        for usage in row.usages {
            let purpose = format!("-purpose ssl{}", usage.word());
            openssl(plane, &format!("verify {purpose} -CAfile {issuer}.crt {name}.crt"))?;
        }
        cases += 1 + row.usages.len();
    }
    for (name, question) in [
        ("apiserver", "-checkhost kubernetes"),
        ("apiserver", "-checkhost kubernetes.default.svc.cluster.local"),
        ("apiserver", "-checkhost cp-1"),
        ("apiserver", "-checkhost lb.example.com"),
        ("apiserver", "-checkip 10.96.0.1"),
        ("apiserver", "-checkip 127.0.0.1"),
        ("etcd/server", "-checkhost localhost"),
        ("etcd/server", "-checkip ::1"),
        ("etcd/peer", "-checkip 127.0.0.1"),
    ] {
        let said = openssl(plane, &format!("x509 -noout -in {name}.crt {question}"))?;
        ensure!(said.contains("does match"), "{name} {question}: {said}");
        cases += 1;
    }
    let foreign = openssl(plane, "x509 -noout -in apiserver.crt -checkhost example.org")?;
    ensure!(foreign.contains("does NOT match"), "{foreign}");
    for entry in KUBECONFIGS {
        let path = format!("/etc/kubernetes/{}", entry.row.name);
        read_kubeconfig(&plane.root, &path).map_err(told)?;
    }
    Ok(cases + 1 + KUBECONFIGS.len())
}

/// etcd takes its own clients, and nobody without a certificate or with one of another CA.
pub fn mutual_tls(plane: &Plane) -> anyhow::Result<usize> {
    let ask = |pair: Option<&str>| -> anyhow::Result<bool> {
        let client = plane.etcd_client(pair)?;
        Ok(client.create("/v3/cluster/member/list", &json!({})).is_ok())
    };
    for (pair, taken) in [
        (Some("apiserver-etcd-client"), true),
        (Some("etcd/server"), true),
        (None, false),
        (Some("apiserver-kubelet-client"), false),
        (Some("front-proxy-client"), false),
    ] {
        ensure!(ask(pair)? == taken, "etcd and {pair:?}");
    }
    Ok(5)
}
