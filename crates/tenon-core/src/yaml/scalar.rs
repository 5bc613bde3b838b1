//! What a plain scalar means, in both dialects.
//!
//! YAML 1.1 is read as the Kubernetes world's Go reader (version 2) reads it, YAML 1.2 by its
//! core schema. The two share nulls and floats and differ in booleans and integers.

use serde_json::Value;

use crate::tree::{Dialect, Entry, Meaning, Scalar, Tree, Written};

const NULLS: &[&str] = &["", "~", "null", "Null", "NULL"];

const TRUE: &[&str] = &["true", "True", "TRUE"];
const FALSE: &[&str] = &["false", "False", "FALSE"];
/// Further booleans of YAML 1.1; other spellings, such as `yEs`, are text.
const TRUE_11: &[&str] = &["y", "Y", "yes", "Yes", "YES", "on", "On", "ON"];
const FALSE_11: &[&str] = &["n", "N", "no", "No", "NO", "off", "Off", "OFF"];

const SPECIAL_FLOATS: &[(&[&str], f64)] = &[
    (&[".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"], f64::INFINITY),
    (&["-.inf", "-.Inf", "-.INF"], f64::NEG_INFINITY),
    (&[".nan", ".NaN", ".NAN"], f64::NAN),
];

impl Scalar {
    /// Reads the scalar in a dialect. Quoted and `!!str` scalars are text in both.
    pub fn resolve(&self, dialect: Dialect) -> Meaning {
        if !self.plain {
            return Meaning::Text(self.text.clone());
        }
        let text = self.text.as_str();
        word(text, dialect)
            .or_else(|| match dialect {
                Dialect::Yaml11 => number_11(text),
                Dialect::Yaml12 => number_12(text),
            })
            .unwrap_or_else(|| Meaning::Text(self.text.clone()))
    }
}

impl Tree {
    /// The document as JSON in a dialect. JSON has no infinities; they stay text.
    pub fn to_json(&self, dialect: Dialect) -> Value {
        match &self.value {
            Written::Scalar(scalar) => json_scalar(scalar, dialect),
            Written::List(items) => items.iter().map(|item| item.to_json(dialect)).collect(),
            Written::Map(entries) => {
                let entry = |entry: &Entry| (entry.key.clone(), entry.value.to_json(dialect));
                Value::Object(entries.iter().map(entry).collect())
            }
        }
    }
}

fn json_scalar(scalar: &Scalar, dialect: Dialect) -> Value {
    match scalar.resolve(dialect) {
        Meaning::Null => Value::Null,
        Meaning::Bool(value) => value.into(),
        Meaning::Int(value) => value.into(),
        Meaning::Uint(value) => value.into(),
        Meaning::Float(value) if value.is_finite() => value.into(),
        Meaning::Float(_) => scalar.text.as_str().into(),
        Meaning::Text(value) => value.into(),
    }
}

fn word(text: &str, dialect: Dialect) -> Option<Meaning> {
    let old = dialect == Dialect::Yaml11;
    if NULLS.contains(&text) {
        return Some(Meaning::Null);
    }
    if TRUE.contains(&text) || (old && TRUE_11.contains(&text)) {
        return Some(Meaning::Bool(true));
    }
    if FALSE.contains(&text) || (old && FALSE_11.contains(&text)) {
        return Some(Meaning::Bool(false));
    }
    let special = SPECIAL_FLOATS.iter().find(|(spellings, _)| spellings.contains(&text));
    special.map(|(_, value)| Meaning::Float(*value))
}

/// Underscores anywhere after the first character, a leading zero for octal, any base prefix.
fn number_11(text: &str) -> Option<Meaning> {
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return None;
    }
    // The Go reader parses what starts with a dot by another way, which keeps underscores.
    if text.starts_with('.') {
        return float(text);
    }
    let digits = text.replace('_', "");
    let (sign, body) = split_sign(&digits);
    let integer = match body.as_bytes() {
        [b'0', b'x' | b'X', ..] => integer(sign, &body[2..], 16),
        [b'0', b'o' | b'O', ..] => integer(sign, &body[2..], 8),
        [b'0', b'b' | b'B', ..] => integer(sign, &body[2..], 2),
        [b'0', _, ..] => integer(sign, &body[1..], 8),
        _ => integer(sign, body, 10),
    };
    integer.or_else(|| float(&digits))
}

/// Decimal with a sign, `0o` and `0x` without one.
fn number_12(text: &str) -> Option<Meaning> {
    let integer = match text.as_bytes() {
        [b'0', b'o', ..] => return integer("", &text[2..], 8),
        [b'0', b'x', ..] => return integer("", &text[2..], 16),
        _ => {
            let (sign, body) = split_sign(text);
            integer(sign, body, 10)
        }
    };
    integer.or_else(|| float(text))
}

fn split_sign(text: &str) -> (&str, &str) {
    let end = usize::from(text.starts_with(['+', '-']));
    text.split_at(end)
}

/// Digits of a base as a number, or None when they are not all of that base or too many.
fn integer(sign: &str, digits: &str, base: u32) -> Option<Meaning> {
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        return None;
    }
    let signed = i64::from_str_radix(&format!("{sign}{digits}"), base).ok();
    let large = || if sign.is_empty() { u64::from_str_radix(digits, base).ok() } else { None };
    signed.map(Meaning::Int).or_else(|| large().map(Meaning::Uint))
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`, when a double can hold it.
fn float(text: &str) -> Option<Meaning> {
    let (_, body) = split_sign(text);
    let (mantissa, exponent) = match body.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(split_sign(exponent).1)),
        None => (body, None),
    };
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let shaped = digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty());
    if !shaped || exponent.is_some_and(|exponent| exponent.is_empty() || !digits(exponent)) {
        return None;
    }
    text.parse().ok().filter(|value: &f64| value.is_finite()).map(Meaning::Float)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use Meaning::{Bool, Float, Int, Null, Uint};

    fn text(text: &str) -> Meaning {
        Meaning::Text(text.into())
    }

    #[test]
    fn row_57_plain_scalars_in_both_dialects() {
        let t = text;
        let cases: Vec<(&str, Meaning, Meaning)> = vec![
            // written, YAML 1.1 as the Go reader has it, YAML 1.2
            ("", Null, Null),
            ("~", Null, Null),
            ("null", Null, Null),
            ("NULL", Null, Null),
            ("nULL", t("nULL"), t("nULL")),
            ("true", Bool(true), Bool(true)),
            ("False", Bool(false), Bool(false)),
            ("tRUE", t("tRUE"), t("tRUE")),
            ("y", Bool(true), t("y")),
            ("N", Bool(false), t("N")),
            ("yes", Bool(true), t("yes")),
            ("YES", Bool(true), t("YES")),
            ("yEs", t("yEs"), t("yEs")),
            ("no", Bool(false), t("no")),
            ("on", Bool(true), t("on")),
            ("Off", Bool(false), t("Off")),
            ("0", Int(0), Int(0)),
            ("-0", Int(0), Int(0)),
            ("12", Int(12), Int(12)),
            ("+12", Int(12), Int(12)),
            ("-12", Int(-12), Int(-12)),
            ("0777", Int(511), Int(777)),
            ("-017", Int(-15), Int(-17)),
            ("08", Float(8.0), Int(8)),
            ("0o17", Int(15), Int(15)),
            ("0O17", Int(15), t("0O17")),
            ("0o8", t("0o8"), t("0o8")),
            ("0x1F", Int(31), Int(31)),
            ("-0x1F", Int(-31), t("-0x1F")),
            ("0x", t("0x"), t("0x")),
            ("0b1", Int(1), t("0b1")),
            ("-0b11", Int(-3), t("-0b11")),
            ("1_000", Int(1000), t("1_000")),
            ("_1", t("_1"), t("_1")),
            ("9223372036854775807", Int(i64::MAX), Int(i64::MAX)),
            ("-9223372036854775808", Int(i64::MIN), Int(i64::MIN)),
            ("9223372036854775808", Uint(1 << 63), Uint(1 << 63)),
            ("18446744073709551616", Float(18446744073709551616.0), Float(18446744073709551616.0)),
            ("1.5", Float(1.5), Float(1.5)),
            ("1.", Float(1.0), Float(1.0)),
            (".5", Float(0.5), Float(0.5)),
            ("-.5", Float(-0.5), Float(-0.5)),
            ("1e3", Float(1000.0), Float(1000.0)),
            ("1E+3", Float(1000.0), Float(1000.0)),
            ("1_0.5", Float(10.5), t("1_0.5")),
            (".5_0", t(".5_0"), t(".5_0")),
            ("1e", t("1e"), t("1e")),
            ("1e999", t("1e999"), t("1e999")),
            (".", t("."), t(".")),
            ("+", t("+"), t("+")),
            (".inf", Float(f64::INFINITY), Float(f64::INFINITY)),
            ("-.INF", Float(f64::NEG_INFINITY), Float(f64::NEG_INFINITY)),
            ("inf", t("inf"), t("inf")),
            ("infinity", t("infinity"), t("infinity")),
            ("1:30", t("1:30"), t("1:30")),
            ("2001-12-14", t("2001-12-14"), t("2001-12-14")),
            ("2001-12-14T21:59:43Z", t("2001-12-14T21:59:43Z"), t("2001-12-14T21:59:43Z")),
            ("10.100.0.0/16", t("10.100.0.0/16"), t("10.100.0.0/16")),
            ("<<", t("<<"), t("<<")),
            ("=", t("="), t("=")),
        ];
        for (written, old, new) in cases {
            let scalar = Scalar { text: written.into(), plain: true };
            assert_eq!(scalar.resolve(Dialect::Yaml11), old, "1.1: {written}");
            assert_eq!(scalar.resolve(Dialect::Yaml12), new, "1.2: {written}");
        }
    }

    #[test]
    fn not_a_number_is_a_float() {
        let scalar = Scalar { text: ".NaN".into(), plain: true };
        for dialect in [Dialect::Yaml11, Dialect::Yaml12] {
            assert!(matches!(scalar.resolve(dialect), Float(value) if value.is_nan()));
        }
    }

    #[test]
    fn trees_become_json_by_the_dialect() {
        let tree = crate::yaml::parse("a: [no, 010, .inf, ~]\nb: {c: \"1\"}\n").unwrap().remove(0);
        let old = json!({"a": [false, 8, ".inf", null], "b": {"c": "1"}});
        let new = json!({"a": ["no", 10, ".inf", null], "b": {"c": "1"}});
        assert_eq!(tree.to_json(Dialect::Yaml11), old);
        assert_eq!(tree.to_json(Dialect::Yaml12), new);
    }

    #[test]
    fn quoted_scalars_are_text() {
        for written in ["", "no", "0777", "~", "1.5"] {
            let scalar = Scalar { text: written.into(), plain: false };
            assert_eq!(scalar.resolve(Dialect::Yaml11), text(written));
            assert_eq!(scalar.resolve(Dialect::Yaml12), text(written));
        }
    }
}
