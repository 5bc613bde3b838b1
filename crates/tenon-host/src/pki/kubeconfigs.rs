//! The kubeconfigs of the control plane's own clients, each with a certificate of its own.

use rcgen::KeyPair;
use tenon_core::codes::pki as pages;
use tenon_core::kubeconfig::{self, Credential, Kubeconfig, Material};
use tenon_core::pki::check::finding;
use tenon_core::pki::table::{KubeconfigRow, Server};
use tenon_core::pki::{
    Certificate, Identity, KUBECONFIG_DIRECTORY, KUBECONFIGS, certificate_path, pem,
};
use tenon_core::problem::Problem;

use super::disk;
use super::init::External;
use super::sign::{self, Signer};
use super::{Action, Done, Pki, chosen, keys};
use crate::root::Root;

/// The name of the cluster in every kubeconfig made here.
const CLUSTER: &str = "kubernetes";

/// A kubeconfig with the certificate inside it.
pub(super) struct Held {
    pub(super) config: Kubeconfig,
    pub(super) certificate: Certificate,
    pub(super) key: KeyPair,
}

impl Held {
    /// True when the kubeconfig accepts servers of this CA.
    pub(super) fn trusts(&self, authority: &Certificate) -> bool {
        let Some(Material::Inline(bytes)) = &self.config.authority else { return true };
        let blocks = pem::blocks(&String::from_utf8_lossy(bytes)).unwrap_or_default();
        blocks.iter().any(|block| block.der == authority.der)
    }
}

pub(super) fn path(name: &str) -> String {
    format!("{KUBECONFIG_DIRECTORY}/{name}")
}

/// Reads a kubeconfig; None if there is none, or its certificate is a file that another
/// program rotates.
pub(super) fn read(root: &Root, name: &str) -> Result<Option<Held>, Problem> {
    let path = path(name);
    let Some(text) = disk::text(root, &path)? else { return Ok(None) };
    let config = kubeconfig::read(&text, &path)?;
    let Credential::Certificate {
        certificate: Material::Inline(certificate),
        key: Material::Inline(key),
    } = &config.credential
    else {
        return Ok(None);
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let read = Certificate::from_pem(&text(certificate)).zip(keys::read(&text(key)));
    match read {
        Some((certificate, key)) => Ok(Some(Held { config, certificate, key })),
        None => {
            let what = format!("{path} holds no certificate and key that can be read");
            Err(finding(&pages::BAD_PEM, &path, what))
        }
    }
}

impl Pki<'_> {
    /// Makes the kubeconfigs of this node; those with the widest rights on the first one alone.
    pub fn kubeconfigs(
        &self,
        identity: &Identity,
        first_master: bool,
        only: &[String],
        external: &External,
    ) -> Result<Vec<Done>, Problem> {
        identity.check()?;
        let rows = KUBECONFIGS
            .iter()
            .filter(|entry| chosen(only, entry.row.name) && (first_master || !entry.first_master));
        rows.map(|entry| self.kubeconfig(entry, identity, external)).collect()
    }

    fn kubeconfig(
        &self,
        entry: &KubeconfigRow,
        identity: &Identity,
        external: &External,
    ) -> Result<Done, Problem> {
        let name = entry.row.name;
        let (path, wanted) = (path(name), entry.row.wanted(identity));
        if self.root.exists(&path) {
            if let Some(held) = read(self.root, name)? {
                let pair = (&held.certificate, Some(&held.key));
                self.check_fit(&path, &entry.row, &wanted, pair)?;
            }
            return Ok(Done::new(name, path, Action::Kept));
        }
        let server = match entry.server {
            Server::Endpoint => identity.endpoint_url(),
            Server::Local => identity.local_url(),
        };
        let Some(signer) = self.signer(disk::AUTHORITY)? else {
            return self.by_request(entry, identity, &server, external);
        };
        let key = keys::generate(self.options.algorithm)?;
        let pem = signer.sign(&wanted, &key, self.leaf_seconds(), self.options.now)?;
        let authority = self.authority_pem(&signer)?;
        let config = config(&server, authority, &wanted.common_name, &pem, &key);
        self.write_secret(&path, &config.write())?;
        Ok(Done::new(name, path, Action::Made))
    }

    /// The whole file of the CA, which may hold more than one certificate.
    fn authority_pem(&self, signer: &Signer) -> Result<String, Problem> {
        let text = disk::text(self.root, &certificate_path(disk::AUTHORITY))?;
        Ok(text.unwrap_or_else(|| signer.certificate.pem()))
    }

    /// With the CA's key elsewhere: a request beside its key in the directory for them, and the
    /// kubeconfig once the signed certificate has been put there.
    fn by_request(
        &self,
        entry: &KubeconfigRow,
        identity: &Identity,
        server: &str,
        external: &External,
    ) -> Result<Done, Problem> {
        let name = entry.row.name;
        let Some(directory) = &external.requests else {
            let what = format!("without the key of its CA {name} cannot be made");
            return Err(Problem::new(&pages::EXTERNAL_CA_WAITS, what));
        };
        let beside = |end: &str| format!("{directory}/{name}.{end}");
        let wanted = entry.row.wanted(identity);
        let key = disk::key(self.root, &beside("key"))?;
        let signed = disk::certificate(self.root, &beside("crt"))?;
        if let (Some(key), Some(signed)) = (&key, &signed) {
            self.check_fit(&beside("crt"), &entry.row, &wanted, (signed, Some(key)))?;
            let authority = disk::text(self.root, &certificate_path(disk::AUTHORITY))?;
            let authority = authority.unwrap_or_default();
            let config = config(server, authority, &wanted.common_name, &signed.pem(), key);
            self.write_secret(&path(name), &config.write())?;
            return Ok(Done::new(name, path(name), Action::Signed));
        }
        let key = match key {
            Some(key) => key,
            None => {
                let key = keys::generate(self.options.algorithm)?;
                self.write_key(&beside("key"), &key)?;
                key
            }
        };
        self.write_certificate(&beside("csr"), &sign::request(&wanted, &key)?)?;
        Ok(Done::new(name, beside("csr"), Action::Requested))
    }
}

fn config(server: &str, authority: String, user: &str, pem: &str, key: &KeyPair) -> Kubeconfig {
    let credential = Credential::Certificate {
        certificate: Material::Inline(pem.as_bytes().to_vec()),
        key: Material::Inline(key.serialize_pem().into_bytes()),
    };
    Kubeconfig::new(CLUSTER, server, authority.into_bytes(), user, credential)
}
