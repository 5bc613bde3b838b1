//! User data: what an instance is given at launch so that it becomes a node.
//!
//! ```text
//! ClusterConfig | NodeConfig | flags ──input──▶ Group ───┐
//! cluster.json  | kubeconfig | flags ──input──▶ Cluster ─┴─render─▶ Document ─encode─▶ bytes
//! ```
//!
//! [`render`] looks up the cell of (family, kind, mode), checks the group against it and writes
//! the document; `encode` turns it into bytes that fit, or says what takes the space. The same
//! input gives the same bytes.

pub mod al2;
pub mod al2023;
pub mod al2_managed;
mod availability;
pub mod bottlerocket;
pub mod bottlerocket_map;
pub mod checks;
pub mod cloudformation;
pub mod cluster;
pub mod document;
pub mod family;
pub mod group;
pub mod input;
pub mod inspect;
pub mod instance_name;
pub mod kubelet_args;
pub mod mime_write;
pub mod quote;
#[cfg(test)]
pub mod samples;
pub mod secrets;
pub mod self_contained;
pub mod signal;
pub mod size;
pub mod tenon_mode;
pub mod windows;

pub use cluster::{Cluster, IpFamily};
pub use document::Document;
pub use family::{Cell, Family, Kind, Mode};
pub use group::Group;

use crate::codes::userdata as pages;
use crate::hex::sha256;
use crate::problem::{Finding, Place, Problem};
use size::{LIMIT, Sizes};

/// Choices that belong to neither the group nor the cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    pub gzip: Gzip,
    /// Add the two `alpha.eksctl.io` labels; true when the source is a ClusterConfig.
    pub eksctl_labels: bool,
    /// Taints as `registerWithTaints` of the kubelet's config instead of a flag (AL2023).
    pub taints_in_config: bool,
    /// Pass endpoint and CA to Ubuntu's program too.
    pub pin_endpoint: bool,
    /// Bottlerocket 1.46.0 or later, which knows its own directories.
    pub bottlerocket_finds_directories: bool,
    /// Windows: run the user data at each boot.
    pub persist: bool,
    /// Mode tenon: write the project's own kind instead of `node.eks.aws`.
    pub tenon_part: bool,
    /// Accept what looks like a secret.
    pub allow_secrets: bool,
    pub self_contained: self_contained::Choices,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            gzip: Gzip::Auto,
            eksctl_labels: false,
            taints_in_config: false,
            pin_endpoint: false,
            bottlerocket_finds_directories: false,
            persist: false,
            tenon_part: false,
            allow_secrets: false,
            self_contained: self_contained::Choices::default(),
        }
    }
}

/// When the whole document is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Gzip {
    /// Only when it does not fit otherwise.
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Plain,
    Gzip,
}

impl Encoding {
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Plain => "plain",
            Encoding::Gzip => "gzip",
        }
    }
}

/// Finished user data.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    pub document: Document,
    /// What the instance receives, before base64.
    pub bytes: Vec<u8>,
    pub encoding: Encoding,
    /// Warnings; errors leave no output.
    pub findings: Vec<Finding>,
    /// What the user should know, such as which program the image must contain.
    pub notes: Vec<String>,
}

impl Rendered {
    pub fn sizes(&self) -> Sizes {
        Sizes { bytes: self.bytes.len(), limit: LIMIT, pieces: self.document.pieces() }
    }

    pub fn sha256(&self) -> String {
        sha256(&self.bytes)
    }
}

/// A document with what was said about it.
pub(crate) struct Draft {
    pub document: Document,
    pub notes: Vec<String>,
}

impl From<Document> for Draft {
    fn from(document: Document) -> Self {
        Draft { document, notes: Vec::new() }
    }
}

/// Writes the user data of one group. All findings are returned; one error means no output.
pub fn render(
    cluster: &Cluster,
    group: &Group,
    mode: Mode,
    options: &Options,
) -> Result<Rendered, Vec<Finding>> {
    let mut findings = Vec::new();
    let draft = draft(cluster, group, mode, options, &mut findings);
    let (Some(draft), false) = (draft, has_error(&findings)) else { return Err(findings) };
    let shape = Shape { group, mode, placeholders: cluster.placeholders };
    match encode(&draft.document, shape, options.gzip) {
        Ok((bytes, encoding)) => {
            Ok(Rendered { document: draft.document, bytes, encoding, findings, notes: draft.notes })
        }
        Err(problem) => {
            findings.push(Finding::error(problem));
            Err(findings)
        }
    }
}

/// Writes the user data of one group and joins the user's own data to it, by the rules of the
/// family. The document stays ours; the bytes hold both.
pub fn render_with(
    cluster: &Cluster,
    group: &Group,
    mode: Mode,
    options: &Options,
    custom: &[u8],
) -> Result<Rendered, Vec<Finding>> {
    let mut rendered = render(cluster, group, mode, options)?;
    let family = group.family;
    let how = inspect::merge::Options { family, ..inspect::merge::Options::default() };
    let ours = rendered.document.text();
    let merged = inspect::merge::merge(custom, ours.as_bytes(), &how)
        .map_err(|problems| problems.into_iter().map(Finding::error).collect::<Vec<_>>())?;
    rendered.notes.extend(merged.notes);
    let shape = Shape { group, mode, placeholders: cluster.placeholders };
    let encoded = encode_bytes(merged.bytes, &rendered.document, shape, options.gzip);
    (rendered.bytes, rendered.encoding) =
        encoded.map_err(|problem| vec![Finding::error(problem)])?;
    Ok(rendered)
}

fn draft(
    cluster: &Cluster,
    group: &Group,
    mode: Mode,
    options: &Options,
    findings: &mut Vec<Finding>,
) -> Option<Draft> {
    let cell = match family::cell(group.family, group.kind, mode) {
        Ok(cell) => cell,
        Err((page, what)) => {
            let problem = Problem::new(page, what).at(group.at("amiFamily"));
            findings.push(Finding::error(problem));
            return None;
        }
    };
    if cell == Cell::Unchanged {
        return Some(Document::Opaque(group.user_text.clone().unwrap_or_default()).into());
    }
    let group = &checks::complete(cluster, group, options, findings);
    checks::check(cluster, group, cell, options, findings);
    if has_error(findings) {
        return None;
    }
    match cell {
        Cell::NodeConfig => al2023::draft(cluster, group, options, findings),
        Cell::BootstrapScript => al2::draft(cluster, group, options, findings),
        Cell::ManagedScripts => al2_managed::draft(cluster, group, options, findings),
        Cell::Settings => bottlerocket::draft(cluster, group, options, findings),
        Cell::PowerShell => windows::draft(cluster, group, options, findings),
        Cell::SelfContained => self_contained::draft(cluster, group, options, findings),
        Cell::TenonPart => tenon_mode::draft(cluster, group, options, findings),
        Cell::Unchanged => None,
    }
}

pub(crate) fn has_error(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.stops(false))
}

/// What decides whether the consumer expands gzip.
struct Shape<'a> {
    group: &'a Group,
    mode: Mode,
    placeholders: bool,
}

impl Shape<'_> {
    /// None when the consumer expands gzip, else what to do instead.
    fn no_gzip(&self, document: &Document) -> Option<&'static str> {
        if self.placeholders {
            return Some("the template has placeholders, which cannot be compressed: use --baked");
        }
        match document {
            Document::PowerShell(_) => {
                Some("Windows does not expand gzip: move the text into the image")
            }
            Document::Ignition(_) => Some(
                "Ignition does not expand gzip on AWS, and the files are compressed already: \
                 move files to S3 and name them in ignition.config.merge",
            ),
            Document::Opaque(_) => Some("text of family Custom is not changed"),
            _ if self.group.joined_by_eks() && self.mode == Mode::Native => {
                Some("EKS must read and merge this user data, so it cannot be compressed")
            }
            _ => None,
        }
    }
}

fn encode(document: &Document, shape: Shape, wish: Gzip) -> Result<(Vec<u8>, Encoding), Problem> {
    encode_bytes(document.text().into_bytes(), document, shape, wish)
}

fn encode_bytes(
    plain: Vec<u8>,
    document: &Document,
    shape: Shape,
    wish: Gzip,
) -> Result<(Vec<u8>, Encoding), Problem> {
    let no_gzip = shape.no_gzip(document);
    let wanted = match wish {
        Gzip::Never => false,
        Gzip::Always => !plain.is_empty(),
        Gzip::Auto => plain.len() > LIMIT,
    };
    let (bytes, encoding) = match (wanted, no_gzip) {
        (true, None) => (size::gzip(&plain), Encoding::Gzip),
        (true, Some(advice)) if wish == Gzip::Always => {
            let what = "gzip was asked for, and the reader of this user data does not expand it";
            return Err(Problem::new(&pages::NOT_AVAILABLE, what)
                .at(Place::field("--gzip"))
                .fix(advice));
        }
        _ => (plain, Encoding::Plain),
    };
    if bytes.len() <= LIMIT {
        return Ok((bytes, encoding));
    }
    let sizes = Sizes { bytes: bytes.len(), limit: LIMIT, pieces: document.pieces() };
    let over = size::thousands(bytes.len() - LIMIT);
    let mut problem =
        Problem::new(&pages::TOO_LARGE, format!("{over} bytes too many; {}", sizes.meter()))
            .at(shape.group.at(""))
            .details(sizes.table());
    if let Some(advice) = no_gzip {
        problem = problem.why(format!("EC2 takes 16,384 bytes; {advice}"));
    }
    Err(problem)
}

#[cfg(test)]
mod tests;
