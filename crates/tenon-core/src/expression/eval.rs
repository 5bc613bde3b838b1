//! A typed tree and three numbers to a pod limit.
//!
//! Integers are checked at every step. Doubles follow IEEE 754 until they become an integer,
//! where infinity and "not a number" are refused.

use std::cmp::Ordering;

use super::{
    Expression, ExpressionError, Extreme, MAX_RESULT, Node, Operator, Variable, Variables, Work,
};

/// Computes the limit: from 1 to [`MAX_RESULT`], or an error with the place of the trouble.
pub fn eval(expression: &Expression, variables: &Variables) -> Result<i64, ExpressionError> {
    let root = &expression.root;
    let result = match value(root, variables)? {
        Value::Int(result) => result,
        Value::Double(result) => truncate(root.offset, result)?,
        Value::Bool(_) => return Err(mixed(root)),
    };
    if (1..=MAX_RESULT).contains(&result) {
        return Ok(result);
    }
    Err(ExpressionError::new(0, format!("the result is not between 1 and {MAX_RESULT}")))
}

#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
enum Value {
    Int(i64),
    Double(f64),
    Bool(bool),
}

fn value(node: &Node, variables: &Variables) -> Result<Value, ExpressionError> {
    match &node.work {
        Work::Int(number) => Ok(Value::Int(*number)),
        Work::Double(number) => Ok(Value::Double(*number)),
        Work::Bool(truth) => Ok(Value::Bool(*truth)),
        Work::Variable(variable) => Ok(Value::Int(lookup(*variable, variables))),
        Work::Not(inner) => Ok(Value::Bool(!truth(inner, variables)?)),
        Work::Negate(inner) => negate(node, value(inner, variables)?),
        Work::ToInt(inner) => to_int(node, value(inner, variables)?),
        Work::ToDouble(inner) => to_double(node, value(inner, variables)?),
        Work::Pick(which, arguments) => pick(node, *which, arguments, variables),
        Work::Binary(Operator::And, left, right) => logic(left, right, false, variables),
        Work::Binary(Operator::Or, left, right) => logic(left, right, true, variables),
        Work::Binary(operator, left, right) => {
            binary(node, *operator, value(left, variables)?, value(right, variables)?)
        }
        Work::If(parts) => {
            let [condition, then, otherwise] = parts.as_ref();
            let branch = if truth(condition, variables)? { then } else { otherwise };
            value(branch, variables)
        }
    }
}

fn lookup(variable: Variable, variables: &Variables) -> i64 {
    match variable {
        Variable::DefaultEnis => variables.default_enis,
        Variable::IpsPerEni => variables.ips_per_eni,
        Variable::MaxPods => variables.max_pods,
    }
}

fn truth(node: &Node, variables: &Variables) -> Result<bool, ExpressionError> {
    match value(node, variables)? {
        Value::Bool(truth) => Ok(truth),
        _ => Err(mixed(node)),
    }
}

/// `&&` (decided by false) and `||` (decided by true). As in CEL, a side that decides wins over
/// an error on the other side, whichever stands first.
fn logic(
    left: &Node,
    right: &Node,
    decides: bool,
    variables: &Variables,
) -> Result<Value, ExpressionError> {
    let first = truth(left, variables);
    if first == Ok(decides) {
        return Ok(Value::Bool(decides));
    }
    let second = truth(right, variables)?;
    if second == decides {
        return Ok(Value::Bool(decides));
    }
    first.map(Value::Bool)
}

fn negate(node: &Node, inner: Value) -> Result<Value, ExpressionError> {
    match inner {
        Value::Int(number) => number.checked_neg().map(Value::Int).ok_or_else(|| overflow(node)),
        Value::Double(number) => Ok(Value::Double(-number)),
        Value::Bool(_) => Err(mixed(node)),
    }
}

fn to_int(node: &Node, inner: Value) -> Result<Value, ExpressionError> {
    match inner {
        Value::Int(number) => Ok(Value::Int(number)),
        Value::Double(number) => truncate(node.offset, number).map(Value::Int),
        Value::Bool(_) => Err(mixed(node)),
    }
}

fn to_double(node: &Node, inner: Value) -> Result<Value, ExpressionError> {
    match inner {
        Value::Int(number) => Ok(Value::Double(number as f64)),
        Value::Double(number) => Ok(Value::Double(number)),
        Value::Bool(_) => Err(mixed(node)),
    }
}

/// Cuts the fraction off. 2^63 is the first double above every 64-bit integer.
fn truncate(offset: usize, number: f64) -> Result<i64, ExpressionError> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if number > -LIMIT && number < LIMIT {
        return Ok(number as i64);
    }
    Err(ExpressionError::new(offset, "the double does not fit into a 64-bit integer"))
}

fn pick(
    node: &Node,
    which: Extreme,
    arguments: &[Node],
    variables: &Variables,
) -> Result<Value, ExpressionError> {
    let wanted = if which == Extreme::Min { Ordering::Less } else { Ordering::Greater };
    let mut best: Option<Value> = None;
    for argument in arguments {
        let candidate = value(argument, variables)?;
        let better = best.is_none_or(|best| candidate.partial_cmp(&best) == Some(wanted));
        if better {
            best = Some(candidate);
        }
    }
    best.ok_or_else(|| mixed(node))
}

fn binary(
    node: &Node,
    operator: Operator,
    left: Value,
    right: Value,
) -> Result<Value, ExpressionError> {
    use Operator::*;
    match operator {
        Equal => Ok(Value::Bool(left == right)),
        NotEqual => Ok(Value::Bool(left != right)),
        Less => Ok(Value::Bool(left < right)),
        LessEqual => Ok(Value::Bool(left <= right)),
        Greater => Ok(Value::Bool(left > right)),
        GreaterEqual => Ok(Value::Bool(left >= right)),
        _ => match (left, right) {
            (Value::Int(left), Value::Int(right)) => {
                integers(node, operator, left, right).map(Value::Int)
            }
            (Value::Double(left), Value::Double(right)) => {
                doubles(node, operator, left, right).map(Value::Double)
            }
            _ => Err(mixed(node)),
        },
    }
}

fn integers(
    node: &Node,
    operator: Operator,
    left: i64,
    right: i64,
) -> Result<i64, ExpressionError> {
    use Operator::*;
    let result = match operator {
        Add => left.checked_add(right),
        Subtract => left.checked_sub(right),
        Multiply => left.checked_mul(right),
        Divide | Remainder if right == 0 => {
            return Err(ExpressionError::new(node.offset, "division by zero"));
        }
        Divide => left.checked_div(right),
        Remainder => left.checked_rem(right),
        _ => return Err(mixed(node)),
    };
    result.ok_or_else(|| overflow(node))
}

fn doubles(node: &Node, operator: Operator, left: f64, right: f64) -> Result<f64, ExpressionError> {
    match operator {
        Operator::Add => Ok(left + right),
        Operator::Subtract => Ok(left - right),
        Operator::Multiply => Ok(left * right),
        Operator::Divide if right == 0.0 => {
            Err(ExpressionError::new(node.offset, "division by zero"))
        }
        Operator::Divide => Ok(left / right),
        _ => Err(mixed(node)),
    }
}

fn overflow(node: &Node) -> ExpressionError {
    ExpressionError::new(node.offset, "the result does not fit into a 64-bit integer")
}

/// The parser lets no such tree through; an error is still better than a crash at boot.
fn mixed(node: &Node) -> ExpressionError {
    ExpressionError::new(node.offset, "the types do not fit")
}
