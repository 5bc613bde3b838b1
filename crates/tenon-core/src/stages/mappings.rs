//! Which runtime suits which Kubernetes, and which image brings it.
//!
//! Two documents: `RuntimeMappings` names versions by preference, `ExtensionCatalogue` names
//! images. Lists of versions hold prefixes: `2.1` means the highest `2.1.x` there is.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::codes::stages as pages;
use crate::problem::{Place, Problem};
use crate::tree::Dialect;
use crate::yaml;

/// The mappings that an Ignition config carries unless it is given others.
pub const DEFAULT: &str = "apiVersion: tenon.dev/v1alpha1
kind: RuntimeMappings
kubernetes:
  \"1.29\": { containerd: [\"1.7\", \"1.6\"] }
  \"1.30\": { containerd: [\"1.7\", \"1.6\"] }
  \"1.31\": { containerd: [\"1.7\", \"1.6\"] }
  \"1.32\": { containerd: [\"2.0\", \"1.7\", \"1.6\"] }
  \"1.33\": { containerd: [\"2.0\", \"2.1\", \"1.7\", \"1.6\"] }
  \"1.34\": { containerd: [\"2.1\", \"2.0\", \"1.7\", \"1.6\"] }
  \"1.35\": { containerd: [\"2.1\", \"2.2\", \"2.0\", \"1.7\", \"1.6\"] }
  \"1.36\": { containerd: [\"2.2\", \"2.1\", \"2.0\", \"1.7\", \"1.6\"] }
";

/// Component to version prefixes, in order of preference.
pub type Wanted = BTreeMap<String, Vec<String>>;

/// The operating system that an image is chosen for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Os {
    /// `ID` of os-release.
    pub id: String,
    /// `VERSION_ID` of os-release.
    pub version: String,
    /// systemd's word: `x86-64`, `arm64`.
    pub architecture: String,
}

/// One image of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    pub name: String,
    pub version: String,
    pub architecture: String,
    /// `_any`, or the `ID` it is built for.
    pub os_id: String,
    /// First and first no longer fitting version of that OS; empty: no bound.
    pub os_from: String,
    pub os_until: String,
    pub url: String,
    pub size: u64,
    /// 64 hexadecimal digits.
    pub sha256: String,
}

/// What a Kubernetes version wants, by its minor.
pub fn wanted(text: &str, source: &str, kubernetes: &str) -> Result<Wanted, Problem> {
    let document = document(text, source, "RuntimeMappings")?;
    let wrong = |what: &str| bad(source, "kubernetes", what);
    let rows = document.get("kubernetes").and_then(Value::as_object);
    let rows = rows.ok_or_else(|| wrong("lacks the map `kubernetes`"))?;
    let minor = minor(kubernetes);
    let row = rows.get(&minor).ok_or_else(|| {
        let known: Vec<&str> = rows.keys().map(String::as_str).collect();
        let what = format!("no runtime is named for Kubernetes {minor}");
        Problem::new(&pages::NO_SUCH_MINOR, what)
            .at(Place { source: source.into(), ..Place::default() })
            .cause(format!("known minors: {}", known.join(", ")))
    })?;
    let row = row.as_object().ok_or_else(|| wrong("has a minor that is no map"))?;
    row.iter()
        .map(|(name, list)| {
            let list = list.as_array().map(|list| list.iter().filter_map(text_of).collect());
            let list: Vec<String> = list.unwrap_or_default();
            match list.iter().all(|version| is_version(version)) && !list.is_empty() {
                true => Ok((name.clone(), list)),
                false => Err(wrong("has a list that does not hold version prefixes")),
            }
        })
        .collect()
}

/// Reads the catalogue, checked whole.
pub fn catalogue(text: &str, source: &str) -> Result<Vec<Image>, Problem> {
    let document = document(text, source, "ExtensionCatalogue")?;
    let rows = document.get("images").and_then(Value::as_array);
    let rows = rows.ok_or_else(|| bad(source, "images", "lacks the list `images`"))?;
    rows.iter()
        .enumerate()
        .map(|(index, row)| {
            let path = format!("images[{index}]");
            image(row).map_err(|what| bad(source, &path, what))
        })
        .collect()
}

fn image(row: &Value) -> Result<Image, &'static str> {
    let text = |pointer: &str| row.pointer(pointer).and_then(text_of).unwrap_or_default();
    let image = Image {
        name: text("/name"),
        version: text("/version"),
        architecture: text("/architecture"),
        os_id: text("/os/id"),
        os_from: text("/os/from"),
        os_until: text("/os/until"),
        url: text("/url"),
        size: row.get("size").and_then(Value::as_u64).unwrap_or_default(),
        sha256: text("/sha256"),
    };
    let name = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    let hex = image.sha256.len() == 64 && image.sha256.bytes().all(|b| b.is_ascii_hexdigit());
    let loopback = image.url.starts_with("http://127.0.0.1:");
    match () {
        () if !name(&image.name) => Err("has no name of lower-case letters, digits and `-`"),
        () if !is_version(&image.version) => Err("has no version"),
        () if !name(&image.architecture) => Err("has no architecture"),
        () if image.os_id.is_empty() => Err("has no os.id"),
        () if !hex => Err("has no sha256 of 64 digits"),
        () if image.size == 0 => Err("has no size"),
        () if !image.url.starts_with("https://")
            && !image.url.starts_with("file:/")
            && !loopback =>
        {
            Err("has no https or file address")
        }
        () => Ok(image),
    }
}

/// The first wanted version that an image brings for this OS; the highest patch of it.
pub fn select<'a>(
    prefixes: &[String],
    images: &'a [Image],
    name: &str,
    os: &Os,
) -> Option<&'a Image> {
    prefixes.iter().find_map(|prefix| {
        let fitting = images.iter().filter(|image| {
            image.name == name && has_prefix(&image.version, prefix) && fits(image, os)
        });
        fitting.max_by_key(|image| numbers(&image.version))
    })
}

/// True when an image is built for this OS and architecture.
fn fits(image: &Image, os: &Os) -> bool {
    let version = numbers(&os.version);
    let from = image.os_from.is_empty() || numbers(&image.os_from) <= version;
    let until = image.os_until.is_empty() || version < numbers(&image.os_until);
    image.architecture == os.architecture
        && (image.os_id == "_any" || (image.os_id == os.id && from && until))
}

/// A value of an os-release or extension-release text; empty when not set.
pub fn release_value(text: &str, name: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    line.unwrap_or_default().trim_matches(['"', '\'']).to_owned()
}

/// True when systemd-sysext would merge an image with this release file into the OS: any `ID`,
/// or the same one with the same level, else the same version.
pub fn release_fits(extension: &str, os: &Os, os_level: &str) -> bool {
    let value = |name: &str| release_value(extension, name);
    let same = match value("SYSEXT_LEVEL") {
        level if level.is_empty() => value("VERSION_ID") == os.version,
        level => level == os_level,
    };
    value("ID") == "_any" || (value("ID") == os.id && same)
}

/// True when one of the prefixes names this version.
pub fn is_wanted(version: &str, prefixes: &[String]) -> bool {
    prefixes.iter().any(|prefix| has_prefix(version, prefix))
}

/// `2.1` names `2.1.9` and not `2.10.0`.
fn has_prefix(version: &str, prefix: &str) -> bool {
    numbers(version).starts_with(&numbers(prefix))
}

/// `major.minor` of a version, without `v`, pre-release and build.
pub fn minor(version: &str) -> String {
    let core = version.trim_start_matches('v').split(['-', '+']).next().unwrap_or_default();
    core.split('.').take(2).collect::<Vec<_>>().join(".")
}

fn numbers(version: &str) -> Vec<u64> {
    let core = version.trim_start_matches('v').split(['-', '+', '~']).next().unwrap_or_default();
    core.split('.').map(|part| part.parse().unwrap_or_default()).collect()
}

fn is_version(text: &str) -> bool {
    !text.is_empty()
        && text.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

fn document(text: &str, source: &str, kind: &str) -> Result<Map<String, Value>, Problem> {
    let place = Place { source: source.into(), ..Place::default() };
    let trees = yaml::parse(text).map_err(|syntax| syntax.problem(&place, text))?;
    let value = trees.first().map(|tree| tree.to_json(Dialect::Yaml12));
    let Some(Value::Object(map)) = value else { return Err(bad(source, "", "is no map")) };
    match map.get("kind").and_then(Value::as_str) == Some(kind) {
        true => Ok(map),
        false => Err(bad(source, "kind", &format!("is not of kind {kind}"))),
    }
}

fn bad(source: &str, path: &str, what: &str) -> Problem {
    let place = Place { source: source.into(), path: path.into(), ..Place::default() };
    Problem::new(&pages::BAD_MAPPINGS, format!("the document {what}")).at(place)
}

fn text_of(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CATALOGUE: &str = "kind: ExtensionCatalogue
images:
  - &one {name: containerd, version: 2.1.3, architecture: x86-64, os: {id: flatcar, from: \"4000\", until: \"5000\"}, url: \"https://x/1\", size: 1, sha256: \"0000000000000000000000000000000000000000000000000000000000000000\"}
  - {name: containerd, version: 2.1.10, architecture: x86-64, os: {id: flatcar, from: \"4000\"}, url: \"https://x/2\", size: 1, sha256: \"0000000000000000000000000000000000000000000000000000000000000000\"}
  - {name: containerd, version: 2.0.9, architecture: x86-64, os: {id: _any}, url: \"https://x/3\", size: 1, sha256: \"0000000000000000000000000000000000000000000000000000000000000000\"}
  - {name: containerd, version: 2.1.11, architecture: arm64, os: {id: _any}, url: \"https://x/4\", size: 1, sha256: \"0000000000000000000000000000000000000000000000000000000000000000\"}
";

    #[test]
    fn every_supported_minor_has_its_runtimes() {
        for minor in 29..=36 {
            let wanted = wanted(DEFAULT, "built in", &format!("v1.{minor}.4-eks-1+x")).unwrap();
            assert!(!wanted["containerd"].is_empty(), "1.{minor}");
        }
        let problem = wanted(DEFAULT, "built in", "v1.99.0").unwrap_err();
        assert_eq!(problem.exit(), 3);
        assert!(problem.causes[0].contains("1.36"), "{:?}", problem.causes);
    }

    #[test]
    fn the_first_wanted_version_with_the_highest_patch_for_this_os_is_chosen() {
        let images = catalogue(CATALOGUE, "x").unwrap();
        let os = |version: &str| Os {
            id: "flatcar".into(),
            version: version.into(),
            architecture: "x86-64".into(),
        };
        let prefixes = ["2.1".to_owned(), "2.0".to_owned()];
        let url =
            |os: &Os| select(&prefixes, &images, "containerd", os).map(|image| image.url.as_str());
        assert_eq!(url(&os("4593.2.0")), Some("https://x/2"), "2.1.10 is above 2.1.3");
        assert_eq!(url(&os("3000.0.0")), Some("https://x/3"), "nothing of 2.1 for the old one");
        let other = Os { architecture: "riscv64".into(), ..os("4593.2.0") };
        assert_eq!(url(&other), None);
        assert!(has_prefix("2.1.9", "2.1") && !has_prefix("2.10.0", "2.1"));
    }

    #[test]
    fn an_extension_fits_by_id_and_level_or_version() {
        let os = Os { id: "flatcar".into(), version: "4593.2.0".into(), ..Os::default() };
        for (text, fits) in [
            ("ID=_any\n", true),
            ("ID=flatcar\nSYSEXT_LEVEL=1.0\n", true),
            ("ID=flatcar\nSYSEXT_LEVEL=2.0\n", false),
            ("ID=\"flatcar\"\nVERSION_ID='4593.2.0'\n", true),
            ("ID=flatcar\nVERSION_ID=4593.1.0\n", false),
            ("ID=debian\nVERSION_ID=4593.2.0\n", false),
            ("", false),
        ] {
            assert_eq!(release_fits(text, &os, "1.0"), fits, "{text}");
        }
    }

    #[test]
    fn documents_of_a_wrong_shape_are_refused() {
        for text in [
            "",
            "[]",
            "kind: Other",
            "kind: RuntimeMappings",
            "kind: RuntimeMappings\nkubernetes: {\"1.34\": {containerd: [latest]}}",
            "kind: RuntimeMappings\nkubernetes: {\"1.34\": {containerd: []}}",
        ] {
            assert_eq!(
                wanted(text, "x", "v1.34.0").unwrap_err().page.slug,
                "bad-mappings",
                "{text}"
            );
        }
        for (good, worse) in [
            ("0000000000000000\"}", "\"}"),
            ("https://x/1", "ftp://x"),
            ("size: 1", "size: 0"),
            ("version: 2.1.3", "version: new"),
        ] {
            let text = CATALOGUE.replacen(good, worse, 1);
            assert_eq!(catalogue(&text, "x").unwrap_err().page.slug, "bad-mappings", "{worse}");
        }
    }
}
