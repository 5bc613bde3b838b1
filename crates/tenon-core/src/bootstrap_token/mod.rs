//! Bootstrap tokens: what a machine joins a cluster with, and the proof that it makes possible.
//!
//! ```text
//! secret     the token as a Secret of the cluster, written and read back
//! discovery  cluster-info: signed with the token, pinned by the CA's hash
//! ```

pub mod discovery;
pub mod secret;

use std::fmt;

use crate::codes::cluster::BAD_TOKEN;
use crate::problem::Problem;
use crate::secret::Secret;

pub const ID_LENGTH: usize = 6;
pub const SECRET_LENGTH: usize = 16;

/// `[a-z0-9]{6}.[a-z0-9]{16}`. The id is public, the rest is not.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    pub id: String,
    pub secret: Secret,
}

impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.[redacted]", self.id)
    }
}

impl Token {
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let halves = text.trim().split_once('.');
        let fits = |text: &str, length: usize| {
            text.len() == length
                && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        match halves {
            Some((id, secret)) if fits(id, ID_LENGTH) && fits(secret, SECRET_LENGTH) => {
                Ok(Token { id: id.to_owned(), secret: Secret::new(secret) })
            }
            _ => Err(Problem::new(&BAD_TOKEN, "that is not a bootstrap token")),
        }
    }

    /// The whole token, for the file or request that is its destination.
    pub fn expose(&self) -> String {
        format!("{}.{}", self.id, self.secret.expose())
    }
}

/// True for the public half of a token.
pub fn is_id(text: &str) -> bool {
    text.len() == ID_LENGTH
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_one_form_and_do_not_print() {
        let token = Token::parse(" abcdef.0123456789abcdef\n").unwrap();
        assert_eq!(token.expose(), "abcdef.0123456789abcdef");
        assert_eq!(format!("{token:?}"), "abcdef.[redacted]");
        for wrong in [
            "",
            "abcdef",
            "abcdef.0123456789abcde",
            "ABCDEF.0123456789abcdef",
            "abcde_.0123456789abcdef",
        ] {
            let problem = Token::parse(wrong).unwrap_err();
            assert_eq!(problem.exit(), 3);
            assert!(wrong.is_empty() || !problem.render("error").contains(wrong), "{wrong}");
        }
    }
}
