//! The user's own programs around the run. What they print goes to the journal, bounded.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::MemfdFlags;
use tenon_core::codes;
use tenon_core::config::{Hook, HookRun, HookWork, OnFailure};
use tenon_core::plan::digest;
use tenon_core::plan::step::HookStage;
use tenon_core::problem::{Finding, Problem};

use crate::command;

/// What hooks are told about the run.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub stage: HookStage,
    pub instance_id: &'a str,
    /// Not known before the facts are gathered.
    pub node_name: Option<&'a str>,
    /// The proxy's variables.
    pub environment: &'a [(String, String)],
}

/// How a hook ended.
#[derive(Debug)]
pub enum End {
    /// It ran for this instance before.
    Skipped,
    Ran,
    /// It did not succeed, and its config says to go on.
    Warned(Finding),
}

/// Runs a hook and stamps it when it must not run again on this instance.
pub fn run(
    hook: &Hook,
    context: &Context<'_>,
    stamps: &mut BTreeMap<String, String>,
) -> Result<End, Problem> {
    let stamp = digest::hook(hook);
    let once = hook.run == HookRun::OncePerInstance;
    if once && stamps.get(&hook.name) == Some(&stamp) {
        return Ok(End::Skipped);
    }
    let work = Work::of(hook)?;
    let ended = command::must(&work.argv, hook.timeout, &environment(context));
    let ended = ended.map_err(|problem| named(hook, problem));
    match (ended, hook.on_failure) {
        (Ok(output), _) => {
            tell(&hook.name, &output.stdout);
            if once {
                stamps.insert(hook.name.clone(), stamp);
            }
            Ok(End::Ran)
        }
        // A stop is for the whole run, whatever the hook's config says.
        (Err(problem), _) if problem.exit() >= 128 => Err(problem),
        (Err(problem), OnFailure::Abort) => Err(problem),
        (Err(problem), OnFailure::Warn) => Ok(End::Warned(Finding::warning(problem))),
    }
}

/// A hook as a command line.
struct Work {
    argv: Vec<String>,
    /// Holds the script while it runs.
    _script: Option<OwnedFd>,
}

impl Work {
    fn of(hook: &Hook) -> Result<Self, Problem> {
        let script = match &hook.work {
            HookWork::Argv(argv) => return Ok(Work { argv: argv.clone(), _script: None }),
            HookWork::Script(script) => in_memory(script.expose().as_bytes()),
        };
        let script = script.map_err(|error| {
            let what = format!("holding the script of hook `{}`", hook.name);
            Problem::new(&codes::host::FILE_WRITE, what).cause(error)
        })?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), script.as_raw_fd());
        Ok(Work { argv: vec!["/bin/sh".into(), "-eu".into(), path], _script: Some(script) })
    }
}

/// A file without a name: a script may hold secrets, so it goes neither to disk nor into the
/// argument list, which everyone on the machine can read.
fn in_memory(text: &[u8]) -> io::Result<OwnedFd> {
    let fd = rustix::fs::memfd_create("tenon-hook", MemfdFlags::CLOEXEC)?;
    let mut file = File::from(fd);
    file.write_all(text)?;
    Ok(file.into())
}

fn environment(context: &Context<'_>) -> Vec<(String, String)> {
    let stage = match context.stage {
        HookStage::PreBootstrap => "preBootstrap",
        HookStage::PostConfig => "postConfig",
        HookStage::PostJoin => "postJoin",
    };
    let mut environment = context.environment.to_vec();
    environment.push(("TENON_PHASE".into(), stage.into()));
    environment.push(("TENON_INSTANCE_ID".into(), context.instance_id.into()));
    if let Some(name) = context.node_name {
        environment.push(("TENON_NODE_NAME".into(), name.into()));
    }
    environment
}

/// The problem with the hook's name in place of its command, which may hold secrets.
fn named(hook: &Hook, mut problem: Problem) -> Problem {
    if problem.exit() < 128 {
        let ended = match problem.exit() {
            9 => format!("did not end within {} s", hook.timeout.as_secs()),
            _ => "did not succeed".to_owned(),
        };
        problem.what = format!("hook `{}` {ended}", hook.name);
    }
    problem
}

fn tell(hook: &str, output: &[u8]) {
    for line in String::from_utf8_lossy(output).lines() {
        tracing::info!(hook, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tenon_core::secret::Secret;

    fn hook(script: &str) -> Hook {
        Hook {
            name: "mine".into(),
            work: HookWork::Script(Secret::new(script)),
            timeout: Duration::from_secs(10),
            on_failure: OnFailure::Abort,
            run: HookRun::EveryBoot,
        }
    }

    fn context<'a>(environment: &'a [(String, String)]) -> Context<'a> {
        let (stage, node_name) = (HookStage::PostConfig, Some("node"));
        Context { stage, instance_id: "i-1", node_name, environment }
    }

    #[test]
    fn a_hook_is_told_about_the_run() {
        let proxy = [("HTTPS_PROXY".to_owned(), "http://p".to_owned())];
        let script = r#"test "$TENON_PHASE $TENON_INSTANCE_ID $TENON_NODE_NAME $HTTPS_PROXY" = "postConfig i-1 node http://p""#;
        let end = run(&hook(script), &context(&proxy), &mut BTreeMap::new()).unwrap();
        assert!(matches!(end, End::Ran));
    }

    #[test]
    fn once_per_instance_is_by_name_and_content() {
        let mut stamps = BTreeMap::new();
        let once = |script| Hook { run: HookRun::OncePerInstance, ..hook(script) };
        let mut ran = |hook: &Hook| matches!(run(hook, &context(&[]), &mut stamps), Ok(End::Ran));
        assert!(ran(&once("true")));
        assert!(!ran(&once("true")));
        assert!(ran(&once("true # changed")));
        assert!(ran(&hook("true")) && ran(&hook("true")));
    }

    #[test]
    fn a_hook_that_does_not_succeed_stops_or_warns_without_showing_its_script() {
        let failing = hook("echo words >&2; SECRET=canary; exit 4");
        let problem = run(&failing, &context(&[]), &mut BTreeMap::new()).unwrap_err();
        assert!(!problem.render("error").contains("canary"), "{}", problem.render("error"));
        assert_eq!(problem.details, ["words"]);
        let warned = Hook { on_failure: OnFailure::Warn, ..failing };
        let end = run(&warned, &context(&[]), &mut BTreeMap::new()).unwrap();
        assert!(matches!(end, End::Warned(_)));
    }
}
