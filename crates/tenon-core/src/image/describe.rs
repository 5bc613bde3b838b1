//! Plans, resources and profiles in words that fit 80 columns.

use serde_json::Value;

use super::check::{Check, State};
use super::merge::Exception;
use super::need::{Need, What};
use super::plan::ImagePlan;
use super::profile::Profile;
use super::resource::{Reason, Resource, Scope};
use crate::codes::image::UNKNOWN_RESOURCE;
use crate::nearest::nearest;
use crate::problem::Problem;

const WIDTH: usize = 80;

/// A line that ends where the terminal ends.
fn line(words: &str) -> String {
    let words = words.replace('\n', " ");
    let words = words.trim_end();
    match words.chars().count() > WIDTH {
        true => words.chars().take(WIDTH - 1).chain("…\n".chars()).collect(),
        false => format!("{words}\n"),
    }
}

/// Words over several lines; the later ones are indented.
fn wrapped(first: &str, words: &str, indent: usize) -> String {
    let (mut text, mut current) = (String::new(), first.to_owned());
    for word in words.split_whitespace() {
        let full = current.chars().count() + 1 + word.chars().count() > WIDTH;
        if full && current.trim() != "" {
            text.push_str(current.trim_end());
            text.push('\n');
            current = " ".repeat(indent);
        }
        if !current.ends_with(' ') && !current.is_empty() {
            current.push(' ');
        }
        current.push_str(word);
    }
    text + current.trim_end() + "\n"
}

/// The whole description, one line for each resource.
pub fn plan(plan: &ImagePlan) -> String {
    let mut text = head(plan);
    let mut kind = "";
    for one in &plan.resources {
        if one.kind.name != kind {
            kind = one.kind.name;
            let count = plan.resources.iter().filter(|other| other.kind.name == kind).count();
            text.push_str(&format!("\n{kind} ({count})\n"));
        }
        let real = real_names(plan, one);
        text.push_str(&line(&format!("  {:<42} {real}{}", one.key, summary(one))));
    }
    if !plan.exceptions.is_empty() {
        text.push_str(&format!("\nexceptions ({})\n", plan.exceptions.len()));
        text.extend(plan.exceptions.iter().map(exception));
    }
    text.push_str(&format!(
        "\n{} resources, {} items, {} to fetch, {} exceptions\n",
        plan.resources.len(),
        plan.items.len(),
        plan.downloads().count(),
        plan.exceptions.len()
    ));
    if plan.resource("download//usr/bin/kubelet").is_none() {
        text.push_str("note: no kubelet; the config leaves it out\n");
    }
    text
}

fn head(plan: &ImagePlan) -> String {
    let hash = plan.hash();
    let about = format!(
        "image {}: {} {} {}, Kubernetes {}, plan {}",
        plan.name,
        plan.family.name,
        plan.release,
        plan.architecture,
        plan.kubernetes,
        hash.get(..8).unwrap_or(&hash)
    );
    line(&about) + &line(&format!("profiles {}", plan.profiles.join(", ")))
}

/// The fields of a resource in a few words.
fn summary(one: &Resource) -> String {
    let word = |(name, value): (&String, &Value)| match value {
        Value::String(text) if name == "value" => format!("= {text}"),
        Value::String(text) if ["content", "reason"].contains(&name.as_str()) => {
            format!("{} B", text.len())
        }
        Value::String(text) if ["mode", "state", "owner", "version"].contains(&name.as_str()) => {
            text.clone()
        }
        Value::String(text) => format!("{name} {text}"),
        Value::Bool(true) => name.clone(),
        Value::Bool(false) => format!("not {name}"),
        Value::Array(list) if list.iter().all(Value::is_string) => {
            let list: Vec<_> = list.iter().filter_map(Value::as_str).collect();
            format!("{name} {}", list.join(","))
        }
        Value::Object(table) => format!("{} {name}", table.len()),
        other => format!("{name} {other}"),
    };
    one.fields.iter().map(word).collect::<Vec<_>>().join("  ")
}

/// What a package is called here, if not by its logical name.
fn real_names(plan: &ImagePlan, one: &Resource) -> String {
    let names = plan.family.packages(&one.key, &plan.architecture);
    match one.kind.name.starts_with("package") && names != [one.key.clone()] {
        true if names.is_empty() => "(not on this family) ".to_owned(),
        true => format!("{} ", names.join(" ")),
        false => String::new(),
    }
}

fn exception(one: &Exception) -> String {
    let of = one.resource.as_deref().or(one.rule.as_deref()).unwrap_or_default();
    let keep = one.keep.as_ref().map_or_else(String::new, |keep| format!(" keeps {keep}"));
    wrapped(&format!("  {of}{keep} ({}):", one.feature), &one.reason, 4)
}

/// What differs between a root and the plan.
pub fn changes(plan: &ImagePlan, checks: &[Check]) -> String {
    let mut text = head(plan);
    let mut pending = 0;
    for check in checks.iter().filter(|check| check.state == State::Fail) {
        pending += 1;
        text.push_str(&line(&format!("  ~ {} {}", check.act, check.key)));
        text.push_str(&line(&format!("      is   {}", check.actual)));
        text.push_str(&line(&format!("      will {}", check.expected)));
    }
    let held = checks.iter().filter(|check| check.state == State::Pass).count();
    text + &format!("{pending} to change, {held} hold already\n")
}

/// All that is known about one resource of a plan.
pub fn explain(plan: &ImagePlan, name: &str) -> Result<String, Problem> {
    let Some(one) = plan.resource(name) else {
        let names: Vec<String> = plan.resources.iter().map(Resource::name).collect();
        let problem = Problem::new(&UNKNOWN_RESOURCE, format!("the plan has no resource `{name}`"));
        return Err(match nearest(name, names.iter().map(String::as_str)) {
            Some(near) => problem.fix(format!("did you mean `{near}`?")),
            None => problem,
        });
    };
    let mut text = format!("{name}\n");
    for (field, value) in &one.fields {
        text.push_str(&format!("  {field:<10} {}\n", value_lines(value)));
    }
    text.push_str("asked for by\n");
    text.extend(one.reasons.iter().map(reason));
    if one.required {
        text.push_str("Kubernetes does not work without it\n");
    }
    if !one.rules.is_empty() {
        text.push_str(&wrapped("rules", &one.rules.join(", "), 2));
    }
    text.push_str("made true by\n");
    for item in plan.items.iter().filter(|item| item.from.iter().any(|from| from == name)) {
        let (act, key) = item.act.name();
        text.push_str(&format!("  {act} {key}\n"));
    }
    let own = plan.exceptions.iter().filter(|one| one.resource.as_deref() == Some(name));
    let own: Vec<_> = own.map(exception).collect();
    if !own.is_empty() {
        text.push_str("decided by exception\n");
        text.extend(own);
    }
    Ok(text)
}

fn value_lines(value: &Value) -> String {
    match value {
        Value::String(text) if text.contains('\n') => {
            text.trim_end().lines().map(|line| format!("\n    | {line}")).collect()
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn reason(one: &Reason) -> String {
    wrapped(&format!("  {:<10}", one.feature), &one.why, 12)
}

/// One line for each profile.
pub fn profiles(list: &[Profile]) -> String {
    let row = |one: &Profile| wrapped(&format!("{:<12}", one.name), &one.about, 12);
    list.iter().map(row).collect()
}

/// One profile with everything that it brings.
pub fn profile(one: &Profile) -> String {
    let mut text = wrapped(&format!("{}:", one.name), &one.about, 2);
    if !one.requires.is_empty() {
        text.push_str(&format!("stands on {}\n", one.requires.join(", ")));
    }
    for (other, why) in &one.forbids {
        text.push_str(&wrapped(&format!("not beside {other}:"), why, 2));
    }
    let mut kind = "";
    for (wish, scope) in &one.wishes {
        if wish.kind.name != kind {
            kind = wish.kind.name;
            text.push_str(&format!("\n{kind}\n"));
        }
        text.push_str(&line(&format!("  {:<42} {}{}", wish.key, scoped(scope), summary(wish))));
    }
    if !one.needs.is_empty() {
        text.push_str("\nneeds\n");
        text.extend(one.needs.iter().map(|(need, _)| need_line(need)));
    }
    if !one.exceptions.is_empty() {
        text.push_str("\nexceptions\n");
        text.extend(one.exceptions.iter().map(exception));
    }
    text
}

fn scoped(scope: &Scope) -> String {
    let lists = [&scope.families, &scope.architectures, &scope.releases];
    let words: Vec<_> =
        lists.iter().filter(|list| !list.is_empty()).map(|list| list.join(",")).collect();
    if words.is_empty() { String::new() } else { format!("[{}] ", words.join(" ")) }
}

fn need_line(need: &Need) -> String {
    let (kind, what) = match &need.what {
        What::Exec(path) => ("exec", path),
        What::Write(path) => ("write", path),
        What::Module(name) => ("module", name),
        What::Port(port) => ("port", port),
        What::Unit(name) => ("unit", name),
    };
    wrapped(&format!("  {kind} {what}:"), &need.reason.why, 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::config::ImageConfig;
    use crate::image::{family, profile as profiles_of};

    fn resolved() -> ImagePlan {
        let config = ImageConfig { family: family::find("debian"), ..ImageConfig::default() };
        crate::image::plan::resolve(&config.wanted(None, Vec::new()).unwrap()).unwrap()
    }

    #[test]
    fn everything_fits_80_columns() {
        let plan = resolved();
        let mut texts = vec![super::plan(&plan)];
        for name in profiles_of::names() {
            texts.push(profile(&profiles_of::shipped(name).unwrap()));
        }
        for text in texts {
            for line in text.lines() {
                assert!(line.chars().count() <= WIDTH, "{line}");
            }
        }
    }

    #[test]
    fn a_resource_says_who_wants_it_and_what_decided() {
        let text = explain(&resolved(), "sysctl/net.ipv4.ip_forward").unwrap();
        assert!(text.contains("value      1\n") && text.contains("  base "), "{text}");
        assert!(text.contains("made true by\n  file /etc/sysctl.d/90-tenon.conf\n"), "{text}");
    }

    #[test]
    fn an_unknown_resource_has_a_nearest_name() {
        let problem = explain(&resolved(), "sysctl/net.ipv4.ip_forwrd").unwrap_err();
        assert!(problem.fix.as_deref().unwrap().contains("sysctl/net.ipv4.ip_forward"));
    }

    #[test]
    fn long_words_wrap_under_their_indent() {
        let text = wrapped("  a:", &"word ".repeat(30), 4);
        assert!(text.lines().count() == 2 && text.lines().nth(1).unwrap().starts_with("    word"));
    }
}
