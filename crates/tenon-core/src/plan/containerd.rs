//! containerd's `config.toml`: Tenon's tables, with the user's TOML laid over them.

use std::time::Duration;

use toml::{Table, Value};

use super::containerd_schema::{self, Schema, Translation};
use super::node::Node;
use super::step::{Action, FileBody, Output, Program, Step};
use super::{Draft, Owner, kubelet, runtime_spec, soci};
use crate::codes;
use crate::config::PAUSE_IMAGE;
use crate::kube_version::{CDI, SCHEMA_3};
use crate::problem::{Finding, Place, Problem};
use crate::toml_text::{basic, canonical, merge_over};

pub(crate) const PATH: &str = "/etc/containerd/config.toml";
/// What `containerd config migrate` reads when the native translation does not know a table.
pub(crate) const MIGRATION_INPUT: &str = "/run/tenon/containerd-schema-2.toml";
const MIGRATION_BOUND: Duration = Duration::from_secs(15);
const CERTS: &str = "/etc/containerd/certs.d:/etc/docker/certs.d";

/// Plans the config file, or refuses what containerd could not load.
pub(crate) fn plan(node: &Node, draft: &mut Draft) {
    explain_sandbox(node, draft);
    let user = node.config.containerd.config.parse::<Table>();
    let user = draft.keep(user.map_err(|error| unreadable(error.message())));
    let Some(user) = user else { return };
    let daemon_has_3 = SCHEMA_3.is_open(node.containerd_version);
    let Some(schema) = draft.keep(containerd_schema::choose(&user, daemon_has_3)) else { return };
    let template = template(&Traits::of(node), schema);
    if user.is_empty() && schema.is_native(daemon_has_3) {
        add_file(template, false, draft);
        return;
    }
    let secret = has_secret(&user);
    let mut merged: Table = template.parse().expect("the template is TOML");
    merge_over(&mut merged, user);
    match schema.is_native(daemon_has_3) {
        true => finish(merged, secret, draft),
        false => translate(merged, secret, draft),
    }
}

fn translate(merged: Table, secret: bool, draft: &mut Draft) {
    match containerd_schema::translate(merged) {
        Translation::Done(translated) => finish(translated, secret, draft),
        Translation::Unknown(schema_2) => add_migration(canonical(&schema_2), secret, draft),
    }
}

fn finish(table: Table, secret: bool, draft: &mut Draft) {
    match check_runtime(&table) {
        Ok(()) => add_file(canonical(&table), secret, draft),
        Err(problem) => draft.findings.push(Finding::error(problem)),
    }
}

fn add_file(text: String, secret: bool, draft: &mut Draft) {
    let file = FileBody { secret, ..FileBody::new(PATH, 0o644, text) };
    draft.file(Owner::Containerd, file, "containerd's config");
}

/// Only containerd itself knows how to rewrite tables of plugins that Tenon does not know.
fn add_migration(text: String, secret: bool, draft: &mut Draft) {
    let file = FileBody { secret, ..FileBody::new(MIGRATION_INPUT, 0o600, text) };
    draft.file(Owner::Containerd, file, "input of containerd config migrate");
    let argv = ["containerd", "--config", MIGRATION_INPUT, "config", "migrate"];
    let program = Program {
        argv: argv.map(str::to_owned).to_vec(),
        timeout: MIGRATION_BOUND,
        when_changed: vec![MIGRATION_INPUT.to_owned()],
        stdout_to: Some(PATH.to_owned()),
        output: Output::ContainerdConfig,
        ..Program::default()
    };
    let because = "the config has tables that only containerd can translate to schema 3";
    draft.add(Owner::Containerd, Step::config(Action::Program(program), because));
}

fn explain_sandbox(node: &Node, draft: &mut Draft) {
    draft.reason("sandboxImage", "default", format!("cached in the image: {PAUSE_IMAGE}"));
    let chosen = match &node.config.containerd.sandbox_image {
        Some(image) => format!("containerd.sandboxImage: {image}"),
        None => "containerd.sandboxImage: not set".to_owned(),
    };
    draft.reason("sandboxImage", "config", chosen);
}

/// What differs between the configs of two nodes, the user's own TOML apart.
pub(crate) struct Traits<'a> {
    pub nvidia: bool,
    pub soci: bool,
    pub sandbox: &'a str,
    pub cdi: bool,
}

impl<'a> Traits<'a> {
    fn of(node: &'a Node) -> Self {
        Traits {
            nvidia: node.facts.machine.nvidia_runtime,
            soci: node.soci,
            sandbox: node.config.containerd.sandbox_image.as_deref().unwrap_or(PAUSE_IMAGE),
            cdi: CDI.is_open(node.kubelet_version),
        }
    }
}

/// The low-level runtime that containers run under unless a pod asks for another.
fn runtime(node: &Traits<'_>) -> (&'static str, &'static str) {
    match node.nvidia {
        true => ("nvidia", "/usr/bin/nvidia-container-runtime"),
        false => ("runc", "/usr/sbin/runc"),
    }
}

/// Tenon's own tables, keys in the order of nodeadm's files so that checksums still match.
pub(crate) fn template(node: &Traits<'_>, schema: Schema) -> String {
    let tables = match schema {
        Schema::V2 => tables_2(node),
        Schema::V3 => tables_3(node),
    };
    let mut text = format!("version = {}\n", schema.number());
    text.push_str("root = \"/var/lib/containerd\"\nstate = \"/run/containerd\"\n");
    for (name, lines) in tables {
        text.push_str(&format!("\n[{name}]\n"));
        for (key, value) in lines {
            text.push_str(&format!("{key} = {value}\n"));
        }
    }
    text
}

type Tables = Vec<(String, Vec<(&'static str, String)>)>;

fn tables_2(node: &Traits<'_>) -> Tables {
    let cri = "plugins.\"io.containerd.grpc.v1.cri\"";
    let (runtime, _) = runtime(node);
    let mut engine =
        vec![("default_runtime_name", basic(runtime)), ("discard_unpacked_layers", "true".into())];
    engine.extend(soci_keys(node));
    let mut tables = vec![
        grpc(),
        (format!("{cri}.containerd"), engine),
        (
            cri.into(),
            vec![("sandbox_image", basic(node.sandbox)), ("enable_cdi", node.cdi.to_string())],
        ),
        (format!("{cri}.registry"), vec![("config_path", basic(CERTS))]),
    ];
    tables.extend(runtime_tables(node, cri));
    tables.extend(soci_tables(node));
    tables
}

fn tables_3(node: &Traits<'_>) -> Tables {
    let images = "plugins.'io.containerd.cri.v1.images'";
    let engine = "plugins.'io.containerd.cri.v1.runtime'";
    let (runtime, _) = runtime(node);
    let mut pulls = vec![("discard_unpacked_layers", "true".into())];
    pulls.extend(soci_keys(node));
    let mut tables = vec![
        grpc(),
        (images.into(), pulls),
        (format!("{images}.pinned_images"), vec![("sandbox", basic(node.sandbox))]),
        // Quoted differently in nodeadm's file, too.
        (
            "plugins.\"io.containerd.cri.v1.images\".registry".into(),
            vec![("config_path", basic(CERTS))],
        ),
        (engine.into(), vec![("enable_cdi", node.cdi.to_string())]),
        (format!("{engine}.containerd"), vec![("default_runtime_name", basic(runtime))]),
    ];
    tables.extend(runtime_tables(node, engine));
    tables.extend(soci_tables(node));
    tables
}

fn grpc() -> (String, Vec<(&'static str, String)>) {
    ("grpc".into(), vec![("address", basic("/run/containerd/containerd.sock"))])
}

/// The runtime's own tables and the CNI's, below the plugin that runs containers.
fn runtime_tables(node: &Traits<'_>, plugin: &str) -> Tables {
    let (name, binary) = runtime(node);
    let table = format!("{plugin}.containerd.runtimes.{name}");
    vec![
        (
            table.clone(),
            vec![
                ("runtime_type", basic("io.containerd.runc.v2")),
                ("base_runtime_spec", basic(runtime_spec::PATH)),
            ],
        ),
        (
            format!("{table}.options"),
            vec![("BinaryName", basic(binary)), ("SystemdCgroup", "true".into())],
        ),
        (
            format!("{plugin}.cni"),
            vec![("bin_dir", basic("/opt/cni/bin")), ("conf_dir", basic("/etc/cni/net.d"))],
        ),
    ]
}

fn soci_keys(node: &Traits<'_>) -> Vec<(&'static str, String)> {
    match node.soci {
        true => {
            vec![("snapshotter", basic("soci")), ("disable_snapshot_annotations", "false".into())]
        }
        false => Vec::new(),
    }
}

fn soci_tables(node: &Traits<'_>) -> Tables {
    if !node.soci {
        return Vec::new();
    }
    let plugin = vec![("type", basic("snapshot")), ("address", basic(soci::SOCKET))];
    let exports = vec![("root", basic("/var/lib/soci-snapshotter-grpc"))];
    vec![("proxy_plugins.soci".into(), plugin), ("proxy_plugins.soci.exports".into(), exports)]
}

/// containerd starts without the runtime it is told to use, and then no pod does.
fn check_runtime(config: &Table) -> Result<(), Problem> {
    let plugins = config.get("plugins");
    let engine = ["io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri"]
        .iter()
        .find_map(|name| plugins?.get(*name)?.get("containerd"));
    let name = engine.and_then(|table| table.get("default_runtime_name")).and_then(Value::as_str);
    let runtimes = engine.and_then(|table| table.get("runtimes"));
    match name.and_then(|name| runtimes?.get(name)) {
        Some(Value::Table(_)) => Ok(()),
        _ => Err(Problem::new(
            &codes::plan::NO_DEFAULT_RUNTIME,
            "the default runtime is not among containerd's runtimes",
        )
        .at(Place::field("spec.containerd.config"))),
    }
}

/// Judges what `containerd config migrate` printed, before it replaces a config that works.
pub(super) fn check_migrated(printed: &[u8]) -> Result<(), Problem> {
    let unusable = |cause: String| {
        let what = "`containerd config migrate` printed no config that containerd could load";
        Problem::new(&codes::plan::MIGRATION_UNUSABLE, what).cause(cause)
    };
    let text = std::str::from_utf8(printed).map_err(|_| unusable("it is not UTF-8".into()))?;
    let table = text.parse::<Table>().map_err(|error| unusable(error.message().into()))?;
    check_runtime(&table).map_err(|problem| unusable(problem.what.clone()))
}

fn has_secret(table: &Table) -> bool {
    let json = serde_json::to_value(table).unwrap_or_default();
    kubelet::names_a_secret(&json)
}

fn unreadable(message: &str) -> Problem {
    Problem::new(&codes::config::BAD_TOML, "containerd's config is not TOML")
        .at(Place::field("spec.containerd.config"))
        .cause(message)
}
