//! What is there, and what is wrong with it. Writes nothing.

use std::os::unix::fs::MetadataExt;

use rustix::fs::{Mode, OFlags};
use tenon_core::codes::cluster::BAD_KUBECONFIG;
use tenon_core::codes::pki as pages;
use tenon_core::pki::check::finding;
use tenon_core::pki::show::Shown;
use tenon_core::pki::table::{ETCD_CA, Row};
use tenon_core::pki::{
    CERTIFICATES, Certificate, DIRECTORY, Identity, KUBECONFIGS, certificate_path, key_path,
};
use tenon_core::problem::{Finding, Problem};

use super::disk::{self, Pair};
use super::{SERVICE_ACCOUNTS, kubeconfigs};
use crate::root::Root;

/// What the certificates are held against.
#[derive(Debug, Clone, Copy)]
pub struct Inspection<'a> {
    /// None: names are not compared.
    pub identity: Option<&'a Identity>,
    /// Seconds since 1970.
    pub now: u64,
    pub warn_days: u32,
}

/// The certificates that are there, in the order of the table.
pub fn list(root: &Root) -> Result<Vec<Shown>, Problem> {
    let mut found = Vec::new();
    for row in CERTIFICATES {
        let path = certificate_path(row.name);
        let held = disk::certificate(root, &path)?;
        found.extend(held.map(|certificate| Shown { path, certificate }));
    }
    for entry in KUBECONFIGS {
        let held = kubeconfigs::read(root, entry.row.name)?;
        let path = kubeconfigs::path(entry.row.name);
        found.extend(held.map(|held| Shown { path, certificate: held.certificate }));
    }
    Ok(found)
}

/// Everything that is wrong with the certificates, keys and modes of a control-plane node.
pub fn check(root: &Root, inspection: &Inspection<'_>) -> Result<Vec<Finding>, Problem> {
    let mut findings = Vec::new();
    let here = |name: &str| root.exists(&certificate_path(name));
    // A node without any etcd certificate uses one that runs elsewhere.
    let etcd = inspection.identity.map_or(here(ETCD_CA), |identity| !identity.external_etcd);
    for row in CERTIFICATES.iter().filter(|row| etcd || !row.is_etcd()) {
        findings.extend(check_row(root, row, inspection)?);
    }
    findings.extend(mode(root, &key_path(SERVICE_ACCOUNTS))?);
    if !root.exists(&key_path(SERVICE_ACCOUNTS)) {
        findings.push(finding(&pages::MISSING, DIRECTORY, "sa.key is missing"));
    }
    for entry in KUBECONFIGS {
        let path = kubeconfigs::path(entry.row.name);
        findings.extend(check_kubeconfig(root, &entry.row, &path, inspection)?);
        findings.extend(mode(root, &path)?);
    }
    let mut findings: Vec<_> = findings.into_iter().map(Finding::error).collect();
    if inspection.identity.is_none() {
        let what = "the names in the certificates were not compared";
        findings.push(Finding::warning(Problem::new(&pages::NAMES_NOT_COMPARED, what)));
    }
    Ok(findings)
}

fn check_row(root: &Root, row: &Row, inspection: &Inspection<'_>) -> Result<Vec<Problem>, Problem> {
    let path = certificate_path(row.name);
    // A damaged file is a finding among others here.
    let Pair { certificate, key } = match disk::pair(root, row.name) {
        Err(problem) if problem.page == &pages::BAD_PEM => return Ok(vec![problem]),
        result => result?,
    };
    let Some(certificate) = certificate else {
        let what = format!("{} is missing", row.name);
        return Ok(vec![finding(&pages::MISSING, &path, what)]);
    };
    let mut findings = judge(root, &path, row, (&certificate, key.as_ref()), inspection)?;
    if key.is_none() && !row.is_authority() {
        let what = format!("the key of {} is missing", row.name);
        // `pki init` refuses such a certificate: a new key would be a new identity.
        let missing = finding(&pages::MISSING, &key_path(row.name), what);
        findings.push(missing.fix(pages::CERTIFICATE_WITHOUT_KEY.fix));
    }
    findings.extend(mode(root, &key_path(row.name))?);
    Ok(findings)
}

fn check_kubeconfig(
    root: &Root,
    row: &Row,
    path: &str,
    inspection: &Inspection<'_>,
) -> Result<Vec<Problem>, Problem> {
    let held = match kubeconfigs::read(root, row.name) {
        Ok(Some(held)) => held,
        Ok(None) => return Ok(Vec::new()),
        Err(problem) if [&pages::BAD_PEM, &BAD_KUBECONFIG].contains(&problem.page) => {
            return Ok(vec![problem]);
        }
        Err(problem) => return Err(problem),
    };
    let mut findings = judge(root, path, row, (&held.certificate, Some(&held.key)), inspection)?;
    let authority = disk::certificate(root, &certificate_path(disk::AUTHORITY))?;
    if authority.is_some_and(|authority| !held.trusts(&authority)) {
        let what = format!("{} trusts another CA than the cluster's", row.name);
        findings.push(finding(&pages::OTHER_CA, path, what));
    }
    Ok(findings)
}

fn judge(
    root: &Root,
    path: &str,
    row: &Row,
    pair: (&Certificate, Option<&rcgen::KeyPair>),
    inspection: &Inspection<'_>,
) -> Result<Vec<Problem>, Problem> {
    let wanted = match inspection.identity {
        Some(identity) => row.wanted(identity),
        None => row.wanted_of_any(pair.0),
    };
    disk::judge(root, path, row, &wanted, pair, inspection.now, inspection.warn_days)
}

/// A finding when others than the owner may read or write a key.
fn mode(root: &Root, path: &str) -> Result<Option<Problem>, Problem> {
    let Ok(fd) = root.open_at(path, OFlags::PATH, Mode::empty()) else { return Ok(None) };
    let metadata = std::fs::File::from(fd).metadata().map_err(|error| {
        let what = format!("reading the mode of {path}");
        Problem::new(&tenon_core::codes::host::FILE_READ, what).cause(error)
    })?;
    let mode = metadata.mode() & 0o7777;
    Ok((mode & 0o077 != 0).then(|| {
        let fix = pages::WIDE_MODE.fix.replace("FILE", path);
        finding(&pages::WIDE_MODE, path, format!("{path} has mode {mode:04o}")).fix(fix)
    }))
}
