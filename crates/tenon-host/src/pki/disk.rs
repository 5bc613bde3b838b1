//! The files: read as they are, written key first and certificate second.

use rcgen::KeyPair;
use tenon_core::codes::host::FILE_READ;
use tenon_core::codes::pki as pages;
use tenon_core::pki::check::{self, finding};
use tenon_core::pki::table::{Row, Wanted};
use tenon_core::pki::{Certificate, certificate_path, key_path, table};
use tenon_core::problem::Problem;

use super::sign::{self, Signer};
use super::{Pki, keys};
use crate::apply;
use crate::root::Root;

/// The largest file that is read as a key or certificate.
const CAP: u64 = 256 << 10;
const KEY_MODE: u32 = 0o600;
const CERTIFICATE_MODE: u32 = 0o644;

/// What is there of one row.
pub(super) struct Pair {
    pub(super) certificate: Option<Certificate>,
    pub(super) key: Option<KeyPair>,
}

/// Reads a text file; None if there is none.
pub(super) fn text(root: &Root, path: &str) -> Result<Option<String>, Problem> {
    let bytes = root
        .read(path, CAP)
        .map_err(|error| Problem::new(&FILE_READ, format!("reading {path}")).cause(error))?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

fn damaged(path: &str, what: &str) -> Problem {
    finding(&pages::BAD_PEM, path, format!("{path} holds no {what} that can be read"))
}

pub(super) fn certificate(root: &Root, path: &str) -> Result<Option<Certificate>, Problem> {
    let Some(text) = text(root, path)? else { return Ok(None) };
    Certificate::from_pem(&text).map(Some).ok_or_else(|| damaged(path, "certificate"))
}

pub(super) fn key(root: &Root, path: &str) -> Result<Option<KeyPair>, Problem> {
    let Some(text) = text(root, path)? else { return Ok(None) };
    keys::read(&text).map(Some).ok_or_else(|| damaged(path, "private key"))
}

/// Reads certificate and key of a row.
pub(super) fn pair(root: &Root, name: &str) -> Result<Pair, Problem> {
    Ok(Pair {
        certificate: certificate(root, &certificate_path(name))?,
        key: key(root, &key_path(name))?,
    })
}

/// Whether a certificate of this row was signed by whom it should. An authority that another
/// one signed cannot be followed further from here.
pub(super) fn is_signed(root: &Root, row: &Row, found: &Certificate) -> Result<bool, Problem> {
    match row.issuer {
        None if found.subject_text != found.issuer_text => Ok(true),
        None => Ok(sign::is_signed_by(found, found)),
        Some(issuer) => {
            let issuer = certificate(root, &certificate_path(issuer))?;
            Ok(issuer.is_some_and(|issuer| sign::is_signed_by(found, &issuer)))
        }
    }
}

/// Everything that is wrong with one certificate.
pub(super) fn judge(
    root: &Root,
    path: &str,
    row: &Row,
    wanted: &Wanted,
    pair: (&Certificate, Option<&KeyPair>),
    now: u64,
    warn_days: u32,
) -> Result<Vec<Problem>, Problem> {
    let (certificate, key) = pair;
    let subject = check::Subject {
        path,
        row,
        wanted,
        certificate,
        signed_by_issuer: is_signed(root, row, certificate)?,
        key_matches: key.map(|key| keys::public(key) == certificate.public_key),
    };
    Ok(check::judge(&subject, now, warn_days))
}

impl Pki<'_> {
    pub(super) fn write_key(&self, path: &str, key: &KeyPair) -> Result<(), Problem> {
        self.write(path, KEY_MODE, &key.serialize_pem())
    }

    pub(super) fn write_certificate(&self, path: &str, pem: &str) -> Result<(), Problem> {
        self.write(path, CERTIFICATE_MODE, pem)
    }

    /// Writes a file that others may not read.
    pub(super) fn write_secret(&self, path: &str, text: &str) -> Result<(), Problem> {
        self.write(path, KEY_MODE, text)
    }

    fn write(&self, path: &str, mode: u32, text: &str) -> Result<(), Problem> {
        apply::put(self.root, path, mode, text.as_bytes())?;
        tracing::info!(path, "written");
        Ok(())
    }

    /// The CA of this name, ready to sign; None when its key is kept elsewhere.
    pub(super) fn signer(&self, name: &str) -> Result<Option<Signer>, Problem> {
        let Pair { certificate, key } = pair(self.root, name)?;
        let Some(certificate) = certificate else {
            let what = format!("{name} is not here, so nothing can be signed by it");
            return Err(finding(&pages::CA_UNUSABLE, &certificate_path(name), what)
                .fix("`tenon pki init` makes it; with an external CA, put its certificate here"));
        };
        sign::in_time(name, &certificate, self.options.now)?;
        let Some(key) = key else { return Ok(None) };
        if keys::public(&key) != certificate.public_key {
            let what = format!("{name} has the key of another CA");
            return Err(finding(&pages::CERTIFICATE_UNFIT, &key_path(name), what)
                .fix("bring back the pair from a backup"));
        }
        Signer::new(name, certificate, key, self.options.now).map(Some)
    }

    /// Refuses an existing certificate that does not do its job. What merely ends soon does.
    pub(super) fn check_fit(
        &self,
        path: &str,
        row: &Row,
        wanted: &Wanted,
        pair: (&Certificate, Option<&KeyPair>),
    ) -> Result<(), Problem> {
        let found = judge(self.root, path, row, wanted, pair, self.options.now, 0)?;
        let Some(first) = found.first() else { return Ok(()) };
        if row.is_authority() && first.exit() == pages::CA_EXPIRED.exit() {
            return Err(first.clone());
        }
        let what = format!("{path} is there and cannot be used");
        let causes = found.iter().map(|problem| problem.what.clone());
        let mut problem = finding(&pages::CERTIFICATE_UNFIT, path, what);
        problem.causes.extend(causes);
        let renew = format!("`tenon pki renew --only {}` signs it anew", row.name);
        Err(if row.is_authority() { problem } else { problem.fix(renew) })
    }
}

/// The row that signs kubeconfigs.
pub(super) const AUTHORITY: &str = table::CA;
