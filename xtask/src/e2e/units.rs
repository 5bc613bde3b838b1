//! Tenon and a real systemd: what was written is what the daemons receive, and what is started,
//! restarted or left alone is what the contract says.
//!
//! The manager runs in its own cgroups and namespaces (`e2e/manager.sh`). The scenario runs as
//! one of its units, in the same namespaces, because systemd hangs up on peers that it cannot
//! see. The daemons are stand-ins that note what they were given; real ones need a cluster.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use super::Lab;

const FACTS: &str = "golden/plain/facts.json";

/// Flags that each must arrive as one argument, whatever they hold.
const FLAGS: &[&str] = &[
    "--v=3",
    "--vmodule=two words",
    "--vmodule=a \"quoted\" word",
    "--vmodule=back\\slash and 'single'",
    "--vmodule=$HOME and ${HOME} and `id`",
    "--vmodule=100% %n %%",
    "--vmodule=#;&|<>",
    "--vmodule=trailing quote\"",
];

/// Variables that must arrive as written.
const VARIABLES: &[(&str, &str)] = &[
    ("PLAIN", "value"),
    ("SPACED", "two  words "),
    ("QUOTED", "say \"hi\""),
    ("PERCENT", "100% %n"),
    ("DOLLAR", "$HOME ${HOME}"),
    ("BACKSLASH", "a\\b\\\\c\\"),
    ("LINES", "one\ntwo\tthree"),
    ("SINGLE", "it's"),
    ("EMPTY", ""),
];

#[derive(clap::Args)]
pub struct InsideArgs {
    place: PathBuf,
    tenon: PathBuf,
    repository: PathBuf,
}

pub fn refuse(_lab: &Lab) -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some("needs root, for namespaces and cgroups".into());
    }
    for path in ["/sys/fs/cgroup/systemd", "/lib/systemd/systemd"] {
        if !Path::new(path).exists() {
            return Some(format!("{path} is not here"));
        }
    }
    None
}

/// Starts the manager and waits for the scenario's verdict.
pub fn run(lab: &Lab) -> anyhow::Result<usize> {
    let place = tempfile::tempdir()?;
    let units = place.path().join("units");
    fs::create_dir_all(&units)?;
    let inside = format!(
        "{} units-inside {} {} {}",
        std::env::current_exe()?.display(),
        place.path().display(),
        lab.tenon.display(),
        lab.repository.display()
    );
    let unit = format!(
        "[Unit]\nSuccessAction=exit\nFailureAction=exit\n\
         [Service]\nType=oneshot\nTimeoutStartSec=120\nExecStart={inside}\n"
    );
    fs::write(units.join("scenario.service"), unit)?;
    let root = place.path().join("root");
    let path = format!("{}:{}", units.display(), root.join("etc/systemd/system").display());
    let name = format!("units-{}", std::process::id());
    let log = Command::new(lab.repository.join("e2e/manager.sh"))
        .args([name.as_str(), path.as_str(), "scenario.service"])
        .output()
        .context("starting the manager")?;
    let verdict = fs::read_to_string(place.path().join("verdict"));
    let verdict = verdict.with_context(|| {
        format!("the scenario left no verdict; the manager said:\n{}", text(&log))
    })?;
    match verdict.strip_prefix("passed ").map(str::parse) {
        Some(Ok(cases)) => Ok(cases),
        _ => bail!("{verdict}"),
    }
}

/// The scenario itself, as a unit of the manager.
pub fn inside(args: &InsideArgs) -> anyhow::Result<()> {
    let scene = Scene { root: args.place.join("root"), args };
    let verdict = match scene.play() {
        Ok(cases) => format!("passed {cases}"),
        Err(error) => format!("{error:#}"),
    };
    fs::write(args.place.join("verdict"), verdict)?;
    Ok(())
}

struct Scene<'a> {
    args: &'a InsideArgs,
    root: PathBuf,
}

impl Scene<'_> {
    fn play(&self) -> anyhow::Result<usize> {
        self.set_up()?;
        self.write_config("one")?;
        let first = self.init()?;
        ensure!(first.status.success(), "the first init: {}", text(&first));
        self.arguments_arrive()?;
        self.variables_arrive()?;
        let mut cases = FLAGS.len() + VARIABLES.len();
        for case in [
            Self::second_run_leaves_daemons_alone,
            Self::a_changed_label_restarts_the_kubelet_alone,
            Self::many_changed_runs_meet_no_start_limit,
            Self::an_edited_drop_in_of_someone_else_restarts,
            Self::a_failing_kubelet_is_exit_8,
            Self::a_masked_unit_is_named,
        ] {
            case(self)?;
            cases += 1;
        }
        Ok(cases)
    }

    /// A root whose private socket is the manager's, and units that note what they get.
    fn set_up(&self) -> anyhow::Result<()> {
        fs::create_dir_all(self.root.join("run/systemd/system"))?;
        std::os::unix::fs::symlink(
            "/run/user/0/systemd/private",
            self.root.join("run/systemd/private"),
        )?;
        self.script("containerd", "echo started >> \"$PLACE/containerd.starts\"\nexec sleep 600")?;
        self.script("kubelet", KUBELET)?;
        let environment = format!(
            "Environment=PLACE={} TENON={}",
            self.args.place.display(),
            self.args.tenon.display()
        );
        let unit = |name: &str, extra: &str| {
            let program = self.args.place.join(name);
            format!("[Service]\n{environment}\n{extra}ExecStart={}", program.display())
        };
        let flags = self.root.join("etc/eks/kubelet/environment");
        self.unit("containerd.service", &format!("{}\n", unit("containerd", "")))?;
        let extra = format!("EnvironmentFile={}\n", flags.display());
        let line = format!("{} $NODEADM_KUBELET_ARGS\n", unit("kubelet", &extra));
        self.unit("kubelet.service", &line)?;
        fs::write(
            self.args.place.join("health.yaml"),
            "rules:\n  - {path: /healthz, status: 200, body: ok}\n",
        )?;
        Ok(())
    }

    fn unit(&self, name: &str, body: &str) -> anyhow::Result<()> {
        Ok(fs::write(self.args.place.join("units").join(name), body)?)
    }

    fn script(&self, name: &str, body: &str) -> anyhow::Result<()> {
        let path = self.args.place.join(name);
        fs::write(&path, format!("#!/bin/sh\n{body}\n"))?;
        Ok(fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?)
    }

    fn write_config(&self, label: &str) -> anyhow::Result<()> {
        let golden = fs::read_to_string(self.args.repository.join("golden/plain/config.yaml"))?;
        let cluster: String = golden
            .lines()
            .skip_while(|line| !line.starts_with("  cluster:"))
            .take_while(|line| line.starts_with("  cluster:") || line.starts_with("    "))
            .map(|line| format!("{line}\n"))
            .collect();
        ensure!(cluster.contains("certificateAuthority"), "the golden config has no cluster");
        let variables: serde_json::Map<_, _> =
            VARIABLES.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        let config = format!(
            "apiVersion: tenon.dev/v1alpha1\nkind: NodeConfig\nspec:\n{cluster}  \
             node: {{labels: {{stage: {label}}}}}\n  kubelet: {{flags: {}}}\n  \
             instance: {{environment: {{kubelet: {}}}}}\n",
            serde_json::to_string(FLAGS)?,
            serde_json::Value::Object(variables),
        );
        Ok(fs::write(self.args.place.join("config.yaml"), config)?)
    }

    fn init(&self) -> anyhow::Result<Output> {
        Command::new(&self.args.tenon)
            .current_dir(&self.args.repository)
            .args(["init", "--facts", FACTS, "--unit-timeout", "20s", "-c"])
            .arg(self.args.place.join("config.yaml"))
            .arg("--root")
            .arg(&self.root)
            .output()
            .context("starting tenon")
    }

    fn must_init(&self) -> anyhow::Result<()> {
        let output = self.init()?;
        ensure!(output.status.success(), "init: {}", text(&output));
        Ok(())
    }

    fn arguments_arrive(&self) -> anyhow::Result<()> {
        let seen = self.noted("kubelet.arguments")?;
        let user: Vec<_> = seen.iter().skip_while(|argument| *argument != FLAGS[0]).collect();
        ensure!(user == FLAGS.iter().collect::<Vec<_>>(), "the kubelet was given {seen:?}");
        ensure!(seen[0] == "--cloud-provider=external", "the first argument is {}", seen[0]);
        Ok(())
    }

    fn variables_arrive(&self) -> anyhow::Result<()> {
        let seen = self.noted("kubelet.environment")?;
        for (name, value) in VARIABLES {
            let expected = format!("{name}={value}");
            let found = seen.iter().find(|line| line.starts_with(&format!("{name}=")));
            ensure!(found == Some(&expected), "{expected:?} arrived as {found:?}");
        }
        Ok(())
    }

    /// What a daemon noted, split at the NUL behind each word.
    fn noted(&self, name: &str) -> anyhow::Result<Vec<String>> {
        let bytes = fs::read(self.args.place.join(name)).with_context(|| name.to_owned())?;
        let text = String::from_utf8(bytes)?;
        Ok(text.split_terminator('\0').map(str::to_owned).collect())
    }

    fn starts(&self) -> anyhow::Result<(usize, usize)> {
        let count = |name: &str| -> anyhow::Result<usize> {
            Ok(fs::read_to_string(self.args.place.join(name))?.lines().count())
        };
        Ok((count("containerd.starts")?, count("kubelet.starts")?))
    }

    fn second_run_leaves_daemons_alone(&self) -> anyhow::Result<()> {
        let before = self.starts()?;
        let output = self.init()?;
        ensure!(output.status.success(), "the second init: {}", text(&output));
        ensure!(text(&output).contains(": 0 changes"), "not without change: {}", text(&output));
        ensure!(self.starts()? == before, "a daemon was started again");
        Ok(())
    }

    fn a_changed_label_restarts_the_kubelet_alone(&self) -> anyhow::Result<()> {
        let (containerd, kubelet) = self.starts()?;
        self.write_config("two")?;
        self.must_init()?;
        let now = self.starts()?;
        ensure!(
            now == (containerd, kubelet + 1),
            "starts went from {containerd}/{kubelet} to {now:?}"
        );
        let seen = self.noted("kubelet.arguments")?;
        ensure!(seen.iter().any(|word| word.contains("stage=two")), "the old label: {seen:?}");
        Ok(())
    }

    /// The manager allows five starts in ten seconds by itself.
    fn many_changed_runs_meet_no_start_limit(&self) -> anyhow::Result<()> {
        let (_, kubelet) = self.starts()?;
        let limit = "StartLimitIntervalSec=1h\nStartLimitBurst=5\n";
        let path = self.args.place.join("units/kubelet.service.d");
        fs::create_dir_all(&path)?;
        fs::write(path.join("10-limit.conf"), format!("[Unit]\n{limit}"))?;
        for label in ["a", "b", "c", "d", "e", "f", "g"] {
            self.write_config(label)?;
            self.must_init()?;
        }
        let (_, now) = self.starts()?;
        ensure!(now == kubelet + 7, "the kubelet was started {} times", now - kubelet);
        Ok(())
    }

    fn an_edited_drop_in_of_someone_else_restarts(&self) -> anyhow::Result<()> {
        let (containerd, kubelet) = self.starts()?;
        let directory = self.root.join("etc/systemd/system/containerd.service.d");
        fs::create_dir_all(&directory)?;
        fs::write(directory.join("50-site.conf"), "[Service]\nEnvironment=SITE=1\n")?;
        self.must_init()?;
        // The job is done when the process is there, a moment before it notes its start.
        let mut now = self.starts()?;
        for _ in 0..20 {
            if now.0 > containerd {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
            now = self.starts()?;
        }
        ensure!(
            now == (containerd + 1, kubelet),
            "starts went from {containerd}/{kubelet} to {now:?}"
        );
        Ok(())
    }

    fn a_failing_kubelet_is_exit_8(&self) -> anyhow::Result<()> {
        self.script("kubelet", "echo unknown flag >&2\nexit 1")?;
        self.write_config("three")?;
        let output = self.init()?;
        ensure!(
            output.status.code() == Some(8),
            "exit {:?}: {}",
            output.status.code(),
            text(&output)
        );
        ensure!(text(&output).contains("kubelet.service"), "no name: {}", text(&output));
        self.script("kubelet", KUBELET)?;
        self.must_init()
    }

    fn a_masked_unit_is_named(&self) -> anyhow::Result<()> {
        let path = self.args.place.join("units/kubelet.service");
        let kept = fs::read(&path)?;
        fs::remove_file(&path)?;
        std::os::unix::fs::symlink("/dev/null", &path)?;
        self.write_config("four")?;
        let reload = Command::new("systemctl").args(["--user", "daemon-reload"]).output()?;
        ensure!(reload.status.success(), "daemon-reload: {}", text(&reload));
        let output = self.init()?;
        fs::remove_file(&path)?;
        fs::write(&path, kept)?;
        ensure!(
            output.status.code() == Some(8),
            "exit {:?}: {}",
            output.status.code(),
            text(&output)
        );
        ensure!(text(&output).contains("unmask"), "no way out is named: {}", text(&output));
        Ok(())
    }
}

/// Notes its arguments and environment, then answers as healthy.
const KUBELET: &str = r#"echo started >> "$PLACE/kubelet.starts"
printf '%s\0' "$@" > "$PLACE/kubelet.arguments"
env -0 > "$PLACE/kubelet.environment"
exec "$TENON" imds serve --instance-type m5.large --listen 127.0.0.1:10248 --allow-imdsv1 --faults "$PLACE/health.yaml""#;

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), output.stderr.as_slice()].concat()).into()
}
