//! `tenon image profiles`: which profiles there are, and what one brings.

use std::path::Path;

use serde_json::{Value, json};
use tenon_core::image::catalogue;
use tenon_core::image::describe;
use tenon_core::image::exception::Exception;
use tenon_core::image::profile::{self, Profile};

use super::{findings, wanted};
use crate::cli::Global;
use crate::output::{self, Failure, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon image profiles
  tenon image profiles cis
  tenon image profiles ./mine.toml --output json")]
pub struct Args {
    /// One profile, or the path of one of your own
    name: Option<String>,
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    let Some(name) = &args.name else {
        let shipped: Result<Vec<_>, _> = profile::names().map(profile::shipped).collect();
        let shipped = shipped.map_err(findings)?;
        return match global.json() {
            true => output::answer_json(&list(&shipped)),
            false => output::answer(&describe::profiles(&shipped)),
        };
    };
    let one = find(name)?;
    let catalogues = coverage(&one)?;
    if global.json() {
        return output::answer_json(&to_json(&one));
    }
    output::answer(&format!("{}{catalogues}", describe::profile(&one)))
}

fn find(name: &str) -> Result<Profile, Failure> {
    match wanted::own_profile(Path::new(""), name)? {
        Some(profile) => Ok(profile),
        None => profile::shipped(name).map_err(findings),
    }
}

/// How the profile, with those it stands on, answers the benchmarks that name it.
fn coverage(one: &Profile) -> Result<String, Failure> {
    let own = catalogue::shipped().into_iter().filter(|catalogue| catalogue.profile == one.name);
    let mut words = String::new();
    for catalogue in own {
        let profiles = with_those_below(one, &catalogue.family)?;
        words.push_str(&catalogue.words(&catalogue.coverage(&profiles)));
    }
    Ok(if words.is_empty() { words } else { format!("\ncatalogues\n{words}") })
}

fn with_those_below(one: &Profile, family: &str) -> Result<Vec<Profile>, Failure> {
    let mut profiles = vec![one.clone()];
    let mut at = 0;
    while let Some(profile) = profiles.get(at) {
        let below: Vec<_> = profile.stands_on(family).map(str::to_owned).collect();
        for name in below {
            if profiles.iter().all(|known| known.name != name) {
                profiles.push(find(&name)?);
            }
        }
        at += 1;
    }
    Ok(profiles)
}

fn list(profiles: &[Profile]) -> Value {
    let row =
        |one: &Profile| json!({"name": one.name, "about": one.about, "requires": one.requires});
    json!({
        "schema": "tenon.image-profiles/1",
        "profiles": profiles.iter().map(row).collect::<Vec<_>>(),
    })
}

fn to_json(one: &Profile) -> Value {
    let wish = |(wish, scope): &(tenon_core::image::resource::Resource, _)| {
        let scope: &tenon_core::image::resource::Scope = scope;
        let mut value = wish.to_json();
        value["only"] = json!(scope.families);
        value
    };
    json!({
        "schema": "tenon.image-profile/1",
        "name": one.name,
        "about": one.about,
        "requires": one.requires,
        "forbids": one.forbids.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        "resources": one.wishes.iter().map(wish).collect::<Vec<_>>(),
        "exceptions": one.exceptions.iter().map(Exception::to_json).collect::<Vec<_>>(),
    })
}
