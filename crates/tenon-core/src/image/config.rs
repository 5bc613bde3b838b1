//! `kind: NodeImage`: one file that customises an image. Several merge in order, `--set` comes
//! last, and every mistake is told at once with its place.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::component::{self, Component, Source};
use super::exception::{self, CONFIG, Exception};
use super::family::{self, FAMILIES, Family};
use super::plan::{self, Wanted};
use super::profile::Profile;
use super::resource::{Resource, Scope};
use super::root_facts::RootFacts;
use crate::codes::image::{BAD_IMAGE_CONFIG, BAD_SET, IMAGE_UNKNOWN_FIELD, NO_FAMILY};
use crate::problem::{Place, Problem};
use crate::tree::{Dialect, Entry, Scalar, Span, Tree, Written};
use crate::userdata::input::reader::{Fields, Manner, Reader};
use crate::yaml;

const DOCUMENT: &[&str] = &["apiVersion", "kind", "metadata", "spec"];
const METADATA: &[&str] = &["name"];
const SPEC: &[&str] = &[
    "family",
    "release",
    "arch",
    "kubernetes",
    "profiles",
    "cis",
    "components",
    "cachedImages",
    "files",
    "exceptions",
    "packer",
];
const CIS: &[&str] = &["level"];
const COMPONENT: &[&str] = &["version", "source", "sha256"];
const CACHED: &[&str] = &["name", "ref", "digest", "pin", "names"];
const PACKER: &[&str] = &["rootVolumeGiB", "volumeType", "encrypt"];
const ARCHITECTURES: &[&str] = &["x86_64", "aarch64"];

/// What is planned for when nobody says.
pub const KUBERNETES: &str = "1.34.2";
const PROFILES: &[&str] = &["base", "cis"];

static MANNER: Manner = Manner {
    dialect: Dialect::Yaml12,
    bad_input: &BAD_IMAGE_CONFIG,
    bad_value: &BAD_IMAGE_CONFIG,
    unknown_field: &IMAGE_UNKNOWN_FIELD,
};

/// A file, or what else speaks: its name for messages, and its text.
#[derive(Debug, Clone)]
pub struct Text {
    pub name: String,
    pub text: String,
}

/// All that the configs ask for; what they leave open has a default or comes from the root.
#[derive(Debug, Clone, Default)]
pub struct ImageConfig {
    pub name: Option<String>,
    pub family: Option<&'static Family>,
    pub release: Option<String>,
    pub architecture: Option<String>,
    pub kubernetes: Option<String>,
    pub profiles: Option<Vec<String>>,
    /// The file or the flag that named them last.
    pub profiles_from: String,
    /// The profile of the level of CIS that is asked for by number.
    pub cis: Option<&'static str>,
    pub components: BTreeMap<String, Component>,
    /// By name.
    pub cached: BTreeMap<String, Resource>,
    pub resources: Vec<(Resource, Scope)>,
    pub exceptions: Vec<Exception>,
    pub packer: Packer,
}

/// What the build machine's disk is like.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Packer {
    pub root_volume_gib: Option<u32>,
    pub volume_type: Option<String>,
    pub encrypt: Option<bool>,
}

/// Reads all configs, later over earlier, then the settings `PATH=VALUE` by the name of their flag.
pub fn read(files: &[Text], settings: &[Text]) -> Result<ImageConfig, Vec<Problem>> {
    let mut config = ImageConfig::default();
    let mut problems = Vec::new();
    for file in files {
        let mut reader = Reader::in_manner(&file.name, &MANNER);
        if let Some(tree) = reader.document(&file.text) {
            head(&mut reader, &tree);
            config.take(&mut reader, &tree, &file.name);
        }
        problems.extend(reader.findings.into_iter().map(|finding| finding.problem));
    }
    for setting in settings {
        let mut reader = Reader::in_manner(&setting.name, &MANNER);
        match set_tree(&setting.text) {
            Ok(tree) => config.take(&mut reader, &tree, &setting.name),
            Err(problem) => problems.push(problem),
        }
        let told = reader.findings.into_iter().map(|finding| without_line(finding.problem));
        problems.extend(told);
    }
    if problems.is_empty() { Ok(config) } else { Err(problems) }
}

/// A flag has no lines that could be counted.
fn without_line(mut problem: Problem) -> Problem {
    if let Some(place) = &mut problem.place {
        (place.line, place.column) = (0, 0);
    }
    problem.snippet = None;
    problem
}

/// `spec.kubernetes=1.34.2` as the document that says only this.
fn set_tree(setting: &str) -> Result<Tree, Problem> {
    let bad = |what: &str| Problem::new(&BAD_SET, what).at(Place::field("--set"));
    let (path, value) = setting.split_once('=').ok_or_else(|| bad("a --set has no `=`"))?;
    if path.split('.').any(str::is_empty) {
        return Err(bad("a --set has an empty name in its path"));
    }
    let parsed = yaml::parse(value).map_err(|_| bad("the value of a --set is no YAML"))?;
    let empty = Written::Scalar(Scalar { text: String::new(), plain: false });
    let mut tree = parsed.into_iter().next().unwrap_or(Tree { span: Span::start(), value: empty });
    for name in path.rsplit('.') {
        let entry = Entry { key: name.to_owned(), key_span: Span::start(), value: tree };
        tree = Tree { span: Span::start(), value: Written::Map(vec![entry]) };
    }
    Ok(tree)
}

/// A file must say what it is; a setting need not.
fn head(reader: &mut Reader, tree: &Tree) {
    let top = reader.fields(tree, "", &[DOCUMENT]);
    // Unknown names are told when the document is taken.
    reader.findings.clear();
    for (key, only) in [("apiVersion", "tenon.dev/v1alpha1"), ("kind", "NodeImage")] {
        if reader.required(&top, key).is_some() {
            reader.parsed(&top, key, only, |text| (text == only).then_some(()));
        }
    }
}

impl ImageConfig {
    /// Lays a document over what is known.
    ///
    /// Reasons name the file without its directory: where a config lies on the machine that plans is
    /// no part of the plan.
    fn take(&mut self, reader: &mut Reader, tree: &Tree, source: &str) {
        let origin = source.rsplit('/').next().unwrap_or(source);
        let top = reader.fields(tree, "", &[DOCUMENT]);
        if let Some(metadata) = reader.inner(&top, "metadata", &[METADATA]) {
            over(
                &mut self.name,
                reader.parsed(&metadata, "name", "a name of letters, digits, - and .", name),
            );
        }
        let Some(spec) = reader.inner(&top, "spec", &[SPEC]) else { return };
        let families: Vec<_> = FAMILIES.iter().map(|family| family.name).collect();
        over(&mut self.family, reader.parsed(&spec, "family", &families.join(", "), family::find));
        over(&mut self.release, reader.parsed(&spec, "release", "a release", name));
        let architecture = |text: &str| ARCHITECTURES.contains(&text).then(|| text.to_owned());
        over(
            &mut self.architecture,
            reader.parsed(&spec, "arch", "x86_64 or aarch64", architecture),
        );
        over(
            &mut self.kubernetes,
            reader.parsed(&spec, "kubernetes", "a version such as 1.34.2", version),
        );
        if spec.has("profiles") {
            self.profiles = Some(reader.texts(&spec, "profiles"));
            source.clone_into(&mut self.profiles_from);
        }
        if let Some(cis) = reader.inner(&spec, "cis", &[CIS]) {
            over(&mut self.cis, reader.parsed(&cis, "level", "1 or 2", cis_level));
        }
        self.components(reader, &spec, origin);
        self.cached(reader, &spec, origin);
        self.resources(reader, &spec, origin);
        self.exceptions(reader, &spec);
        if let Some(packer) = reader.inner(&spec, "packer", &[PACKER]) {
            self.packer.take(reader, &packer);
        }
    }

    fn components(&mut self, reader: &mut Reader, spec: &Fields<'_>, origin: &str) {
        let Some((path, tree)) = reader.tree(spec, "components") else { return };
        let Written::Map(entries) = &tree.value else {
            return reader.wrong(tree, &path, "a map of components");
        };
        for entry in entries {
            let path = format!("{path}.{}", entry.key);
            if let Some(problem) = component::check(&entry.key) {
                let place = reader.place_of(&entry.value, &path);
                reader.findings.push(crate::problem::Finding::error(problem.at(place)));
                continue;
            }
            let fields = reader.fields(&entry.value, &path, &[COMPONENT]);
            let component = self.components.entry(entry.key.clone()).or_default();
            origin.clone_into(&mut component.origin);
            over(&mut component.version, reader.parsed(&fields, "version", "a version", version));
            over(
                &mut component.source,
                reader.parsed(&fields, "source", "distro, upstream or none", Source::read),
            );
            for (architecture, sum) in reader.pairs(&fields, "sha256") {
                if is_hex(&sum) && ARCHITECTURES.contains(&architecture.as_str()) {
                    component.sha256.insert(architecture, sum.to_ascii_lowercase());
                } else {
                    reader.wrong(
                        &entry.value,
                        &format!("{path}.sha256"),
                        "64 hexadecimal digits for x86_64 or aarch64",
                    );
                }
            }
        }
    }

    fn cached(&mut self, reader: &mut Reader, spec: &Fields<'_>, origin: &str) {
        for (path, item) in reader.items(spec, "cachedImages") {
            let fields = reader.fields(item, &path, &[CACHED]);
            let is_digest = |text: &str| {
                text.strip_prefix("sha256:").is_some_and(is_hex).then(|| text.to_owned())
            };
            let (Some(name), Some(reference)) =
                (reader.required(&fields, "name"), reader.required(&fields, "ref"))
            else {
                continue;
            };
            reader.required(&fields, "digest");
            let Some(digest) =
                reader.parsed(&fields, "digest", "sha256: and 64 hexadecimal digits", is_digest)
            else {
                continue;
            };
            let table = json!({
                "name": name, "reference": reference, "digest": digest,
                "pin": reader.flag(&fields, "pin").unwrap_or(false),
                "names": reader.texts(&fields, "names"),
            });
            if let Some((wish, _)) = resource(reader, "cached-image", table, origin, (&path, item))
            {
                self.cached.insert(name, wish);
            }
        }
    }

    fn resources(&mut self, reader: &mut Reader, spec: &Fields<'_>, origin: &str) {
        for (path, item) in reader.items(spec, "files") {
            let mut table = item.to_json(Dialect::Yaml12);
            let kind = table.as_object_mut().and_then(|table| table.remove("kind"));
            let Some(Value::String(kind)) = kind else {
                reader.wrong(item, &path, "a map with the kind of a resource");
                continue;
            };
            self.resources.extend(resource(reader, &kind, table, origin, (&path, item)));
        }
    }

    fn exceptions(&mut self, reader: &mut Reader, spec: &Fields<'_>) {
        for (path, item) in reader.items(spec, "exceptions") {
            let before = reader.findings.len();
            reader.fields(item, &path, &[exception::FIELDS]);
            if reader.findings.len() > before {
                continue;
            }
            let place = reader.place_of(item, &path);
            match Exception::read(&item.to_json(Dialect::Yaml12), CONFIG, &place) {
                Ok(exception) => self.exceptions.push(exception),
                Err(more) => {
                    reader.findings.extend(more.into_iter().map(crate::problem::Finding::error));
                }
            }
        }
    }

    /// What the plan is made of. A root says what it is; the config may be closer about it.
    pub fn wanted(
        &self,
        root: Option<&RootFacts>,
        own: Vec<Profile>,
    ) -> Result<Wanted, Vec<Problem>> {
        let Some(family) = self.family.or(root.map(|root| root.family)) else {
            return Err(vec![Problem::new(&NO_FAMILY, "the family of the image is not known")]);
        };
        let of_root = || root.filter(|root| root.family == family).map(|root| root.release.clone());
        let release = self.release.clone().or_else(of_root);
        let release = release.unwrap_or_else(|| family.release.to_owned());
        let architecture = self.architecture.clone();
        let architecture = architecture.or_else(|| root.map(|root| root.architecture.clone()));
        let architecture = architecture.unwrap_or_else(|| ARCHITECTURES[0].to_owned());
        let here = |scope: &Scope| scope.holds(family.name, &architecture, &release);
        let own_wishes = self.resources.iter().filter(|(_, scope)| here(scope));
        let own_wishes = own_wishes.map(|(wish, _)| wish);
        let wishes = self.cached.values().chain(own_wishes).cloned().collect();
        let kubernetes = component::whole_version(self.kubernetes.as_deref().unwrap_or(KUBERNETES));
        let shipped = || PROFILES.iter().map(|name| (*name).to_owned()).collect();
        let mut profiles: Vec<String> = self.profiles.clone().unwrap_or_else(shipped);
        profiles.extend(self.cis.map(str::to_owned));
        let mut wanted = Wanted {
            name: self.name.clone().unwrap_or_else(|| format!("{}-{architecture}", family.name)),
            family,
            release,
            architecture,
            kubernetes,
            profiles,
            own_profiles: own,
            wishes,
            exceptions: self.exceptions.clone(),
        };
        let components = self.chosen_components(&wanted)?;
        wanted.profiles.push(components.name.clone());
        wanted.own_profiles.push(components);
        Ok(wanted)
    }

    /// The components of this image: those that belong to its profiles, and the config's.
    fn chosen_components(&self, wanted: &Wanted) -> Result<Profile, Vec<Problem>> {
        let composed = plan::compose(wanted)?;
        let has = |name: &str| composed.iter().any(|profile| profile.name == name);
        let image = component::Image {
            family: wanted.family,
            architecture: &wanted.architecture,
            kubernetes: &wanted.kubernetes,
            standard: has("base"),
            minimal: has("minimal"),
            cached: self.cached.keys().map(String::as_str).collect(),
        };
        component::profile(&self.components, &image)
    }
}

impl Packer {
    fn take(&mut self, reader: &mut Reader, fields: &Fields<'_>) {
        let size = |text: &str| text.parse().ok().filter(|size| (4..=16384).contains(size));
        over(
            &mut self.root_volume_gib,
            reader.parsed(fields, "rootVolumeGiB", "a size from 4 to 16384", size),
        );
        let known =
            |text: &str| ["gp2", "gp3", "io1", "io2"].contains(&text).then(|| text.to_owned());
        over(
            &mut self.volume_type,
            reader.parsed(fields, "volumeType", "gp2, gp3, io1 or io2", known),
        );
        over(&mut self.encrypt, reader.flag(fields, "encrypt"));
    }
}

fn over<T>(known: &mut Option<T>, later: Option<T>) {
    if later.is_some() {
        *known = later;
    }
}

/// A typed resource of the config; its mistakes stand at the place of the item.
fn resource(
    reader: &mut Reader,
    kind: &str,
    table: Value,
    origin: &str,
    (path, item): (&str, &Tree),
) -> Option<(Resource, Scope)> {
    let mut table: Map<String, Value> = table.as_object().cloned().unwrap_or_default();
    table.entry("reason").or_insert_with(|| json!(format!("asked for in {origin}")));
    match Resource::read(kind, &table, CONFIG, &reader.place_of(item, path)) {
        Ok(wish) => Some(wish),
        Err(problems) => {
            reader.findings.extend(problems.into_iter().map(crate::problem::Finding::error));
            None
        }
    }
}

fn name(text: &str) -> Option<String> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    (!text.is_empty() && text.len() <= 63 && text.bytes().all(fits)).then(|| text.to_owned())
}

fn version(text: &str) -> Option<String> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b".-+~:_".contains(&b);
    let starts = text.starts_with(|c: char| c.is_ascii_digit());
    (starts && text.len() <= 63 && text.bytes().all(fits)).then(|| text.to_owned())
}

/// The profile of a level.
fn cis_level(text: &str) -> Option<&'static str> {
    [("1", "cis"), ("2", "cis-level2")]
        .into_iter()
        .find(|(level, _)| *level == text)
        .map(|(_, p)| p)
}

fn is_hex(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(spec: &str) -> Text {
        let text = format!(
            "apiVersion: tenon.dev/v1alpha1\nkind: NodeImage\nmetadata: {{name: one}}\nspec:\n{spec}"
        );
        Text { name: "image.yaml".into(), text }
    }

    fn set(settings: &[&str]) -> Vec<Text> {
        settings.iter().map(|one| Text { name: "--set".into(), text: (*one).to_owned() }).collect()
    }

    fn told(spec: &str, settings: &[&str]) -> Vec<(String, u32)> {
        let problems = read(&[config(spec)], &set(settings)).unwrap_err();
        let line = |p: &Problem| p.place.as_ref().map_or(0, |place| place.line);
        problems.iter().map(|p| (p.what.clone(), line(p))).collect()
    }

    #[test]
    fn one_file_says_everything() {
        let sum = "a".repeat(64);
        let text = config(&format!(
            "  family: debian\n  release: bookworm\n  arch: aarch64\n  kubernetes: \"1.34.2\"\n  profiles: [base]\n  \
             components:\n    kubelet: {{version: \"1.34.2\", source: upstream, sha256: {{aarch64: \"{sum}\"}}}}\n  \
             cachedImages:\n  - {{name: pause, ref: registry.k8s.io/pause, digest: \"sha256:{sum}\", pin: true}}\n  \
             files:\n  - {{kind: sysctl, key: net.core.somaxconn, floor: 4096}}\n  \
             packer: {{rootVolumeGiB: 30, encrypt: false}}\n"
        ));
        let config = read(&[text], &[]).unwrap();
        assert_eq!(config.packer.root_volume_gib, Some(30));
        let plan = plan::resolve(&config.wanted(None, Vec::new()).unwrap()).unwrap();
        assert_eq!((plan.name.as_str(), plan.architecture.as_str()), ("one", "aarch64"));
        let kubelet = plan.resource("download//usr/bin/kubelet").unwrap();
        let why = "the node agent; version: image.yaml; content: image.yaml";
        assert_eq!(kubelet.reasons[0].why, why);
        let own = plan.resource("sysctl/net.core.somaxconn").unwrap();
        assert_eq!(
            (own.reasons[0].feature.as_str(), own.reasons[0].why.as_str()),
            ("config", "asked for in image.yaml")
        );
        assert!(plan.resource("cached-image/pause").is_some());
    }

    #[test]
    fn every_mistake_is_told_with_its_line() {
        let found = told(
            "  famly: debian\n  arch: amd64\n  components:\n    kubelt: {version: \"1\"}\n  files:\n  - {kind: sysctl, ky: a}\n  packer: {encrypt: yes}\n",
            &["spec.kubernetes", "spec.release=/"],
        );
        let whats: Vec<_> = found.iter().map(|(what, line)| (what.as_str(), *line)).collect();
        assert_eq!(
            whats,
            [
                ("unknown field `famly`", 5),
                ("`spec.arch` is not x86_64 or aarch64", 6),
                ("there is no component `kubelt`", 8),
                ("a sysctl has no field `ky`", 10),
                ("a sysctl needs a `key`", 10),
                ("`spec.packer.encrypt` is not true or false", 11),
                ("a --set has no `=`", 0),
                ("`spec.release` is not a release", 0),
            ]
        );
    }

    #[test]
    fn the_level_of_cis_is_a_number() {
        let profiles = |spec: &str| {
            let config = read(&[config(&format!("  family: debian\n{spec}"))], &[]).unwrap();
            plan::resolve(&config.wanted(None, Vec::new()).unwrap()).unwrap().profiles
        };
        assert_eq!(profiles("  cis: {level: 1}\n"), ["base", "cis"]);
        let second = profiles("  profiles: [base]\n  cis: {level: 2}\n");
        assert_eq!(second, ["base", "cis", "cis-level2", "apparmor"]);
        assert_eq!(told("  cis: {level: 3}\n", &[])[0].0, "`spec.cis.level` is not 1 or 2");
    }

    #[test]
    fn a_document_of_another_kind_is_refused() {
        let text = Text {
            name: "x".into(),
            text: "apiVersion: tenon.dev/v1alpha1\nkind: NodeConfig\n".into(),
        };
        assert_eq!(read(&[text], &[]).unwrap_err()[0].what, "`kind` is not NodeImage");
    }

    #[test]
    fn where_a_config_lies_is_no_part_of_the_plan() {
        let at = |name: &str| {
            let text =
                config("  family: debian\n  files:\n  - {kind: sysctl, key: a.b, floor: 1}\n");
            let read = read(&[Text { name: name.into(), ..text }], &[]).unwrap();
            plan::resolve(&read.wanted(None, Vec::new()).unwrap()).unwrap().hash()
        };
        assert_eq!(at("image.yaml"), at("/build/of/somebody/image.yaml"));
    }

    #[test]
    fn later_files_and_settings_win() {
        let base = config(
            "  family: debian\n  kubernetes: \"1.33.0\"\n  components: {runc: {version: \"1.2\", source: distro}}\n",
        );
        let more = config("  kubernetes: \"1.34.0\"\n  components: {runc: {version: \"1.3\"}}\n");
        let set = set(&["spec.release=trixie", "spec.profiles=[base]"]);
        let config = read(&[base, more], &set).unwrap();
        assert_eq!(config.kubernetes.as_deref(), Some("1.34.0"));
        assert_eq!(config.release.as_deref(), Some("trixie"));
        let runc = &config.components["runc"];
        assert_eq!(
            (runc.version.as_deref(), runc.source),
            (Some("1.3"), Some(Source::Distribution))
        );
        assert_eq!(config.profiles, Some(vec!["base".to_owned()]));
    }

    #[test]
    fn a_version_without_a_checksum_is_refused_by_the_plan() {
        let config = read(
            &[config("  family: debian\n  components: {kubelet: {version: \"1.34.99\"}}\n")],
            &[],
        );
        let problems = config.unwrap().wanted(None, Vec::new()).unwrap_err();
        assert_eq!(problems[0].page.code, "TN03810");
    }

    #[test]
    fn a_resource_of_the_config_is_meant_for_some_images() {
        let text = config(
            "  files:\n  - {kind: sysctl, key: a.b, value: \"1\", only: [al2023]}\n  \
             - {kind: sysctl, key: a.c, value: \"1\", release: [bookworm], arch: [x86_64]}\n",
        );
        for (family, wished) in [("al2023", ["a.b"]), ("debian", ["a.c"])] {
            let text = text.clone();
            let config = read(&[text], &set(&[&format!("spec.family={family}")])).unwrap();
            let wishes = config.wanted(None, Vec::new()).unwrap().wishes;
            let keys: Vec<_> = wishes.iter().map(|wish| wish.key.as_str()).collect();
            assert_eq!(keys, wished);
        }
    }

    #[test]
    fn without_root_and_family_there_is_no_plan() {
        let problems = ImageConfig::default().wanted(None, Vec::new()).unwrap_err();
        assert_eq!(problems[0].page.code, "TN03846");
    }
}
