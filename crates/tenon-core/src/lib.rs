//! The pure middle of Tenon: config and facts in, plan out.
//!
//! ```text
//! checks    whether a node is what it was meant to be: drift, benchmarks, findings
//! collect   what a log bundle holds
//! bootstrap_token  tokens that machines join with, and the proof that they make possible
//! config    what the user asked for: documents, merge, validation, Config
//! control_plane  a cluster's own programs: static pods, objects, add-ons
//! decode    bytes → parts: base64, gzip and MIME removed, within limits
//! doctor    why a node is not Ready: evidence, causes, ranking
//! expression  the language of maxPodsExpression
//! facts     what the machine is
//! fleet     what a cloud API does to many nodes that start at once
//! hex       bytes and hashes in hexadecimal
//! image     node images: profiles, conflicts, what to write
//! kubeconfig  how a client reaches an API server, read and written
//! kube_version  every version gate, named
//! pki       keys and certificates of a control plane, as data
//! plan      (Config, Facts) → Plan: every file, unit and disk as data
//! max_pods  instance table and pod formulas
//! nearest   the name somebody probably meant
//! problem   the one shape of bad news; codes has a page for each kind of it
//! redact    secrets taken out of text that leaves the node
//! secret    text that does not print
//! stages    the staged first boot: its config, units, state and what each stage decides
//! toml_text  TOML in one canonical form
//! status    how far a node has come
//! timeline  where the time of a boot went
//! toml_text  TOML in one canonical form
//! tree      a document as written, with places
//! userdata  what an instance is given at launch, written and read back
//! words     a line into words, as a shell would
//! xml       text that stays text in XML
//! yaml      text → trees, and back
//! ```
//!
//! No room here touches files, clocks, the network, processes or the environment; the crate's
//! manifest and `clippy.toml` hold that rule.

pub mod bootstrap_token;
pub mod checks;
pub mod codes;
pub mod collect;
pub mod config;
pub mod control_plane;
pub mod decode;
pub mod doctor;
pub mod expression;
pub mod facts;
pub mod fleet;
pub mod glob;
pub mod hex;
pub mod image;
pub mod kube_version;
pub mod kubeconfig;
pub mod max_pods;
pub mod nearest;
pub mod pki;
pub mod plan;
pub mod problem;
pub mod redact;
pub mod secret;
pub mod stages;
pub mod status;
pub mod timeline;
pub mod toml_text;
pub mod tree;
pub mod userdata;
pub mod words;
pub mod xml;
pub mod yaml;
