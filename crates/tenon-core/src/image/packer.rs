//! Templates for Packer, from the same config as the plan: one build machine, on which Tenon
//! itself does the work. One description is written in two notations.

use serde_json::{Map, Value, json};

use super::config::Packer;
use super::plan::ImagePlan;

/// A value of the template in either notation.
#[derive(Debug, Clone)]
enum Expr {
    Text(String),
    Number(u32),
    Flag(bool),
    Variable(&'static str),
    /// A variable, and words behind it.
    Begins(&'static str, &'static str),
    /// The image that the build machine was started from, between words.
    Source(String, &'static str),
    List(Vec<Expr>),
    /// A map that is the value of an argument.
    Map(Vec<(&'static str, Expr)>),
    /// A map that is a nested block in HCL.
    Block(Vec<(&'static str, Expr)>),
    /// A block that may be repeated: a list in JSON.
    Repeated(Vec<(&'static str, Expr)>),
}

use Expr::{Begins, Block, Flag, List, Number, Repeated, Source, Text, Variable};

/// A variable of the template.
struct Declared {
    name: &'static str,
    default: Expr,
    about: &'static str,
}

/// Where the published image of a family is found, and what is fixed on it.
struct Published {
    family: &'static str,
    owner: &'static str,
    /// `{arch}`, `{goarch}` and `{release}` are filled in.
    name: &'static str,
    user: &'static str,
    disk: &'static str,
}

const PUBLISHED: &[Published] = &[
    Published {
        family: "al2023",
        owner: "amazon",
        name: "al2023-ami-minimal-2023.*-{arch}",
        user: "ec2-user",
        disk: "/dev/xvda",
    },
    Published {
        family: "debian",
        owner: "136693071363",
        name: "debian-{release}-{goarch}-*",
        user: "admin",
        disk: "/dev/xvda",
    },
    Published {
        family: "ubuntu",
        owner: "099720109477",
        name: "ubuntu/images/*/ubuntu-*-{release}-{goarch}-server-*",
        user: "ubuntu",
        disk: "/dev/sda1",
    },
];

/// Packer's names of Debian's releases.
const DEBIAN: &[(&str, &str)] = &[("bookworm", "12"), ("trixie", "13")];

const BINARY: &str = "/tmp/tenon";
const PLAN: &str = "/tmp/plan.json";
const CACHE: &str = "/var/tmp/tenon-cache";
const MANIFEST: &str = "/usr/lib/tenon/image/manifest.json";
const SBOM: &str = "/usr/lib/tenon/image/sbom.spdx.json";

/// The legacy template.
pub fn json(plan: &ImagePlan, packer: &Packer) -> Value {
    let variables = declared(plan, packer).into_iter();
    let variables = variables.map(|one| (one.name.to_owned(), json!(plain(&one.default))));
    let mut builder = vec![("type", text("amazon-ebs"))];
    builder.extend(machine(plan));
    let steps = provisioners().into_iter().map(|(kind, fields)| {
        let mut step = vec![("type", text(kind))];
        step.extend(fields);
        to_json(&Expr::Map(step))
    });
    json!({
        "variables": variables.collect::<Map<_, _>>(),
        "builders": [to_json(&Expr::Map(builder))],
        "provisioners": steps.collect::<Vec<_>>(),
        "post-processors": [{"type": "manifest", "output": "packer-manifest.json"}],
    })
}

/// The same in HCL2.
pub fn hcl(plan: &ImagePlan, packer: &Packer) -> String {
    let mut out = String::from(
        "packer {\n  required_plugins {\n    amazon = {\n      \
         source  = \"github.com/hashicorp/amazon\"\n      version = \">= 1.3.0\"\n    }\n  }\n}\n",
    );
    for one in declared(plan, packer) {
        let kind = match one.default {
            Number(_) => "number",
            Flag(_) => "bool",
            _ => "string",
        };
        out.push_str(&format!(
            "\nvariable \"{}\" {{\n  type        = {kind}\n  default     = {}\n  description = {}\n}}\n",
            one.name,
            to_hcl(&one.default, 1),
            quoted(one.about),
        ));
    }
    out.push_str("\nsource \"amazon-ebs\" \"node\" {\n");
    fields(&machine(plan), 1, &mut out);
    out.push_str("}\n\nbuild {\n  sources = [\"source.amazon-ebs.node\"]\n");
    for (kind, arguments) in provisioners() {
        out.push_str(&format!("\n  provisioner \"{kind}\" {{\n"));
        fields(&arguments, 2, &mut out);
        out.push_str("  }\n");
    }
    out.push_str(
        "\n  post-processor \"manifest\" {\n    output = \"packer-manifest.json\"\n  }\n}\n",
    );
    out
}

fn text(words: &str) -> Expr {
    Text(words.to_owned())
}

fn published(plan: &ImagePlan) -> &'static Published {
    let own = PUBLISHED.iter().find(|one| one.family == plan.family.name);
    own.unwrap_or(&PUBLISHED[0])
}

fn go_architecture(plan: &ImagePlan) -> &'static str {
    if plan.architecture == "aarch64" { "arm64" } else { "amd64" }
}

fn declared(plan: &ImagePlan, packer: &Packer) -> Vec<Declared> {
    let from = published(plan);
    let number = DEBIAN.iter().find(|(word, _)| *word == plan.release).map(|(_, number)| *number);
    let source = from
        .name
        .replace("{release}", number.unwrap_or(&plan.release))
        .replace("{goarch}", go_architecture(plan))
        .replace("{arch}", architecture(plan));
    let machine = if plan.architecture == "aarch64" { "m7g.large" } else { "m7i.large" };
    let volume = packer.volume_type.clone().unwrap_or_else(|| "gp3".to_owned());
    let one = |name, default, about| Declared { name, default, about };
    vec![
        one(
            "ami_name",
            Text(format!("{}-{}", plan.name, plan.kubernetes)),
            "Name of the image; the time is added",
        ),
        one("associate_public_ip", Flag(false), "Whether the build machine has a public address"),
        one(
            "encrypt",
            Flag(packer.encrypt.unwrap_or(true)),
            "Whether the root volume is encrypted",
        ),
        one("instance_type", text(machine), "Type of the build machine"),
        one("kms_key_id", text(""), "Key of the encryption; empty means the account's own"),
        one("plan_file", text("plan.json"), "What `tenon image plan --output json` printed"),
        one("poll_attempts", Number(120), "How often a copy is asked for before it is given up"),
        one("poll_delay", Number(30), "Seconds between two questions"),
        one("region", text("us-east-1"), "Region of the build"),
        one("security_group_id", text(""), "Security group; empty means one made for the build"),
        one(
            "source_ami_name",
            Text(source),
            "Name of the image to start from; the newest is taken",
        ),
        one("source_ami_owner", text(from.owner), "Who publishes that image"),
        one("ssh_username", text(from.user), "User of that image"),
        one("subnet_id", text(""), "Subnet; empty means the default one"),
        one("tenon_binary", text("tenon"), "Static binary of Tenon for the build machine"),
        one(
            "volume_size",
            Number(packer.root_volume_gib.unwrap_or(20)),
            "Size of the root volume in GiB",
        ),
        one("volume_type", Text(volume), "Type of the root volume"),
    ]
}

/// AWS's word for the architecture.
fn architecture(plan: &ImagePlan) -> &'static str {
    if plan.architecture == "aarch64" { "arm64" } else { "x86_64" }
}

/// Arguments of the one builder.
fn machine(plan: &ImagePlan) -> Vec<(&'static str, Expr)> {
    let filters = Expr::Map(vec![
        ("architecture", text(architecture(plan))),
        ("name", Variable("source_ami_name")),
        ("root-device-type", text("ebs")),
        ("virtualization-type", text("hvm")),
    ]);
    let tags = Expr::Map(vec![
        ("tenon-kubernetes", text(&plan.kubernetes)),
        ("tenon-plan", text(plan.hash().get(..16).unwrap_or_default())),
        ("tenon-profiles", Text(plan.profiles.join(" "))),
    ]);
    vec![
        (
            "ami_description",
            Text(format!("Kubernetes {} node, {}", plan.kubernetes, plan.family.name)),
        ),
        ("ami_name", Begins("ami_name", "-{{timestamp}}")),
        ("associate_public_ip_address", Variable("associate_public_ip")),
        (
            "aws_polling",
            Block(vec![
                ("delay_seconds", Variable("poll_delay")),
                ("max_attempts", Variable("poll_attempts")),
            ]),
        ),
        ("imds_support", text("v2.0")),
        ("instance_type", Variable("instance_type")),
        (
            "launch_block_device_mappings",
            Repeated(vec![
                ("delete_on_termination", Flag(true)),
                ("device_name", text(published(plan).disk)),
                ("encrypted", Variable("encrypt")),
                ("kms_key_id", Variable("kms_key_id")),
                ("volume_size", Variable("volume_size")),
                ("volume_type", Variable("volume_type")),
            ]),
        ),
        (
            "metadata_options",
            Block(vec![
                ("http_endpoint", text("enabled")),
                ("http_put_response_hop_limit", Number(1)),
                ("http_tokens", text("required")),
            ]),
        ),
        ("region", Variable("region")),
        ("security_group_id", Variable("security_group_id")),
        (
            "source_ami_filter",
            Block(vec![
                ("filters", filters),
                ("most_recent", Flag(true)),
                ("owners", List(vec![Variable("source_ami_owner")])),
            ]),
        ),
        ("ssh_username", Variable("ssh_username")),
        ("subnet_id", Variable("subnet_id")),
        ("tags", tags),
    ]
}

/// Tenon itself does the work. Manifest and SBOM are fetched before the seal, which removes the
/// keys of the build's own connection.
fn provisioners() -> Vec<(&'static str, Vec<(&'static str, Expr)>)> {
    let up = |from, to| ("file", vec![("destination", text(to)), ("source", Variable(from))]);
    let down = |from: &str, to: &str| {
        let fields = vec![
            ("destination", text(to)),
            ("direction", text("download")),
            ("source", text(from)),
        ];
        ("file", fields)
    };
    let lines = |lines: Vec<Expr>| ("shell", vec![("inline", List(lines))]);
    let tenon = "sudo /usr/bin/tenon image";
    vec![
        up("tenon_binary", BINARY),
        up("plan_file", PLAN),
        lines(vec![
            Text(format!("sudo install -m 0755 {BINARY} /usr/bin/tenon")),
            Text(format!("{tenon} fetch --plan {PLAN} --root / --cache {CACHE}")),
            Text(format!("{tenon} apply --plan {PLAN} --root / --cache {CACHE} --offline")),
            Text(format!("{tenon} verify --root /")),
            Source(
                format!("{tenon} manifest --root / --sbom spdx --cache {CACHE} --source-image "),
                " > /dev/null",
            ),
            Text(format!("sudo rm -rf {CACHE} {BINARY} {PLAN}")),
        ]),
        down(MANIFEST, "manifest.json"),
        down(SBOM, "sbom.spdx.json"),
        lines(vec![Text(format!("{tenon} seal --root /"))]),
    ]
}

/// The default of a legacy variable, which is always text.
fn plain(expr: &Expr) -> String {
    match expr {
        Text(words) => words.clone(),
        Number(number) => number.to_string(),
        Flag(flag) => flag.to_string(),
        _ => String::new(),
    }
}

fn to_json(expr: &Expr) -> Value {
    match expr {
        Text(words) => json!(words),
        Number(number) => json!(number),
        Flag(flag) => json!(flag),
        Variable(name) => json!(format!("{{{{user `{name}`}}}}")),
        Begins(name, rest) => json!(format!("{{{{user `{name}`}}}}{rest}")),
        Source(before, after) => json!(format!("{before}{{{{build `SourceAMI`}}}}{after}")),
        List(list) => list.iter().map(to_json).collect(),
        Expr::Map(fields) | Block(fields) => object(fields),
        Repeated(fields) => json!([object(fields)]),
    }
}

fn object(fields: &[(&'static str, Expr)]) -> Value {
    fields.iter().map(|(name, value)| ((*name).to_owned(), to_json(value))).collect()
}

fn fields(list: &[(&'static str, Expr)], depth: usize, out: &mut String) {
    let pad = "  ".repeat(depth);
    for (name, value) in list {
        match value {
            Block(inner) | Repeated(inner) => {
                out.push_str(&format!("{pad}{name} {{\n"));
                fields(inner, depth + 1, out);
                out.push_str(&format!("{pad}}}\n"));
            }
            value => out.push_str(&format!("{pad}{name} = {}\n", to_hcl(value, depth))),
        }
    }
}

fn to_hcl(expr: &Expr, depth: usize) -> String {
    let pad = "  ".repeat(depth);
    match expr {
        Text(words) => quoted(words),
        Number(number) => number.to_string(),
        Flag(flag) => flag.to_string(),
        Variable(name) => format!("var.{name}"),
        Begins(name, rest) => format!("\"${{var.{name}}}{rest}\""),
        // Both are words of ours, without anything to escape.
        Source(before, after) => format!("\"{before}${{build.SourceAMI}}{after}\""),
        List(list) => {
            let items: Vec<_> = list.iter().map(|one| to_hcl(one, depth + 1)).collect();
            match items.len() {
                0 | 1 => format!("[{}]", items.concat()),
                _ => format!("[\n{pad}  {},\n{pad}]", items.join(&format!(",\n{pad}  "))),
            }
        }
        Expr::Map(inner) | Block(inner) | Repeated(inner) => {
            let mut out = String::from("{\n");
            for (name, value) in inner {
                out.push_str(&format!("{pad}  {} = {}\n", quoted(name), to_hcl(value, depth + 1)));
            }
            out + &pad + "}"
        }
    }
}

/// Words as HCL writes them; what would begin an interpolation is doubled.
fn quoted(words: &str) -> String {
    let escaped = words.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{}\"", escaped.replace("${", "$${").replace("%{", "%%{"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::config::ImageConfig;
    use crate::image::{family, plan};

    fn plan(family: &str) -> ImagePlan {
        let config = ImageConfig { family: family::find(family), ..ImageConfig::default() };
        plan::resolve(&config.wanted(None, Vec::new()).unwrap()).unwrap()
    }

    /// Keys that the amazon-ebs builder knows and this template may use.
    const KNOWN: &[&str] = &[
        "ami_description",
        "ami_name",
        "associate_public_ip_address",
        "aws_polling",
        "imds_support",
        "instance_type",
        "launch_block_device_mappings",
        "metadata_options",
        "region",
        "security_group_id",
        "source_ami_filter",
        "ssh_username",
        "subnet_id",
        "tags",
        "type",
    ];

    #[test]
    fn the_legacy_template_is_whole() {
        for family in family::FAMILIES {
            let plan = plan(family.name);
            let text = json(&plan, &Packer::default()).to_string();
            let back: Value = serde_json::from_str(&text).unwrap();
            let variables = back["variables"].as_object().unwrap();
            assert!(variables.len() <= 25 && variables.values().all(Value::is_string));
            let builder = back["builders"][0].as_object().unwrap();
            assert!(builder.keys().all(|key| KNOWN.contains(&key.as_str())), "{builder:?}");
            assert_eq!(builder["metadata_options"]["http_tokens"], "required");
            // Every variable that is used is declared, and the reverse.
            for name in variables.keys() {
                assert!(text.contains(&format!("{{{{user `{name}`}}}}")), "{name} is not used");
            }
            for used in text.split("{{user `").skip(1) {
                assert!(variables.contains_key(used.split('`').next().unwrap()));
            }
        }
    }

    #[test]
    fn config_becomes_defaults() {
        let packer = Packer {
            root_volume_gib: Some(50),
            volume_type: Some("io2".into()),
            encrypt: Some(false),
        };
        let variables = json(&plan("debian"), &packer)["variables"].clone();
        assert_eq!(variables["volume_size"], "50");
        assert_eq!(
            (&variables["volume_type"], &variables["encrypt"]),
            (&json!("io2"), &json!("false"))
        );
        assert_eq!(variables["source_ami_name"], "debian-12-amd64-*");
    }

    #[test]
    fn hcl_is_balanced_and_uses_what_it_declares() {
        let text = hcl(&plan("al2023"), &Packer::default());
        let mut open = Vec::new();
        for line in text.lines() {
            let mut inside = false;
            let mut before = ' ';
            for c in line.chars() {
                match c {
                    '"' if before != '\\' => inside = !inside,
                    '{' | '[' if !inside => open.push(c),
                    '}' if !inside => assert_eq!(open.pop(), Some('{'), "{line}"),
                    ']' if !inside => assert_eq!(open.pop(), Some('['), "{line}"),
                    _ => {}
                }
                before = c;
            }
            assert!(!inside, "a string does not end: {line}");
        }
        assert!(open.is_empty());
        let declared: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("variable \"")?.strip_suffix("\" {"))
            .collect();
        assert!(declared.len() > 10);
        for name in &declared {
            assert!(text.contains(&format!("var.{name}")), "{name} is not used");
        }
        for used in text.split("var.").skip(1) {
            let name: String =
                used.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
            assert!(declared.contains(&name.as_str()), "{name} is not declared");
        }
    }

    #[test]
    fn words_cannot_interpolate() {
        assert_eq!(quoted("a\"${b}\\%{c}\n"), "\"a\\\"$${b}\\\\%%{c}\\n\"");
    }

    #[test]
    fn both_notations_run_the_same_commands() {
        let plan = plan("ubuntu");
        let (json, hcl) = (json(&plan, &Packer::default()), hcl(&plan, &Packer::default()));
        for line in json["provisioners"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|p| p["inline"].as_array())
            .flatten()
        {
            let line = quoted(line.as_str().unwrap());
            let line = line.replace("{{build `SourceAMI`}}", "${build.SourceAMI}");
            assert!(hcl.contains(&line), "{line}");
        }
    }
}
