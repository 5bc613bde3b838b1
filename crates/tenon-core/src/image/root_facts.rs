//! What a root is, before anything is done to it: its distribution, its architecture, its
//! packages.

use super::family::{FAMILIES, Family};
use super::packages::Installed;
use super::plan::ImagePlan;
use crate::codes::image::{WRONG_ARCHITECTURE, WRONG_FAMILY};
use crate::problem::Problem;

#[derive(Debug, Clone, PartialEq)]
pub struct RootFacts {
    pub family: &'static Family,
    /// `bookworm`, `24.04`, `2023.8`
    pub release: String,
    /// `x86_64` or `aarch64`
    pub architecture: String,
    pub packages: Installed,
}

/// A value of os-release, without its quotes.
fn os_value<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    line.map(|value| value.trim().trim_matches(['"', '\'']))
}

/// The family and the release that an os-release names. Debian calls releases by their word.
pub fn distribution(os_release: &str) -> Option<(&'static Family, String)> {
    let id = os_value(os_release, "ID")?;
    let family = FAMILIES.iter().find(|family| family.ids.contains(&id))?;
    let word = os_value(os_release, "VERSION_CODENAME").filter(|_| family.name == "debian");
    let release = word.or_else(|| os_value(os_release, "VERSION_ID"))?;
    Some((family, release.to_owned()))
}

/// The release as closely as the packages know it: os-release of Amazon Linux says `2023` alone.
pub fn closer(release: String, packages: &Installed) -> String {
    let version = packages.get("system-release").map_or("", |package| package.version.as_str());
    let minor = version.strip_prefix(&release).and_then(|rest| rest.strip_prefix('.'));
    let digits = minor.and_then(|rest| rest.split(['.', '-']).next()).filter(|d| !d.is_empty());
    match digits {
        Some(digits) => format!("{release}.{digits}"),
        None => release,
    }
}

/// True if one release tells the other, or tells it more closely: `2023.9` is of `2023`.
pub fn is_of(one: &str, other: &str) -> bool {
    one.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The architecture that the head of an executable names.
pub fn architecture(head: &[u8]) -> Option<&'static str> {
    let is_elf = head.starts_with(b"\x7fELF\x02\x01");
    let machine = head.get(18..20).filter(|_| is_elf)?;
    match u16::from_le_bytes([machine[0], machine[1]]) {
        62 => Some("x86_64"),
        183 => Some("aarch64"),
        _ => None,
    }
}

impl RootFacts {
    /// Why this root cannot become that image. Either may know the release more closely.
    pub fn refuses(&self, plan: &ImagePlan) -> Option<Problem> {
        let same_release =
            is_of(&plan.release, &self.release) || is_of(&self.release, &plan.release);
        if self.family != plan.family || !same_release {
            let what = format!(
                "the root is {} {}, the plan is for {} {}",
                self.family.name, self.release, plan.family.name, plan.release
            );
            return Some(Problem::new(&WRONG_FAMILY, what));
        }
        let what = format!(
            "the programs of the root are for {}, the plan is for {}",
            self.architecture, plan.architecture
        );
        let other = self.architecture != plan.architecture;
        other.then(|| Problem::new(&WRONG_ARCHITECTURE, what))
    }
}

#[cfg(test)]
mod tests {
    use super::super::packages::Package;
    use super::*;

    #[test]
    fn a_root_says_what_it_is() {
        let debian = "ID=debian\nVERSION_ID=\"12\"\nVERSION_CODENAME=bookworm\n";
        let (family, release) = distribution(debian).unwrap();
        assert_eq!((family.name, release.as_str()), ("debian", "bookworm"));
        let amazon = "ID=\"amzn\"\nVERSION_ID=\"2023\"\n";
        assert_eq!(distribution(amazon).unwrap().1, "2023");
        let ubuntu = "ID=ubuntu\nVERSION_ID=\"24.04\"\nVERSION_CODENAME=noble\n";
        assert_eq!(distribution(ubuntu).unwrap().1, "24.04");
        assert_eq!(distribution("ID=fedora\nVERSION_ID=42\n"), None);
    }

    #[test]
    fn packages_know_the_release_more_closely() {
        let with = |version: &str| {
            let package = Package { version: version.into(), ..Package::default() };
            Installed::from([("system-release".to_owned(), package)])
        };
        for (version, told) in [
            ("2023.8.20250721-0.amzn2023", "2023.8"),
            ("2023-1", "2023"),
            ("20239.1", "2023"),
            ("2024.1", "2023"),
        ] {
            assert_eq!(closer("2023".into(), &with(version)), told, "{version}");
        }
        assert_eq!(closer("bookworm".into(), &Installed::new()), "bookworm");
        assert!(is_of("2023.9", "2023") && is_of("2023", "2023"));
        assert!(!is_of("2023", "2023.9") && !is_of("20239", "2023") && !is_of("2023.9", "2023.8"));
    }

    #[test]
    fn executables_tell_their_machine() {
        let head =
            |machine: u8| [b"\x7fELF\x02\x01".to_vec(), vec![0; 12], vec![machine, 0]].concat();
        assert_eq!(architecture(&head(62)), Some("x86_64"));
        assert_eq!(architecture(&head(183)), Some("aarch64"));
        assert_eq!(architecture(&head(3)), None);
        assert_eq!(architecture(b"#!/bin/sh\n"), None);
    }
}
