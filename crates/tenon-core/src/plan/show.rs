//! Steps as JSON: for `plan --output json` and for the plan's hash.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::step::{
    Action, FileBody, HookStage, Output, Ownership, Program, Ready, Step, Unit, UnitVerb,
};
use crate::config::{Hook, HookRun, HookWork, OnFailure, redact};
use crate::hex::sha256;

/// What stands in place of a secret.
const REDACTED: &str = "[redacted]";

impl Step {
    /// The step as JSON. Secret content is left out unless asked for, and so is its hash, from
    /// which a weak secret could be guessed.
    pub fn to_json(&self, show_secrets: bool) -> Value {
        let mut json = self.action.to_json(show_secrets);
        json["op"] = json!(self.action.op());
        json["phase"] = json!(self.phase);
        json["because"] = json!([self.because]);
        json
    }
}

impl Action {
    /// The kind of this action in one word.
    pub fn op(&self) -> &'static str {
        match self {
            Action::Directory { .. } => "directory",
            Action::File(_) => "file",
            Action::Link { .. } => "link",
            Action::Block(_) => "block",
            Action::Remove(_) => "remove",
            Action::Discard { .. } => "discard",
            Action::Reload { .. } => "reload",
            Action::Unit(_) => "unit",
            Action::Program(_) => "program",
            Action::Bind(_) => "bind",
            Action::Hook { .. } => "hook",
        }
    }

    fn to_json(&self, show_secrets: bool) -> Value {
        match self {
            Action::Directory { path, mode } => json!({"path": path, "mode": octal(*mode)}),
            Action::File(file) => file_json(file, show_secrets),
            Action::Link { path, target } => json!({"path": path, "target": target}),
            Action::Block(block) => {
                json!({"path": block.path, "name": block.name, "lines": block.lines})
            }
            Action::Remove(removal) => {
                json!({"path": removal.path, "proof": proof(removal.proof)})
            }
            Action::Discard { path } => json!({"path": path}),
            Action::Reload { inputs } => json!({"inputs": inputs}),
            Action::Unit(unit) => unit_json(unit),
            Action::Program(program) => program_json(program),
            Action::Bind(bind) => json!({
                "path": bind.at, "source": bind.source, "unit": bind.unit, "owners": bind.owners,
            }),
            Action::Hook { stage, hook } => hook_json(*stage, hook, show_secrets),
        }
    }
}

fn octal(mode: u32) -> String {
    format!("{mode:04o}")
}

fn file_json(file: &FileBody, show_secrets: bool) -> Value {
    let mut json = json!({
        "path": file.path,
        "mode": octal(file.mode),
        "bytes": file.body.len(),
        "secret": file.secret,
        "refuseForeign": file.refuse_foreign,
    });
    if file.secret && !show_secrets {
        json["content"] = json!(REDACTED);
        return json;
    }
    json["sha256"] = json!(sha256(&file.body));
    match std::str::from_utf8(&file.body) {
        Ok(text) => json["content"] = json!(text),
        Err(_) => json["contentBase64"] = json!(STANDARD.encode(&file.body)),
    }
    json
}

fn proof(ownership: Ownership) -> &'static str {
    match ownership {
        Ownership::Certain => "certain",
        Ownership::EnvironmentShape => "environmentShape",
    }
}

fn unit_json(unit: &Unit) -> Value {
    let verb = match unit.verb {
        UnitVerb::EnsureFresh => "ensureFresh",
        UnitVerb::RestartOnChange => "restartOnChange",
        UnitVerb::Start => "start",
    };
    let ready = match unit.ready {
        Ready::Job => json!("job"),
        Ready::KubeletHealth { port } => json!({"kubeletHealth": port}),
        Ready::StableActive => json!("stableActive"),
    };
    json!({
        "unit": unit.name,
        "verb": verb,
        "inputs": unit.inputs,
        "deadlineSeconds": unit.deadline.as_secs(),
        "ready": ready,
        "requires": unit.requires,
    })
}

fn program_json(program: &Program) -> Value {
    json!({
        "argv": program.argv,
        "timeoutSeconds": program.timeout.as_secs(),
        "unlessExists": program.unless_exists,
        "stamp": program.stamp,
        "unlessSignature": program.unless_signature,
        "whenChanged": program.when_changed,
        "path": program.stdout_to,
        "output": match program.output {
            Output::Anything => "anything",
            Output::ContainerdConfig => "containerdConfig",
        },
    })
}

fn hook_json(stage: HookStage, hook: &Hook, show_secrets: bool) -> Value {
    let mut json = json!({
        "stage": stage,
        "name": hook.name,
        "timeoutSeconds": hook.timeout.as_secs(),
        "onFailure": match hook.on_failure {
            OnFailure::Abort => "abort",
            OnFailure::Warn => "warn",
        },
        "run": match hook.run {
            HookRun::OncePerInstance => "oncePerInstance",
            HookRun::EveryBoot => "everyBoot",
        },
    });
    match &hook.work {
        HookWork::Argv(argv) if show_secrets => json["argv"] = json!(argv),
        HookWork::Argv(argv) => {
            json["argv"] = argv.iter().map(|text| redact::argument(text)).collect();
        }
        HookWork::Script(script) if show_secrets => json["script"] = json!(script.expose()),
        HookWork::Script(_) => json["script"] = json!(REDACTED),
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_shows_its_exact_bytes() {
        let step = Step::config(Action::File(FileBody::new("/etc/x", 0o600, "abc")), "why");
        let expected = json!({
            "op": "file",
            "phase": "config",
            "because": ["why"],
            "path": "/etc/x",
            "mode": "0600",
            "bytes": 3,
            "secret": false,
            "refuseForeign": false,
            "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "content": "abc",
        });
        assert_eq!(step.to_json(false), expected);
    }

    #[test]
    fn bytes_that_are_no_text_are_encoded() {
        let step = Step::run(Action::File(FileBody::new("/x", 0o644, [0xff, 0x00])), "why");
        let json = step.to_json(false);
        assert_eq!(json["contentBase64"], "/wA=");
        assert!(json.get("content").is_none());
    }

    #[test]
    fn a_secret_shows_its_size_alone() {
        let step = Step::config(Action::File(FileBody::new("/x", 0o600, "abc").secret()), "why");
        let hidden = step.to_json(false);
        assert_eq!((&hidden["content"], &hidden["bytes"]), (&json!(REDACTED), &json!(3)));
        assert!(hidden.get("sha256").is_none());
        assert_eq!(step.to_json(true)["content"], "abc");
    }
}
