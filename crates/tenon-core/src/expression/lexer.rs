//! Text to tokens. Every token keeps its byte offset.

use super::{ExpressionError, Operator};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Int(i64),
    Double(f64),
    Name(String),
    Operator(Operator),
    Not,
    Question,
    Colon,
    Comma,
    Open,
    Close,
}

/// Signs, longest first, so that `<=` is not read as `<`.
const SIGNS: [(&str, Token); 19] = [
    ("||", Token::Operator(Operator::Or)),
    ("&&", Token::Operator(Operator::And)),
    ("==", Token::Operator(Operator::Equal)),
    ("!=", Token::Operator(Operator::NotEqual)),
    ("<=", Token::Operator(Operator::LessEqual)),
    (">=", Token::Operator(Operator::GreaterEqual)),
    ("<", Token::Operator(Operator::Less)),
    (">", Token::Operator(Operator::Greater)),
    ("+", Token::Operator(Operator::Add)),
    ("-", Token::Operator(Operator::Subtract)),
    ("*", Token::Operator(Operator::Multiply)),
    ("/", Token::Operator(Operator::Divide)),
    ("%", Token::Operator(Operator::Remainder)),
    ("!", Token::Not),
    ("?", Token::Question),
    (":", Token::Colon),
    (",", Token::Comma),
    ("(", Token::Open),
    (")", Token::Close),
];

/// Splits the whole text.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, ExpressionError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        if matches!(first, ' ' | '\t' | '\n' | '\r') {
            at += 1;
            continue;
        }
        let (token, length) = token(&text[at..], first, at)?;
        tokens.push((at, token));
        at += length;
    }
    Ok(tokens)
}

/// The token at the start of `rest`, and its length in bytes.
fn token(rest: &str, first: char, at: usize) -> Result<(Token, usize), ExpressionError> {
    let next_is_digit = rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
    if first.is_ascii_digit() || (first == '.' && next_is_digit) {
        return number(rest, at);
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let length = span(rest, |c| c.is_ascii_alphanumeric() || c == b'_');
        return Ok((Token::Name(rest[..length].to_owned()), length));
    }
    let sign = SIGNS.iter().find(|(sign, _)| rest.starts_with(sign));
    match sign {
        Some((sign, token)) => Ok((token.clone(), sign.len())),
        None => Err(ExpressionError::new(at, "this character has no meaning here")),
    }
}

/// A decimal or `0x` integer, or a double with a point or an exponent.
fn number(rest: &str, at: usize) -> Result<(Token, usize), ExpressionError> {
    let too_large = || ExpressionError::new(at, "the integer does not fit into 64 bits");
    if let Some(hex) = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
        let digits = span(hex, |c| c.is_ascii_hexdigit());
        if digits == 0 {
            return Err(ExpressionError::new(at, "no digits after 0x"));
        }
        let value = i64::from_str_radix(&hex[..digits], 16).map_err(|_| too_large())?;
        return ended(hex, digits, at).map(|()| (Token::Int(value), digits + 2));
    }
    let length = decimal_length(rest);
    ended(rest, length, at)?;
    let text = &rest[..length];
    if text.bytes().all(|c| c.is_ascii_digit()) {
        let value = text.parse().map_err(|_| too_large())?;
        return Ok((Token::Int(value), length));
    }
    let value = text.parse().map_err(|_| ExpressionError::new(at, "not a number"))?;
    Ok((Token::Double(value), length))
}

/// Length of `12`, `1.5`, `.5`, `1e3` or `1.5e-3`; a point needs a digit after it.
fn decimal_length(rest: &str) -> usize {
    let digits = |text: &str| span(text, |c| c.is_ascii_digit());
    let mut length = digits(rest);
    if rest[length..].starts_with('.') {
        let fraction = digits(&rest[length + 1..]);
        length += if fraction > 0 { fraction + 1 } else { 0 };
    }
    if rest[length..].starts_with(['e', 'E']) {
        let after = &rest[length + 1..];
        let sign = usize::from(after.starts_with(['+', '-']));
        let exponent = digits(&after[sign..]);
        length += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    length
}

/// Refuses `12abc` and `1.`: a number ends where no letter, digit or point follows.
fn ended(rest: &str, length: usize, at: usize) -> Result<(), ExpressionError> {
    let follows = rest.as_bytes().get(length).copied().unwrap_or(b' ');
    if follows.is_ascii_alphanumeric() || matches!(follows, b'_' | b'.') {
        return Err(ExpressionError::new(at + length, "the number does not end here"));
    }
    Ok(())
}

fn span(text: &str, belongs: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|byte| belongs(*byte)).count()
}
