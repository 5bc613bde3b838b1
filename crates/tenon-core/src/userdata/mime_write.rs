//! Multipart messages as cloud-init and nodeadm read them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::hex::hex;

pub const SHELL: &str = "text/x-shellscript";
pub const CLOUD_CONFIG: &str = "text/cloud-config";
pub const NODE_CONFIG: &str = "application/node.eks.aws";
pub const TENON_CONFIG: &str = "application/tenon.dev";

const USUAL_BOUNDARY: &str = "//";
const BASE64_LINE: usize = 76;

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub media_type: String,
    pub body: String,
    /// What the part is, for the size table: `preBootstrapCommands[0]`.
    pub role: String,
}

impl Part {
    pub fn new(media_type: &str, body: impl Into<String>, role: impl Into<String>) -> Self {
        Part { media_type: media_type.to_owned(), body: body.into(), role: role.into() }
    }

    /// A script; without an interpreter line it gets bash.
    pub fn script(text: &str, role: impl Into<String>) -> Self {
        let head = if text.starts_with("#!") { "" } else { "#!/bin/bash\n" };
        let end = if text.ends_with('\n') { "" } else { "\n" };
        Part::new(SHELL, format!("{head}{text}{end}"), role)
    }
}

/// The whole message, LF line ends, with its closing delimiter.
pub fn message(parts: &[Part]) -> String {
    let boundary = boundary(parts);
    let mut text =
        format!("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"{boundary}\"\n\n");
    for part in parts {
        text.push_str(&format!("--{boundary}\n{}\n\n{}", headers(part), body(part)));
        // The line break before a delimiter belongs to the delimiter, so that a body keeps its
        // own final newline.
        text.push('\n');
    }
    text.push_str(&format!("--{boundary}--\n"));
    text
}

/// The usual boundary, unless a body has a line that looks like it.
fn boundary(parts: &[Part]) -> String {
    let delimiter = format!("--{USUAL_BOUNDARY}");
    let clash = |part: &Part| part.body.lines().any(|line| line.starts_with(&delimiter));
    if !parts.iter().any(clash) {
        return USUAL_BOUNDARY.to_owned();
    }
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part.body.as_bytes());
    }
    format!("tenon-{}", &hex(&digest.finalize())[..16])
}

fn headers(part: &Part) -> String {
    match (part.media_type.as_str(), part.body.is_ascii()) {
        (SHELL | CLOUD_CONFIG, true) => {
            format!("Content-Type: {}; charset=\"us-ascii\"", part.media_type)
        }
        (_, true) => format!("Content-Type: {}", part.media_type),
        (_, false) => format!(
            "Content-Type: {}; charset=\"utf-8\"\nContent-Transfer-Encoding: base64",
            part.media_type
        ),
    }
}

fn body(part: &Part) -> String {
    if part.body.is_ascii() {
        return part.body.clone();
    }
    let encoded = STANDARD.encode(&part.body);
    let lines = encoded.as_bytes().chunks(BASE64_LINE).map(String::from_utf8_lossy);
    lines.map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_header_quoted_boundary_closing_delimiter() {
        let text = message(&[Part::script("echo hi", "x")]);
        let expected = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n\
            --//\nContent-Type: text/x-shellscript; charset=\"us-ascii\"\n\n\
            #!/bin/bash\necho hi\n\n--//--\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_body_with_the_delimiter_changes_the_boundary() {
        let parts = [Part::script("cat <<E\n--//--\nE\n", "x")];
        let text = message(&parts);
        let boundary = text.split('"').nth(1).unwrap();
        assert!(boundary.starts_with("tenon-") && boundary.len() == 22, "{boundary}");
        assert_eq!(text, message(&parts));
        assert_eq!(text.matches(&format!("--{boundary}")).count(), 2);
    }

    #[test]
    fn other_than_ascii_travels_as_base64() {
        let text = message(&[Part::script("echo grüße", "x")]);
        assert!(text.is_ascii());
        assert!(text.contains("charset=\"utf-8\"\nContent-Transfer-Encoding: base64\n"));
    }

    mod properties {
        use proptest::prelude::*;

        use super::*;
        use crate::decode::{self, Blob, Budget, Origin};

        /// Lines of a document, some of which look like delimiters.
        fn body() -> impl Strategy<Value = String> {
            let line = prop_oneof![
                Just("--//".to_owned()),
                Just("--//--".to_owned()),
                Just("Content-Type: text/plain".to_owned()),
                "[ -~äöü]{0,20}",
            ];
            prop::collection::vec(line, 1..6).prop_map(|lines| {
                format!("apiVersion: node.eks.aws/v1alpha1\n{}\n", lines.join("\n"))
            })
        }

        proptest! {
            #[test]
            fn the_reader_of_nodes_sees_every_body(bodies in prop::collection::vec(body(), 1..4)) {
                let parts: Vec<_> = bodies.iter().map(|body| Part::new(NODE_CONFIG, body, "x")).collect();
                let bytes = message(&parts).into_bytes();
                let blob = Blob { source_index: 0, uri: "x".into(), origin: Origin::Imds, bytes };
                let decoded = decode::unwrap(&blob, &mut Budget::default());
                let found: Vec<_> = decoded.parts.iter().map(|part| part.text.trim_end_matches('\n')).collect();
                let meant: Vec<_> = bodies.iter().map(|body| body.trim_end_matches('\n')).collect();
                prop_assert_eq!(found, meant);
            }
        }
    }
}
