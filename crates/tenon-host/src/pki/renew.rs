//! Signs leaves again before they end, under the names that they have.

use rcgen::KeyPair;
use tenon_core::codes::pki as pages;
use tenon_core::kubeconfig::{Credential, Material};
use tenon_core::pki::check::finding;
use tenon_core::pki::names::once;
use tenon_core::pki::table::{Row, Wanted};
use tenon_core::pki::{
    CERTIFICATES, Certificate, DAY_SECONDS, Identity, KUBECONFIGS, certificate_path, key_path,
};
use tenon_core::problem::Problem;

use super::disk::{self, Pair};
use super::{Action, Done, Pki, SERVICE_ACCOUNTS, keys, kubeconfigs};

/// Which certificates are renewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Due {
    All,
    Only(Vec<String>),
    /// Those that end within so many days.
    Within(u32),
}

/// What a renewal is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewal<'a> {
    pub due: Due,
    /// A new key; otherwise the one that is there is signed again.
    pub new_key: bool,
    /// When known, names that a certificate lacks are added.
    pub identity: Option<&'a Identity>,
}

impl Pki<'_> {
    /// Renews leaves and kubeconfigs that are there and due.
    pub fn renew(&self, renewal: &Renewal<'_>) -> Result<Vec<Done>, Problem> {
        refuse_authorities(&renewal.due)?;
        let mut done = Vec::new();
        for row in CERTIFICATES.iter().filter(|row| !row.is_authority()) {
            let Pair { certificate, key } = disk::pair(self.root, row.name)?;
            match certificate {
                Some(certificate) => {
                    done.extend(self.renew_leaf(row, &certificate, key, renewal)?)
                }
                None => refuse_absent(&renewal.due, row.name)?,
            }
        }
        for entry in KUBECONFIGS {
            let row = &entry.row;
            match kubeconfigs::read(self.root, row.name)? {
                Some(held) => done.extend(self.renew_kubeconfig(row, held, renewal)?),
                None => refuse_absent(&renewal.due, row.name)?,
            }
        }
        Ok(done)
    }

    fn is_due(&self, due: &Due, row: &Row, certificate: &Certificate) -> bool {
        match due {
            Due::All => true,
            Due::Only(names) => names.iter().any(|name| name == row.name),
            Due::Within(days) => certificate.days_left(self.options.now) < i64::from(*days),
        }
    }

    fn renew_leaf(
        &self,
        row: &Row,
        certificate: &Certificate,
        key: Option<KeyPair>,
        renewal: &Renewal<'_>,
    ) -> Result<Option<Done>, Problem> {
        if !self.is_due(&renewal.due, row, certificate) {
            return Ok(None);
        }
        let path = certificate_path(row.name);
        let key = match (renewal.new_key, key) {
            (false, Some(key)) => key,
            (false, None) => {
                let what = format!("{path} has no key beside it");
                let fix = "bring the key back from a backup, or renew with --new-key";
                return Err(
                    finding(&pages::CERTIFICATE_WITHOUT_KEY, &key_path(row.name), what).fix(fix)
                );
            }
            (true, _) => keys::generate(self.options.algorithm)?,
        };
        let pem = self.signed_again(row, certificate, &key, renewal)?;
        // A crash between the two leaves a key without its certificate; the next renewal signs
        // the key that it finds.
        if renewal.new_key {
            self.write_key(&key_path(row.name), &key)?;
        }
        self.write_certificate(&path, &pem)?;
        Ok(Some(Done::new(row.name, path, Action::Renewed)))
    }

    fn renew_kubeconfig(
        &self,
        row: &Row,
        held: kubeconfigs::Held,
        renewal: &Renewal<'_>,
    ) -> Result<Option<Done>, Problem> {
        if !self.is_due(&renewal.due, row, &held.certificate) {
            return Ok(None);
        }
        let key = match renewal.new_key {
            true => keys::generate(self.options.algorithm)?,
            false => held.key,
        };
        let pem = self.signed_again(row, &held.certificate, &key, renewal)?;
        let mut config = held.config;
        config.credential = Credential::Certificate {
            certificate: Material::Inline(pem.into_bytes()),
            key: Material::Inline(key.serialize_pem().into_bytes()),
        };
        let path = kubeconfigs::path(row.name);
        self.write_secret(&path, &config.write())?;
        Ok(Some(Done::new(row.name, path, Action::Renewed)))
    }

    fn signed_again(
        &self,
        row: &Row,
        old: &Certificate,
        key: &KeyPair,
        renewal: &Renewal<'_>,
    ) -> Result<String, Problem> {
        let issuer = row.issuer.unwrap_or_default();
        let Some(signer) = self.signer(issuer)? else {
            let what = format!("without the key of {issuer}, {} cannot be renewed here", row.name);
            return Err(Problem::new(&pages::EXTERNAL_CA_WAITS, what).fix(
                "sign it elsewhere: move the certificate away and run \
                 `tenon pki init --external-ca --csr-dir DIR`, which keeps the key",
            ));
        };
        let more = renewal.identity.map(|identity| row.wanted(identity).names).unwrap_or_default();
        let wanted = Wanted {
            names: once(old.alt.names.iter().cloned().chain(more).collect()),
            ..row.wanted_of_any(old)
        };
        signer.sign(&wanted, key, self.leaf_seconds().max(DAY_SECONDS), self.options.now)
    }
}

/// An authority named on purpose is a mistake that must not pass in silence.
fn refuse_authorities(due: &Due) -> Result<(), Problem> {
    let Due::Only(names) = due else { return Ok(()) };
    let is_authority =
        |name: &str| CERTIFICATES.iter().any(|row| row.name == name && row.is_authority());
    match names.iter().find(|name| is_authority(name) || *name == SERVICE_ACCOUNTS) {
        Some(name) => Err(Problem::new(&pages::CA_RENEWAL, format!("{name} is not renewed"))),
        None => Ok(()),
    }
}

fn refuse_absent(due: &Due, name: &str) -> Result<(), Problem> {
    match due {
        Due::Only(names) if names.iter().any(|chosen| chosen == name) => {
            let what = format!("{name} is not here, so it cannot be renewed");
            Err(Problem::new(&pages::PKI_NAME, what)
                .why("only a certificate that is there, and not rotated by the kubelet, is renewed")
                .fix(
                    "`tenon pki show` lists what is there; `tenon pki init` makes what is missing",
                ))
        }
        _ => Ok(()),
    }
}
