//! The catalogue of error codes: one page per code, readable offline with `tenon explain CODE`.
//!
//! A code is `TN`, two digits of the exit code it leads to, and a serial of three digits. Codes
//! are part of the stable interface: never reused, never renumbered. Each room keeps its own
//! file of pages, so that the pages stand next to their neighbours in meaning.

use std::fmt;

pub mod checks;
pub mod cluster;
pub mod config;
pub mod control_plane;
pub mod decode;
pub mod doctor;
pub mod facts;
pub mod host;
pub mod image;
pub mod inspect;
pub mod logs;
pub mod max_pods;
pub mod pki;
pub mod plan;
pub mod stages;
pub mod timeline;
pub mod usage;
pub mod userdata;

/// What is known about one kind of problem, whatever the instance of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Page {
    /// `TN03014`
    pub code: &'static str,
    /// `unknown-field`: the same thing as a word, for people and for `grep`.
    pub slug: &'static str,
    /// Why this is a problem, when the instance has nothing better to say.
    pub why: &'static str,
    /// What to do about it, when the instance has nothing better to say.
    pub fix: &'static str,
}

impl Page {
    /// The exit code that this problem leads to: the two digits after `TN`. The two signals,
    /// whose codes have three digits, are written `TN30…` (130) and `TN43…` (143).
    pub fn exit(&self) -> u8 {
        let digits = self.code.as_bytes();
        match (digits[2] - b'0') * 10 + (digits[3] - b'0') {
            30 => 130,
            43 => 143,
            exit => exit,
        }
    }
}

impl fmt::Display for Page {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.code)
    }
}

/// Declares the pages of one room and its list `ALL`.
macro_rules! pages {
    ($($name:ident = $code:literal $slug:literal, why: $why:literal, fix: $fix:literal;)*) => {
        $(pub static $name: $crate::codes::Page = $crate::codes::Page {
            code: $code, slug: $slug, why: $why, fix: $fix,
        };)*
        /// Every page of this room.
        pub static ALL: &[&$crate::codes::Page] = &[$(&$name),*];
    };
}
pub(crate) use pages;

/// Every page of the catalogue, in order of its code.
pub fn all() -> Vec<&'static Page> {
    let rooms = [
        cluster::ALL,
        checks::ALL,
        config::ALL,
        control_plane::ALL,
        decode::ALL,
        doctor::ALL,
        facts::ALL,
        host::ALL,
        image::ALL,
        inspect::ALL,
        logs::ALL,
        max_pods::ALL,
        pki::ALL,
        plan::ALL,
        timeline::ALL,
        stages::ALL,
        usage::ALL,
        userdata::ALL,
    ];
    let mut pages: Vec<_> = rooms.into_iter().flatten().copied().collect();
    pages.sort_by_key(|page| page.code);
    pages
}

/// Finds a page by its code (`TN03014`, any letter case) or its slug (`unknown-field`).
pub fn find(name: &str) -> Option<&'static Page> {
    all().into_iter().find(|page| page.code.eq_ignore_ascii_case(name) || page.slug == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_whole_and_unique() {
        let pages = all();
        for page in &pages {
            let digits = page.code.strip_prefix("TN").unwrap();
            assert!(digits.len() == 5 && digits.bytes().all(|b| b.is_ascii_digit()), "{page}");
            assert!(!page.why.is_empty() && !page.fix.is_empty(), "{page}");
            assert!(!page.fix.contains("failed to"), "{page}");
        }
        for pair in pages.windows(2) {
            assert_ne!(pair[0].code, pair[1].code);
        }
        let mut slugs: Vec<_> = pages.iter().map(|page| page.slug).collect();
        slugs.sort_unstable();
        slugs.windows(2).for_each(|pair| assert_ne!(pair[0], pair[1]));
    }

    #[test]
    fn the_exit_code_is_in_the_code() {
        assert_eq!(find("tn03001").unwrap().exit(), 3);
        assert_eq!(find("TN64001").unwrap().exit(), 64);
    }
}
