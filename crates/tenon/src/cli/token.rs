//! `tenon token`: bootstrap tokens of a cluster.

use std::time::Duration;

use serde_json::json;
use tenon_core::bootstrap_token::discovery::CaHash;
use tenon_core::bootstrap_token::secret::{Listed, USAGES, Wish};
use tenon_core::bootstrap_token::{Token, is_id};
use tenon_core::codes::cluster::{API_NOT_FOUND, BAD_KUBECONFIG};
use tenon_core::config::grammar;
use tenon_core::pki::Certificate;
use tenon_core::problem::Problem;
use tenon_host::cluster::tokens;

use super::Global;
use super::cluster_args::{ClusterArgs, now};
use crate::output::{self, Outcome};

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Make a token that machines can join with
    Create(CreateArgs),
    /// List the tokens of the cluster, without their secret half
    List(ListArgs),
    /// Delete tokens by their id
    Delete(DeleteArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: tenon token create --ttl 2h --print-join")]
pub struct CreateArgs {
    /// How long the token lives
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = ttl)]
    ttl: Duration,
    /// The token lives until it is deleted
    #[arg(long, conflicts_with = "ttl")]
    never_expires: bool,
    /// What it may be used for
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "authentication,signing"
    )]
    #[arg(value_parser = USAGES)]
    usages: Vec<String>,
    /// What it is for, in words
    #[arg(long, value_name = "TEXT", default_value = "")]
    description: String,
    /// Print what the config of a joining machine needs
    #[arg(long)]
    print_join: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: tenon token list --output json")]
pub struct ListArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: tenon token delete abcdef")]
pub struct DeleteArgs {
    /// Ids, or whole tokens
    #[arg(value_name = "ID", required = true, value_parser = id)]
    ids: Vec<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub fn run(command: &Command, global: &Global) -> Outcome {
    match command {
        Command::Create(args) => create(args, global),
        Command::List(args) => list(args, global),
        Command::Delete(args) => delete(args, global),
    }
}

fn create(args: &CreateArgs, global: &Global) -> Outcome {
    let wish = Wish {
        expires: (!args.never_expires).then(|| now().saturating_add(args.ttl.as_secs())),
        usages: args.usages.clone(),
        description: args.description.clone(),
    };
    let join = if args.print_join { Some(join(&args.cluster, global)?) } else { None };
    let token = tokens::create(&args.cluster.client(global)?, &wish)?;
    if global.json() {
        let mut answer =
            json!({"schema": "tenon.token/1", "token": token.expose(), "id": token.id});
        if let Some(join) = &join {
            answer["join"] = json!({
                "endpoint": join.endpoint, "caHash": join.hash, "certificateAuthority": join.authority,
            });
        }
        return output::answer_json(&answer);
    }
    match join {
        Some(join) => output::answer(&join.text(&token)),
        None => output::answer(&format!("{}\n", token.expose())),
    }
}

/// A token that never expires stays a key to the cluster for ever: that must be asked for by name.
fn ttl(text: &str) -> Result<Duration, String> {
    let life = grammar::duration(text).filter(|life| *life >= Duration::from_secs(1));
    life.ok_or_else(|| "a time above zero such as 24h; or use --never-expires".to_owned())
}

/// An id, also as the first half of a whole token.
fn id(text: &str) -> Result<String, String> {
    let whole = text.contains('.').then(|| Token::parse(text).ok()).flatten();
    let id = whole.map(|token| token.id).or_else(|| is_id(text).then(|| text.to_owned()));
    id.ok_or_else(|| "six characters of a-z and 0-9, or a whole token".to_owned())
}

/// What a joining machine must know besides the token.
struct Join {
    endpoint: String,
    hash: String,
    /// Base64 of PEM.
    authority: String,
}

fn join(cluster: &ClusterArgs, global: &Global) -> Result<Join, Problem> {
    use base64::Engine as _;
    let (endpoint, pem) = cluster.endpoint(global)?;
    let certificate = Certificate::from_pem(&String::from_utf8_lossy(&pem));
    let certificate = certificate
        .ok_or_else(|| Problem::new(&BAD_KUBECONFIG, "the CA of the kubeconfig cannot be read"))?;
    Ok(Join {
        endpoint,
        hash: CaHash::of(&certificate).to_string(),
        authority: base64::engine::general_purpose::STANDARD.encode(pem),
    })
}

impl Join {
    fn text(&self, token: &Token) -> String {
        let host = self.endpoint.trim_start_matches("https://");
        format!(
            "# In the MachineConfig of the joining machine:\n\
             spec:\n  cluster:\n    endpoint: {endpoint}\n    caHash: \"{hash}\"\n  \
             bootstrapToken:\n    token: {token}\n\
             # With kubeadm:\n\
             # kubeadm join {host} --token {token} --discovery-token-ca-cert-hash {hash}\n",
            endpoint = self.endpoint,
            hash = self.hash,
            token = token.expose(),
        )
    }
}

fn list(args: &ListArgs, global: &Global) -> Outcome {
    let found = tokens::list(&args.cluster.client(global)?).map_err(Problem::from)?;
    let now = now();
    if global.json() {
        let list: Vec<_> = found.iter().map(|token| token.to_json(now)).collect();
        return output::answer_json(&json!({"schema": "tenon.tokens/1", "tokens": list}));
    }
    let mut text = format!("{:<8} {:<9} {:<24} DESCRIPTION\n", "ID", "LIVES", "USAGES");
    text.extend(found.iter().map(|token: &Listed| {
        let usages = token.usages.join(",");
        format!("{:<8} {:<9} {usages:<24} {}\n", token.id, token.left(now), token.description)
    }));
    output::answer(&text)
}

fn delete(args: &DeleteArgs, global: &Global) -> Outcome {
    let ids = &args.ids;
    let client = args.cluster.client(global)?;
    for id in ids {
        if !tokens::delete(&client, id).map_err(Problem::from)? {
            return Err(Problem::new(&API_NOT_FOUND, format!("there is no token {id}"))
                .fix("`tenon token list` names those that there are")
                .into());
        }
        if !global.json() {
            output::answer(&format!("deleted {id}\n"))?;
        }
    }
    match global.json() {
        true => output::answer_json(&json!({"schema": "tenon.tokens/1", "deleted": ids})),
        false => Ok(()),
    }
}
