//! What a text is, by its first line, its media type, its path or its content.

use serde_json::Value;

use super::document;
use super::node::Kind;

/// First lines that cloud-init and EC2Launch know. The longer of two that match stands first.
const FIRST_LINES: &[(&str, Kind)] = &[
    ("## template:", Kind::Jinja),
    ("#cloud-config-archive", Kind::CloudConfigArchive),
    ("#cloud-config", Kind::CloudConfig),
    ("#cloud-boothook", Kind::Boothook),
    ("#include", Kind::Include),
    ("#part-handler", Kind::PartHandler),
    ("#!", Kind::Script),
];

/// Tags of EC2Launch. It finds them anywhere; here they count at the start of a line, so that a
/// template that quotes one stays a template.
const TAGS: &[(&str, Kind)] = &[("<powershell>", Kind::PowerShell), ("<script>", Kind::Batch)];

const MEDIA_TYPES: &[(&str, Kind)] = &[
    ("text/x-shellscript", Kind::Script),
    ("text/x-shellscript-per-boot", Kind::Script),
    ("text/x-shellscript-per-instance", Kind::Script),
    ("text/x-shellscript-per-once", Kind::Script),
    ("text/cloud-config", Kind::CloudConfig),
    ("text/cloud-config-archive", Kind::CloudConfigArchive),
    ("text/cloud-boothook", Kind::Boothook),
    ("text/x-include-url", Kind::Include),
    ("text/x-include-once-url", Kind::Include),
    ("text/part-handler", Kind::PartHandler),
    ("text/jinja2", Kind::Jinja),
    ("application/node.eks.aws", Kind::NodeConfig),
    ("application/tenon.dev", Kind::TenonConfig),
    ("application/vnd.tenon.config", Kind::TenonConfig),
];

/// Ends of file names.
const SUFFIXES: &[(&str, Kind)] = &[
    (".env", Kind::EnvFile),
    (".service", Kind::Unit),
    (".timer", Kind::Unit),
    (".socket", Kind::Unit),
    (".mount", Kind::Unit),
    (".target", Kind::Unit),
];

/// Kinds by the API group before the slash, and the kind where the group has several.
const API_GROUPS: &[(&str, &str, Kind)] = &[
    ("node.eks.aws", "NodeConfig", Kind::NodeConfig),
    ("tenon.dev", "NodeConfig", Kind::TenonConfig),
    ("kubelet.config.k8s.io", "KubeletConfiguration", Kind::KubeletConfiguration),
];

/// The kind that a MIME part claims.
pub(super) fn by_media_type(media_type: &str) -> Option<Kind> {
    find(MEDIA_TYPES, |name| name == media_type)
}

/// The kind by a text's first line or tag, as the consumers decide it.
pub(super) fn by_start(text: &str) -> Option<Kind> {
    let start = text.trim_start();
    let tag = |tag: &str| {
        text.lines().any(|line| line.get(..tag.len()).is_some_and(|s| s.eq_ignore_ascii_case(tag)))
    };
    find(FIRST_LINES, |line| start.starts_with(line)).or_else(|| {
        // A shell script that prints the tag is still a shell script: first lines go first.
        find(TAGS, tag)
    })
}

/// The kind of a file by its name.
pub(super) fn by_path(path: &str) -> Option<Kind> {
    let unit = path.contains("/systemd/system/") && path.ends_with(".conf");
    if unit { Some(Kind::Unit) } else { find(SUFFIXES, |suffix| path.ends_with(suffix)) }
}

/// The kind of a document, by what its tree holds.
pub(super) fn by_document(document: &Value) -> Kind {
    let text = |key: &str| document.get(key).and_then(Value::as_str).unwrap_or("");
    let group = text("apiVersion").split('/').next().unwrap_or("");
    let known = API_GROUPS.iter().find(|(api, kind, _)| *api == group && *kind == text("kind"));
    if let Some((_, _, kind)) = known {
        return *kind;
    }
    if document.get("clusters").is_some_and(Value::is_array) && text("kind") == "Config" {
        return Kind::Kubeconfig;
    }
    if document.pointer("/ignition/version").is_some() {
        return Kind::Ignition;
    }
    by_template(document)
}

fn by_template(document: &Value) -> Kind {
    let has = |key: &str| document.get(key).is_some();
    if document.get("Resources").is_some_and(Value::is_object) || has("TemplateBody") {
        return Kind::CloudFormation;
    }
    if has("terraform_version") || has("resource") && has("terraform") {
        return Kind::Terraform;
    }
    let embedded = document::user_data(document);
    if !embedded.is_empty() {
        let terraform = embedded.iter().all(|(path, _)| path.contains("user_data"));
        return if terraform { Kind::Terraform } else { Kind::LaunchTemplate };
    }
    if document.get("tasks").is_some_and(Value::is_array) && has("version") {
        return Kind::LaunchTasks;
    }
    Kind::Yaml
}

/// True for text that should be read as TOML settings.
pub(super) fn looks_like_settings(text: &str) -> bool {
    text.lines().map(str::trim_start).any(|line| {
        let rest = line.trim_start_matches('[').trim_start();
        rest.strip_prefix("settings").is_some_and(|rest| {
            rest.trim_start().starts_with(['.', ']'])
                || line.starts_with("settings") && rest.trim_start().starts_with('=')
        })
    })
}

fn find(table: &[(&str, Kind)], wanted: impl Fn(&str) -> bool) -> Option<Kind> {
    table.iter().find(|(name, _)| wanted(name)).map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn first_lines_decide() {
        for (text, kind) in [
            ("#cloud-config\na: 1", Some(Kind::CloudConfig)),
            ("#cloud-config-archive\n- a", Some(Kind::CloudConfigArchive)),
            ("#!/bin/bash\necho '<powershell>'", Some(Kind::Script)),
            ("  #!/bin/sh", Some(Kind::Script)),
            ("## template: jinja\n#cloud-config", Some(Kind::Jinja)),
            ("#include\nhttps://x", Some(Kind::Include)),
            ("<powershell>\nx\n</powershell>", Some(Kind::PowerShell)),
            ("<PowerShell>x</PowerShell>", Some(Kind::PowerShell)),
            ("<script>dir</script>", Some(Kind::Batch)),
            ("a: |\n  <powershell>\n  x", None),
            ("\n<persist>true</persist>\n<powershell>\n", Some(Kind::PowerShell)),
            ("# comment", None),
            ("", None),
        ] {
            assert_eq!(by_start(text), kind, "{text}");
        }
    }

    #[test]
    fn documents_are_known_by_their_keys() {
        for (document, kind) in [
            (
                json!({"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig"}),
                Kind::NodeConfig,
            ),
            (json!({"apiVersion": "tenon.dev/v1alpha1", "kind": "NodeConfig"}), Kind::TenonConfig),
            (
                json!({"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}),
                Kind::KubeletConfiguration,
            ),
            (json!({"apiVersion": "v1", "kind": "Config", "clusters": []}), Kind::Kubeconfig),
            (json!({"ignition": {"version": "3.3.0"}}), Kind::Ignition),
            (json!({"Resources": {}}), Kind::CloudFormation),
            (json!({"TemplateBody": {"Resources": {}}}), Kind::CloudFormation),
            (json!({"LaunchTemplateData": {"UserData": "YQ=="}}), Kind::LaunchTemplate),
            (json!({"UserData": {"Value": "YQ=="}}), Kind::LaunchTemplate),
            (json!({"terraform_version": "1.9.0"}), Kind::Terraform),
            (json!({"values": {"user_data_base64": "YQ=="}}), Kind::Terraform),
            (json!({"version": 1.0, "tasks": []}), Kind::LaunchTasks),
            (json!({"a": 1}), Kind::Yaml),
            (json!("text"), Kind::Yaml),
        ] {
            assert_eq!(by_document(&document), kind, "{document}");
        }
    }

    #[test]
    fn settings_are_known_before_they_parse() {
        for (text, settings) in [
            ("[settings.kubernetes]\na = 1", true),
            ("  [settings]\n", true),
            ("settings.kubernetes.max-pods = 3", true),
            ("[[settings.x]]", true),
            ("settings = {}", true),
            ("[settingsx]", false),
            ("settings: 1", false),
            ("a = 'settings.'", false),
        ] {
            assert_eq!(looks_like_settings(text), settings, "{text}");
        }
    }

    #[test]
    fn files_are_known_by_name() {
        assert_eq!(by_path("/etc/eksctl/kubelet.env"), Some(Kind::EnvFile));
        assert_eq!(by_path("/etc/systemd/system/kubelet.service.d/10-x.conf"), Some(Kind::Unit));
        assert_eq!(by_path("/etc/containerd/x.conf"), None);
        assert_eq!(by_media_type("text/x-shellscript-per-boot"), Some(Kind::Script));
        assert_eq!(by_media_type("text/plain"), None);
    }
}
