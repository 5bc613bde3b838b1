//! Layers, messages, limits and hints, through [`unwrap`].

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

const CONFIG: &str = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n";

fn user_data(bytes: impl Into<Vec<u8>>) -> Blob {
    let uri = "imds://user-data".into();
    Blob { source_index: 0, uri, origin: Origin::Imds, bytes: bytes.into() }
}

fn file(bytes: impl Into<Vec<u8>>) -> Blob {
    Blob { uri: "file:///n.yaml".into(), origin: Origin::File, ..user_data(bytes) }
}

fn decoded(bytes: impl Into<Vec<u8>>) -> Decoded {
    unwrap(&user_data(bytes), &mut Budget::default())
}

fn base64(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    STANDARD.encode(bytes).into_bytes()
}

fn gzip(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(bytes.as_ref()).unwrap();
    encoder.finish().unwrap()
}

/// Bytes that do not compress, the same every time.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        b'a' + (state % 26) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

fn texts(decoded: &Decoded) -> Vec<&str> {
    decoded.parts.iter().map(|part| part.text.as_str()).collect()
}

fn slugs(decoded: &Decoded) -> Vec<&'static str> {
    decoded.findings.iter().map(|finding| finding.problem.page.slug).collect()
}

fn hints(decoded: &Decoded) -> Vec<&'static str> {
    decoded.hints.iter().map(|hint| hint.page.slug).collect()
}

fn place(decoded: &Decoded) -> &Place {
    decoded.findings[0].problem.place.as_ref().unwrap()
}

fn message(parts: &[(&str, &str)]) -> String {
    let mut text =
        String::from("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n");
    for (media, body) in parts {
        text.push_str(&format!("--//\nContent-Type: {media}\n\n{body}\n"));
    }
    text + "--//--\n"
}

const OURS: &str = "application/node.eks.aws";
const SHELL: &str = "text/x-shellscript; charset=\"us-ascii\"";

#[test]
fn layers_come_off_in_any_order() {
    let cases: [(Vec<u8>, &[&str]); 8] = [
        (CONFIG.into(), &[]),
        ([b"\xef\xbb\xbf", CONFIG.as_bytes()].concat(), &[]),
        (base64(CONFIG), &["base64"]),
        (gzip(CONFIG), &["gzip"]),
        (base64(gzip(CONFIG)), &["base64", "gzip"]),
        (gzip(base64(CONFIG)), &["gzip", "base64"]),
        (base64(gzip(base64(gzip(CONFIG)))), &["base64", "gzip", "base64", "gzip"]),
        ([gzip(&CONFIG[..20]), gzip(&CONFIG[20..])].concat(), &["gzip"]),
    ];
    for (bytes, layers) in cases {
        for blob in [user_data(bytes.clone()), file(bytes.clone())] {
            let decoded = unwrap(&blob, &mut Budget::default());
            assert_eq!(texts(&decoded), [CONFIG], "{layers:?}: {:?}", decoded.findings);
            assert_eq!(decoded.parts[0].place.layers, layers);
            assert_eq!(decoded.findings, []);
        }
    }
}

#[test]
fn base64_may_be_wrapped_and_padded_with_blanks() {
    let text = STANDARD.encode(CONFIG.repeat(3));
    let lines: Vec<_> = text.as_bytes().chunks(20).map(String::from_utf8_lossy).collect();
    let wrapped = format!("  {}\r\n \n", lines.join("\r\n"));
    assert_eq!(texts(&decoded(wrapped)), [CONFIG.repeat(3)]);
}

#[test]
fn row_52_blank_user_data_holds_nothing() {
    for blank in ["", "\n", " \t\r\n\n", "\u{feff}"] {
        let decoded = decoded(blank);
        assert_eq!((texts(&decoded).len(), slugs(&decoded).len()), (0, 0), "{blank:?}");
        assert_eq!(decoded.held, ["nothing: it is empty"]);
    }
}

#[test]
fn row_53_base64_that_was_cut_or_changed_names_layer_and_byte() {
    let whole = STANDARD.encode(CONFIG);
    let cut = &whole[..whole.len() - 3];
    let with_url_sign = format!("{}\n{}_{}", &whole[..10], &whole[10..20], &whole[21..]);
    for (text, offset) in [(cut.to_owned(), cut.len()), (with_url_sign, 21)] {
        let decoded = decoded(text);
        assert_eq!(slugs(&decoded), ["bad-base64"]);
        assert_eq!(place(&decoded).offset, Some(offset));
        assert!(decoded.findings[0].problem.what.starts_with("layer 1 (base64)"));
    }
}

#[test]
fn row_53_damaged_gzip_names_layer_and_byte() {
    let whole = gzip(noise(2000));
    let mut checksum = whole.clone();
    let trailer = checksum.len() - 8;
    checksum[trailer] ^= 1;
    let mut length = whole.clone();
    *length.last_mut().unwrap() ^= 1;
    let cut = whole[..whole.len() / 2].to_vec();
    let trailing = [whole.clone(), b"rest".to_vec()].concat();
    for (name, bytes) in
        [("checksum", checksum), ("length", length), ("cut", cut), ("trailing", trailing)]
    {
        let size = bytes.len();
        let decoded = decoded(base64(bytes));
        assert_eq!(slugs(&decoded), ["bad-gzip"], "{name}");
        let problem = &decoded.findings[0].problem;
        assert!(problem.what.starts_with("layer 2 (gzip)"), "{name}: {}", problem.what);
        let offset = place(&decoded).offset.unwrap();
        assert!(offset > 0 && offset <= size, "{name}: {offset} of {size}");
    }
}

#[test]
fn row_54_gzip_bomb_stops_at_the_cap() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(9));
    let zeros = vec![0; 1 << 20];
    (0..64).for_each(|_| encoder.write_all(&zeros).unwrap());
    let once = encoder.finish().unwrap();
    let twice = gzip(&once);
    // Hidden among bytes that do not compress, the inner layer passes the ratio of the outer.
    let hidden = gzip([once.clone(), gzip(noise(400))].concat());
    for (bomb, layer) in [(twice, "layer 1"), (hidden, "layer 2")] {
        assert!(bomb.len() < USER_DATA_BYTES, "{} bytes", bomb.len());
        let mut budget = Budget::default();
        let decoded = unwrap(&user_data(bomb), &mut budget);
        assert_eq!(slugs(&decoded), ["gzip-limit"]);
        let what = &decoded.findings[0].problem.what;
        assert!(what.starts_with(layer), "{what}");
        assert!(RUN_BYTES - budget.left < 2 * once.len(), "only the outer layer was counted");
    }
}

#[test]
fn row_54_a_layer_may_give_a_mebibyte_and_no_byte_more() {
    // Comment lines: valid text that compresses by far less than 200 to 1.
    let text = |bytes: usize| {
        let start = CONFIG.as_bytes();
        let mut body = [start, b"#"].concat();
        body.extend(noise(bytes - body.len()));
        body
    };
    for (bytes, slug) in [
        (LAYER_BYTES, None),
        (LAYER_BYTES + 1, Some("gzip-limit")),
        (LAYER_BYTES * 3 / 2, Some("gzip-limit")),
    ] {
        let blob = file(gzip(text(bytes)));
        assert!(blob.bytes.len() <= FILE_BYTES);
        let decoded = unwrap(&blob, &mut Budget::default());
        assert_eq!(slugs(&decoded).first().copied(), slug, "{bytes} bytes");
    }
}

#[test]
fn row_54_the_ratio_is_bounded() {
    let bytes = gzip(vec![b' '; 500_000]);
    assert!(500_000 / bytes.len() > LAYER_RATIO);
    let decoded = decoded(bytes);
    assert_eq!(slugs(&decoded), ["gzip-limit"]);
    assert!(decoded.findings[0].problem.what.contains("200 times"));
}

#[test]
fn row_54_a_third_layer_is_refused() {
    for (bytes, layer) in
        [(gzip(gzip(gzip(CONFIG))), "third gzip"), (base64(base64(base64(CONFIG))), "third base64")]
    {
        let decoded = decoded(bytes);
        assert_eq!(slugs(&decoded), ["layer-limit"]);
        assert!(decoded.findings[0].problem.what.contains(layer));
    }
}

#[test]
fn row_54_all_layers_of_a_run_share_one_budget() {
    let mut budget = Budget::default();
    let part = [CONFIG.as_bytes(), b"#", &noise(1_000_000)].concat();
    let results: Vec<_> = (0..5)
        .map(|_| unwrap(&file(gzip(&part)), &mut budget))
        .map(|decoded| slugs(&decoded).first().copied())
        .collect();
    assert_eq!(results, [None, None, None, None, Some("gzip-limit")]);
}

#[test]
fn sources_are_read_up_to_their_size() {
    let text = |bytes: usize| [CONFIG.as_bytes(), b"#", &noise(bytes - CONFIG.len() - 1)].concat();
    for (make, limit) in [
        (user_data as fn(Vec<u8>) -> Blob, USER_DATA_BYTES),
        (file as fn(Vec<u8>) -> Blob, FILE_BYTES),
    ] {
        for (size, slug) in
            [(limit, None), (limit + 1, Some("source-limit")), (2 * limit, Some("source-limit"))]
        {
            let decoded = unwrap(&make(text(size)), &mut Budget::default());
            assert_eq!(slugs(&decoded).first().copied(), slug, "{size}");
        }
    }
}

#[test]
fn other_encodings_are_refused_by_their_first_bytes() {
    let cases: [(&[u8], &str); 6] = [
        (b"\xff\xfea\0p\0i\0", "UTF-16, not UTF-8: it starts with ff fe"),
        (b"\xfe\xff\0a\0p", "it starts with fe ff"),
        (b"\xff\xfe\0\0a\0\0\0", "UTF-32"),
        (b"a\0p\0i\0", "zero byte at offset 1"),
        (b"kind: caf\xe9", "not UTF-8 at byte 9; it starts with 6b 69 6e 64"),
        (b"\x28\xb5\x2f\xfd\x04\x00", "zstd"),
    ];
    for (bytes, expected) in cases {
        let decoded = decoded(bytes);
        assert_eq!(slugs(&decoded), ["bad-encoding"], "{expected}");
        let what = &decoded.findings[0].problem.what;
        assert!(what.contains(expected), "{what}");
    }
}

#[test]
fn row_56_parts_of_our_types_are_taken_in_order() {
    let other = "apiVersion: tenon.dev/v1alpha1\nkind: NodeConfig";
    let text = message(&[
        (SHELL, "#!/bin/sh\necho"),
        (OURS, CONFIG),
        ("text/cloud-config", "#cloud-config\n{}"),
        ("Application/Tenon.dev; charset=utf-8", other),
        (SHELL, "#!/bin/sh"),
    ]);
    for text in [text.clone(), text.replace('\n', "\r\n"), format!("\u{feff}\n\n{text}")] {
        let decoded = decoded(text);
        assert_eq!(slugs(&decoded), [""; 0]);
        let bodies: Vec<_> = texts(&decoded)
            .iter()
            .map(|text| text.replace('\r', "").trim_end().to_owned())
            .collect();
        assert_eq!(bodies, [CONFIG.trim_end(), other]);
        let numbers: Vec<_> = decoded.parts.iter().map(|part| part.place.part).collect();
        assert_eq!(numbers, [Some(2), Some(4)]);
        assert_eq!(decoded.held, ["1 cloud-config part", "2 shell script parts"]);
    }
}

#[test]
fn row_56_what_the_standard_allows_is_read() {
    let cases = [
        (
            "preamble and epilogue",
            message(&[(OURS, CONFIG)]).replacen("\n\n", "\n\nFor people.\n", 1) + "After.\n",
        ),
        ("folded headers", message(&[(OURS, CONFIG)]).replace("; boundary", ";\n\tboundary")),
        ("letter case", message(&[(OURS, CONFIG)]).replace("Content-Type", "CONTENT-type")),
        ("plain boundary", message(&[(OURS, CONFIG)]).replace("\"//\"", "//")),
        ("quoted pair", message(&[(OURS, CONFIG)]).replace("\"//\"", "\"\\/\\/\"; x=\"a;b\"")),
        ("blanks after a boundary", message(&[(OURS, CONFIG)]).replace("--//\n", "--// \t\n")),
        ("other lines that start alike", message(&[(OURS, &format!("{CONFIG}#\n--//x\n"))])),
        ("no version", message(&[(OURS, CONFIG)]).replacen("MIME-Version: 1.0\n", "", 1)),
        ("mixed line ends", message(&[(OURS, CONFIG)]).replace("--//\n", "--//\r\n")),
        ("one part without multipart", format!("Content-Type: {OURS}\n\n{CONFIG}")),
    ];
    for (name, text) in cases {
        let decoded = decoded(text);
        assert_eq!(slugs(&decoded), [""; 0], "{name}");
        assert!(texts(&decoded)[0].starts_with(CONFIG.trim_end()), "{name}");
        assert_eq!(decoded.parts.len(), 1, "{name}");
    }
}

#[test]
fn row_56_parts_have_layers_and_encodings_of_their_own() {
    let base64_text = String::from_utf8(base64(CONFIG)).unwrap();
    let zipped = String::from_utf8(base64(gzip(CONFIG))).unwrap();
    let quoted = CONFIG.replace(':', "=3A");
    for (encoding, body, layers) in [
        ("", base64_text.clone(), vec!["base64"]),
        ("\nContent-Transfer-Encoding: base64", base64_text, vec![]),
        ("\nContent-Transfer-Encoding: BASE64", zipped.clone(), vec!["gzip"]),
        ("", zipped, vec!["base64", "gzip"]),
        ("\ncontent-transfer-encoding: quoted-printable", quoted, vec![]),
        ("\nContent-Transfer-Encoding: 8bit", CONFIG.to_owned(), vec![]),
    ] {
        let decoded = decoded(message(&[(&format!("{OURS}{encoding}"), &body)]));
        assert_eq!(slugs(&decoded), [""; 0], "{encoding} {layers:?}");
        assert_eq!(texts(&decoded)[0].trim_end(), CONFIG.trim_end());
        assert_eq!(decoded.parts[0].place.layers, layers);
    }
    let wrong = decoded(message(&[(&format!("{OURS}\nContent-Transfer-Encoding: base64"), "a*b")]));
    assert_eq!(slugs(&wrong), ["bad-transfer-encoding"]);
    assert_eq!((place(&wrong).part, place(&wrong).offset), (Some(1), Some(1)));
}

#[test]
fn a_gzipped_binary_part_survives() {
    let mut bytes = format!("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: {OURS}\nContent-Transfer-Encoding: binary\n\n").into_bytes();
    bytes.extend(gzip(CONFIG));
    bytes.extend(b"\r\n--b--\r\n");
    assert_eq!(texts(&decoded(bytes)), [CONFIG]);
}

#[test]
fn row_56_nested_messages_are_entered_two_levels_deep() {
    let nest = |inner: &str, boundary: &str| {
        format!(
            "Content-Type: multipart/mixed; boundary={boundary}\n\n--{boundary}\n{inner}\n--{boundary}--\n"
        )
    };
    let leaf = format!("Content-Type: {OURS}\n\n{CONFIG}");
    let two = nest(&nest(&leaf, "in"), "out");
    assert_eq!(texts(&decoded(two.clone()))[0].trim_end(), CONFIG.trim_end());
    assert_eq!(slugs(&decoded(two.clone())), [""; 0]);
    assert_eq!(slugs(&decoded(nest(&two, "more"))), ["mime-limit"]);
    let lost = two.replace("--in--\n", "");
    assert_eq!(slugs(&decoded(lost)), ["no-final-boundary"]);
}

#[test]
fn row_56_parts_and_headers_are_counted() {
    let parts = |count: usize| message(&vec![(OURS, "a: 1"); count]);
    let header = |bytes: usize| {
        let start = format!("Content-Type: {OURS}\nX: ");
        let fill = "x".repeat(bytes - start.len() - 2);
        format!("{start}{fill}\n\n{CONFIG}")
    };
    let limit = MIME_PARTS as usize;
    for (text, slug) in [
        (parts(limit), None),
        (parts(limit + 1), Some("mime-limit")),
        (parts(1000), Some("mime-limit")),
        (header(MIME_HEADER_BYTES), None),
        (header(MIME_HEADER_BYTES + 1), Some("mime-limit")),
        (header(4 * MIME_HEADER_BYTES), Some("mime-limit")),
    ] {
        assert_eq!(slugs(&decoded(text)).first().copied(), slug);
    }
    assert_eq!(decoded(parts(1000)).parts.len(), limit);
}

#[test]
fn mime_mistakes_have_a_code_and_a_line() {
    let whole = message(&[(SHELL, "#!/bin/sh"), (OURS, CONFIG)]);
    let cases = [
        ("no-blank-line", whole.replace("node.eks.aws\n\n", "node.eks.aws\n"), 10),
        ("no-blank-line", whole.replace("us-ascii\"\n\n", "us-ascii\"\n"), 6),
        ("no-blank-line", whole.replacen("\n\n", "\n", 1), 3),
        ("boundary-not-found", whole.replace("\"//\"", "\"other\""), 4),
        ("boundary-not-found", whole.replace("; boundary=\"//\"", ""), 1),
        ("boundary-not-found", whole.replace("--//", "  --//"), 4),
        ("no-final-boundary", whole.replace("--//--\n", ""), 14),
        ("indented-by-template", whole.replace("\n", "\n  ").replacen("MIME", "  MIME", 1), 1),
    ];
    for (slug, text, line) in cases {
        let decoded = decoded(text);
        assert_eq!(slugs(&decoded), [slug]);
        assert_eq!(place(&decoded).line, line, "{slug}");
    }
}

#[test]
fn a_mistake_in_one_part_does_not_hide_another() {
    let text = message(&[(OURS, CONFIG), (OURS, "x"), (OURS, CONFIG)])
        .replace("--//--", "")
        .replacen("node.eks.aws\n\n", "node.eks.aws\n", 1);
    let decoded = decoded(text);
    assert_eq!(decoded.parts.len(), 3);
    assert_eq!(slugs(&decoded), ["no-blank-line", "no-final-boundary"]);
    assert!(texts(&decoded)[0].starts_with(CONFIG));
}

#[test]
fn configs_in_parts_of_other_types_are_noticed() {
    let typed = message(&[("text/plain", CONFIG)]);
    let untyped = typed.replace("Content-Type: text/plain\n", "");
    for (text, slug) in [(typed, "part-of-other-type"), (untyped, "part-without-type")] {
        let decoded = decoded(text);
        assert_eq!(slugs(&decoded), [slug]);
        assert_eq!(place(&decoded).part, Some(1));
    }
    let script = format!("#!/bin/sh\ncat > x <<E\n{CONFIG}E");
    assert_eq!(slugs(&decoded(message(&[("text/plain", &script)]))), [""; 0]);
}

#[test]
fn user_data_of_other_programs_is_described() {
    for (text, held, hint) in [
        ("#!/bin/bash\necho\n", "1 shell script", vec!["script-only"]),
        ("#cloud-config\npackages: []\n", "1 cloud-config", vec![]),
        ("{\"ignition\": {\"version\": \"3.4.0\"}}", "1 Ignition config", vec![]),
        ("[settings.kubernetes]\n", "1 Bottlerocket settings", vec![]),
        ("<powershell>\n</powershell>", "1 PowerShell script", vec![]),
        ("some words\n", "text of an unknown kind", vec![]),
        ("test", "text of an unknown kind", vec![]),
    ] {
        let decoded = decoded(text);
        assert_eq!((texts(&decoded).len(), slugs(&decoded).len()), (0, 0), "{text}");
        assert_eq!(decoded.held, [held]);
        assert_eq!(hints(&decoded), hint);
    }
    let decoded = unwrap(&file("some words\n"), &mut Budget::default());
    assert_eq!(decoded.parts.len(), 1, "a file is always meant to be a document");
}

#[test]
fn calls_of_the_old_script_get_the_document_that_replaces_them() {
    let script =
        "#!/bin/bash\nset -ex\n/etc/eks/bootstrap.sh hunter2 --kubelet-extra-args '--v=2'\n";
    let whole = decoded(script);
    assert_eq!(hints(&whole), ["script-only", "bootstrap-call"]);
    let from_file = |text: &str| unwrap(&file(text), &mut Budget::default());
    let named = from_file(script);
    assert_eq!((slugs(&named), named.parts.len()), (vec!["script-only", "bootstrap-call"], 0));
    let commented = from_file(&format!("#!/usr/bin/env tenon\n{CONFIG}"));
    assert_eq!((slugs(&commented), commented.parts.len()), (vec![], 1));
    let part = decoded(message(&[(SHELL, script)]));
    assert_eq!(hints(&part), ["bootstrap-call"]);
    let shown = part.hints[0].render("warning");
    assert!(shown.contains("part 1 (text/x-shellscript), line 3"), "{shown}");
    assert!(shown.contains("kind: NodeConfig") && shown.contains("flags:"), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn an_indented_document_is_taken_with_a_warning() {
    let indented = CONFIG.lines().map(|line| format!("    {line}\n")).collect::<String>();
    for text in [indented.clone(), message(&[(OURS, &indented)])] {
        let decoded = decoded(text);
        assert_eq!(slugs(&decoded), ["indented-by-template"]);
        assert!(!decoded.findings[0].stops(false));
        assert_eq!(decoded.parts.len(), 1);
    }
}
