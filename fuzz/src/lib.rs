//! What must hold for any bytes: no panic, the limits, and one property for each target.
//!
//! `cargo +nightly fuzz run TARGET` searches; tenon-core's test `fuzz_targets` runs the same
//! functions over the corpus and over random bytes, with the pinned compiler.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use tenon_core::decode::{self, Blob, Budget, Decoded, Origin};
use tenon_core::problem::Place;
use tenon_core::tree::Dialect;
use tenon_core::userdata::inspect::{self, extract, lint};
use tenon_core::yaml;

/// What is read can be written and reads the same again; what is not has a place.
pub fn config_yaml(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let documents = match yaml::parse(text) {
        Ok(documents) => documents,
        Err(syntax) => {
            let span = syntax.span;
            assert!(span.line > 0 && span.column > 0 && text.is_char_boundary(span.offset));
            syntax.problem(&Place::default(), text).render("error");
            return;
        }
    };
    for document in documents {
        let value = document.to_json(Dialect::Yaml12);
        let Ok(again) = yaml::parse(&yaml::emit(&value)) else {
            // Written out, aliases and indentation can pass a limit of size.
            continue;
        };
        assert_eq!(again[0].to_json(Dialect::Yaml12), value);
    }
}

/// The limits hold for every nesting of base64, gzip and MIME.
pub fn userdata_layers(data: &[u8]) {
    for origin in [Origin::Imds, Origin::File] {
        check_bounds(&unwrap(data.to_vec(), origin), data.len());
    }
    let wrapped = STANDARD.encode(gzip(data)).into_bytes();
    let length = wrapped.len();
    check_bounds(&unwrap(wrapped, Origin::Stdin), length);
}

/// Anyone's user data is read to its end or refused, and no part leaves the directory that it
/// is written to.
pub fn userdata_inspect(data: &[u8]) {
    let Ok(node) = inspect::read("fuzz:", data.to_vec(), &inspect::Options::default()) else {
        return;
    };
    let report = inspect::report(&node);
    report.to_text(false);
    report.to_json(false);
    lint::lint(&node, &lint::Target::default());
    for piece in extract::pieces(&node) {
        assert!(!piece.path.starts_with('/'));
        assert!(piece.path.split('/').all(|part| !["", ".", ".."].contains(&part)));
    }
}

/// Parts that were written into a message come out of it as they were.
pub fn mime_parts(data: &[u8]) {
    let bodies: Vec<String> = data
        .split(|byte| *byte == 0)
        .take(8)
        // The sign keeps a body from looking like a layer.
        .map(|body| format!("#{}", String::from_utf8_lossy(body)))
        .collect();
    let mut message = String::from("Content-Type: multipart/mixed; boundary=\"=_x\"\r\n\r\n");
    for body in &bodies {
        let encoded = STANDARD.encode(body);
        message.push_str("--=_x\r\nContent-Type: application/tenon.dev\r\n");
        message.push_str(&format!("Content-Transfer-Encoding: base64\r\n\r\n{encoded}\r\n"));
    }
    message.push_str("--=_x--\r\n");
    if message.len() <= decode::FILE_BYTES {
        let decoded = unwrap(message.into_bytes(), Origin::File);
        let texts: Vec<_> = decoded.parts.into_iter().map(|part| part.text).collect();
        assert_eq!(texts, bodies);
    }
    // The same bytes as a message of their own, headers and all.
    let raw = [b"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n", data];
    let raw = raw.concat();
    let length = raw.len();
    check_bounds(&unwrap(raw, Origin::File), length);
}

/// A stream stops at the limit, and what was compressed comes out again.
pub fn gzip_stream(data: &[u8]) {
    let damaged = [b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", data].concat();
    let length = damaged.len();
    check_bounds(&unwrap(damaged, Origin::File), length);
    check_bounds(&unwrap(data.to_vec(), Origin::Imds), data.len());

    // A comment whatever follows: `#!` would make it a script, which is no config.
    let text = format!("# {}", String::from_utf8_lossy(data).replace('\0', "0"));
    let whole = gzip(text.as_bytes());
    let within = text.len() <= decode::LAYER_BYTES.min(whole.len() * decode::LAYER_RATIO);
    let decoded = unwrap(whole, Origin::File);
    assert_eq!(decoded.parts.len(), usize::from(within));
    assert!(decoded.parts.iter().all(|part| part.text == text));
}

fn unwrap(bytes: Vec<u8>, origin: Origin) -> Decoded {
    let blob = Blob { source_index: 0, uri: "stdin:".into(), origin, bytes };
    decode::unwrap(&blob, &mut Budget::default())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(bytes).expect("writing to memory");
    encoder.finish().expect("writing to memory")
}

fn check_bounds(decoded: &Decoded, input: usize) {
    let texts: usize = decoded.parts.iter().map(|part| part.text.len()).sum();
    assert!(texts <= input + decode::RUN_BYTES);
    assert!(decoded.parts.len() <= decode::MIME_PARTS as usize);
    for part in &decoded.parts {
        let count = |name: &str| part.place.layers.iter().filter(|layer| *layer == name).count();
        assert!(count("gzip") <= decode::GZIP_LAYERS && count("base64") <= decode::BASE64_LAYERS);
        assert!(part.text.len() <= input.max(decode::LAYER_BYTES));
    }
    for finding in &decoded.findings {
        finding.problem.render("error");
    }
}
