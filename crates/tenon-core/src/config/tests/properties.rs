//! What holds for every chain of documents.

use proptest::prelude::*;

use super::*;

/// A random spec of fields with different merge rules, without changes of type.
fn spec() -> impl Strategy<Value = String> {
    let name = prop::option::of(prop::sample::select(vec!["''", "a", "b", "null"]));
    let servers =
        prop::option::of(prop::sample::select(vec!["[]", "[10.0.0.2]", "[10.0.0.3, 10.0.0.4]"]));
    let flags = prop::collection::vec(prop::sample::select(vec!["--v=1", "--v=2"]), 0..3);
    let environment = prop::collection::btree_map("[A-C]", "[a-c]{0,2}", 0..3);
    let config = prop::collection::btree_map(
        prop::sample::select(vec!["maxPods", "podPidsLimit", "registryPullQPS"]),
        0..5u8,
        0..3,
    );
    (name, servers, flags, environment, config).prop_map(
        |(name, servers, flags, environment, config)| {
            let mut lines = Vec::new();
            lines.extend(name.map(|name| format!("cluster: {{name: {name}}}")));
            let pairs: Vec<_> = environment.iter().map(|(k, v)| format!("{k}: '{v}'")).collect();
            let network = servers.map(|list| format!(", network: {{nameservers: {list}}}"));
            lines.push(format!(
                "instance: {{environment: {{default: {{{}}}}}{}}}",
                pairs.join(", "),
                network.unwrap_or_default()
            ));
            let pairs: Vec<_> = config.iter().map(|(k, v)| format!("{k}: {v}")).collect();
            lines.push(format!(
                "kubelet: {{flags: [{}], config: {{{}}}}}",
                flags.join(", "),
                pairs.join(", ")
            ));
            lines.join("\n")
        },
    )
}

fn load_all(specs: &[(Kind, String)]) -> Loaded {
    let documents: Vec<_> = specs.iter().map(|(kind, spec)| document(*kind, spec)).collect();
    load_partial(&documents).unwrap_or_else(|found| panic!("{:?}", summary(&found)))
}

/// Merges compatible documents into one document.
fn fold(specs: &[String]) -> String {
    let specs: Vec<_> = specs.iter().map(|spec| (Kind::Eks, spec.clone())).collect();
    dump(&load_all(&specs).config, Kind::Eks).document["spec"].to_string()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn merging_in_groups_gives_the_same(a in spec(), b in spec(), c in spec()) {
        let whole = fold(&[a.clone(), b.clone(), c.clone()]);
        prop_assert_eq!(&whole, &fold(&[fold(&[a.clone(), b.clone()]), c.clone()]));
        prop_assert_eq!(&whole, &fold(&[a, fold(&[b, c])]));
    }

    #[test]
    fn every_leaf_was_written_where_it_says(a in spec(), b in spec(), tenon in any::<bool>()) {
        let kind = if tenon { Kind::Tenon } else { Kind::Eks };
        let specs = [(Kind::Eks, a), (kind, b)];
        let loaded = load_all(&specs);
        for (path, place) in loaded.origins() {
            let index: usize = place.source.trim_start_matches("file://").trim_end_matches(".yaml").parse().unwrap();
            let text = document(specs[index].0, &specs[index].1);
            let line = text.lines().nth(place.line as usize - 1);
            prop_assert!(line.is_some_and(|line| line.len() >= place.column as usize), "{}", path);
            prop_assert_eq!(place.path.as_str(), path.as_str());
        }
    }

    #[test]
    fn the_same_chain_gives_the_same_config(a in spec(), b in spec()) {
        let specs = [(Kind::Eks, a), (Kind::Tenon, b)];
        let (one, two) = (load_all(&specs), load_all(&specs));
        prop_assert_eq!(one.config_hash(), two.config_hash());
        prop_assert_eq!(one.config, two.config);
    }

    #[test]
    fn an_accepted_config_survives_its_own_dump(a in spec(), tenon in any::<bool>()) {
        let kind = if tenon { Kind::Tenon } else { Kind::Eks };
        let config = load_all(&[(kind, a)]).config;
        let dumped = dump_best(&config);
        let again = load_partial(&[dumped.document.to_string()]).unwrap().config;
        prop_assert_eq!(again, config);
    }

    #[test]
    fn no_text_makes_it_panic_and_every_error_has_a_place(text in "(.|\\n){0,200}", tenon in any::<bool>()) {
        let kind = if tenon { Kind::Tenon } else { Kind::Eks };
        if let Err(findings) = load_partial(&[document(kind, &text)]) {
            prop_assert!(findings.iter().all(|finding| finding.problem.place.is_some()));
        }
    }

    #[test]
    fn odd_values_in_known_fields_never_panic(index in 0..fields::all().len(), value in "[-a-z0-9:/.\\[\\]{}'\" \n]{0,24}") {
        let (path, _) = fields::all().swap_remove(index);
        let mut text = value;
        for name in path.split('.').skip(1).collect::<Vec<_>>().into_iter().rev() {
            text = format!("{{{name}: {text}}}");
        }
        for kind in Kind::ALL {
            let _ = load_partial(&[document(kind, &text)]);
        }
    }
}
