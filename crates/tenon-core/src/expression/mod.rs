//! The little language of `maxPodsExpression`: a subset of CEL that always ends.
//!
//! ```text
//! values       64-bit integers (checked), doubles, booleans
//! operators    + - * / %   == != < <= > >=   && || !   c ? a : b   ( )
//! functions    int(x)  double(x)   and, outside the compatibility kind, min(…)  max(…)
//! variables    default_enis  ips_per_eni  max_pods
//! ```
//!
//! Types are checked when the text is parsed, so that `tenon config check` finds a mistake
//! without a machine. Messages name places and types, never the user's text.

mod eval;
mod lexer;
mod parser;

use std::fmt;

pub use eval::eval;
pub use parser::parse;

/// Longest text in bytes. The longest sensible expression is a tenth of it.
pub const MAX_LENGTH: usize = 1024;

/// Deepest nesting of parentheses, calls, conditions and signs.
pub const MAX_DEPTH: usize = 32;

/// Largest result: the kubelet's `maxPods` is a 32-bit integer.
pub const MAX_RESULT: i64 = 2_147_483_647;

/// What an expression may ask about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variables {
    /// Interfaces of the default network card.
    pub default_enis: i64,
    /// IPv4 addresses per interface.
    pub ips_per_eni: i64,
    /// The plain formula over the two.
    pub max_pods: i64,
}

/// A mistake in an expression, or what went wrong when it was computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionError {
    /// Byte offset in the text.
    pub offset: usize,
    pub message: String,
}

impl ExpressionError {
    fn new(offset: usize, message: impl Into<String>) -> Self {
        ExpressionError { offset, message: message.into() }
    }
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} (at character {})", self.message, self.offset + 1)
    }
}

impl std::error::Error for ExpressionError {}

/// A parsed expression whose types fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    root: Node,
}

/// The type of a node, known before anything is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Int,
    Double,
    Bool,
}

impl Type {
    fn name(self) -> &'static str {
        match self {
            Type::Int => "an integer",
            Type::Double => "a double",
            Type::Bool => "a boolean",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Node {
    offset: usize,
    kind: Type,
    work: Work,
}

#[derive(Debug, Clone, PartialEq)]
enum Work {
    Int(i64),
    Double(f64),
    Bool(bool),
    Variable(Variable),
    Not(Box<Node>),
    Negate(Box<Node>),
    ToInt(Box<Node>),
    ToDouble(Box<Node>),
    Pick(Extreme, Vec<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
    /// Condition, then, otherwise.
    If(Box<[Node; 3]>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variable {
    DefaultEnis,
    IpsPerEni,
    MaxPods,
}

/// `min` or `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extreme {
    Min,
    Max,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[cfg(test)]
mod tests;
