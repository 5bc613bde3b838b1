//! Tokens to a typed tree, by precedence climbing.
//!
//! Left chains (`a + b + c …`) are loops here and at most [`MAX_LENGTH`] long, so only real
//! nesting uses depth.

use super::lexer::{Token, tokens};
use super::{
    Expression, ExpressionError, Extreme, MAX_DEPTH, MAX_LENGTH, Node, Operator, Type, Variable,
    Work,
};

/// Parses and type-checks a text. `min` and `max` exist only with `allow_min_max`: the
/// compatibility kind must stay readable for its own tools.
pub fn parse(text: &str, allow_min_max: bool) -> Result<Expression, ExpressionError> {
    if text.len() > MAX_LENGTH {
        let message = format!("the expression is longer than {MAX_LENGTH} bytes");
        return Err(ExpressionError::new(MAX_LENGTH, message));
    }
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens, next: 0, end: text.len(), depth: 0, allow_min_max };
    let root = parser.expression()?;
    if parser.next < parser.tokens.len() {
        return Err(parser.error("an operator or the end was expected"));
    }
    if root.kind == Type::Bool {
        return Err(ExpressionError::new(root.offset, "the result is a boolean, not a number"));
    }
    Ok(Expression { root })
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
    /// Offset reported when the text ends too early.
    end: usize,
    depth: usize,
    allow_min_max: bool,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    fn offset(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |(offset, _)| *offset)
    }

    fn error(&self, message: &str) -> ExpressionError {
        ExpressionError::new(self.offset(), message)
    }

    fn take(&mut self, wanted: &Token) -> bool {
        let found = self.peek() == Some(wanted);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, wanted: &Token, message: &str) -> Result<(), ExpressionError> {
        if self.take(wanted) { Ok(()) } else { Err(self.error(message)) }
    }

    /// `condition ? then : otherwise`, or what binds tighter.
    fn expression(&mut self) -> Result<Node, ExpressionError> {
        self.deeper(|parser| {
            let condition = parser.operation(0)?;
            let offset = parser.offset();
            if !parser.take(&Token::Question) {
                return Ok(condition);
            }
            let then = parser.operation(0)?;
            parser.expect(&Token::Colon, "`:` of the condition was expected")?;
            let otherwise = parser.expression()?;
            conditional(offset, condition, then, otherwise)
        })
    }

    /// Operators that bind at least as tight as `floor`.
    fn operation(&mut self, floor: u8) -> Result<Node, ExpressionError> {
        let mut left = self.prefixed()?;
        while let Some(Token::Operator(operator)) = self.peek().cloned() {
            let strength = strength(operator);
            if strength < floor {
                break;
            }
            let offset = self.offset();
            self.next += 1;
            let right = self.operation(strength + 1)?;
            left = binary(offset, operator, left, right)?;
        }
        Ok(left)
    }

    /// `!x`, `-x`, repeated, or a primary.
    fn prefixed(&mut self) -> Result<Node, ExpressionError> {
        let offset = self.offset();
        let minus = Token::Operator(Operator::Subtract);
        if self.take(&Token::Not) {
            let inner = self.deeper(Parser::prefixed)?;
            expect_kind(&inner, Type::Bool)?;
            return Ok(Node { offset, kind: Type::Bool, work: Work::Not(Box::new(inner)) });
        }
        if self.take(&minus) {
            let inner = self.deeper(Parser::prefixed)?;
            expect_number(&inner)?;
            return Ok(Node { offset, kind: inner.kind, work: Work::Negate(Box::new(inner)) });
        }
        self.primary()
    }

    fn primary(&mut self) -> Result<Node, ExpressionError> {
        let offset = self.offset();
        let node = |kind, work| Ok(Node { offset, kind, work });
        let token = self.peek().cloned();
        match token {
            Some(Token::Int(value)) => self.consumed(node(Type::Int, Work::Int(value))),
            Some(Token::Double(value)) => self.consumed(node(Type::Double, Work::Double(value))),
            Some(Token::Name(name)) => {
                self.next += 1;
                self.named(offset, &name)
            }
            Some(Token::Open) => {
                self.next += 1;
                let inner = self.expression()?;
                self.expect(&Token::Close, "`)` was expected")?;
                Ok(inner)
            }
            _ => Err(self.error("a number, a variable, a function or `(` was expected")),
        }
    }

    fn consumed<T>(&mut self, value: T) -> T {
        self.next += 1;
        value
    }

    /// A literal, variable or call; the name itself has been read.
    fn named(&mut self, offset: usize, name: &str) -> Result<Node, ExpressionError> {
        if self.take(&Token::Open) {
            return self.call(offset, name);
        }
        let (kind, work) = match name {
            "true" => (Type::Bool, Work::Bool(true)),
            "false" => (Type::Bool, Work::Bool(false)),
            "default_enis" => (Type::Int, Work::Variable(Variable::DefaultEnis)),
            "ips_per_eni" => (Type::Int, Work::Variable(Variable::IpsPerEni)),
            "max_pods" => (Type::Int, Work::Variable(Variable::MaxPods)),
            _ => {
                let known = "unknown name; the variables are default_enis, ips_per_eni, max_pods";
                return Err(ExpressionError::new(offset, known));
            }
        };
        Ok(Node { offset, kind, work })
    }

    fn call(&mut self, offset: usize, name: &str) -> Result<Node, ExpressionError> {
        let arguments = self.arguments()?;
        match (name, self.allow_min_max) {
            ("int", _) => conversion(offset, Type::Int, arguments),
            ("double", _) => conversion(offset, Type::Double, arguments),
            ("min", true) => extreme(offset, Extreme::Min, arguments),
            ("max", true) => extreme(offset, Extreme::Max, arguments),
            ("min" | "max", false) => {
                Err(ExpressionError::new(offset, "min and max exist only in tenon.dev documents"))
            }
            (_, true) => {
                let known = "unknown function; there are int, double, min and max";
                Err(ExpressionError::new(offset, known))
            }
            (_, false) => {
                Err(ExpressionError::new(offset, "unknown function; there are int and double"))
            }
        }
    }

    /// One or more arguments and the closing parenthesis.
    fn arguments(&mut self) -> Result<Vec<Node>, ExpressionError> {
        let mut arguments = vec![self.expression()?];
        while self.take(&Token::Comma) {
            arguments.push(self.expression()?);
        }
        self.expect(&Token::Close, "`,` or `)` was expected")?;
        Ok(arguments)
    }

    fn deeper(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<Node, ExpressionError>,
    ) -> Result<Node, ExpressionError> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(&format!("nested deeper than {MAX_DEPTH} levels")));
        }
        self.depth += 1;
        let node = inner(self);
        self.depth -= 1;
        node
    }
}

/// How tight an operator binds; higher is tighter.
fn strength(operator: Operator) -> u8 {
    use Operator::*;
    match operator {
        Or => 0,
        And => 1,
        Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual => 2,
        Add | Subtract => 3,
        Multiply | Divide | Remainder => 4,
    }
}

fn binary(
    offset: usize,
    operator: Operator,
    left: Node,
    right: Node,
) -> Result<Node, ExpressionError> {
    use Operator::*;
    let kind = match operator {
        Or | And => {
            expect_kind(&left, Type::Bool)?;
            expect_kind(&right, Type::Bool)?;
            Type::Bool
        }
        Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual => {
            expect_same(offset, &left, &right)?;
            Type::Bool
        }
        Remainder => {
            expect_kind(&left, Type::Int)?;
            expect_kind(&right, Type::Int)?;
            Type::Int
        }
        Add | Subtract | Multiply | Divide => {
            expect_number(&left)?;
            expect_same(offset, &left, &right)?;
            left.kind
        }
    };
    let work = Work::Binary(operator, Box::new(left), Box::new(right));
    Ok(Node { offset, kind, work })
}

fn conditional(
    offset: usize,
    condition: Node,
    then: Node,
    otherwise: Node,
) -> Result<Node, ExpressionError> {
    expect_kind(&condition, Type::Bool)?;
    expect_same(offset, &then, &otherwise)?;
    let kind = then.kind;
    Ok(Node { offset, kind, work: Work::If(Box::new([condition, then, otherwise])) })
}

fn conversion(offset: usize, to: Type, mut arguments: Vec<Node>) -> Result<Node, ExpressionError> {
    let (Some(inner), true) = (arguments.pop(), arguments.is_empty()) else {
        return Err(ExpressionError::new(offset, "the conversion takes one argument"));
    };
    expect_number(&inner)?;
    let inner = Box::new(inner);
    let work = if to == Type::Int { Work::ToInt(inner) } else { Work::ToDouble(inner) };
    Ok(Node { offset, kind: to, work })
}

fn extreme(offset: usize, which: Extreme, arguments: Vec<Node>) -> Result<Node, ExpressionError> {
    let [first, rest @ ..] = arguments.as_slice() else {
        return Err(ExpressionError::new(offset, "min and max take two arguments or more"));
    };
    if rest.is_empty() {
        return Err(ExpressionError::new(offset, "min and max take two arguments or more"));
    }
    expect_number(first)?;
    rest.iter().try_for_each(|node| expect_same(node.offset, first, node))?;
    let kind = first.kind;
    Ok(Node { offset, kind, work: Work::Pick(which, arguments) })
}

fn expect_kind(node: &Node, wanted: Type) -> Result<(), ExpressionError> {
    if node.kind == wanted {
        return Ok(());
    }
    let message = format!("this is {}, and {} is needed", node.kind.name(), wanted.name());
    Err(ExpressionError::new(node.offset, message))
}

fn expect_number(node: &Node) -> Result<(), ExpressionError> {
    match node.kind {
        Type::Bool => {
            Err(ExpressionError::new(node.offset, "this is a boolean, and a number is needed"))
        }
        Type::Int | Type::Double => Ok(()),
    }
}

fn expect_same(offset: usize, left: &Node, right: &Node) -> Result<(), ExpressionError> {
    if left.kind == right.kind {
        return Ok(());
    }
    let (left, right) = (left.kind.name(), right.kind.name());
    let message = format!("{left} and {right} do not mix; convert one with int() or double()");
    Err(ExpressionError::new(offset, message))
}
