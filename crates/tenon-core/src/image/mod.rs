//! Node images as data: profiles and a config give wishes, wishes merge into one description, and
//! the same description is planned, made true and checked.
//!
//! ```text
//! kind       the kinds of resources and their fields
//! resource   one wish, and whose it is
//! merge      many wishes into one description; conflicts and exceptions
//! ```

pub mod kind;
pub mod merge;
pub mod resource;
