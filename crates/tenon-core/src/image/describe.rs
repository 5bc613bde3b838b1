//! Plans, resources and profiles in words that fit 80 columns.

use serde_json::{Value, json};

use super::act::Act;
use super::catalogue::{self, Answer, Catalogue};
use super::check::{Check, State};
use super::exception::Exception;
use super::need::Need;
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
    let until = one.expires.as_ref().map_or_else(String::new, |day| format!(" until {day}"));
    let mut limits = scoped(&one.images);
    if !one.paths.is_empty() {
        limits.push_str(&format!("[below {}] ", one.paths.join(", ")));
    }
    let limits = if limits.is_empty() { limits } else { format!(" {}", limits.trim_end()) };
    let side = match &one.keep {
        Some(keep) if *keep == one.feature => format!(" keeps {keep}"),
        Some(keep) => format!(" keeps {keep} ({})", one.feature),
        None => format!(" ({})", one.feature),
    };
    wrapped(&format!("  {}{side}{limits}{until}:", one.subject()), &one.reason, 4)
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

/// An answer for people, and the same for programs.
pub struct Told {
    pub text: String,
    pub value: Value,
}

/// All that is known about one name: `KIND/KEY` of a resource, `rule/ID`, `exception/SUBJECT`.
pub fn explain(plan: &ImagePlan, name: &str) -> Result<Told, Problem> {
    let told = match name.split_once('/') {
        Some(("rule", rule)) => explain_rule(plan, rule),
        Some(("exception", subject)) => explain_exception(plan, subject),
        _ => plan.resource(name).map(|one| explain_resource(plan, one)),
    };
    told.ok_or_else(|| {
        let problem = Problem::new(&UNKNOWN_RESOURCE, format!("the plan has no `{name}`"));
        match nearest(name, names(plan).iter().map(String::as_str)) {
            Some(near) => problem.fix(format!("did you mean `{near}`?")),
            None => problem,
        }
    })
}

/// Everything that can be explained.
fn names(plan: &ImagePlan) -> Vec<String> {
    let resources = plan.resources.iter().map(Resource::name);
    let rules = plan.resources.iter().flat_map(|one| &one.rules).cloned();
    let listed = catalogues(plan).into_iter().flat_map(|one| one.rules.into_keys());
    let exceptions = plan.exceptions.iter().map(|one| format!("exception/{}", one.subject()));
    let rules = rules.chain(listed).map(|rule| format!("rule/{rule}"));
    resources.chain(rules).chain(exceptions).collect()
}

fn explain_resource(plan: &ImagePlan, one: &Resource) -> Told {
    let name = one.name();
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
    let items = plan.items.iter().filter(|item| item.from.contains(&name));
    let items: Vec<String> = items.map(|item| named(&item.act)).collect();
    text.push_str("made true by\n");
    text.extend(items.iter().map(|item| format!("  {item}\n")));
    let own = plan.exceptions.iter().filter(|one| one.resource.as_ref() == Some(&name));
    let own: Vec<&Exception> = own.collect();
    text.push_str(&decided("decided by exception", &own));
    let mut value = one.to_json();
    value["schema"] = json!("tenon.image-resource/1");
    value["items"] = json!(items);
    value["exceptions"] = own.iter().map(|one| one.to_json()).collect();
    Told { text, value }
}

fn named(act: &Act) -> String {
    let (act, key) = act.name();
    format!("{act} {key}")
}

fn decided(head: &str, list: &[&Exception]) -> String {
    let lines: String = list.iter().map(|one| exception(one)).collect();
    if lines.is_empty() { lines } else { format!("{head}\n{lines}") }
}

/// The catalogues that the plan answers.
fn catalogues(plan: &ImagePlan) -> Vec<Catalogue> {
    let own =
        |one: &Catalogue| one.family == plan.family.name && plan.profiles.contains(&one.profile);
    catalogue::shipped().into_iter().filter(own).collect()
}

/// A rule of a benchmark: what serves it, who waived it, and what the catalogue says.
fn explain_rule(plan: &ImagePlan, rule: &str) -> Option<Told> {
    let serving = plan.resources.iter().filter(|one| one.rules.iter().any(|own| own == rule));
    let serving: Vec<String> = serving.map(Resource::name).collect();
    let own = plan.exceptions.iter().filter(|one| one.rule.as_deref() == Some(rule));
    let own: Vec<&Exception> = own.collect();
    let listed: Vec<(String, Option<(Answer, String)>)> = catalogues(plan)
        .into_iter()
        .filter_map(|one| one.rules.get(rule).map(|answer| (one.title, answer.clone())))
        .collect();
    if serving.is_empty() && own.is_empty() && listed.is_empty() {
        return None;
    }
    let mut text = format!("rule/{rule}\n");
    for (title, _) in &listed {
        text.push_str(&line(&format!("  of {title}")));
    }
    if !serving.is_empty() {
        text.push_str("served by\n");
        text.extend(serving.iter().map(|name| format!("  {name}\n")));
    }
    text.push_str(&decided("decided by exception", &own));
    for (answer, why) in listed.iter().filter_map(|(_, answer)| answer.as_ref()) {
        text.push_str(&wrapped(&format!("answered in the catalogue, {}:", answer.word()), why, 2));
    }
    let listed = listed.iter().map(|(title, answer)| {
        let (word, why) = answer.as_ref().map(|(answer, why)| (answer.word(), why)).unzip();
        json!({"title": title, "answer": word, "reason": why})
    });
    let value = json!({
        "schema": "tenon.image-rule/1",
        "rule": rule,
        "resources": serving,
        "exceptions": own.iter().map(|one| one.to_json()).collect::<Vec<_>>(),
        "catalogues": listed.collect::<Vec<_>>(),
    });
    Some(Told { text, value })
}

fn explain_exception(plan: &ImagePlan, subject: &str) -> Option<Told> {
    let own: Vec<_> = plan.exceptions.iter().filter(|one| one.subject() == subject).collect();
    let mut text = decided(&format!("exception/{subject}"), &own);
    for rule in own.iter().filter_map(|one| one.rule.as_ref()) {
        text.push_str(&format!("see rule/{rule}\n"));
    }
    let list: Vec<_> = own.iter().map(|one| one.to_json()).collect();
    let value = json!({"schema": "tenon.image-exception/1", "exceptions": list});
    (!own.is_empty()).then_some(Told { text, value })
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
    let row = |one: &Profile| wrapped(&format!("{:<19}", one.name), &one.about, 19);
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
    wrapped(&format!("  {} {}:", need.word(), need.name), &need.reason.why, 4)
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
        let Told { text, value } = explain(&resolved(), "sysctl/net.ipv4.ip_forward").unwrap();
        assert!(text.contains("value      1\n") && text.contains("  base "), "{text}");
        assert!(text.contains("made true by\n  file /etc/sysctl.d/90-tenon.conf\n"), "{text}");
        assert_eq!(value["items"], json!(["file /etc/sysctl.d/90-tenon.conf"]));
        assert_eq!(value["exceptions"][0]["keep"], "base");
    }

    /// Every resource, rule and exception of every family, whatever its kind.
    #[test]
    fn every_name_of_a_plan_is_explained() {
        for family in family::FAMILIES {
            let config = ImageConfig { family: Some(family), ..ImageConfig::default() };
            let wanted = config.wanted(None, Vec::new()).unwrap();
            let plan = crate::image::plan::resolve(&wanted).unwrap();
            let names = names(&plan);
            let kinds = |prefix: &str| names.iter().filter(|n| n.starts_with(prefix)).count();
            assert!(kinds("rule/") > 100 && kinds("exception/") > 3, "{}", family.name);
            for name in names {
                let told = explain(&plan, &name).unwrap_or_else(|problem| panic!("{problem}"));
                assert!(told.text.starts_with(&name) && told.text.lines().count() > 1, "{name}");
                assert!(told.value["schema"].is_string(), "{name}");
            }
        }
    }

    #[test]
    fn a_rule_says_what_serves_it_or_why_nothing_does() {
        let plan = resolved();
        let told = |name: &str| explain(&plan, name).unwrap().text;
        let served = told("rule/sysctl_net_ipv4_conf_all_log_martians");
        assert!(
            served.contains("served by\n  sysctl/net.ipv4.conf.all.log_martians\n"),
            "{served}"
        );
        let waived = told("rule/sysctl_net_ipv4_ip_forward");
        assert!(waived.contains("decided by exception\n"), "{waived}");
        let listed = catalogues(&plan);
        let answered = listed[0].rules.iter().find(|(_, answer)| answer.is_some()).unwrap();
        assert!(told(&format!("rule/{}", answered.0)).contains("answered in the catalogue, "));
    }

    #[test]
    fn an_unknown_resource_has_a_nearest_name() {
        let problem = explain(&resolved(), "sysctl/net.ipv4.ip_forwrd").err().unwrap();
        assert!(problem.fix.as_deref().unwrap().contains("sysctl/net.ipv4.ip_forward"));
    }

    #[test]
    fn long_words_wrap_under_their_indent() {
        let text = wrapped("  a:", &"word ".repeat(30), 4);
        assert!(text.lines().count() == 2 && text.lines().nth(1).unwrap().starts_with("    word"));
    }
}
