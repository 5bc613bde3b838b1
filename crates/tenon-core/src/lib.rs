//! The pure middle of Tenon: config and facts in, plan out.
//!
//! ```text
//! config    what the user asked for: documents, merge, validation, Config
//! decode    bytes → parts: base64, gzip and MIME removed, within limits
//! expression  the language of maxPodsExpression
//! facts     what the machine is
//! image     node images: profiles, conflicts, what to write
//! kube_version  every version gate, named
//! plan      (Config, Facts) → Plan: every file, unit and disk as data
//! max_pods  instance table and pod formulas
//! nearest   the name somebody probably meant
//! problem   the one shape of bad news; codes has a page for each kind of it
//! secret    text that does not print
//! toml_text  TOML in one canonical form
//! status    how far a node has come
//! tree      a document as written, with places
//! userdata  what an instance is given at launch, written and read back
//! words     a line into words, as a shell would
//! yaml      text → trees, and back
//! ```
//!
//! No room here touches files, clocks, the network, processes or the environment; the crate's
//! manifest and `clippy.toml` hold that rule.

pub mod codes;
pub mod config;
pub mod decode;
pub mod expression;
pub mod facts;
pub mod image;
pub mod kube_version;
pub mod max_pods;
pub mod nearest;
pub mod plan;
pub mod problem;
pub mod secret;
pub mod status;
pub mod toml_text;
pub mod tree;
pub mod userdata;
pub mod words;
pub mod yaml;
