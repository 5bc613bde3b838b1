//! Components: programs whose version somebody chooses. Each comes from the distribution, as a
//! package, or from its publisher, as a download with a known sha256. Some belong to every image;
//! a pin file knows their versions and contents, and the user's config has the last word.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::family::Family;
use super::item;
use super::profile::Profile;
use super::resource::{Resource, Scope};
use crate::codes::image::{COMPONENT_VERSION, NO_CHECKSUM, UNKNOWN_COMPONENT};
use crate::nearest::nearest;
use crate::problem::{Place, Problem};

/// The profile that components become.
pub const FEATURE: &str = "components";

static TABLE: &str = include_str!("../../../../profiles/components.toml");
/// Pin files by the minor version of Kubernetes.
pub static PINS: &[(&str, &str)] = &[
    ("1.33", include_str!("../../../../profiles/pins/1.33.toml")),
    ("1.34", include_str!("../../../../profiles/pins/1.34.toml")),
    ("1.35", include_str!("../../../../profiles/pins/1.35.toml")),
    ("1.36", include_str!("../../../../profiles/pins/1.36.toml")),
];

pub const ARCHITECTURES: &[&str] = &["aarch64", "x86_64"];
/// Where a sum comes from that was computed from the file itself.
pub const HASHED: &str = "hashed here from the downloaded file";

/// One entry of a pin file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pin {
    pub component: String,
    pub version: String,
    /// By architecture; none for a container image, which has one digest.
    pub sha256: BTreeMap<String, String>,
}

/// What a config says about a component.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Component {
    pub version: Option<String>,
    pub source: Option<Source>,
    /// By architecture.
    pub sha256: BTreeMap<String, String>,
    /// The file that speaks of it last.
    pub origin: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Distribution,
    Upstream,
    /// It is left out.
    Nowhere,
}

impl Source {
    pub fn read(word: &str) -> Option<Source> {
        match word {
            "distro" => Some(Source::Distribution),
            "upstream" => Some(Source::Upstream),
            "none" => Some(Source::Nowhere),
            _ => None,
        }
    }
}

/// The image that components are chosen for.
#[derive(Debug, Clone)]
pub struct Image<'a> {
    pub family: &'static Family,
    pub architecture: &'a str,
    pub kubernetes: &'a str,
    /// What belongs to every image is added.
    pub standard: bool,
    /// What a node can do without is left out.
    pub minimal: bool,
    /// Names of the container images that the config brings itself.
    pub cached: Vec<&'a str>,
}

/// Every known component with its row of the table.
pub fn table() -> Map<String, Value> {
    toml::from_str(TABLE).unwrap_or_default()
}

/// A problem if there is no such component.
pub fn check(name: &str) -> Option<Problem> {
    let table = table();
    if table.contains_key(name) {
        return None;
    }
    let problem = Problem::new(&UNKNOWN_COMPONENT, format!("there is no component `{name}`"));
    Some(match nearest(name, table.keys().map(String::as_str)) {
        Some(near) => problem.fix(format!("did you mean `{near}`?")),
        None => problem,
    })
}

/// A whole version: a minor alone means the newest kubelet that its pin file has.
pub fn whole_version(kubernetes: &str) -> String {
    let minor_alone = kubernetes.split('.').count() == 2;
    let newest = minor_alone.then(|| pins(kubernetes)).and_then(|pins| {
        pins.get("kubelet")?.as_array()?.first()?["version"].as_str().map(str::to_owned)
    });
    newest.unwrap_or_else(|| kubernetes.to_owned())
}

/// The profile that makes the chosen components true.
pub fn profile(
    asked: &BTreeMap<String, Component>,
    image: &Image<'_>,
) -> Result<Profile, Vec<Problem>> {
    let mut profile = Profile { name: FEATURE.to_owned(), ..Profile::default() };
    profile.about = "Components, from their publishers or the distribution".to_owned();
    let pins = pins(image.kubernetes);
    let (mut problems, mut missing) = (Vec::new(), Vec::new());
    for (name, row) in &table() {
        let Some(chosen) = Chosen::of(name, row, &pins, asked.get(name), image) else { continue };
        match chosen.lacks() {
            None => problems.extend(chosen.add(&mut profile).err().into_iter().flatten()),
            Some(_) if chosen.is_spare() => {
                problems.extend(chosen.leave_out(&mut profile).err().into_iter().flatten());
            }
            Some(lack) => missing.push(lack),
        }
    }
    if !missing.is_empty() {
        problems.insert(0, unpinned(missing, image));
    }
    if problems.is_empty() { Ok(profile) } else { Err(problems) }
}

/// Everything whose content is not known, at once, and the ways out.
fn unpinned(missing: Vec<String>, image: &Image<'_>) -> Problem {
    let what = match &missing[..] {
        [one] => format!("component {one}"),
        many => format!("{} components have no content that is known beforehand", many.len()),
    };
    let whole = |minor: &&str| pins(minor).contains_key("kubelet");
    let minors: Vec<_> = PINS.iter().map(|(minor, _)| *minor).filter(whole).collect();
    let fix = format!(
        "give version and sha256 of each in spec.components, or `source: none` to leave it out; \
         all of them are pinned for Kubernetes {}",
        minors.join(", ")
    );
    let about = format!("Kubernetes {}, {}", image.kubernetes, image.architecture);
    let details = if missing.len() > 1 { missing } else { Vec::new() };
    Problem::new(&NO_CHECKSUM, what).fix(fix).details([about].into_iter().chain(details))
}

/// The minor version, `1.34` of `1.34.2`.
fn minor(kubernetes: &str) -> &str {
    let end = kubernetes.match_indices('.').nth(1).map_or(kubernetes.len(), |(at, _)| at);
    &kubernetes[..end]
}

fn pins(kubernetes: &str) -> Map<String, Value> {
    let minor = minor(kubernetes);
    let text = PINS.iter().find(|(known, _)| *known == minor).map_or("", |(_, text)| *text);
    toml::from_str(text).unwrap_or_default()
}

/// The address of a component's file.
pub fn url(component: &str, version: &str, architecture: &str) -> Option<String> {
    let table = table();
    let url = table.get(component)?["url"].as_str()?;
    Some(item::filled(url, version, "", architecture))
}

/// The entries of a pin file, or everything that is wrong with it.
pub fn read_pins(minor: &str, text: &str) -> Result<Vec<Pin>, Vec<String>> {
    let file: Map<String, Value> =
        toml::from_str(text).map_err(|error| vec![error.message().to_owned()])?;
    let (mut pins, mut wrong) = (Vec::new(), Vec::new());
    for (name, entries) in &file {
        if check(name).is_some() {
            wrong.push(format!("there is no component {name}"));
        }
        for entry in entries.as_array().into_iter().flatten() {
            match Pin::read(name, minor, entry) {
                Ok(pin) if pins.contains(&pin) => wrong.push(format!("{name} is there twice")),
                Ok(pin) => pins.push(pin),
                Err(why) => wrong.push(format!("{name}: {why}")),
            }
        }
        if !entries.is_array() {
            wrong.push(format!("{name} is not a list of entries, [[{name}]]"));
        }
    }
    if wrong.is_empty() { Ok(pins) } else { Err(wrong) }
}

impl Pin {
    fn read(component: &str, minor: &str, entry: &Value) -> Result<Pin, String> {
        let fields = entry.as_object().into_iter().flat_map(Map::keys);
        let strange =
            |name: &&String| !["version", "source", "sha256", "digest"].contains(&name.as_str());
        if let Some(name) = fields.into_iter().find(strange) {
            return Err(format!("it has no field {name}"));
        }
        let version = entry["version"].as_str().ok_or("it has no version")?.to_owned();
        if component == "kubelet" && self::minor(&version) != minor {
            return Err(format!("{version} is no Kubernetes {minor}"));
        }
        let sources = entry["source"].as_array().map_or(&[][..], Vec::as_slice);
        let hashed = sources.first().is_some_and(|first| *first == HASHED);
        if sources.len() < 2 && !hashed || !sources.iter().all(Value::is_string) {
            return Err(format!("{version} does not say two sources that agree"));
        }
        let is_hex = |text: &str| {
            text.len() == 64
                && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        };
        let mut sha256 = BTreeMap::new();
        let digest = entry["digest"].as_str().and_then(|digest| digest.strip_prefix("sha256:"));
        if !digest.is_some_and(is_hex) {
            for architecture in ARCHITECTURES {
                let sum = entry["sha256"][*architecture].as_str().filter(|sum| is_hex(sum));
                let sum = sum.ok_or_else(|| format!("{version} has no sum for {architecture}"))?;
                sha256.insert((*architecture).to_owned(), sum.to_owned());
            }
        }
        Ok(Pin { component: component.to_owned(), version, sha256 })
    }
}

/// One component with all that is known about it.
struct Chosen<'a> {
    name: &'a str,
    row: &'a Value,
    /// What the pin file has of it, the preferred first.
    pins: &'a [Value],
    asked: Option<&'a Component>,
    image: &'a Image<'a>,
    source: Source,
}

impl<'a> Chosen<'a> {
    /// None if the component is not part of this image.
    fn of(
        name: &'a str,
        row: &'a Value,
        pins: &'a Map<String, Value>,
        asked: Option<&'a Component>,
        image: &'a Image<'a>,
    ) -> Option<Chosen<'a>> {
        let standard = match &row["standard"] {
            Value::Object(families) => families.get(image.family.name).and_then(Value::as_str),
            other => other.as_str(),
        };
        let wanted = image.standard && !(image.minimal && row["spare"] == true);
        let standard = standard.and_then(Source::read);
        let by_user = |asked: &Component| {
            let told = asked.version.is_some() || !asked.sha256.is_empty();
            let publisher =
                if row["url"].is_null() { Source::Distribution } else { Source::Upstream };
            asked.source.or(told.then_some(publisher)).or(standard)
        };
        let source = match asked {
            Some(asked) => by_user(asked).unwrap_or(Source::Upstream),
            None if image.cached.contains(&name) => return None,
            None => standard.filter(|_| wanted)?,
        };
        let pins = pins.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let chosen = Chosen { name, row, pins, asked, image, source };
        // What a node cannot run without is left out only with a word about it.
        (source != Source::Nowhere || row["without"].is_string()).then_some(chosen)
    }

    /// Nobody asked for it, and a node runs without it.
    fn is_spare(&self) -> bool {
        self.asked.is_none() && self.row["spare"] == true
    }

    /// The version, and who says so. A kubelet is of the version of Kubernetes.
    fn version(&self) -> Option<(String, String)> {
        let told =
            self.asked.and_then(|asked| Some((asked.version.clone()?, asked.origin.clone())));
        let kubernetes = self.image.kubernetes.to_owned();
        let own = (self.name == "kubelet").then(|| (kubernetes, "spec.kubernetes".to_owned()));
        let pinned = || {
            let first = self.pins.first()?["version"].as_str()?;
            Some((first.to_owned(), self.pin_file()))
        };
        match self.source {
            Source::Distribution => told,
            _ => told.or(own).or_else(pinned),
        }
    }

    fn pin_file(&self) -> String {
        format!("the pins of Kubernetes {}", minor(self.image.kubernetes))
    }

    /// The entry of the pin file for a version.
    fn pin(&self, version: &str) -> &Value {
        let pin = self.pins.iter().find(|pin| pin["version"].as_str() == Some(version));
        pin.unwrap_or(&Value::Null)
    }

    /// Checksums of the config; those of the pin file where it has the same version.
    fn sums(&self, version: &str) -> Map<String, Value> {
        let mut sums = self.pin(version)["sha256"].as_object().cloned().unwrap_or_default();
        for (architecture, sum) in self.asked.iter().flat_map(|asked| &asked.sha256) {
            sums.insert(architecture.clone(), json!(sum));
        }
        sums
    }

    /// What is missing before a byte may be fetched.
    fn lacks(&self) -> Option<String> {
        if self.source != Source::Upstream {
            return None;
        }
        let Some((version, _)) = self.version() else {
            return Some(format!("{} has no version and no sha256", self.name));
        };
        let architecture = self.image.architecture;
        let known = match self.is_image() {
            true => self.pin(&version)["digest"].is_string(),
            false => self.sums(&version).contains_key(architecture),
        };
        let pinned: Vec<_> = self.pins.iter().filter_map(|pin| pin["version"].as_str()).collect();
        let pinned = match pinned.is_empty() {
            true => "none is pinned".to_owned(),
            false => format!("pinned: {}", pinned.join(", ")),
        };
        let lack = format!("{} {version} has no sha256 for {architecture} ({pinned})", self.name);
        (!known).then_some(lack)
    }

    fn is_image(&self) -> bool {
        self.row["image"].is_string()
    }

    fn add(&self, profile: &mut Profile) -> Result<(), Vec<Problem>> {
        match self.source {
            Source::Distribution => self.add_package(profile),
            Source::Nowhere => self.leave_out(profile),
            _ if self.is_image() => self.add_image(profile),
            _ => self.add_download(profile),
        }
    }

    /// Logical names of its packages that this family has.
    fn packages(&self) -> Vec<&str> {
        let named = match &self.row["package"] {
            Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
            one => one.as_str().into_iter().collect::<Vec<_>>(),
        };
        let Image { family, architecture, .. } = self.image;
        named.into_iter().filter(|name| !family.packages(name, architecture).is_empty()).collect()
    }

    fn add_package(&self, profile: &mut Profile) -> Result<(), Vec<Problem>> {
        let packages = self.packages();
        if packages.is_empty() {
            let family = self.image.family.name;
            let what = format!("{family} has no package for component {}", self.name);
            return Err(vec![Problem::new(&COMPONENT_VERSION, what)]);
        }
        for package in packages {
            let mut wish = json!({"name": package, "source": "distro"});
            if self.row["lock"] == true {
                wish["lock"] = json!(true);
            }
            if let Some((version, _)) = self.version() {
                wish["version"] = json!(version);
            }
            self.wish("package", wish, profile)?;
        }
        self.rows("package-stamp", "stamp", profile)?;
        self.rows("package-unit", "unit", profile)
    }

    fn add_image(&self, profile: &mut Profile) -> Result<(), Vec<Problem>> {
        let (version, _) = self.version().unwrap_or_default();
        let names = self.row["names"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let names: Vec<_> = names.map(|name| name.replace("{version}", &version)).collect();
        let wish = json!({
            "name": self.name, "reference": self.row["image"], "names": names, "pin": true,
            "digest": self.pin(&version)["digest"],
        });
        self.wish("cached-image", wish, profile)
    }

    fn add_download(&self, profile: &mut Profile) -> Result<(), Vec<Problem>> {
        let (version, _) = self.version().unwrap_or_default();
        let Some(url) = self.row["url"].as_str() else {
            let what = format!("component {} is only in distributions", self.name);
            return Err(vec![Problem::new(&COMPONENT_VERSION, what)]);
        };
        self.replace_package(profile)?;
        self.rows("unit", "unit", profile)?;
        self.rows("file", "file", profile)?;
        let mut wish = json!({
            "component": self.name, "version": version, "url": url,
            "sha256": self.sums(&version), "path": self.placed(&self.row["path"]),
        });
        for field in ["members", "licence"] {
            if !self.row[field].is_null() {
                wish[field] = self.placed(&self.row[field]);
            }
        }
        self.wish("download", wish, profile)
    }

    /// The publisher's program takes the place of the distribution's, where there is one.
    fn replace_package(&self, profile: &mut Profile) -> Result<(), Vec<Problem>> {
        for package in self.packages() {
            self.wish("package-absent", json!({"name": package}), profile)?;
        }
        Ok(())
    }

    /// Further resources of the component's row, with its version put in.
    fn rows(&self, field: &str, kind: &str, profile: &mut Profile) -> Result<(), Vec<Problem>> {
        let (version, _) = self.version().unwrap_or_default();
        for row in self.row[field].as_array().into_iter().flatten() {
            let mut row = row.clone();
            if let Some(content) = row["content"].as_str() {
                row["content"] = json!(content.replace("{version}", &version));
            }
            self.wish(kind, row, profile)?;
        }
        Ok(())
    }

    /// Where plugins of the CNI lie differs between families.
    fn placed(&self, value: &Value) -> Value {
        let put = |text: &str| json!(text.replace("{cni}", self.image.family.cni));
        match value {
            Value::String(text) => put(text),
            Value::Object(members) => {
                members.iter().map(|(name, to)| (name.clone(), self.placed(to))).collect()
            }
            other => other.clone(),
        }
    }

    /// Says that the image is without it, where somebody will look.
    fn leave_out(&self, profile: &mut Profile) -> Result<(), Vec<Problem>> {
        let why = match self.row["without"].as_str().filter(|_| self.asked.is_some()) {
            Some(without) => format!("the config leaves it out, and {without}"),
            None => format!("{} have no checksum for it", self.pin_file()),
        };
        let text = format!("{} is not in this image: {why}; spec.components adds it", self.name);
        self.wish(
            "manual",
            json!({"name": format!("without-{}", self.name), "text": text}),
            profile,
        )
    }

    /// Why it is here, and where each of its values comes from.
    fn reason(&self) -> String {
        let why = self.row["reason"].as_str().unwrap_or_default();
        let asked = self.asked.map_or("", |asked| asked.origin.as_str());
        let version = self.version();
        if self.source == Source::Distribution {
            let by = version.map_or("the distribution", |_| asked);
            return format!("{why}; version: {by}");
        }
        let (version, by) = version.unwrap_or_default();
        let told = self.asked.is_some_and(|one| one.sha256.contains_key(self.image.architecture));
        let sum = if told { asked.to_owned() } else { self.pin_file() };
        match self.pin(&version).is_null() && !told {
            true => why.to_owned(),
            false => format!("{why}; version: {by}; content: {sum}"),
        }
    }

    fn wish(
        &self,
        kind: &str,
        mut table: Value,
        profile: &mut Profile,
    ) -> Result<(), Vec<Problem>> {
        table["reason"] = json!(self.reason());
        let table = table.as_object().cloned().unwrap_or_default();
        let place = Place::field(format!("spec.components.{}", self.name));
        let (wish, _) = Resource::read(kind, &table, FEATURE, &place)?;
        profile.wishes.push((wish, Scope::default()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::family;

    fn image(family: &str, kubernetes: &'static str) -> Image<'static> {
        Image {
            family: family::find(family).unwrap(),
            architecture: "x86_64",
            kubernetes,
            standard: false,
            minimal: false,
            cached: Vec::new(),
        }
    }

    fn upstream(version: Option<&str>) -> Component {
        Component {
            version: version.map(str::to_owned),
            source: Some(Source::Upstream),
            sha256: [("x86_64".to_owned(), "a".repeat(64))].into(),
            origin: "image.yaml".into(),
        }
    }

    fn names(profile: &Profile) -> Vec<String> {
        profile.wishes.iter().map(|(wish, _)| wish.name()).collect()
    }

    #[test]
    fn every_row_of_the_table_becomes_wishes() {
        let rows = table();
        assert_eq!(rows.len(), 13, "{:?}", rows.keys());
        for (name, row) in rows {
            let source = if row["url"].is_null() { Source::Distribution } else { Source::Upstream };
            let asked = Component { source: Some(source), ..upstream(Some("1.2.3")) };
            if row["image"].is_string() {
                continue;
            }
            let found = profile(&[(name.clone(), asked)].into(), &image("al2023", "1.34.2"));
            let found = found.unwrap_or_else(|problems| panic!("{name}: {problems:#?}"));
            let kinds: Vec<_> = found.wishes.iter().map(|(wish, _)| wish.kind.name).collect();
            assert!(kinds.contains(&"download") || kinds.contains(&"package"), "{name} {kinds:?}");
            assert!(!row["reason"].as_str().unwrap_or_default().is_empty(), "{name}");
        }
    }

    #[test]
    fn upstream_takes_the_place_of_the_package() {
        let asked = [("runc".into(), upstream(Some("1.3.3")))].into();
        let found = profile(&asked, &image("debian", "1.34.2")).unwrap();
        assert_eq!(names(&found), ["package-absent/runc", "download//usr/sbin/runc"]);
        let why = &found.wishes[1].0.reasons[0].why;
        assert!(why.ends_with("version: image.yaml; content: image.yaml"), "{why}");
    }

    #[test]
    fn each_image_has_what_a_node_needs() {
        let standard = |family, minimal| {
            let image = Image { standard: true, minimal, ..image(family, "1.34.2") };
            names(&profile(&BTreeMap::new(), &image).unwrap())
        };
        let kubelet = "download//usr/bin/kubelet".to_owned();
        let debian = standard("debian", false);
        for name in ["download//usr/bin/crictl", "cached-image/pause", &kubelet] {
            assert!(debian.contains(&name.to_owned()), "{name} of {debian:?}");
        }
        assert!(debian.contains(&"manual/without-soci-snapshotter".to_owned()), "{debian:?}");
        let amazon = standard("al2023", false);
        assert!(amazon.contains(&"package/soci-snapshotter".to_owned()), "{amazon:?}");
        assert!(amazon.contains(&"download//opt/cni/bin/loopback".to_owned()), "{amazon:?}");
        assert_eq!(
            standard("debian", true),
            [
                "package/cni-plugins",
                "package/containerd",
                "stamp//etc/eks/containerd-version.txt",
                "download//etc/eks/image-credential-provider/ecr-credential-provider",
                "file//etc/eks/kubelet-version.txt",
                &kubelet,
                "package/runc",
            ]
        );
    }

    #[test]
    fn a_config_leaves_out_what_it_does_not_want() {
        let nowhere = Component { source: Some(Source::Nowhere), ..Component::default() };
        let asked = ["kubelet", "crictl", "pause"].map(|name| (name.to_owned(), nowhere.clone()));
        let image = Image { standard: true, ..image("debian", "1.34.2") };
        let found = names(&profile(&asked.into(), &image).unwrap());
        for name in ["manual/without-kubelet", "manual/without-soci-snapshotter"] {
            assert!(found.contains(&name.to_owned()), "{found:?}");
        }
        for name in ["download//usr/bin/kubelet", "download//usr/bin/crictl", "cached-image/pause"]
        {
            assert!(!found.contains(&name.to_owned()), "{found:?}");
        }
        let own = Image { cached: vec!["pause"], ..image };
        assert!(
            !names(&profile(&BTreeMap::new(), &own).unwrap())
                .contains(&"cached-image/pause".into())
        );
    }

    #[test]
    fn all_that_is_missing_is_told_at_once() {
        let image = Image { standard: true, ..image("debian", "1.29.1") };
        let problems = profile(&BTreeMap::new(), &image).unwrap_err();
        let [problem] = &problems[..] else { panic!("{problems:?}") };
        assert_eq!(problem.page.code, "TN03810");
        assert_eq!(
            problem.details,
            [
                "Kubernetes 1.29.1, x86_64",
                "ecr-credential-provider has no version and no sha256",
                "kubelet 1.29.1 has no sha256 for x86_64 (none is pinned)",
            ]
        );
        assert!(problem.fix.as_deref().unwrap().contains("source: none"));
        let problems = profile(&BTreeMap::new(), &Image { kubernetes: "1.34.99", ..image });
        let what = &problems.unwrap_err()[0].what;
        assert_eq!(
            what,
            "component kubelet 1.34.99 has no sha256 for x86_64 (pinned: 1.34.3, 1.34.2, 1.34.1)"
        );
    }

    #[test]
    fn a_distribution_needs_no_version_and_must_have_the_package() {
        let own = Component { source: Some(Source::Distribution), ..Component::default() };
        let found = profile(&[("runc".into(), own.clone())].into(), &image("debian", "1.34.2"));
        let found = found.unwrap();
        assert_eq!(names(&found), ["package/runc"]);
        assert!(found.wishes[0].0.flag("lock"));
        assert!(found.wishes[0].0.reasons[0].why.ends_with("version: the distribution"));
        for (family, name) in [("debian", "kubelet"), ("debian", "soci-snapshotter")] {
            let asked = [(name.into(), own.clone())].into();
            let found = profile(&asked, &image(family, "1.34.2")).unwrap_err();
            assert!(found[0].what.contains("has no package"), "{name}: {}", found[0].what);
        }
    }

    #[test]
    fn a_pin_gives_version_and_checksums() {
        let pins = json!({"runc": [{"version": "1.3.3", "sha256": {"aarch64": "b".repeat(64)}}]});
        let pins = pins.as_object().unwrap();
        let (row, image) = (json!({}), image("debian", "1.34.2"));
        let mut asked = upstream(None);
        let chosen = Chosen::of("runc", &row, pins, Some(&asked), &image).unwrap();
        assert_eq!(chosen.version().unwrap().0, "1.3.3");
        assert_eq!(chosen.sums("1.3.3").len(), 2);
        asked.version = Some("1.3.4".into());
        let chosen = Chosen::of("runc", &row, pins, Some(&asked), &image).unwrap();
        assert_eq!(chosen.sums("1.3.4").len(), 1);
    }

    #[test]
    fn shipped_pins_are_whole_and_bad_ones_are_told() {
        for (minor, text) in PINS {
            let pins = read_pins(minor, text).unwrap_or_else(|wrong| panic!("{minor}: {wrong:?}"));
            assert!(pins.len() >= 5, "{minor}");
        }
        let entry = |rest: &str| format!("[[runc]]\nversion = '1.0.0'\n{rest}");
        let sums = format!("[runc.sha256]\nx86_64 = '{0}'\naarch64 = '{0}'\n", "a".repeat(64));
        let two = "source = ['one', 'other']\n";
        for (text, told) in [
            ("[runk]\n".to_owned(), "there is no component runk"),
            (entry(&sums), "runc: 1.0.0 does not say two sources that agree"),
            (entry(&format!("source = ['one']\n{sums}")), "runc: 1.0.0 does not say two sources"),
            (entry(two), "runc: 1.0.0 has no sum for aarch64"),
            (entry(&format!("{two}sha = 1\n{sums}")), "runc: it has no field sha"),
            (
                entry(&format!(
                    "{two}{}",
                    sums.to_uppercase().replace("RUNC.SHA256", "runc.sha256")
                )),
                "runc: 1.0.0 has no sum",
            ),
            (
                entry(&format!("{two}{sums}")).replace("runc", "kubelet"),
                "kubelet: 1.0.0 is no Kubernetes 1.34",
            ),
        ] {
            let wrong = read_pins("1.34", &text).unwrap_err();
            assert!(wrong[0].starts_with(told), "{wrong:?} is not {told}");
        }
        let hashed = format!("source = ['{HASHED}']\n{sums}");
        assert_eq!(read_pins("1.34", &entry(&hashed)).unwrap().len(), 1);
    }

    #[test]
    fn a_minor_alone_means_its_newest_pinned_kubelet() {
        assert_eq!(whole_version("1.34"), "1.34.3");
        assert_eq!(whole_version("1.34.1"), "1.34.1");
        assert_eq!(whole_version("1.29"), "1.29");
    }
}
