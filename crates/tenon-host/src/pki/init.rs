//! Makes what is missing. What is there is checked and never overwritten.

use rcgen::KeyPair;
use tenon_core::codes::pki as pages;
use tenon_core::pki::check::finding;
use tenon_core::pki::table::{BOOTSTRAP_API_SERVER, Row, Wanted};
use tenon_core::pki::{
    BOOTSTRAP_DIRECTORY, CERTIFICATES, DAY_SECONDS, DIRECTORY, Identity, certificate_path, key_path,
};
use tenon_core::problem::Problem;

use super::disk::{self, Pair};
use super::{Action, Done, Pki, SERVICE_ACCOUNTS, chosen, keys, sign};

/// What to do about a CA whose key is kept elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct External {
    /// No CA is made; its certificate is expected to be there.
    pub asked: bool,
    /// Where requests are put for what is missing.
    pub requests: Option<String>,
}

impl Pki<'_> {
    /// Makes the certificates of the table and the pair of the service accounts. `only` names
    /// rows; empty means all.
    pub fn init(
        &self,
        identity: &Identity,
        only: &[String],
        external: &External,
    ) -> Result<Vec<Done>, Problem> {
        identity.check()?;
        let mut done = Vec::new();
        let mut waiting = Vec::new();
        for row in CERTIFICATES {
            if !chosen(only, row.name) || (identity.external_etcd && row.is_etcd()) {
                continue;
            }
            match self.ensure(row, &row.wanted(identity), external)? {
                Some(made) => done.push(made),
                None => waiting.push(row.name),
            }
        }
        if !waiting.is_empty() {
            let what =
                format!("without the key of their CA these cannot be made: {}", waiting.join(", "));
            return Err(Problem::new(&pages::EXTERNAL_CA_WAITS, what));
        }
        if chosen(only, SERVICE_ACCOUNTS) {
            done.push(self.service_accounts()?);
        }
        Ok(done)
    }

    /// Makes one row true; None when the key of its CA is elsewhere and no requests are wanted.
    fn ensure(
        &self,
        row: &Row,
        wanted: &Wanted,
        external: &External,
    ) -> Result<Option<Done>, Problem> {
        let path = certificate_path(row.name);
        let Pair { certificate, key } = disk::pair(self.root, row.name)?;
        match (certificate, key) {
            (Some(certificate), key) if key.is_some() || row.is_authority() => {
                self.check_fit(&path, row, wanted, (&certificate, key.as_ref()))?;
                Ok(Some(Done::new(row.name, path, Action::Kept)))
            }
            (Some(_), _) => {
                let what = format!("{path} has no key beside it");
                Err(finding(&pages::CERTIFICATE_WITHOUT_KEY, &key_path(row.name), what))
            }
            (None, key) if row.is_authority() => self.make_authority(row, wanted, key, external),
            (None, key) => self.make_leaf(row, wanted, key, external),
        }
    }

    fn make_authority(
        &self,
        row: &Row,
        wanted: &Wanted,
        key: Option<KeyPair>,
        external: &External,
    ) -> Result<Option<Done>, Problem> {
        if external.asked {
            let what = format!("{} is not here", certificate_path(row.name));
            return Err(finding(&pages::EXTERNAL_CA_WAITS, &certificate_path(row.name), what)
                .fix("put the certificate of the external CA there and run again"));
        }
        let (key, action) = self.key(key_path(row.name), key)?;
        let pem = sign::authority(wanted, &key, self.options.ca_days, self.options.now)?;
        let path = certificate_path(row.name);
        self.write_certificate(&path, &pem)?;
        Ok(Some(Done::new(row.name, path, action)))
    }

    fn make_leaf(
        &self,
        row: &Row,
        wanted: &Wanted,
        key: Option<KeyPair>,
        external: &External,
    ) -> Result<Option<Done>, Problem> {
        let signer = self.signer(row.issuer.unwrap_or_default())?;
        if signer.is_none() && external.requests.is_none() {
            return Ok(None);
        }
        let (key, action) = self.key(key_path(row.name), key)?;
        let (path, text, action) = match (signer, &external.requests) {
            (None, Some(directory)) => {
                let path = format!("{directory}/{}.csr", row.name);
                (path, sign::request(wanted, &key)?, Action::Requested)
            }
            (None, None) => return Ok(None),
            (Some(signer), _) => {
                let pem = signer.sign(wanted, &key, self.leaf_seconds(), self.options.now)?;
                (certificate_path(row.name), pem, action)
            }
        };
        self.write_certificate(&path, &text)?;
        Ok(Some(Done::new(row.name, path, action)))
    }

    pub(super) fn leaf_seconds(&self) -> u64 {
        u64::from(self.options.leaf_days) * DAY_SECONDS
    }

    /// The key that is there, or a new one, on disk before anything is signed for it.
    fn key(&self, path: String, key: Option<KeyPair>) -> Result<(KeyPair, Action), Problem> {
        if let Some(key) = key {
            return Ok((key, Action::Signed));
        }
        let key = keys::generate(self.options.algorithm)?;
        self.write_key(&path, &key)?;
        Ok((key, Action::Made))
    }

    /// `sa.key` and `sa.pub`. A key that is there may be RSA, for clouds that know nothing else.
    fn service_accounts(&self) -> Result<Done, Problem> {
        let (private, public) = (key_path(SERVICE_ACCOUNTS), format!("{DIRECTORY}/sa.pub"));
        let key = disk::key(self.root, &private)?;
        let held = disk::text(self.root, &public)?;
        let action = match (&key, held) {
            (None, Some(_)) => {
                let what = format!("{public} has no key beside it");
                return Err(finding(&pages::CERTIFICATE_WITHOUT_KEY, &private, what));
            }
            (Some(key), Some(held)) if same_key(&held, &key.public_key_pem()) => Action::Kept,
            (Some(_), Some(_)) => {
                let what = format!("{public} is not the public half of {private}");
                return Err(finding(&pages::CERTIFICATE_UNFIT, &public, what)
                    .fix("move sa.pub away and run again: it is made from sa.key"));
            }
            (_, None) => {
                let (key, action) = self.key(private, key.or(self.given_key()?))?;
                self.write_certificate(&public, &key.public_key_pem())?;
                action
            }
        };
        Ok(Done::new(SERVICE_ACCOUNTS, public, action))
    }

    /// The key that the config names for service accounts, in its place.
    fn given_key(&self) -> Result<Option<KeyPair>, Problem> {
        let Some(path) = &self.options.service_account_key else { return Ok(None) };
        let Some(key) = disk::key(self.root, path)? else {
            let what = format!("{path} is to be the key of service accounts and is not there");
            return Err(finding(&pages::PKI_INPUT, path, what));
        };
        self.write_key(&key_path(SERVICE_ACCOUNTS), &key)?;
        Ok(Some(key))
    }

    /// The API server that runs during bootstrap alone: a leaf for a day, for loopback, in a
    /// directory that only root may enter. One that is no longer fit is signed again.
    pub fn bootstrap_leaf(&self, identity: &Identity) -> Result<Done, Problem> {
        let row = &BOOTSTRAP_API_SERVER;
        let wanted = row.wanted(identity);
        let path = |end: &str| format!("{BOOTSTRAP_DIRECTORY}/{}.{end}", row.name);
        let held = disk::certificate(self.root, &path("crt"))?;
        let key = disk::key(self.root, &path("key"))?;
        if let (Some(held), Some(key)) = (&held, &key)
            && self.check_fit(&path("crt"), row, &wanted, (held, Some(key))).is_ok()
        {
            return Ok(Done::new(row.name, path("crt"), Action::Kept));
        }
        let Some(signer) = self.signer(disk::AUTHORITY)? else {
            let what =
                "the bootstrap API server needs a certificate of the CA, whose key is elsewhere";
            return Err(Problem::new(&pages::EXTERNAL_CA_WAITS, what)
                .fix("start without it: controlPlane.bootstrapPhase: direct"));
        };
        let (key, action) = match key {
            Some(key) => (key, Action::Signed),
            None => (keys::generate(self.options.algorithm)?, Action::Made),
        };
        self.write_key(&path("key"), &key)?;
        let pem = signer.sign(&wanted, &key, DAY_SECONDS, self.options.now)?;
        self.write_certificate(&path("crt"), &pem)?;
        Ok(Done::new(row.name, path("crt"), action))
    }
}

/// Compares PEM by content: others break lines elsewhere.
fn same_key(one: &str, other: &str) -> bool {
    use tenon_core::pki::pem::blocks;
    matches!((blocks(one), blocks(other)), (Some(one), Some(other)) if one == other)
}
