//! No value of a user's field ever shows up in a message.

use super::*;

const CANARY: &str = "kAnArY7";

/// Documents with the marker as the value of every field, in shapes that fit and that do not.
fn documents() -> Vec<String> {
    let mut list = Vec::new();
    for (path, field) in fields::all() {
        let Some(below) = path.strip_prefix("spec.") else { continue };
        if !field.children().is_empty() && !below.contains('.') {
            continue;
        }
        for value in values() {
            for kind in Kind::ALL {
                list.push(nested(kind, below, &value));
            }
        }
    }
    list
}

fn values() -> Vec<String> {
    let marks = [
        CANARY.to_owned(),
        format!("'{CANARY} \"x'"),
        format!("\"{CANARY}\\e\""),
        format!("'--{CANARY}={CANARY}'"),
        format!("'https://{CANARY}:{CANARY}@x/?{CANARY}'"),
        format!("'[{CANARY}'"),
        format!("'{CANARY} = {CANARY}'"),
    ];
    let wrapped = marks.iter().flat_map(|mark| {
        [
            mark.clone(),
            format!("[{mark}]"),
            format!("{{a: {mark}}}"),
            format!("[{{a: {mark}, key: {mark}, name: {mark}, host: {mark}}}]"),
        ]
    });
    wrapped.collect()
}

/// `a.b.c` with a value as nested flow maps; lists of objects get one item.
fn nested(kind: Kind, path: &str, value: &str) -> String {
    let mut text = value.to_owned();
    let names: Vec<&str> = path.split('.').collect();
    for (index, name) in names.iter().enumerate().rev() {
        text = format!("{{{name}: {text}}}");
        let above = names[..index].join(".");
        if index > 0
            && matches!(
                fields::find(&above).map(|field| field.shape),
                Some(schema::Shape::Items(_))
            )
        {
            text = format!("[{text}]");
        }
    }
    format!("apiVersion: {}\nkind: NodeConfig\nspec: {text}\n", kind.api_version())
}

#[test]
fn row_67_values_are_never_echoed() {
    let mut messages = 0;
    for document in documents() {
        let found = match load_partial(std::slice::from_ref(&document)) {
            Ok(loaded) => loaded.findings,
            Err(findings) => findings,
        };
        for finding in found {
            messages += 1;
            let text = finding.problem.render("error") + &finding.problem.to_json().to_string();
            assert!(!text.contains(CANARY), "{document}\n{text}");
        }
    }
    assert!(messages > 1000, "only {messages} findings");
}

#[test]
fn a_loaded_config_prints_no_secret() {
    let spec = format!(
        "instance: {{environment: {{default: {{A: {CANARY}}}}}, proxy: {{http: 'http://u:{CANARY}@p:1'}}}}\nhooks: {{postJoin: [{{name: a, script: {CANARY}}}]}}"
    );
    let loaded = load_partial(&[document(Kind::Tenon, &spec)]).unwrap();
    assert!(!format!("{loaded:?}").contains(CANARY));
}
