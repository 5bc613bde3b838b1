//! A value that must not show up in messages.

use std::fmt;

/// Parts of a name that make its value a secret, in flags and free-form objects. Headers carry
/// credentials.
pub const NAME_PARTS: &[&str] =
    &["token", "secret", "password", "key", "credential", "authorization", "header"];

/// Text that prints as `[redacted]`. The one way to its content is [`Secret::expose`].
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// The content, for the file or request that is its destination.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("[redacted]")
    }
}
