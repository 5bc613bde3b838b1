use proptest::prelude::*;

use super::*;

/// m5.xlarge: 4 interfaces, 15 addresses, 58 pods.
const M5_XLARGE: Variables = Variables { default_enis: 4, ips_per_eni: 15, max_pods: 58 };

fn run(text: &str) -> Result<i64, ExpressionError> {
    eval(&parse(text, true)?, &M5_XLARGE)
}

fn message(text: &str) -> String {
    run(text).unwrap_err().message
}

#[test]
fn examples_of_the_contract() {
    for (text, expected) in [
        ("max_pods * 2 / 3", 38),
        ("default_enis > 3 ? 40 : max_pods", 40),
        ("int(double(ips_per_eni) * 2.5)", 37),
        ("max_pods - 5", 53),
        ("max_pods > 110 ? 110 : max_pods", 58),
    ] {
        assert_eq!(run(text), Ok(expected), "{text}");
        assert!(parse(text, false).is_ok(), "{text}");
    }
}

#[test]
fn operators_bind_as_in_cel() {
    for (text, expected) in [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 4 - 3", 3),
        ("100 / 10 / 5", 2),
        ("17 % 5", 2),
        ("1 - -17 % 5", 3),
        ("- -7", 7),
        ("7 / 2", 3),
        ("-7 / 2 + 10", 7),
        ("0x10 + 1", 17),
        ("true || false && false ? 1 : 2", 1),
        ("1 + 1 == 2 && !(2 < 1) ? 3 : 4", 3),
        ("false ? 1 : true ? 2 : 3", 2),
        ("1 >= 1 && 1 <= 1 && 1 != 2 ? 5 : 6", 5),
        ("true == (1 < 2) ? 8 : 9", 8),
        ("\t 5\n", 5),
    ] {
        assert_eq!(run(text), Ok(expected), "{text}");
    }
}

#[test]
fn doubles_truncate_and_compare() {
    for (text, expected) in [
        ("37.9", 37),
        ("1e2", 100),
        (".5 * 4.0", 2),
        ("2.5e-1 * 8.0", 2),
        ("int(-1.9) + 2", 1),
        ("double(max_pods) / 2.0 > 28.9 ? 1 : 2", 1),
        ("int(3) + int(4.5)", 7),
        ("double(double(6))", 6),
    ] {
        assert_eq!(run(text), Ok(expected), "{text}");
    }
}

#[test]
fn a_deciding_side_beats_an_error() {
    assert_eq!(run("1 / 0 > 0 || true ? 1 : 2"), Ok(1));
    assert_eq!(run("false && 1 / 0 > 0 ? 1 : 2"), Ok(2));
    assert_eq!(message("1 / 0 > 0 || false ? 1 : 2"), "division by zero");
    assert_eq!(message("true && 1 / 0 > 0 ? 1 : 2"), "division by zero");
    assert_eq!(run("true ? 1 : 1 / 0"), Ok(1));
}

#[test]
fn min_and_max_are_ours_alone() {
    assert_eq!(run("min(max_pods, 40)"), Ok(40));
    assert_eq!(run("max(1, max_pods, 7)"), Ok(58));
    assert_eq!(run("min(2.5, 1.5)"), Ok(1));
    assert!(parse("min(1, 2)", false).unwrap_err().message.contains("tenon.dev"));
    assert!(message("min(1)").contains("two arguments"));
    assert!(message("min(1, 2.0)").contains("do not mix"));
}

#[test]
fn types_are_checked_before_anything_runs() {
    for (text, offset, part) in [
        ("1 + 2.0", 2, "do not mix"),
        ("max_pods * 0.5", 9, "do not mix"),
        ("max_pods > 10.0 ? 1 : 2", 9, "do not mix"),
        ("true", 0, "boolean"),
        ("!5", 1, "a boolean is needed"),
        ("-true", 1, "a number is needed"),
        ("5 ? 1 : 2", 0, "a boolean is needed"),
        ("true ? 1 : 2.0", 5, "do not mix"),
        ("5.0 % 2.0", 0, "an integer is needed"),
        ("1 && true ? 1 : 2", 0, "a boolean is needed"),
        ("int(true)", 4, "a number is needed"),
        ("double(1, 2)", 0, "one argument"),
    ] {
        let error = parse(text, true).unwrap_err();
        assert_eq!(error.offset, offset, "{text}: {error}");
        assert!(error.message.contains(part), "{text}: {error}");
    }
}

#[test]
fn bad_texts_name_their_place() {
    for (text, offset) in [
        ("", 0),
        ("   ", 3),
        ("1 +", 3),
        ("(1", 2),
        ("1)", 1),
        ("1 2", 2),
        ("pods", 0),
        ("1 + size(2)", 4),
        ("12ab", 2),
        ("1.", 1),
        ("0x", 0),
        ("9223372036854775808", 0),
        ("true ? 1", 8),
        ("int()", 4),
        ("1 + é", 4),
        ("'1'", 0),
        ("max_pods.value", 8),
    ] {
        assert_eq!(parse(text, true).unwrap_err().offset, offset, "{text}");
    }
}

#[test]
fn results_stay_in_range() {
    for text in ["0", "-1", "2147483648", "0.9", "max_pods - 58"] {
        assert!(message(text).contains("between 1 and 2147483647"), "{text}");
    }
    assert_eq!(run("2147483647"), Ok(MAX_RESULT));
    for text in [
        "9223372036854775807 + 1",
        "9223372036854775807 * 2",
        "-9223372036854775807 - 2",
        "-(-9223372036854775807 - 1)",
        "(-9223372036854775807 - 1) / -1",
        "1e300 * 1e300",
        "int(1e19)",
    ] {
        assert!(message(text).contains("fit into a 64-bit integer"), "{text}: {}", message(text));
    }
    assert_eq!(message("1 / 0"), "division by zero");
    assert_eq!(message("1 % 0"), "division by zero");
    assert_eq!(message("1.0 / 0.0"), "division by zero");
}

#[test]
fn size_and_depth_are_bounded() {
    let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(run(&nested(MAX_DEPTH - 1)), Ok(1));
    assert!(message(&nested(MAX_DEPTH)).contains("nested deeper"));
    assert!(message(&format!("{}1", "!".repeat(900))).contains("nested deeper"));
    let chain = |terms: usize| vec!["1"; terms].join("+");
    assert_eq!(run(&chain(512)), Ok(512));
    assert!(message(&chain(513)).contains("longer than"));
}

#[test]
fn messages_never_repeat_the_text() {
    for text in ["hunter2", "hunter2(1)", "1 + hunter2", "1 hunter2"] {
        assert!(!run(text).unwrap_err().to_string().contains("hunter2"), "{text}");
    }
}

/// Texts built from the language's own words, so that many of them parse.
fn plausible() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "1",
        "0",
        "7",
        "2.5",
        "9223372036854775807",
        "default_enis",
        "ips_per_eni",
        "max_pods",
        "true",
        "+",
        "-",
        "*",
        "/",
        "%",
        "<",
        ">=",
        "==",
        "&&",
        "||",
        "!",
        "?",
        ":",
        "(",
        ")",
        "int(",
        "double(",
        "min(",
        "max(",
        ",",
    ]);
    prop::collection::vec(words, 1..12).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn any_text_ends_in_range_or_in_an_error(text in "\\PC{0,60}") {
        if let Ok(result) = run(&text) {
            prop_assert!((1..=MAX_RESULT).contains(&result));
        }
    }

    #[test]
    fn plausible_texts_end_in_range_or_in_an_error(
        text in plausible(), enis in 0..64i64, ips in 0..64i64, pods: i64,
    ) {
        let variables = Variables { default_enis: enis, ips_per_eni: ips, max_pods: pods };
        match parse(&text, true).and_then(|expression| eval(&expression, &variables)) {
            Ok(result) => prop_assert!((1..=MAX_RESULT).contains(&result)),
            Err(error) => prop_assert!(error.offset <= text.len()),
        }
    }

    #[test]
    fn arithmetic_agrees_with_rust(left in 1..40_000i64, right in 1..40_000i64) {
        prop_assert_eq!(run(&format!("{left} * {right} + 1")), Ok(left * right + 1));
        prop_assert_eq!(run(&format!("{left} / {right} + 1")), Ok(left / right + 1));
        prop_assert_eq!(run(&format!("{left} % {right} + 1")), Ok(left % right + 1));
    }
}
