//! The loader: shapes, places, limits and messages.

use super::*;
use crate::codes;
use crate::tree::{Dialect, Meaning, Scalar, Tree, Written};

fn one(text: &str) -> Tree {
    let mut documents = parse(text).unwrap_or_else(|syntax| panic!("{syntax:?}"));
    assert_eq!(documents.len(), 1);
    documents.remove(0)
}

/// Follows keys and indexes into a tree.
fn at<'a>(tree: &'a Tree, path: &str) -> &'a Tree {
    path.split('/').filter(|step| !step.is_empty()).fold(tree, |tree, step| match &tree.value {
        Written::Map(entries) => &entries.iter().find(|entry| entry.key == step).unwrap().value,
        Written::List(items) => &items[step.parse::<usize>().unwrap()],
        Written::Scalar(_) => panic!("{step} in a scalar"),
    })
}

fn text(tree: &Tree) -> &str {
    match &tree.value {
        Written::Scalar(scalar) => &scalar.text,
        other => panic!("{other:?}"),
    }
}

fn error(text: &str) -> Syntax {
    parse(text).unwrap_err()
}

#[test]
fn yaml_and_json_give_the_same_shape() {
    for document in [
        "a: 1\nb: [x, {c: d}]\n",
        "a: 1\nb:\n- x\n- c: d\n",
        "---\na: 1\nb: [x, {c: d}]\n...\n",
        "{\"a\": 1, \"b\": [\"x\", {\"c\": \"d\"}]}",
        "{\n\t\"a\":1,\n\t\"b\":[\n\t\t\"x\",\n\t\t{\"c\":\"d\"}\n\t]\n}\n",
        "{\"a\":1,\"b\":[\"x\",{\"c\":\"d\"}]}\r\n",
    ] {
        let tree = one(document);
        assert_eq!(text(at(&tree, "a")), "1", "{document}");
        assert_eq!(text(at(&tree, "b/0")), "x", "{document}");
        assert_eq!(text(at(&tree, "b/1/c")), "d", "{document}");
    }
}

#[test]
fn row_108_every_document_of_the_text_is_read() {
    for (text, count) in
        [("", 0), ("# only a comment\n", 0), ("a: 1\n", 1), ("---\na: 1\n---\nb: 2\n", 2)]
    {
        assert_eq!(parse(text).unwrap().len(), count, "{text}");
    }
    let documents = parse("a: &x 1\n---\nb: 2\n").unwrap();
    assert_eq!(self::text(at(&documents[1], "b")), "2");
}

#[test]
fn places_are_in_characters_and_bytes() {
    let tree = one("# größe\nspec:\n  ü: wert\n  \"näme\": 'välue'\n");
    let Written::Map(entries) = &at(&tree, "spec").value else { panic!() };
    let spans: Vec<_> = entries
        .iter()
        .flat_map(|entry| [entry.key_span, entry.value.span])
        .map(|span| (span.offset, span.line, span.column, span.width))
        .collect();
    assert_eq!(spans, [(18, 3, 3, 1), (22, 3, 6, 4), (29, 4, 3, 6), (38, 4, 11, 7)]);
}

#[test]
fn a_missing_value_stands_at_its_key() {
    let tree = one("a:\nb: 1\n");
    let value = at(&tree, "a");
    assert_eq!((value.span.line, value.span.column), (1, 1));
    assert_eq!(value.value, Written::Scalar(Scalar { text: String::new(), plain: true }));
}

#[test]
fn quotes_and_tags_decide_what_is_plain() {
    for (written, plain) in [
        ("yes", true),
        ("'yes'", false),
        ("\"yes\"", false),
        ("!!str yes", false),
        ("! yes", false),
        ("!!bool yes", true),
        ("|\n  yes", false),
    ] {
        let tree = one(&format!("a: {written}\n"));
        let Written::Scalar(scalar) = &at(&tree, "a").value else { panic!() };
        assert_eq!(scalar.plain, plain, "{written}");
    }
    let tree = one("y: 1\n");
    let Written::Map(entries) = &tree.value else { panic!() };
    assert_eq!(entries[0].key, "y", "a bare y is text as a key");
}

#[test]
fn aliases_repeat_and_merge() {
    let tree = one("base: &b {x: 1, y: 2}\nuse:\n  <<: *b\n  y: 3\nagain: *b\n");
    assert_eq!(text(at(&tree, "use/x")), "1");
    assert_eq!(text(at(&tree, "use/y")), "3");
    assert_eq!(text(at(&tree, "again/y")), "2");
    assert_eq!(at(&tree, "again").span.line, 5);
    let tree = one("use:\n  <<: [{x: 1}, {x: 2, y: 2}]\n");
    assert_eq!((text(at(&tree, "use/x")), text(at(&tree, "use/y"))), ("1", "2"));
}

#[test]
fn row_57_mistakes_have_a_page_and_a_place() {
    let cases: &[(&str, &codes::Page, u32, u32)] = &[
        ("a: 1\nb: 2\na: 3\n", &codes::decode::DUPLICATE_KEY, 3, 1),
        ("1: a\n\"1\": b\n", &codes::decode::DUPLICATE_KEY, 2, 1),
        ("a:\n\tb: 1\n", &codes::decode::TAB_INDENT, 2, 1),
        ("a:\n  b: 1\n \tc: 2\n", &codes::decode::TAB_INDENT, 3, 2),
        ("\ta: 1\n", &codes::decode::TAB_INDENT, 1, 1),
        ("a: {{ name }}\n", &codes::decode::TEMPLATE_LEFT, 1, 5),
        ("? [a]\n: b\n", &codes::decode::BAD_KEY, 1, 3),
        ("a: !Sub x\n", &codes::decode::BAD_TAG, 1, 4),
        ("a: &a [*a]\n", &codes::decode::ALIAS_LOOP, 1, 8),
        ("a: *nowhere\n", &codes::decode::BAD_SYNTAX, 1, 4),
        ("a: b: c\n", &codes::decode::BAD_SYNTAX, 1, 5),
        ("a: [1\nb: 2\n", &codes::decode::BAD_SYNTAX, 2, 2),
        ("ü: \u{1}\n", &codes::decode::BAD_SYNTAX, 1, 4),
        ("a:\n  b: 1\n\tc: 2\n", &codes::decode::TAB_INDENT, 3, 1),
        ("a: 'open\n", &codes::decode::BAD_SYNTAX, 1, 4),
        ("a: [1, 2\n", &codes::decode::BAD_SYNTAX, 1, 1),
        ("a: 1\n  b: 2\n", &codes::decode::BAD_SYNTAX, 2, 4),
        ("a:\n    b: 1\n  c: 2\n", &codes::decode::BAD_SYNTAX, 3, 3),
        ("a: 1\n\njust words\n\n", &codes::decode::BAD_SYNTAX, 3, 1),
    ];
    for (text, page, line, column) in cases {
        let syntax = error(text);
        assert_eq!(syntax.page.slug, page.slug, "{text}: {}", syntax.what);
        assert_eq!((syntax.span.line, syntax.span.column), (*line, *column), "{text}");
    }
}

#[test]
fn row_58_json_duplicates_are_refused() {
    let syntax = error("{\"a\": 1, \"b\": 2, \"a\": 3}");
    assert_eq!(syntax.page.slug, "duplicate-key");
    assert_eq!((syntax.span.offset, syntax.span.column, syntax.span.width), (17, 18, 3));
}

#[test]
fn every_message_of_the_parser_that_we_meet_has_our_words() {
    for text in [
        "a: b: c\n",
        "a: 'open\n",
        "a: \"\\q\"\n",
        "a: \"\\x1\"\n",
        "a: 'x' y\n",
        "a: [1, 2\n",
        "a: {b: 1\n",
        "a: ]\n",
        "a: *x\n",
        "a: @x\n",
        "a: `x`\n",
        "a: 1\nwords\n",
        "a:\n    b: 1\n  c: 2\n",
        "- a\nb: 1\n",
        "a: - b\n",
        "a: \u{1}\n",
    ] {
        let syntax = error(text);
        assert_ne!(syntax.what, "the text is not YAML from here on", "{text}");
        assert!(syntax.fix.is_some(), "{text}");
    }
}

#[test]
fn messages_show_no_values() {
    let part = Place { source: "stdin:".into(), ..Place::default() };
    for text in ["token: hunter2: x\n", "a: 1\nhunter2\n", "a: @hunter2\n", "a: 'hunter2\n"] {
        let shown = error(text).problem(&part, text).render("error");
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("stdin:, line"), "{shown}");
    }
}

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

/// Lists of at most 9,000 items with `nodes` nodes in all, the outer list included.
fn wide(nodes: usize) -> String {
    let mut left = nodes - 1;
    let mut rows = Vec::new();
    while left > 0 {
        let items = (left - 1).min(9_000);
        rows.push(format!("[{}]", vec!["x"; items].join(",")));
        left -= items + 1;
    }
    format!("[{}]", rows.join(","))
}

#[test]
fn row_57_limits_hold_at_one_above_and_far_above() {
    let list = |items: usize| format!("[{}]", vec!["x"; items].join(","));
    let map = |keys: usize| (0..keys).map(|key| format!("k{key}: 1\n")).collect::<String>();
    let scalar = |bytes: usize| format!("a: {}\n", "x".repeat(bytes));
    let bundle = |bytes: usize| format!("{}: {}\n", LONG_SCALAR.0, "x".repeat(bytes));
    let document = |bytes: usize| format!("#{}\n", "x".repeat(bytes - 2));
    let aliases = |items: usize| format!("a: &a x\nb: [{}]\n", vec!["*a"; items].join(","));
    type Make<'a> = &'a dyn Fn(usize) -> String;
    let limits: [(&str, Make, usize); 8] = [
        ("depth", &nested, DEPTH),
        ("nodes", &wide, NODES),
        ("scalar", &scalar, SCALAR_BYTES),
        ("CA bundle", &bundle, LONG_SCALAR.1),
        ("list", &list, ENTRIES),
        ("map", &map, ENTRIES),
        ("document", &document, DOCUMENT_BYTES),
        ("aliases", &aliases, ENTRIES),
    ];
    for (name, make, limit) in limits {
        assert!(parse(&make(limit)).is_ok(), "{name} at the limit");
        for size in [limit + 1, limit + limit / 2] {
            let syntax = error(&make(size));
            assert_eq!(syntax.page.slug, "document-limit", "{name} of {size}: {}", syntax.what);
        }
    }
}

#[test]
fn row_57_alias_bombs_stop_before_they_are_copied() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let copies = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{copies}]\n"));
    }
    let syntax = error(&bomb);
    assert_eq!(syntax.page.slug, "document-limit");
    assert!(syntax.span.line <= 6, "stopped in line {}", syntax.span.line);
}

#[test]
fn row_57_aliases_of_long_text_count_by_their_bytes() {
    let bomb = format!("a: &a {}\nb: [{}]\n", "x".repeat(60_000), vec!["*a"; 100].join(","));
    assert_eq!(error(&bomb).page.slug, "document-limit");
}

#[test]
fn row_57_aliases_cannot_nest_deeper_than_text() {
    let mut text = String::from("a0: &a0 [x]\n");
    for level in 1..80 {
        text.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
    }
    let syntax = error(&text);
    assert_eq!(syntax.page.slug, "document-limit");
    assert!(syntax.what.contains("64 levels"), "{}", syntax.what);
}

#[test]
fn row_57_nested_anchors_do_not_multiply() {
    let open: String = (0..60).map(|level| format!("&a{level} [")).collect();
    let text = format!("{open}{}{}", vec!["x"; 9_000].join(","), "]".repeat(60));
    assert_eq!(error(&text).page.slug, "document-limit");
}

#[test]
fn scalars_resolve_by_the_dialect() {
    let tree = one("a: no\n");
    let Written::Scalar(scalar) = &at(&tree, "a").value else { panic!() };
    assert_eq!(scalar.resolve(Dialect::Yaml11), Meaning::Bool(false));
    assert_eq!(scalar.resolve(Dialect::Yaml12), Meaning::Text("no".into()));
}
