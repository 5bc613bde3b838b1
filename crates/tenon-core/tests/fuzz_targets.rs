//! The fuzz targets over their corpus and over random bytes, with the pinned compiler.

#[path = "../../../fuzz/src/lib.rs"]
mod targets;

use proptest::prelude::*;

/// Runs a target over every file of its corpus.
#[expect(clippy::disallowed_methods, reason = "a test reads its own corpus")]
fn run_corpus(name: &str, target: fn(&[u8])) {
    let folder = format!("{}/../../fuzz/corpus/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("a file").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{name} has a corpus");
    for path in paths {
        target(&std::fs::read(path).expect("a file"));
    }
}

#[test]
fn the_corpus_holds() {
    run_corpus("config_yaml", targets::config_yaml);
    run_corpus("userdata_layers", targets::userdata_layers);
    run_corpus("mime_parts", targets::mime_parts);
    run_corpus("gzip_stream", targets::gzip_stream);
    run_corpus("userdata_inspect", targets::userdata_inspect);
}

/// Texts that get further into the readers than noise does.
fn config_like() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        Just("a: "),
        Just("b:\n"),
        Just("- "),
        Just("  "),
        Just("\t"),
        Just("\n"),
        Just("["),
        Just("]"),
        Just("{"),
        Just("}"),
        Just(","),
        Just("&x "),
        Just("*x"),
        Just("<<: "),
        Just("'"),
        Just("\""),
        Just("|\n"),
        Just("!!str "),
        Just("---\n"),
        Just("ü"),
        Just("? "),
        Just("\r\n"),
        Just("{{ x }}"),
        Just("--b\n"),
        Just("--b--\n"),
        Just("Content-Type: "),
        Just("application/tenon.dev\n"),
        Just("multipart/mixed; boundary=b\n"),
        Just("0777"),
    ];
    prop::collection::vec(word, 0..40).prop_map(|words| words.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_hold(data in prop_oneof![
        prop::collection::vec(any::<u8>(), 0..300),
        any::<String>().prop_map(String::into_bytes),
        config_like(),
    ]) {
        targets::config_yaml(&data);
        targets::userdata_layers(&data);
        targets::mime_parts(&data);
        targets::gzip_stream(&data);
    }
}
