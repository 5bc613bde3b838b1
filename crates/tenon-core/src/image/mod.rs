//! Node images as data: profiles and a config give wishes, wishes merge into one description, and
//! the same description is planned, made true and checked.
//!
//! ```text
//! accounts   lines of passwd, group and shadow
//! act        one thing that is made true, and looked at
//! audit      rules of the audit daemon, for the calls that a machine has
//! cached     container images that the image carries
//! catalogue  rules of benchmarks, and what answers each
//! check      what verify says
//! component  programs whose version somebody chooses
//! config     what the user writes: `kind: NodeImage`
//! describe   plans and profiles in words
//! edit       lines in files that others own
//! effective  what holds when many files speak of one thing
//! exception  decisions that somebody took, and their limits
//! family     what differs between distributions
//! form       what a path, a name or a word of a resource looks like
//! item       resources, lowered to what is done to a root
//! key        fingerprints of the keys of repositories
//! kind       the kinds of resources and their fields
//! resource   one wish, and whose it is
//! manifest   what is in an image; two of them compared
//! merge      many wishes into one description; conflicts
//! need       what Kubernetes needs, held against what would break it
//! origin     where the content of a root came from
//! packer     templates for Packer
//! packages   what is installed; command lines that change it
//! plan       all of it: what is wanted into a plan
//! profile    files of wishes
//! root_facts what a root is, before anything is done to it
//! sbom       the manifest as SPDX and CycloneDX
//! secrets    what must not be in an image, known by its bytes
//! ```

pub mod accounts;
pub mod act;
mod audit;
pub mod cached;
pub mod catalogue;
pub mod check;
pub mod component;
pub mod config;
pub mod describe;
pub mod edit;
pub mod effective;
pub mod exception;
pub mod family;
pub mod form;
pub mod item;
pub mod key;
pub mod kind;
pub mod manifest;
pub mod merge;
pub mod need;
pub mod origin;
pub mod packages;
pub mod packer;
pub mod plan;
pub mod profile;
pub mod resource;
pub mod root_facts;
pub mod sbom;
pub mod secrets;
