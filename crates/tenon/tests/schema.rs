//! `tenon config schema` against every config of `golden/`: what the program accepts, an editor
//! that follows the schema accepts too.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tenon_core::tree::Dialect;
use tenon_core::yaml;

fn schema() -> Value {
    let output =
        Command::new(env!("CARGO_BIN_EXE_tenon")).args(["config", "schema"]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Every document below `golden/`.
fn configs() -> Vec<PathBuf> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden");
    let mut list = Vec::new();
    for case in fs::read_dir(golden).unwrap() {
        let case = case.unwrap().path();
        list.push(case.join("config.yaml"));
        let folder = fs::read_dir(case.join("config.d")).into_iter().flatten();
        list.extend(folder.map(|entry| entry.unwrap().path()));
    }
    list.retain(|path| path.is_file());
    list.sort();
    list
}

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap();
    // The schema speaks of JSON values, so plain scalars are read as each kind reads them.
    let old = text.contains("node.eks.aws/");
    let dialect = if old { Dialect::Yaml11 } else { Dialect::Yaml12 };
    yaml::parse(&text).unwrap().remove(0).to_json(dialect)
}

/// Says where a value does not fit. Knows the keywords that the schema uses and no others, and
/// leaves patterns to the program's own grammars.
struct Validator<'a> {
    root: &'a Value,
}

impl Validator<'_> {
    fn errors(&self, schema: &Value, value: &Value, path: &str) -> Vec<String> {
        let mut errors = Vec::new();
        for (keyword, rule) in schema.as_object().unwrap() {
            let fits = match keyword.as_str() {
                "$ref" => {
                    let target = rule.as_str().unwrap().strip_prefix('#').unwrap();
                    errors.extend(self.errors(self.root.pointer(target).unwrap(), value, path));
                    true
                }
                "oneOf" => self.fitting(rule, value, path) == 1,
                "anyOf" => self.fitting(rule, value, path) > 0,
                "type" => names(rule).iter().any(|name| is_type(value, name)),
                "enum" => rule.as_array().unwrap().contains(value),
                "minimum" => value.as_i64().is_none_or(|number| number >= rule.as_i64().unwrap()),
                "maximum" => value.as_i64().is_none_or(|number| number <= rule.as_i64().unwrap()),
                "required" => {
                    let has = |name: &Value| value.get(name.as_str().unwrap()).is_some();
                    !value.is_object() || rule.as_array().unwrap().iter().all(has)
                }
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        errors.extend(self.errors(rule, item, &format!("{path}[{index}]")));
                    }
                    true
                }
                "properties" | "additionalProperties" => {
                    errors.extend(self.members(schema, keyword, value, path));
                    true
                }
                "$schema" | "$defs" | "$comment" | "title" | "description" | "pattern" => true,
                other => panic!("the schema uses {other}, which this test does not know"),
            };
            if !fits {
                errors.push(format!("{path}: {keyword}"));
            }
        }
        errors
    }

    fn fitting(&self, schemas: &Value, value: &Value, path: &str) -> usize {
        let fits = |schema: &&Value| self.errors(schema, value, path).is_empty();
        schemas.as_array().unwrap().iter().filter(fits).count()
    }

    fn members(&self, schema: &Value, keyword: &str, value: &Value, path: &str) -> Vec<String> {
        let known = schema.get("properties");
        let mut errors = Vec::new();
        for (name, member) in value.as_object().into_iter().flatten() {
            let below = format!("{path}.{name}");
            match (known.and_then(|known| known.get(name)), keyword) {
                (Some(rule), "properties") => errors.extend(self.errors(rule, member, &below)),
                (None, "additionalProperties") if schema[keyword] == json!(false) => {
                    errors.push(format!("{below}: unknown"));
                }
                (None, "additionalProperties") => {
                    errors.extend(self.errors(&schema[keyword], member, &below));
                }
                _ => {}
            }
        }
        errors
    }
}

fn names(rule: &Value) -> Vec<&str> {
    match rule {
        Value::Array(names) => names.iter().map(|name| name.as_str().unwrap()).collect(),
        name => vec![name.as_str().unwrap()],
    }
}

fn is_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "null" => value.is_null(),
        other => panic!("the schema has the type {other}"),
    }
}

#[test]
fn every_golden_config_fits() {
    let schema = schema();
    let validator = Validator { root: &schema };
    let configs = configs();
    assert!(configs.len() >= 80, "{} configs", configs.len());
    for path in configs {
        let config = read(&path);
        // One kind at a time, so that a misfit is named instead of "none of both".
        let group = config["apiVersion"].as_str().unwrap().split('/').next().unwrap();
        let errors = validator.errors(&schema["$defs"][group], &config, "");
        assert!(errors.is_empty(), "{}: {errors:?}", path.display());
        assert!(validator.errors(&schema, &config, "").is_empty(), "{}", path.display());
    }
}

#[test]
fn mistakes_do_not_fit() {
    let schema = schema();
    let validator = Validator { root: &schema };
    let head = |spec: Value| json!({"apiVersion": "tenon.dev/v1alpha1", "kind": "NodeConfig", "spec": spec});
    for (spec, fits) in [
        (json!({"cluster": {"name": "a"}}), true),
        (json!({"cluster": {"name": null}, "kubelet": null}), true),
        (json!({"kubelet": {"maxPods": {"cap": 5}}}), true),
        (json!({"kubelet": {"maxPods": {"cap": "none"}}}), true),
        (json!({"kubelet": {"maxPods": {"cap": null}}}), true),
        (json!({"node": {"labels": {"a": null}}}), true),
        (json!({"kubelet": {"maxPods": {"cap": "all"}}}), false),
        (json!({"kubelet": {"maxPods": {"cap": 0}}}), false),
        (json!({"kublet": {}}), false),
        (json!({"cluster": {"name": 1}}), false),
        (json!({"node": {"name": "me"}}), false),
        (json!({"node": {"taints": [{"key": "a"}]}}), false),
        (json!({"hooks": {"postJoin": [{"argv": ["/a"]}]}}), false),
    ] {
        let errors = validator.errors(&schema, &head(spec.clone()), "");
        assert_eq!(errors.is_empty(), fits, "{spec}: {errors:?}");
    }
    let older =
        json!({"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": {"node": {}}});
    assert!(!validator.errors(&schema, &older, "").is_empty(), "a field of the other kind");
}
