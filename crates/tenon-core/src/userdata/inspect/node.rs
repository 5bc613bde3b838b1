//! The tree of what user data holds: layers, parts, files, commands.

use serde_json::{Value, json};

use crate::decode::Framing;
use crate::problem::{Place, Problem};

/// One layer, part, file or command.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Node {
    pub kind: Kind,
    /// How its parent calls it: `part 2`, `write_files[0]`; empty for a layer's content.
    pub name: String,
    pub media_type: Option<String>,
    /// Where the content goes on the node, when it is a file.
    pub path: Option<String>,
    pub mode: Option<String>,
    /// The name of a MIME part, by which cloud-init orders scripts.
    pub filename: Option<String>,
    /// Source, part and layers.
    pub place: Place,
    pub bytes: Vec<u8>,
    /// The content as a tree, when it is a document.
    pub document: Option<Value>,
    /// What is broken about a message or its part.
    pub framing: Vec<Framing>,
    /// Why the content could not be read further.
    pub problem: Option<Problem>,
    pub children: Vec<Node>,
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Kind {
    Empty,
    Base64,
    Gzip,
    /// A JSON string, as `--query … --output json` prints one.
    Quoted,
    Mime,
    CloudConfig,
    CloudConfigArchive,
    Boothook,
    Script,
    /// One entry of `runcmd` or `bootcmd`.
    Command,
    Include,
    PartHandler,
    Jinja,
    PowerShell,
    Batch,
    /// EC2Launch v2 tasks.
    LaunchTasks,
    Ignition,
    Settings,
    NodeConfig,
    TenonConfig,
    KubeletConfiguration,
    Kubeconfig,
    CloudFormation,
    LaunchTemplate,
    Terraform,
    EnvFile,
    Unit,
    Certificate,
    Json,
    Yaml,
    #[default]
    Text,
    /// Bytes of no known meaning.
    Opaque,
}

/// How each kind is called.
const NAMES: &[(Kind, &str)] = &[
    (Kind::Empty, "empty"),
    (Kind::Base64, "base64"),
    (Kind::Gzip, "gzip"),
    (Kind::Quoted, "JSON string"),
    (Kind::Mime, "MIME message"),
    (Kind::CloudConfig, "cloud-config"),
    (Kind::CloudConfigArchive, "cloud-config archive"),
    (Kind::Boothook, "boothook"),
    (Kind::Script, "script"),
    (Kind::Command, "command"),
    (Kind::Include, "include list"),
    (Kind::PartHandler, "part handler"),
    (Kind::Jinja, "jinja template"),
    (Kind::PowerShell, "PowerShell"),
    (Kind::Batch, "batch script"),
    (Kind::LaunchTasks, "EC2Launch tasks"),
    (Kind::Ignition, "Ignition"),
    (Kind::Settings, "Bottlerocket settings"),
    (Kind::NodeConfig, "NodeConfig"),
    (Kind::TenonConfig, "Tenon config"),
    (Kind::KubeletConfiguration, "KubeletConfiguration"),
    (Kind::Kubeconfig, "kubeconfig"),
    (Kind::CloudFormation, "CloudFormation template"),
    (Kind::LaunchTemplate, "launch template"),
    (Kind::Terraform, "Terraform JSON"),
    (Kind::EnvFile, "environment file"),
    (Kind::Unit, "systemd unit"),
    (Kind::Certificate, "certificates"),
    (Kind::Json, "JSON"),
    (Kind::Yaml, "YAML"),
    (Kind::Text, "text"),
    (Kind::Opaque, "opaque"),
];

impl Kind {
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(kind, _)| *kind == self).map_or("text", |(_, name)| name)
    }

    /// Encodings around the content, which is the node's only child.
    pub fn is_layer(self) -> bool {
        matches!(self, Kind::Base64 | Kind::Gzip | Kind::Quoted)
    }

    /// Documents that hold user data without being user data.
    pub fn is_template(self) -> bool {
        matches!(self, Kind::CloudFormation | Kind::LaunchTemplate | Kind::Terraform)
    }
}

impl Node {
    /// The content as text; damaged characters are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The content below encodings: the node that says something.
    pub fn core(&self) -> &Node {
        let mut node = self;
        while node.kind.is_layer() {
            let Some(inner) = node.children.first() else { break };
            node = inner;
        }
        node
    }

    /// The user data in this node: itself, or what each template inside embeds.
    pub fn documents(&self) -> Vec<&Node> {
        let core = self.core();
        if !core.kind.is_template() {
            return vec![self];
        }
        core.children.iter().flat_map(Node::documents).collect()
    }

    /// Every node, parents first, with its trail: the names on the way to it.
    pub fn walk(&self) -> Vec<(String, &Node)> {
        let mut found = Vec::new();
        self.visit("", &mut found);
        found
    }

    fn visit<'a>(&'a self, above: &str, found: &mut Vec<(String, &'a Node)>) {
        let trail = match (above.is_empty(), self.name.is_empty()) {
            (_, true) => above.to_owned(),
            (true, false) => self.name.clone(),
            (false, false) => format!("{above} / {}", self.name),
        };
        found.push((trail.clone(), self));
        self.children.iter().for_each(|child| child.visit(&trail, found));
    }

    /// The tree as text, one line for each node.
    pub fn outline(&self) -> String {
        let mut out = String::new();
        self.draw(0, &mut out);
        out
    }

    fn draw(&self, depth: usize, out: &mut String) {
        let mut words = Vec::new();
        words.extend((!self.name.is_empty()).then(|| self.name.clone()));
        words.push(self.kind.name().to_owned());
        words.extend(self.media_type.as_ref().map(|media| format!("({media})")));
        words.push(format!("{} bytes", self.bytes.len()));
        words.extend(self.path.as_ref().map(|path| format!("→ {path}")));
        words.extend(self.mode.as_ref().map(|mode| format!("mode {mode}")));
        words.extend(self.problem.as_ref().map(|problem| format!("! {}", problem.what)));
        out.push_str(&format!("{}{}\n", "  ".repeat(depth), words.join("  ")));
        self.children.iter().for_each(|child| child.draw(depth + 1, out));
    }

    pub fn to_json(&self) -> Value {
        let mut json = json!({
            "kind": self.kind.name(),
            "bytes": self.bytes.len(),
            "children": self.children.iter().map(Node::to_json).collect::<Vec<_>>(),
        });
        let fields = [
            ("name", Some(&self.name).filter(|name| !name.is_empty())),
            ("mediaType", self.media_type.as_ref()),
            ("path", self.path.as_ref()),
            ("mode", self.mode.as_ref()),
            ("filename", self.filename.as_ref()),
        ];
        for (key, value) in fields.into_iter().filter_map(|(key, value)| Some((key, value?))) {
            json[key] = json!(value);
        }
        if let Some(problem) = &self.problem {
            json["problem"] = problem.to_json();
        }
        json
    }
}
