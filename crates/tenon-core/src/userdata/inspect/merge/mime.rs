//! Messages for cloud-init and nodeadm: parts side by side, bodies untouched.

use sha2::{Digest, Sha256};

use super::super::node::{Kind, Node};
use super::{Merged, Options, Placement, not_mergeable};
use crate::codes::inspect::MERGE_PLACE;
use crate::decode::{self, Entity, Framing};
use crate::hex::hex;
use crate::problem::Problem;

const USUAL_BOUNDARY: &str = "//";

/// Lists of two cloud-configs are joined instead of replaced.
const MERGE_TYPE: &str = "Merge-Type: list(append)+dict(no_replace,recurse_list)+str()";

/// Media types of documents that may stand alone as user data.
const BARE: &[(Kind, &str)] = &[
    (Kind::Script, "text/x-shellscript; charset=\"utf-8\""),
    (Kind::CloudConfig, "text/cloud-config; charset=\"utf-8\""),
    (Kind::CloudConfigArchive, "text/cloud-config-archive"),
    (Kind::Boothook, "text/cloud-boothook"),
    (Kind::Include, "text/x-include-url"),
    (Kind::PartHandler, "text/part-handler"),
    (Kind::Jinja, "text/jinja2"),
    (Kind::NodeConfig, "application/node.eks.aws"),
    (Kind::TenonConfig, "application/tenon.dev"),
];

#[derive(Debug, Clone, PartialEq)]
struct Part {
    /// Header lines as written, without line ends.
    headers: Vec<String>,
    body: Vec<u8>,
    filename: Option<String>,
}

impl Part {
    fn is_cloud_config(&self) -> bool {
        self.has("content-type", "text/cloud-config")
    }

    /// True when a header of this name has a value that starts so.
    fn has(&self, name: &str, value: &str) -> bool {
        self.headers.iter().any(|line| {
            line.split_once(':').is_some_and(|(key, found)| {
                key.eq_ignore_ascii_case(name)
                    && found.trim().to_ascii_lowercase().starts_with(value)
            })
        })
    }
}

pub(super) fn merge(custom: &Node, ours: &Node, options: &Options) -> Result<Merged, Problem> {
    let mut notes = Vec::new();
    let custom_parts = parts(custom, &mut notes)?;
    let our_parts = parts(ours, &mut notes)?;
    let at = position(&custom_parts, &options.ours)?;
    let mut all = custom_parts;
    all.splice(at..at, our_parts);
    if join_cloud_configs(&mut all) {
        notes.push("cloud-configs are joined: their lists are appended".into());
    }
    Ok(Merged { bytes: write(&all), replaced: Vec::new(), notes })
}

fn position(custom: &[Part], wish: &Placement) -> Result<usize, Problem> {
    let name = match wish {
        Placement::First => return Ok(0),
        Placement::Last => return Ok(custom.len()),
        Placement::After(name) => name,
    };
    let number = name.strip_prefix("part ").and_then(|number| number.parse::<usize>().ok());
    let named = custom.iter().position(|part| part.filename.as_ref() == Some(name));
    let found = named.map(|index| index + 1).or(number);
    found
        .filter(|at| (1..=custom.len()).contains(at))
        .ok_or_else(|| Problem::new(&MERGE_PLACE, "the user's message has no part of that name"))
}

fn parts(node: &Node, notes: &mut Vec<String>) -> Result<Vec<Part>, Problem> {
    if node.kind == Kind::Mime {
        return message_parts(node, notes);
    }
    if node.kind == Kind::Empty {
        return Ok(Vec::new());
    }
    let Some((_, media_type)) = BARE.iter().find(|(kind, _)| *kind == node.kind) else {
        let what = format!("{} cannot be a part of a message", node.kind.name());
        return Err(not_mergeable(node, what));
    };
    let headers = vec![format!("Content-Type: {media_type}")];
    Ok(vec![Part { headers, body: node.bytes.clone(), filename: None }])
}

fn message_parts(node: &Node, notes: &mut Vec<String>) -> Result<Vec<Part>, Problem> {
    let Some(message) = decode::message(&node.bytes, &node.place) else { return Ok(Vec::new()) };
    let message = message?;
    if message.faults.contains(&Framing::NoClosingBoundary) {
        notes.push("the message had no closing delimiter; it was added".into());
    }
    let broken = [Framing::NoBoundary, Framing::IndentedBoundary];
    if message.faults.iter().any(|fault| broken.contains(fault)) {
        return Err(not_mergeable(node, "the boundary of the message never comes"));
    }
    for part in &message.parts {
        if part.faults.contains(&Framing::TwoContentTypes) {
            notes.push("a part had two Content-Type headers; the first is kept".into());
        }
    }
    Ok(message.parts.iter().map(part_of).collect())
}

fn part_of(entity: &Entity<'_>) -> Part {
    let head = &entity.raw[..entity.raw.len() - entity.body.len()];
    let mut headers: Vec<String> = Vec::new();
    let mut types = 0;
    for line in String::from_utf8_lossy(head).lines().map(str::trim_end) {
        let folded = line.starts_with([' ', '\t']);
        if !folded && line.to_ascii_lowercase().starts_with("content-type:") {
            types += 1;
        }
        // What belongs to a second Content-Type goes with it.
        let second =
            types > 1 && (folded || line.to_ascii_lowercase().starts_with("content-type:"));
        let outer = line.to_ascii_lowercase().starts_with("mime-version:");
        if !line.is_empty() && !second && !outer {
            headers.push(line.to_owned());
        }
    }
    Part { headers, body: entity.body.to_vec(), filename: entity.filename() }
}

/// Says how cloud-configs join, unless their author did. True when there was something to say.
fn join_cloud_configs(parts: &mut [Part]) -> bool {
    let said = |part: &Part| {
        part.has("merge-type", "") || part.has("x-merge-type", "") || says_merge(&part.body)
    };
    let later = parts.iter_mut().filter(|part| part.is_cloud_config()).skip(1);
    let open: Vec<_> = later.filter(|part| !said(part)).collect();
    let any = !open.is_empty();
    open.into_iter().for_each(|part| part.headers.push(MERGE_TYPE.to_owned()));
    any
}

fn says_merge(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body);
    text.lines().any(|line| line.starts_with("merge_how:") || line.starts_with("merge_type:"))
}

fn write(parts: &[Part]) -> Vec<u8> {
    let boundary = boundary(parts);
    let head =
        format!("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"{boundary}\"\n\n");
    let mut out = head.into_bytes();
    for part in parts {
        let headers = part.headers.join("\n");
        out.extend_from_slice(format!("--{boundary}\n{headers}\n\n").as_bytes());
        out.extend_from_slice(&part.body);
        // This line end belongs to the delimiter; a body keeps its own.
        out.push(b'\n');
    }
    out.extend_from_slice(format!("--{boundary}--\n").as_bytes());
    out
}

/// The usual boundary, unless a body has a line that looks like it.
fn boundary(parts: &[Part]) -> String {
    let delimiter = format!("--{USUAL_BOUNDARY}").into_bytes();
    let mut lines = parts.iter().flat_map(|part| part.body.split(|byte| *byte == b'\n'));
    if !lines.any(|line| line.starts_with(&delimiter)) {
        return USUAL_BOUNDARY.to_owned();
    }
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(&part.body));
    format!("tenon-{}", hex(&hash.finalize()[..8]))
}
