//! Where user data is read from, and how its bytes are printed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use tenon_core::codes::{self, inspect::BAD_PARAMETER, inspect::SEVERAL_DOCUMENTS};
use tenon_core::problem::Problem;
use tenon_core::userdata::Cluster;
use tenon_core::userdata::input::cluster_json;
use tenon_core::userdata::inspect::read::SOURCE_BYTES;
use tenon_core::userdata::inspect::{self, Node, Options};

use crate::output::Failure;

#[derive(Debug, clap::Args)]
pub struct SourceArgs {
    /// User data or a template that embeds it; - for standard input
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// A launch template as EC2 describes it
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    launch_template_json: Option<PathBuf>,
    /// Value of a parameter of a CloudFormation template; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    parameter: Vec<String>,
}

impl SourceArgs {
    pub fn read(&self) -> Result<Node, Problem> {
        let path = self.launch_template_json.as_ref().unwrap_or(&self.file);
        let options = Options { parameters: self.parameters()? };
        inspect::read(&uri(path), bytes(path)?, &options)
    }

    fn parameters(&self) -> Result<BTreeMap<String, String>, Problem> {
        let pair = |text: &String| {
            let (name, value) = text
                .split_once('=')
                .ok_or_else(|| Problem::new(&BAD_PARAMETER, "a parameter has no `=`"))?;
            Ok((name.to_owned(), value.to_owned()))
        };
        self.parameter.iter().map(pair).collect()
    }
}

/// One user data of a source that may hold several.
#[derive(Debug, clap::Args)]
pub struct DocumentArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Which user data of a template, by its path
    #[arg(long, value_name = "PATH")]
    document: Option<String>,
}

impl DocumentArgs {
    pub fn read(&self) -> Result<Node, Problem> {
        let root = self.source.read()?;
        let documents = root.documents();
        let chosen: Vec<&&Node> = match &self.document {
            Some(path) => documents.iter().filter(|node| &node.name == path).collect(),
            None => documents.iter().collect(),
        };
        match &chosen[..] {
            [one] => Ok((**one).clone()),
            list => {
                let what = match (list.is_empty(), documents.len()) {
                    (true, 0) => "the template embeds no user data".to_owned(),
                    (true, _) => "the template embeds no user data at that path".to_owned(),
                    (false, count) => format!("the template embeds {count} user data"),
                };
                let names = documents.iter().map(|node| node.name.clone());
                Err(Problem::new(&SEVERAL_DOCUMENTS, what).details(names))
            }
        }
    }
}

fn uri(path: &Path) -> String {
    if path == Path::new("-") { "stdin:".into() } else { format!("file://{}", path.display()) }
}

/// Reads a file or standard input, one byte beyond the limit at most.
pub fn bytes(path: &Path) -> Result<Vec<u8>, Problem> {
    let limit = SOURCE_BYTES as u64 + 1;
    let mut found = Vec::new();
    let read = match path == Path::new("-") {
        true => io::stdin().lock().take(limit).read_to_end(&mut found),
        false => File::open(path).and_then(|file| file.take(limit).read_to_end(&mut found)),
    };
    match read {
        Ok(_) => Ok(found),
        Err(error) => {
            let what = format!("reading {}", uri(path));
            Err(Problem::new(&codes::host::FILE_READ, what).cause(error))
        }
    }
}

/// The cluster that DescribeCluster's answer describes.
pub fn cluster(path: Option<&Path>) -> Result<Option<Cluster>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes(path)?).into_owned();
    let cluster = cluster_json::read(&text, &uri(path))
        .map_err(|findings| Failure::Findings { findings, lenient: false })?;
    Ok(Some(cluster))
}
