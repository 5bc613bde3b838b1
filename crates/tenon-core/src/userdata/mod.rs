//! User data: what an instance is given at launch, written and read back.

pub mod inspect;
