//! Node images as data: profiles and a config give wishes, wishes merge into one description, and
//! the same description is planned, made true and checked.
//!
//! ```text
//! family     what differs between distributions
//! item       resources, lowered to what is done to a root
//! kind       the kinds of resources and their fields
//! resource   one wish, and whose it is
//! merge      many wishes into one description; conflicts and exceptions
//! need       what Kubernetes needs, held against what would break it
//! plan       all of it: what is wanted into a plan
//! profile    files of wishes
//! ```

pub mod family;
pub mod item;
pub mod kind;
pub mod merge;
pub mod need;
pub mod plan;
pub mod profile;
pub mod resource;
