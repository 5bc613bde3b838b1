//! Rules about cloud-config: known modules, and the types of what they read.

use serde_json::Value;

use super::super::node::Kind;
use super::{Case, Level, at};
use crate::codes::inspect::U010;
use crate::nearest::nearest;
use crate::problem::Problem;

/// What a key's value must be.
#[derive(Clone, Copy, PartialEq)]
enum Type {
    List,
    Map,
    Bool,
    Text,
    /// Several types are accepted.
    Any,
}

/// Keys of cloud-init that have one type. Others that it knows are in [`ANY`].
const TYPED: &[(&str, Type)] = &[
    ("bootcmd", Type::List),
    ("runcmd", Type::List),
    ("write_files", Type::List),
    ("packages", Type::List),
    ("mounts", Type::List),
    ("mount_default_fields", Type::List),
    ("ssh_authorized_keys", Type::List),
    ("ssh_import_id", Type::List),
    ("ssh_genkeytypes", Type::List),
    ("fs_setup", Type::List),
    ("cloud_init_modules", Type::List),
    ("cloud_config_modules", Type::List),
    ("cloud_final_modules", Type::List),
    ("disk_setup", Type::Map),
    ("growpart", Type::Map),
    ("ssh_keys", Type::Map),
    ("swap", Type::Map),
    ("power_state", Type::Map),
    ("yum_repos", Type::Map),
    ("apt", Type::Map),
    ("chpasswd", Type::Map),
    ("resolv_conf", Type::Map),
    ("package_update", Type::Bool),
    ("package_upgrade", Type::Bool),
    ("package_reboot_if_required", Type::Bool),
    ("preserve_hostname", Type::Bool),
    ("disable_root", Type::Bool),
    ("ssh_deletekeys", Type::Bool),
    ("hostname", Type::Text),
    ("fqdn", Type::Text),
    ("timezone", Type::Text),
    ("final_message", Type::Text),
];

/// Further keys that cloud-init knows.
const ANY: &str = "allow_public_ssh_keys ansible apk_repos apt_pipelining apt_reboot_if_required \
    apt_sources apt_update apt_upgrade authkey_hash autoinstall byobu_by_default ca-certs ca_certs \
    chef create_hostname_file datasource device_aliases disable_ec2_metadata disable_root_opts \
    drivers fan groups grub-dpkg grub_dpkg keyboard landscape launch-index locale \
    locale_configfile lxd manage_etc_hosts manage_resolv_conf mcollective merge_how merge_type \
    migrate network no_ssh_fingerprints ntp output password phone_home \
    prefer_fqdn_over_hostname puppet random_seed reporting resize_rootfs rh_subscription rsyslog \
    salt_minion snap spacewalk ssh ssh_fp_console_blacklist ssh_key_console_blacklist \
    ssh_publish_hostkeys ssh_pwauth ssh_quiet_keygen system_info ubuntu_advantage ubuntu_pro \
    updates user users vendor_data version wireguard yum_repo_dir zypper";

pub(super) fn check(case: &mut Case<'_>) {
    for (trail, node) in case.nodes.clone() {
        if node.kind != Kind::CloudConfig {
            continue;
        }
        let mut report = |what: String, path: &str, fix: Option<String>| {
            let mut place = at(node, &trail, 0);
            place.path = path.to_owned();
            let mut problem = Problem::new(&U010, what).at(place);
            problem.fix = fix;
            case.add(Level::Error, problem);
        };
        if let Some(problem) = &node.problem {
            report(problem.what.clone(), &trail, None);
            continue;
        }
        let Some(Value::Object(map)) = &node.document else {
            report("the document is not a map of modules".into(), &trail, None);
            continue;
        };
        for (name, value) in map {
            if let Some((what, fix)) = wrong(name, value) {
                report(what, name, fix);
            }
        }
        for (index, file) in
            map.get("write_files").and_then(Value::as_array).into_iter().flatten().enumerate()
        {
            if !file.get("path").is_some_and(Value::is_string) {
                let what = "a file has no path".to_owned();
                report(what, &format!("write_files[{index}].path"), None);
            }
        }
    }
}

/// What is wrong with a key, and the name that was probably meant.
fn wrong(name: &str, value: &Value) -> Option<(String, Option<String>)> {
    let typed = TYPED.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
    let known = || TYPED.iter().map(|(name, _)| *name).chain(ANY.split_whitespace());
    let Some(kind) = typed.or_else(|| known().any(|known| known == name).then_some(Type::Any))
    else {
        let near = nearest(name, known()).map(|near| format!("did you mean `{near}`?"));
        return Some((format!("cloud-init has no module for `{name}`"), near));
    };
    let (fits, wanted) = match kind {
        Type::List => (value.is_array(), "a list"),
        Type::Map => (value.is_object(), "a map"),
        Type::Bool => (value.is_boolean(), "true or false"),
        Type::Text => (value.is_string(), "text"),
        Type::Any => (true, ""),
    };
    match (fits, value.is_null()) {
        (true, _) => None,
        (_, true) => Some((format!("`{name}` is null"), Some("leave the key out".into()))),
        _ => Some((format!("`{name}` must be {wanted}"), None)),
    }
}
