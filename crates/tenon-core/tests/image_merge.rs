//! Many wishes, one description: every rule of merging for every field of every kind, and the
//! property that no order of features changes anything.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tenon_core::hex::sha256;
use tenon_core::image::exception::Exception;
use tenon_core::image::family;
use tenon_core::image::form::Form;
use tenon_core::image::kind::{Field, KINDS, Kind, Merge, Shape, key_form};
use tenon_core::image::merge::{Merged, merge};
use tenon_core::image::plan::{ImagePlan, Wanted, resolve};
use tenon_core::image::profile::{self, Profile};
use tenon_core::image::resource::Resource;
use tenon_core::problem::{Place, Problem};

fn wish(feature: &str, kind: &str, table: Value) -> Resource {
    let mut table = table.as_object().unwrap().clone();
    table.entry("reason").or_insert_with(|| json!(format!("{feature} says why")));
    Resource::read(kind, &table, feature, &Place::default()).unwrap().0
}

fn exception(resource: &str, keep: &str, feature: &str) -> Exception {
    Exception {
        resource: Some(resource.into()),
        keep: Some(keep.into()),
        reason: "the node routes the traffic of its pods".into(),
        feature: feature.into(),
        ..Exception::default()
    }
}

/// One of two texts of a form.
fn sample(form: Form, at: usize) -> String {
    let letter = ["a", "b"][at];
    match form {
        Form::Path => format!("/{letter}"),
        Form::Limit => format!("*/{letter}"),
        Form::Sum => letter.repeat(64),
        Form::OneOf(words) => words[at].to_owned(),
        _ => letter.to_owned(),
    }
}

/// Two values of a shape, and what the rule makes of them; None is a conflict.
fn pair(field: &Field) -> (Value, Value, Option<Value>) {
    let (left, right) = match (field.shape, field.merge) {
        (Shape::Text, Merge::Narrower) => (json!("2.1"), json!("2.1.9")),
        (Shape::Text, _) => (json!(sample(field.form, 0)), json!(sample(field.form, 1))),
        (Shape::Flag, _) => (json!(false), json!(true)),
        (Shape::Number, _) => (json!(5), json!(9)),
        (Shape::Mode, _) => (json!("0600"), json!("0644")),
        (Shape::Texts, _) => (json!(["b", "c"]), json!(["a", "b"])),
        (Shape::Table, _) if field.form == Form::Sum => {
            let sum = |at| json!({"x86_64": sample(field.form, at)});
            (sum(0), sum(1))
        }
        (Shape::Table, _) => (json!({"x": "1"}), json!({"y": "2"})),
        (Shape::Tables, _) => (json!([{"x": "1"}]), json!([{"y": "2"}])),
    };
    let merged = match (field.merge, field.shape) {
        (Merge::Equal, _) => None,
        (Merge::Highest, _) => Some(json!(9)),
        (Merge::Lowest, _) => Some(json!(5)),
        (Merge::Narrower, _) => Some(json!("2.1.9")),
        (Merge::Union, Shape::Flag) => Some(json!(true)),
        (Merge::Union, Shape::Texts) => Some(json!(["a", "b", "c"])),
        (Merge::Union, _) => Some(json!({"x": "1", "y": "2"})),
    };
    (left, right, merged)
}

/// A table of the kind with every needed field.
fn least(kind: &Kind) -> Map<String, Value> {
    let needed = kind.fields.iter().filter(|field| field.needed);
    let fields = needed.map(|field| (field.name.to_owned(), pair(field).0));
    kind.keys().map(|key| (key.to_owned(), json!(sample(key_form(key), 0)))).chain(fields).collect()
}

/// A resource of the kind in which a field has this value.
fn with(feature: &str, kind: &Kind, field: &Field, value: Value) -> Resource {
    let mut table = least(kind);
    table.insert(field.name.to_owned(), value);
    if let Some(beside) = field.beside.and_then(|name| kind.field(name)) {
        table.insert(beside.name.to_owned(), pair(beside).0);
    }
    wish(feature, kind.name, Value::Object(table))
}

fn only(merged: Merged) -> Resource {
    assert!(merged.problems.is_empty(), "{:?}", merged.problems);
    let [one] = <[Resource; 1]>::try_from(merged.resources).unwrap();
    one
}

#[test]
fn equal_wishes_are_one_with_both_reasons() {
    for kind in KINDS {
        let table = Value::Object(least(kind));
        let wishes =
            vec![wish("cis", kind.name, table.clone()), wish("base", kind.name, table.clone())];
        let one = only(merge(wishes, &[]));
        let features: Vec<_> = one.reasons.iter().map(|reason| reason.feature.as_str()).collect();
        assert_eq!(features, ["base", "cis"], "{}", kind.name);
        let same = wish("base", kind.name, table);
        assert_eq!(one.fields, same.fields, "{}", kind.name);
    }
}

#[test]
fn every_field_of_every_kind_merges_by_its_rule() {
    let mut conflicts = 0;
    for kind in KINDS {
        for field in kind.fields {
            let (left, right, merged) = pair(field);
            let wishes = || {
                let wishes = [
                    with("base", kind, field, left.clone()),
                    with("cis", kind, field, right.clone()),
                ];
                wishes.to_vec()
            };
            let name = format!("{}.{}", kind.name, field.name);
            let Some(expected) = merged else {
                conflicts += 1;
                assert_conflict(wishes(), &[(&left, "base"), (&right, "cis")], &name);
                continue;
            };
            assert_eq!(only(merge(wishes(), &[])).fields[field.name], expected, "{name}");
        }
    }
    assert!(conflicts > 30, "{conflicts}");
}

/// Exit 3, both features with value and reason; an exception for either side settles it.
fn assert_conflict(wishes: Vec<Resource>, sides: &[(&Value, &str)], name: &str) {
    let resource = wishes[0].name();
    let found = merge(wishes.clone(), &[]);
    assert!(found.resources.is_empty(), "{name}");
    let [problem] = &found.problems[..] else { panic!("{name}: {found:?}") };
    assert_eq!((problem.exit(), problem.page.code), (3, "TN03803"), "{name}");
    for (value, feature) in sides {
        // Content may be a secret: its size and sum are told.
        let value = match value.as_str().filter(|_| name.ends_with(".content")) {
            Some(text) => {
                format!("{} bytes, sha256 {}", text.len(), &sha256(text.as_bytes())[..12])
            }
            None => value.to_string(),
        };
        let line = format!("{feature} = {value}: {feature} says why");
        assert!(problem.details.contains(&line), "{name}: {line} in {:?}", problem.details);
    }
    for (at, (_, feature)) in sides.iter().enumerate() {
        let settled = merge(wishes.clone(), &[exception(&resource, feature, "base")]);
        assert_eq!(settled.settled, [resource.as_str()], "{name}");
        assert_eq!(only(settled).fields, wishes[at].fields, "{name}");
    }
    let third = merge(wishes, &[exception(&resource, "stig", "base")]);
    assert_eq!((third.problems.len(), third.settled.len()), (1, 0), "{name}: nobody is kept");
}

#[test]
fn a_field_that_one_side_leaves_open_is_the_others_to_say() {
    for kind in KINDS {
        let open = |field: &&Field| !field.needed && field.unsaid.is_none();
        for field in kind.fields.iter().filter(open) {
            let (value, ..) = pair(field);
            let open = wish("base", kind.name, Value::Object(least(kind)));
            let wishes = vec![open, with("cis", kind, field, value.clone())];
            let name = format!("{}.{}", kind.name, field.name);
            assert_eq!(only(merge(wishes, &[])).fields[field.name], value, "{name}");
        }
    }
}

/// Who wants what, and whether it can be: rows of wishes for one sysctl.
#[test]
fn ranges_intersect_or_conflict() {
    for (wishes, fits) in [
        (&[json!({"floor": 5}), json!({"floor": 9, "ceiling": 20})][..], true),
        (&[json!({"floor": 5}), json!({"value": "5"})], true),
        (&[json!({"ceiling": 5}), json!({"value": "5"})], true),
        (&[json!({"floor": 5}), json!({"ceiling": 5})], true),
        (&[json!({"floor": 6}), json!({"value": "5"})], false),
        (&[json!({"ceiling": 4}), json!({"value": "5"})], false),
        (&[json!({"floor": 6}), json!({"ceiling": 5})], false),
        (&[json!({"floor": 1}), json!({}), json!({"ceiling": 0})], false),
    ] {
        let read = |(at, table): (usize, &Value)| {
            let mut table = table.clone();
            table["key"] = json!("kernel.x");
            wish(["base", "cis", "stig"][at], "sysctl", table)
        };
        let wishes: Vec<_> = wishes.iter().enumerate().map(read).collect();
        let merged = merge(wishes.clone(), &[]);
        assert_eq!(merged.problems.is_empty(), fits, "{wishes:?}");
        if !fits {
            let details = merged.problems[0].details.join("\n");
            assert!(["floor", "ceiling", "value"].iter().any(|word| details.contains(word)));
            let kept = merge(wishes, &[exception("sysctl/kernel.x", "base", "base")]);
            assert!(kept.problems.is_empty(), "an exception settles it: {:?}", kept.problems);
        }
    }
}

#[test]
fn versions_narrow_at_their_dots() {
    for (left, right, narrower) in [
        ("2.1", "2.1.9", Some("2.1.9")),
        ("2.1", "2.1-1", Some("2.1-1")),
        ("2.1", "2.10", None),
        ("2.1", "2.2", None),
    ] {
        let of =
            |feature, version| wish(feature, "package", json!({"name": "p", "version": version}));
        let merged = merge(vec![of("base", left), of("cis", right)], &[]);
        let found = merged.resources.first().and_then(|one| one.text("version"));
        assert_eq!(found, narrower, "{left} {right}");
    }
}

/// Three wishes of which every neighbour agrees and the ends do not.
#[test]
fn a_conflict_is_found_and_settled_across_a_wish_that_leaves_it_open() {
    let wishes = || {
        vec![
            wish("a", "package", json!({"name": "p", "version": "1"})),
            wish("b", "package", json!({"name": "p"})),
            wish("c", "package", json!({"name": "p", "version": "2"})),
        ]
    };
    assert_eq!(merge(wishes(), &[]).problems.len(), 1);
    let one = only(merge(wishes(), &[exception("package/p", "c", "c")]));
    assert_eq!(one.text("version"), Some("2"));
}

#[test]
fn opposites_are_conflicts() {
    type Wish = (&'static str, Value);
    let file = |path: &str| ("file", json!({"path": path, "content": "", "mode": "0644"}));
    let absent = |path: &str| ("absent", json!({"path": path}));
    let unit =
        |state: &str| ("unit", json!({"name": "u", "state": state, "wanted-by": ["a.target"]}));
    let rows: Vec<(Wish, Wish, bool)> = vec![
        (("package", json!({"name": "x"})), ("package-absent", json!({"name": "x"})), true),
        (("package", json!({"name": "x"})), ("package-absent", json!({"name": "y"})), false),
        (file("/etc/cron.d/job"), absent("/etc/cron.d/job"), true),
        (file("/etc/cron.d/job"), absent("/etc/cron.d/j*"), true),
        (file("/etc/cron.d/job"), absent("/etc/cron.d"), true),
        (file("/etc/cron.d/job"), absent("/etc/cron.d/job/x"), false),
        (file("/etc/cron.d/job"), absent("/etc/cron.d/x*"), false),
        (("link", json!({"path": "/a", "target": "b"})), absent("/a"), true),
        (("directory", json!({"path": "/a/b", "mode": "0755"})), absent("/a/*"), true),
        (unit("enabled"), ("mask", json!({"unit": "u"})), true),
        (unit("disabled"), ("mask", json!({"unit": "u"})), false),
    ];
    for (wanted, unwanted, clash) in rows {
        let pair = [wish("base", wanted.0, wanted.1), wish("cis", unwanted.0, unwanted.1)];
        let (first, second) = (pair[0].name(), pair[1].name());
        assert_eq!(!merge(pair.to_vec(), &[]).problems.is_empty(), clash, "{first} {second}");
        if clash {
            for (name, keep, left) in [(&first, "base", &first), (&second, "cis", &second)] {
                let merged = merge(pair.to_vec(), &[exception(name, keep, "base")]);
                assert_eq!(&only(merged).name(), left);
            }
        }
    }
}

fn profile(name: &str, text: &str) -> Profile {
    Profile::read(name, &format!("about = 'x'\n{text}")).unwrap()
}

fn planned(
    profiles: &[&Profile],
    more: impl FnOnce(&mut Wanted),
) -> Result<ImagePlan, Vec<Problem>> {
    let mut wanted = Wanted {
        name: "test".into(),
        family: family::find("debian").unwrap(),
        release: "bookworm".into(),
        architecture: "x86_64".into(),
        kubernetes: "1.34.2".into(),
        profiles: profiles.iter().map(|profile| profile.name.clone()).collect(),
        own_profiles: profiles.iter().map(|profile| (*profile).clone()).collect(),
        wishes: Vec::new(),
        exceptions: Vec::new(),
    };
    more(&mut wanted);
    resolve(&wanted)
}

fn codes(result: Result<ImagePlan, Vec<Problem>>) -> Vec<&'static str> {
    result.map_or_else(|problems| problems.iter().map(|p| p.page.code).collect(), |_| Vec::new())
}

const FORWARD: &str = "sysctl/net.ipv4.ip_forward";

/// What Kubernetes requires gives way to the user only by an exception with a reason that is used.
#[test]
fn a_users_value_needs_an_exception_that_is_used_and_says_why() {
    let base = profile(
        "base",
        "[[sysctl]]\nkey = 'net.ipv4.ip_forward'\nvalue = '1'\nrequired = true\nreason = 'pods'\n",
    );
    let own = || wish("config", "sysctl", json!({"key": "net.ipv4.ip_forward", "value": "0"}));
    let plan = |exceptions: Vec<Exception>, wishes: Vec<Resource>| {
        planned(&[&base], |wanted| {
            wanted.exceptions = exceptions;
            wanted.wishes = wishes;
        })
    };
    assert_eq!(codes(plan(vec![], vec![own()])), ["TN03803"]);
    let right = exception(FORWARD, "config", "config");
    let made = plan(vec![right.clone()], vec![own()]).unwrap();
    assert_eq!(made.resource(FORWARD).unwrap().text("value"), Some("0"));
    assert_eq!(made.exceptions, std::slice::from_ref(&right));
    let mut short = right.to_json();
    short["reason"] = json!("because");
    assert_eq!(
        Exception::from_json(&short, &Place::default()).unwrap_err()[0].page.code,
        "TN03804"
    );
    assert_eq!(codes(plan(vec![right], vec![])), ["TN03805"]);
}

/// The user's exception decides over a profile's; two profiles that disagree decide nothing.
#[test]
fn exceptions_do_not_win_by_order() {
    let sysctl = |value: &str| {
        format!("[[sysctl]]\nkey = 'net.ipv4.ip_forward'\nvalue = '{value}'\nreason = 'r'\n")
    };
    let answer = |keep: &str| {
        format!(
            "[[exception]]\nresource = '{FORWARD}'\nkeep = '{keep}'\nreason = 'somebody thought about it'\n"
        )
    };
    let one = profile("one", &(sysctl("1") + &answer("one")));
    let two = profile("two", &sysctl("0"));
    let divided = profile("two", &(sysctl("0") + &answer("two")));
    let value = |plan: &ImagePlan| plan.resource(FORWARD).unwrap().text("value").map(str::to_owned);
    let users = exception(FORWARD, "two", "config");
    let plan = planned(&[&one, &two], |wanted| wanted.exceptions = vec![users.clone()]).unwrap();
    assert_eq!((value(&plan).as_deref(), &plan.exceptions[..]), (Some("0"), &[users.clone()][..]));
    assert_eq!(codes(planned(&[&one, &divided], |_| ())), ["TN03803"]);
    let plan = planned(&[&one, &divided], |wanted| wanted.exceptions = vec![users]).unwrap();
    assert_eq!(value(&plan).as_deref(), Some("0"));
}

/// Logical names and the real names of Debian: they meet once the family is known.
#[test]
fn a_package_is_not_wanted_and_unwanted_under_two_names() {
    for (wanted, unwanted, told) in [
        ("docker.io", "docker", "the package docker.io is wanted and unwanted"),
        ("nfs-client", "nfs-common", "the package nfs-common is wanted and unwanted"),
        ("nfs-client", "nfs-kernel-server", ""),
    ] {
        let text = format!(
            "[[package]]\nname = '{wanted}'\nreason = 'r'\n[[package-absent]]\nname = '{unwanted}'\nreason = 'r'\n"
        );
        let problems = planned(&[&profile("p", &text)], |_| ()).err().unwrap_or_default();
        let found: Vec<_> = problems.iter().map(|problem| problem.what.as_str()).collect();
        assert_eq!(found.join("; "), told, "{wanted} {unwanted}");
    }
}

#[test]
fn two_resources_do_not_write_one_path() {
    let file = "[[file]]\npath = '/etc/sysctl.d/90-tenon.conf'\nmode = '0644'\ncontent = 'x'\nreason = 'r'\n";
    let sysctl = "[[sysctl]]\nkey = 'a'\nvalue = '1'\nreason = 'r'\n";
    let problems = planned(&[&profile("p", &format!("{file}{sysctl}"))], |_| ()).unwrap_err();
    assert_eq!(problems[0].details, ["file//etc/sysctl.d/90-tenon.conf", "sysctl/a"]);
    let settings = "[[setting]]\nfile = '/a'\nname = 'N'\nvalue = '1'\nreason = 'r'\n\
        [[setting]]\nfile = '/b'\nname = 'N'\nvalue = '2'\nreason = 'r'\n\
        [[block]]\npath = '/c'\nmarker = 'x'\ncontent = '1'\nreason = 'r'\n\
        [[block]]\npath = '/c'\nmarker = 'y'\ncontent = '2'\nreason = 'r'\n";
    assert_eq!(planned(&[&profile("p", settings)], |_| ()).unwrap().items.len(), 4);
}

/// Wishes for a few things by a few features, so that most cases merge and some do not.
fn wishes() -> impl Strategy<Value = Vec<Resource>> {
    let feature = prop::sample::select(&["base", "cis", "stig"][..]);
    let number = 0..3_i64;
    let version = prop::sample::select(&["1", "1.2", "1.2.3", "2"][..]);
    let one = (feature, 0..6, number, version, any::<bool>()).prop_map(
        |(feature, which, number, version, flag)| match which {
            0 => wish(feature, "sysctl", json!({"key": "a", "floor": number})),
            1 => wish(feature, "sysctl", json!({"key": "a", "ceiling": number})),
            2 => wish(feature, "sysctl", json!({"key": "a", "value": number.to_string()})),
            3 => wish(feature, "package", json!({"name": "p", "version": version, "lock": flag})),
            4 => wish(
                feature,
                "unit",
                json!({"name": "u", "drop-ins": {version: "x"}, "state": "enabled",
                       "wanted-by": ["a.target"]}),
            ),
            _ if flag => wish(feature, "package-absent", json!({"name": "p"})),
            _ => wish(feature, "mask", json!({"unit": "u"})),
        },
    );
    prop::collection::vec(one, 0..12)
}

fn told(merged: &Merged) -> (Vec<String>, Vec<String>, Vec<String>) {
    let resources = merged.resources.iter().map(|one| one.to_json().to_string()).collect();
    let problems = merged.problems.iter().map(|p| format!("{} {:?}", p.what, p.details)).collect();
    (resources, merged.settled.clone(), problems)
}

proptest! {
    #[test]
    fn no_order_of_wishes_or_exceptions_changes_anything(
        (wishes, mixed) in wishes().prop_flat_map(|list| (Just(list.clone()), Just(list).prop_shuffle())),
        keeps in prop::collection::vec(prop::sample::select(&["base", "cis", "stig"][..]), 3),
    ) {
        let names = ["sysctl/a", "package/p", "unit/u"];
        let exceptions: Vec<_> =
            names.iter().zip(keeps).map(|(name, keep)| exception(name, keep, "base")).collect();
        let reversed: Vec<_> = exceptions.iter().rev().cloned().collect();
        for (first, second) in [(&[][..], &[][..]), (&exceptions, &reversed)] {
            prop_assert_eq!(told(&merge(wishes.clone(), first)), told(&merge(mixed.clone(), second)));
        }
    }
}

/// The shipped profiles, named in any order, give the same bytes.
#[test]
fn no_order_of_shipped_profiles_changes_the_plan() {
    let names: Vec<String> = profile::names().map(str::to_owned).collect();
    for family in family::FAMILIES {
        let mut chosen: Vec<String> = vec!["base".into(), "cis".into()];
        for name in &names {
            let plan = |names: &[String]| {
                let by_name = |wanted: &mut Wanted| {
                    wanted.family = family;
                    wanted.release = family.release.into();
                    wanted.profiles = names.to_vec();
                };
                planned(&[], by_name).map(|plan| plan.to_json().to_string())
            };
            if chosen.contains(name) {
                continue;
            }
            let next: Vec<String> = chosen.iter().chain([name]).cloned().collect();
            // Profiles that cannot stand together are left out, whichever comes first.
            let Ok(first) = plan(&next) else { continue };
            for turn in 1..next.len() {
                let mut turned = next.clone();
                turned.rotate_left(turn);
                assert_eq!(plan(&turned).unwrap(), first, "{turned:?}");
                turned.reverse();
                assert_eq!(plan(&turned).unwrap(), first, "{turned:?}");
            }
            chosen = next;
        }
        assert!(chosen.len() > 3, "{}: {chosen:?}", family.name);
    }
}
