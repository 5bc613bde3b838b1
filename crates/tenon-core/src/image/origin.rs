//! Where the content of a root came from, as far as the root itself can tell: who built a package,
//! which kernel starts, which version a module has, from which snapshot packages were taken.
//! What it cannot tell is not made up.

use std::collections::{BTreeMap, BTreeSet};

use super::packages::Installed;

/// Origins of packages, by name.
pub type Origins = BTreeMap<String, String>;

/// How `rpm` is asked for what [`vendors`] reads.
pub const RPM_VENDORS: &[&str] = &["rpm", "-qa", "--queryformat", "%{NAME} %{VENDOR}\\n"];

/// Reads the answer of rpm.
pub fn vendors(answer: &str) -> Origins {
    let pairs = answer.lines().filter_map(|line| line.split_once(' '));
    let known = pairs.filter(|(_, vendor)| !vendor.is_empty() && *vendor != "(none)");
    known.map(|(name, vendor)| (name.to_owned(), vendor.to_owned())).collect()
}

fn field<'t>(paragraph: &'t str, name: &str) -> Option<&'t str> {
    let line = paragraph.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.map(str::trim)
}

/// Packages that name their origin in dpkg's status file; Debian's own do not.
pub fn declared(status: &str) -> Origins {
    let pair = |paragraph: &str| {
        Some((field(paragraph, "Package")?.to_owned(), field(paragraph, "Origin")?.to_owned()))
    };
    status.split("\n\n").filter_map(pair).collect()
}

/// `Debian/bookworm-security` of the Release file of a repository.
pub fn repository(release: &str) -> Option<String> {
    let of = field(release, "Codename").or_else(|| field(release, "Suite"))?;
    Some(format!("{}/{of}", field(release, "Origin")?))
}

/// The installed packages that an index of a repository offers in just this version.
pub fn offered<'t>(index: &'t str, installed: &Installed) -> BTreeSet<&'t str> {
    let ours = |paragraph: &'t str| {
        let name = field(paragraph, "Package")?;
        let version = &installed.get(name)?.version;
        (field(paragraph, "Version")? == version).then_some(name)
    };
    index.split("\n\n").filter_map(ours).collect()
}

/// The snapshot that all sources of apt name: `20251101T000000Z`. None if they name none, or
/// several.
pub fn apt_snapshot(sources: &str) -> Option<String> {
    let lines = sources.lines().filter(|line| !line.trim_start().starts_with('#'));
    let is_time = |word: &&str| {
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        word.strip_suffix('Z').and_then(|word| word.split_once('T')).is_some_and(|(day, time)| {
            day.len() == 8 && digits(day) && time.len() == 6 && digits(time)
        })
    };
    let words = lines.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric()));
    let times: BTreeSet<&str> = words.filter(is_time).collect();
    match times.len() {
        1 => times.first().map(|time| (*time).to_owned()),
        _ => None,
    }
}

/// The release of Amazon Linux that packages are taken from: what dnf is told, or what the root
/// was made of.
pub fn dnf_snapshot(releasever: Option<&str>, installed: &Installed) -> Option<String> {
    let told = releasever.map(str::trim).filter(|told| told.starts_with("20")).map(str::to_owned);
    told.or_else(|| {
        let version = &installed.get("system-release")?.version;
        let version = version.split_once(':').map_or(version.as_str(), |(_, rest)| rest);
        version.split('-').next().map(str::to_owned)
    })
}

/// The kernel that starts: the one that a link or the boot loader names, or the only one.
pub fn kernel(link: Option<&str>, grubenv: &str, kernels: &[String]) -> Option<String> {
    let linked = link.and_then(|link| link.strip_prefix("vmlinuz-"));
    let saved = grubenv.lines().find_map(|line| line.strip_prefix("saved_entry="));
    let named = |kernel: &&String| {
        linked == Some(kernel.as_str())
            || (linked.is_none()
                && saved.is_some_and(|entry| entry.trim().ends_with(kernel.as_str())))
    };
    match kernels {
        [only] => Some(only.clone()),
        _ => kernels.iter().find(named).cloned(),
    }
}

/// The version that a kernel module says of itself.
pub fn module_version(module: &[u8]) -> Option<String> {
    const WORD: &[u8] = b"\0version=";
    let at = module.windows(WORD.len()).position(|window| window == WORD)? + WORD.len();
    let value = module.get(at..)?.split(|byte| *byte == 0).next()?;
    String::from_utf8(value.to_vec()).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::packages::Package;
    use super::*;

    fn installed(name: &str, version: &str) -> Installed {
        let package = Package { version: version.into(), ..Package::default() };
        [(name.to_owned(), package)].into()
    }

    #[test]
    fn packages_tell_who_made_them() {
        let found = vendors("bash Amazon Linux\ngpg-pubkey (none)\nodd \n");
        assert_eq!(found, [("bash".to_owned(), "Amazon Linux".to_owned())].into());
        let status = "Package: bash\nVersion: 1\n\nPackage: agent\nOrigin: Some Vendor\n";
        assert_eq!(declared(status), [("agent".to_owned(), "Some Vendor".to_owned())].into());
    }

    #[test]
    fn a_repository_vouches_for_the_version_it_offers() {
        let release = "Origin: Debian\nLabel: Debian-Security\nSuite: stable-security\nCodename: bookworm-security\n";
        assert_eq!(repository(release).unwrap(), "Debian/bookworm-security");
        assert_eq!(repository("Origin: Site\nSuite: stable\n").unwrap(), "Site/stable");
        assert_eq!(repository("Suite: stable\n"), None);
        let index = "Package: runc\nVersion: 1.1.5\n\nPackage: bash\nVersion: 5\n";
        assert!(offered(index, &installed("runc", "1.1.5")).contains("runc"));
        assert!(offered(index, &installed("runc", "1.1.6")).is_empty());
    }

    #[test]
    fn a_snapshot_is_told_only_where_there_is_one() {
        let one = "deb http://snapshot.debian.org/archive/debian/20251101T000000Z/ bookworm main\n";
        assert_eq!(apt_snapshot(one).unwrap(), "20251101T000000Z");
        assert_eq!(apt_snapshot("Snapshot: 20240301T030400Z\n").unwrap(), "20240301T030400Z");
        assert_eq!(apt_snapshot("deb http://deb.debian.org/debian bookworm main\n"), None);
        assert_eq!(apt_snapshot(&format!("{one}Snapshot: 20240301T030400Z\n")), None);
        assert_eq!(apt_snapshot(&format!("# {one}")), None);
        let base = installed("system-release", "0:2023.9.20251110-0.amzn2023");
        assert_eq!(dnf_snapshot(None, &base).unwrap(), "2023.9.20251110");
        assert_eq!(dnf_snapshot(Some("latest\n"), &base).unwrap(), "2023.9.20251110");
        assert_eq!(dnf_snapshot(Some("2023.8.20250808\n"), &base).unwrap(), "2023.8.20250808");
        assert_eq!(dnf_snapshot(None, &Installed::new()), None);
    }

    #[test]
    fn of_several_kernels_one_must_be_named() {
        let two = ["6.1.0-39".to_owned(), "6.1.0-40".to_owned()];
        for (link, grubenv, kernels, told) in [
            (None, "", &two[..1], Some("6.1.0-39")),
            (Some("vmlinuz-6.1.0-40"), "", &two[..], Some("6.1.0-40")),
            (None, "saved_entry=abc-6.1.0-39\n", &two[..], Some("6.1.0-39")),
            (Some("vmlinuz-6.1.0-40"), "saved_entry=abc-6.1.0-39\n", &two[..], Some("6.1.0-40")),
            (None, "", &two[..], None),
            (Some("vmlinuz-5"), "", &two[..], None),
            (None, "", &[], None),
        ] {
            assert_eq!(kernel(link, grubenv, kernels).as_deref(), told, "{link:?} {grubenv}");
        }
    }

    #[test]
    fn a_module_says_its_version() {
        let module = b"\x7fELF\0license=NVIDIA\0version=570.133.20\0srcversion=ABC\0vermagic=6.1\0";
        assert_eq!(module_version(module).unwrap(), "570.133.20");
        assert_eq!(module_version(b"\0srcversion=ABC\0"), None);
    }
}
