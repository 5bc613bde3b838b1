//! Values as literals of the languages that user data is written in.
//!
//! Each writer gives text in which the value is exactly one token and means itself; what it
//! cannot write so it refuses.

pub mod env;
pub mod powershell;
pub mod shell;
pub mod unit;

/// True for text without control characters: fit for every one-line sink.
pub fn is_one_line(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

/// True for text that may have several lines: tab and newline are its only control characters.
pub fn is_text(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() && c != '\n' && c != '\t')
}
