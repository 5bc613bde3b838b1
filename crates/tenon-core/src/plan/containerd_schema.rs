//! Schemas of containerd's config: which one a user's TOML is written in, and the way from 2
//! to 3.

use toml::{Table, Value};

use crate::codes;
use crate::problem::{Place, Problem};

const CRI: &str = "io.containerd.grpc.v1.cri";
const IMAGES: &str = "io.containerd.cri.v1.images";
const RUNTIME: &str = "io.containerd.cri.v1.runtime";

/// A schema that Tenon has tables for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schema {
    V2,
    V3,
}

impl Schema {
    pub(crate) fn number(self) -> u32 {
        match self {
            Schema::V2 => 2,
            Schema::V3 => 3,
        }
    }

    /// True if the daemon's own schema is this one.
    pub(crate) fn is_native(self, daemon_has_3: bool) -> bool {
        (self == Schema::V3) == daemon_has_3
    }
}

/// Chooses the template that a user's TOML is merged over.
pub(crate) fn choose(user: &Table, daemon_has_3: bool) -> Result<Schema, Problem> {
    let version = user.get("version").map(|value| value.as_integer().unwrap_or(0));
    let plugins = user.get("plugins").and_then(Value::as_table);
    let has_tables_3 =
        [IMAGES, RUNTIME].iter().any(|name| plugins.is_some_and(|p| p.contains_key(*name)));
    match (daemon_has_3, version, has_tables_3) {
        (_, Some(version), _) if version != 2 && version != 3 => Err(refusal(
            &codes::plan::CONTAINERD_SCHEMA,
            "containerd's config is of a schema that is neither 2 nor 3",
        )),
        (false, Some(3), _) | (false, _, true) => Err(refusal(
            &codes::plan::CONTAINERD_TOO_OLD,
            "containerd's config is of schema 3, the daemon is older than 2.0",
        )),
        (true, Some(3), _) | (true, _, true) => Ok(Schema::V3),
        (true, None, _) if user.is_empty() => Ok(Schema::V3),
        _ => Ok(Schema::V2),
    }
}

fn refusal(page: &'static codes::Page, what: &str) -> Problem {
    Problem::new(page, what).at(Place::field("spec.containerd.config"))
}

/// What became of a schema 2 document.
#[derive(Debug, PartialEq)]
pub(crate) enum Translation {
    Done(Table),
    /// Holds a table that only containerd can translate; given back as it was.
    Unknown(Table),
}

/// Top-level keys that mean the same in both schemas.
const SAME_KEYS: [&str; 16] = [
    "cgroup",
    "debug",
    "disabled_plugins",
    "grpc",
    "imports",
    "metrics",
    "oom_score",
    "plugin_dir",
    "proxy_plugins",
    "required_plugins",
    "root",
    "state",
    "stream_processors",
    "temp",
    "timeouts",
    "ttrpc",
];

/// Plugins whose tables mean the same in both schemas.
const SAME_PLUGINS: [&str; 13] = [
    "io.containerd.gc.v1.scheduler",
    "io.containerd.internal.v1.opt",
    "io.containerd.internal.v1.restart",
    "io.containerd.metadata.v1.bolt",
    "io.containerd.nri.v1.nri",
    "io.containerd.service.v1.diff-service",
    "io.containerd.service.v1.tasks-service",
    "io.containerd.snapshotter.v1.blockfile",
    "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper",
    "io.containerd.snapshotter.v1.native",
    "io.containerd.snapshotter.v1.overlayfs",
    "io.containerd.snapshotter.v1.zfs",
];

/// Translates a schema 2 document to schema 3.
pub(crate) fn translate(mut config: Table) -> Translation {
    if !is_known(&config) {
        return Translation::Unknown(config);
    }
    config.insert("version".into(), Value::Integer(3));
    if let Some(Value::Table(plugins)) = config.get_mut("plugins")
        && let Some(Value::Table(cri)) = plugins.remove(CRI)
    {
        for (name, table) in split_cri(cri) {
            plugins.insert(name.into(), Value::Table(table));
        }
    }
    Translation::Done(config)
}

fn is_known(config: &Table) -> bool {
    config.iter().all(|(key, value)| match (key.as_str(), value) {
        ("version", _) => true,
        ("plugins", Value::Table(plugins)) => {
            plugins.keys().all(|name| name == CRI || SAME_PLUGINS.contains(&name.as_str()))
        }
        (key, _) => SAME_KEYS.contains(&key),
    })
}

/// Where a key of the old CRI table goes.
enum Home {
    Images,
    Server,
    Runtime,
}

fn home(key: &str) -> Home {
    match key {
        "registry" | "image_decryption" | "max_concurrent_downloads" | "stats_collect_period" => {
            Home::Images
        }
        key if key.starts_with("image_pull_") => Home::Images,
        "disable_tcp_service" | "enable_tls_streaming" | "x509_key_pair_streaming" => Home::Server,
        key if key.starts_with("stream_") => Home::Server,
        _ => Home::Runtime,
    }
}

/// Takes the old CRI table apart into the tables that replace it; empty ones are left out.
fn split_cri(cri: Table) -> Vec<(&'static str, Table)> {
    let (mut images, mut server, mut runtime) = (Table::new(), Table::new(), Table::new());
    for (key, value) in cri {
        match (key.as_str(), value) {
            ("sandbox_image", value) => {
                let pinned = Table::from_iter([("sandbox".to_owned(), value)]);
                images.insert("pinned_images".into(), Value::Table(pinned));
            }
            ("containerd", Value::Table(mut engine)) => {
                for key in
                    ["snapshotter", "disable_snapshot_annotations", "discard_unpacked_layers"]
                {
                    images.extend(engine.remove_entry(key));
                }
                runtime.insert(key, Value::Table(engine));
            }
            (_, value) => {
                let table = match home(&key) {
                    Home::Images => &mut images,
                    Home::Server => &mut server,
                    Home::Runtime => &mut runtime,
                };
                table.insert(key, value);
            }
        }
    }
    let tables = [(IMAGES, images), (CRI, server), (RUNTIME, runtime)];
    tables.into_iter().filter(|(_, table)| !table.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        text.parse().unwrap()
    }

    #[test]
    fn the_template_follows_daemon_and_user() {
        let v3_table = "[plugins.'io.containerd.cri.v1.images']\nsnapshotter = 'x'\n";
        let v2_table = "[plugins.'io.containerd.grpc.v1.cri']\nenable_cdi = true\n";
        let mention = "# io.containerd.cri.v1.images\noom_score = 1\n";
        let cases = [
            (true, "", Some(Schema::V3)),
            (true, v3_table, Some(Schema::V3)),
            (true, "version = 3", Some(Schema::V3)),
            (true, v2_table, Some(Schema::V2)),
            (true, "version = 2", Some(Schema::V2)),
            // A comment is not a table: what counts is the parsed text.
            (true, mention, Some(Schema::V2)),
            (true, "version = 1", None),
            (true, "version = 'x'", None),
            (false, "", Some(Schema::V2)),
            (false, v2_table, Some(Schema::V2)),
            (false, v3_table, None),
            (false, "version = 3", None),
        ];
        for (daemon_has_3, text, expected) in cases {
            assert_eq!(choose(&table(text), daemon_has_3).ok(), expected, "{daemon_has_3} {text}");
        }
    }

    #[test]
    fn keys_of_the_old_table_find_their_home() {
        let old = table(
            "version = 2\noom_score = -5\n[plugins.'io.containerd.grpc.v1.cri']\nsandbox_image = 'p'\n\
             enable_cdi = true\nmax_concurrent_downloads = 5\nimage_pull_progress_timeout = '5m'\n\
             stats_collect_period = 10\nstream_server_port = '0'\ndisable_tcp_service = true\n\
             [plugins.'io.containerd.grpc.v1.cri'.registry]\nconfig_path = '/c'\n\
             [plugins.'io.containerd.grpc.v1.cri'.containerd]\nsnapshotter = 's'\ndefault_runtime_name = 'runc'\n\
             [plugins.'io.containerd.grpc.v1.cri'.cni]\nbin_dir = '/b'\n",
        );
        let new = table(
            "version = 3\noom_score = -5\n[plugins.'io.containerd.cri.v1.images']\n\
             max_concurrent_downloads = 5\nimage_pull_progress_timeout = '5m'\nstats_collect_period = 10\nsnapshotter = 's'\n\
             [plugins.'io.containerd.cri.v1.images'.pinned_images]\nsandbox = 'p'\n\
             [plugins.'io.containerd.cri.v1.images'.registry]\nconfig_path = '/c'\n\
             [plugins.'io.containerd.grpc.v1.cri']\nstream_server_port = '0'\ndisable_tcp_service = true\n\
             [plugins.'io.containerd.cri.v1.runtime']\nenable_cdi = true\n\
             [plugins.'io.containerd.cri.v1.runtime'.containerd]\ndefault_runtime_name = 'runc'\n\
             [plugins.'io.containerd.cri.v1.runtime'.cni]\nbin_dir = '/b'\n",
        );
        assert_eq!(translate(old), Translation::Done(new));
    }

    #[test]
    fn unknown_tables_are_left_to_containerd() {
        for text in [
            "[plugins.'io.containerd.monitor.v1.cgroups']\nno_prometheus = true\n",
            "[new]\nx = 1\n",
        ] {
            assert_eq!(translate(table(text)), Translation::Unknown(table(text)));
        }
    }
}
