//! The path of dnf, with the real program: a root of Debian that calls itself Amazon Linux 2023 and
//! holds dnf and rpm, and a repository of tiny packages with the names that the profiles ask for. What
//! is proven is how Tenon calls dnf, reads rpm's database and bears their failures; the packages'
//! content is ours, not Amazon's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use super::image::host::Snapshot;
use super::machine::text;
use super::stage::Stage;
use crate::checkout;
use crate::lab::{DNF, must};

/// As the builder and the image see them.
const IMAGE: &str = "/mnt/image";
const CACHE: &str = "/cache";
const OS_RELEASE: &str = "NAME=\"Amazon Linux\"\nID=\"amzn\"\nVERSION_ID=\"2023\"\n";
const DNF_CONF: &str = "[main]\ngpgcheck=1\nbest=True\nskip_if_unavailable=False\n";
const REPOSITORY: &str = "/srv/lab";
/// In the network namespace of the server.
const URL: &str = "http://127.0.0.1:8000/lab/";

/// A machine that builds, with the image's root inside it, and a server that only it can reach.
struct Builder<'a> {
    stage: &'a Stage,
    root: PathBuf,
    server: Child,
}

pub fn run(stage: &Stage) -> anyhow::Result<usize> {
    let lab = DNF.ready(&stage.cache)?.join("root");
    let builder = Builder::start(stage, &lab)?;
    let host = Snapshot::take(&lab)?;
    let names = builder.repository()?;
    let plan = builder.plan("plan.json", "lab")?;

    let cases = [
        ("without a cache entry", offline_without_packages as fn(&Builder, &str, &[String]) -> _),
        ("fetched by the builder's dnf", fetched),
        ("applied twice, verified", applied_twice),
        ("locked", locked),
        ("a new version over the lock", upgraded),
        ("not removed under others", not_removed),
        ("killed in a script", killed),
        ("a forged package", forged),
        ("on the machine itself", on_itself),
    ];
    for (what, case) in cases {
        case(&builder, &plan, &names).with_context(|| what.to_owned())?;
        println!("  {what}");
    }
    host.must_be_as_it_was(&lab, &builder.image())?;
    Ok(cases.len() + 1)
}

impl<'a> Builder<'a> {
    fn start(stage: &'a Stage, lab: &Path) -> anyhow::Result<Builder<'a>> {
        let root = overlay(stage, lab, "builder", &stage.place.join("builder"))?;
        must(Command::new("mount").args(["-t", "proc", "proc"]).arg(root.join("proc")))?;
        overlay(stage, lab, "image", &root.join(IMAGE.trim_start_matches('/')))?;
        fs::copy(&stage.tenon, root.join("usr/bin/tenon"))?;
        for directory in ["srv/lab", "srv/forged", "cache"] {
            fs::create_dir_all(root.join(directory))?;
        }
        let script = "ip link set lo up; exec python3 -m http.server --bind 127.0.0.1 --directory \"$1\" 8000";
        let server = Command::new("unshare")
            .args(["--net", "sh", "-euc", script, "x"])
            .arg(root.join("srv"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("starting the server")?;
        let builder = Builder { stage, root, server };
        builder.dress(&builder.image())?;
        builder.must(&["rpm", "--root", IMAGE, "--dbpath", "/var/lib/rpm", "--initdb"])?;
        Ok(builder)
    }

    /// Makes Debian say that it is Amazon Linux.
    fn dress(&self, root: &Path) -> anyhow::Result<()> {
        for (path, text) in [
            ("usr/lib/os-release", OS_RELEASE),
            ("etc/dnf/dnf.conf", DNF_CONF),
            ("etc/rpm/macros.amzn", "%_dbpath /var/lib/rpm\n"),
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().context("a path without parent")?)?;
            fs::write(&path, text).with_context(|| path.display().to_string())?;
        }
        fs::create_dir_all(root.join("etc/yum.repos.d"))?;
        Ok(fs::create_dir_all(root.join("var/lib/rpm"))?)
    }

    fn image(&self) -> PathBuf {
        self.root.join(IMAGE.trim_start_matches('/'))
    }

    /// A file of the image, empty if there is none.
    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.image().join(path)).unwrap_or_default()
    }

    /// Runs a program in the builder, in the network of the server.
    fn run(&self, words: &[&str]) -> anyhow::Result<Output> {
        self.run_in(&self.root, words)
    }

    fn run_in(&self, root: &Path, words: &[&str]) -> anyhow::Result<Output> {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.server.id())).arg("chroot").arg(root);
        command.args(words).env("HOME", "/root").env("LC_ALL", "C.UTF-8");
        command.output().with_context(|| format!("starting {}", words[0]))
    }

    fn must(&self, words: &[&str]) -> anyhow::Result<String> {
        let output = self.run(words)?;
        ensure!(output.status.success(), "{}: {}", words.join(" "), text(&output));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn rpms(&self, place: &str, key: &str, version: &str, names: &[String]) -> anyhow::Result<()> {
        fs::copy(checkout().join("e2e/rpms.sh"), self.root.join("usr/bin/rpms.sh"))?;
        let mut words = vec!["sh", "/usr/bin/rpms.sh", place, key, version];
        words.extend(names.iter().map(String::as_str));
        self.must(&words).map(|_| ())
    }

    /// Packages with every name that the profiles want on Amazon Linux; gives the names.
    fn repository(&self) -> anyhow::Result<Vec<String>> {
        let plan = self.tenon(&["plan", "--family", "al2023", "--output", "json"])?;
        let items = plan["items"].as_array().context("no items")?;
        let name = |item: &Value| {
            (item["act"] == "package").then(|| item["key"].as_str()).flatten().map(str::to_owned)
        };
        let names: Vec<String> = items.iter().filter_map(name).collect();
        ensure!(names.len() > 15, "only {names:?}");
        let mut all = names.clone();
        all.extend(["avahi", "avahi-tools+avahi", "httpd", "lab-tool"].map(str::to_owned));
        self.rpms(REPOSITORY, "lab <lab@example.com>", "2.1.4", &all)?;
        // What the image must not have is there beforehand.
        let install = ["lab-shell", "avahi", "httpd"]
            .map(|name| format!("{REPOSITORY}/{name}-2.1.4-1.amzn2023.noarch.rpm"));
        let mut words =
            vec!["rpm", "--root", IMAGE, "--dbpath", "/var/lib/rpm", "--noscripts", "-i"];
        words.extend(install.iter().map(String::as_str));
        self.must(&words)?;
        Ok(names)
    }

    /// Writes a plan of the shipped profiles and of one with the repository; gives its path.
    fn plan(&self, file: &str, more: &str) -> anyhow::Result<String> {
        let read = |name: &str| fs::read_to_string(self.root.join("srv/lab").join(name));
        let (key, fingerprint) = (read("key.asc")?, read("fingerprint")?);
        let profile = format!(
            "about = 'lab'\n[[repository]]\nname = 'lab'\nurl = '{URL}'\nfingerprint = '{}'\n\
             key = \"\"\"\n{key}\"\"\"\nreason = 'r'\n{}",
            fingerprint.trim(),
            match more {
                "lab" =>
                    "[[package]]\nname = 'containerd'\nversion = '2.1'\nlock = true\nreason = 'r'\n",
                more => more,
            }
        );
        fs::write(self.root.join("lab.toml"), profile)?;
        let profiles = format!("base,cis,{}", self.root.join("lab.toml").display());
        let plan = self.tenon(&[
            "plan",
            "--family",
            "al2023",
            "--profile",
            &profiles,
            "--output",
            "json",
        ])?;
        fs::write(self.root.join(file), plan.to_string())?;
        Ok(format!("/{file}"))
    }

    /// `tenon image` on the host, with its answer.
    fn tenon(&self, words: &[&str]) -> anyhow::Result<Value> {
        let output = self.tenon_output(words)?;
        ensure!(output.status.success(), "tenon image {}: {}", words.join(" "), text(&output));
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("no JSON: {}", text(&output)))
    }

    fn tenon_output(&self, words: &[&str]) -> anyhow::Result<Output> {
        let mut command = Command::new(&self.stage.tenon);
        command.arg("image").args(words).output().context("starting tenon")
    }

    /// The words of an apply of the image on the host, which has no dnf.
    fn apply_words(&self, plan: &str, cache: &str) -> Vec<String> {
        let at = |path: &str| self.root.join(path.trim_start_matches('/')).display().to_string();
        let (root, plan, cache) = (at(IMAGE), at(plan), at(cache));
        [
            "apply",
            "--offline",
            "--root",
            &root,
            "--plan",
            &plan,
            "--cache",
            &cache,
            "--output",
            "json",
        ]
        .map(str::to_owned)
        .to_vec()
    }

    fn apply(&self, plan: &str) -> anyhow::Result<Vec<String>> {
        let words = self.apply_words(plan, CACHE);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let answer = self.tenon(&words)?;
        let items = answer["items"].as_array().context("no items")?.iter();
        Ok(items.filter_map(Value::as_str).map(str::to_owned).collect())
    }

    /// An apply that must be refused with this code.
    fn refused(&self, plan: &str, cache: &str, code: &str) -> anyhow::Result<String> {
        let words = self.apply_words(plan, cache);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = self.tenon_output(&words)?;
        let told = text(&output);
        let exit: i32 = code[2..4].parse()?;
        ensure!(output.status.code() == Some(exit) && told.contains(code), "not {code}: {told}");
        Ok(told)
    }

    fn fetch(&self, plan: &str) -> anyhow::Result<()> {
        self.must(&["tenon", "image", "fetch", "--root", IMAGE, "--plan", plan, "--cache", CACHE])
            .map(|_| ())
    }

    /// What rpm of the image says about a package.
    fn installed(&self, name: &str) -> anyhow::Result<String> {
        let output =
            self.run_in(&self.image(), &["rpm", "-q", "--queryformat", "%{VERSION}", name])?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Everything in the image but what rpm makes anew whenever it looks at its database.
    fn picture(&self) -> anyhow::Result<String> {
        let script = "cd \"$1\" && find . -xdev ! -path './run/*' ! -name 'rpmdb.sqlite-*' ! -name .rpm.lock \
            ! -path ./var/lib/rpm ! -path ./usr/lib/sysimage/rpm -printf '%p %m %U %s %T@\\n' | sort";
        let mut command = Command::new("sh");
        let output = command.args(["-euc", script, "x"]).arg(self.image()).output()?;
        ensure!(output.status.success(), "{}", text(&output));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for Builder<'_> {
    fn drop(&mut self) {
        // The stage's own end would take it along as well.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// A writable view of a root at a place.
fn overlay(stage: &Stage, lower: &Path, name: &str, at: &Path) -> anyhow::Result<PathBuf> {
    let (upper, work) =
        (stage.place.join(format!("{name}-upper")), stage.place.join(format!("{name}-work")));
    for directory in [&upper, &work, &at.to_owned()] {
        fs::create_dir_all(directory)?;
    }
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        lower.display(),
        upper.display(),
        work.display()
    );
    must(Command::new("mount").args(["-t", "overlay", "-o", &options, "overlay"]).arg(at))?;
    Ok(at.to_owned())
}

fn offline_without_packages(builder: &Builder, plan: &str, _: &[String]) -> anyhow::Result<()> {
    builder.refused(plan, "/empty", "TN10817")?;
    ensure!(builder.installed("runc")?.contains("not installed"), "runc came from nowhere");
    Ok(())
}

/// The machine that builds has a dnf of its own; the root it fetches for stays as it is.
fn fetched(builder: &Builder, plan: &str, names: &[String]) -> anyhow::Result<()> {
    let before = builder.picture()?;
    builder.fetch(plan)?;
    let after = builder.picture()?;
    ensure!(before == after, "fetch changed the root:\n{}", difference(&before, &after));
    let files = builder.must(&["find", CACHE, "-name", "*.rpm"])?;
    for name in names.iter().map(String::as_str).chain(["lab-shell"]) {
        ensure!(
            name == "lab-shell" || files.contains(&format!("/{name}-2.1.4")),
            "no {name} in {files}"
        );
    }
    ensure!(!files.contains("lab-tool"), "more came than was asked for: {files}");
    Ok(())
}

fn difference(before: &str, after: &str) -> String {
    after.lines().filter(|line| !before.contains(line)).collect::<Vec<_>>().join("\n")
}

fn applied_twice(builder: &Builder, plan: &str, names: &[String]) -> anyhow::Result<()> {
    let changed = builder.apply(plan)?;
    ensure!(changed.contains(&"packages".to_owned()), "{changed:?}");
    for name in names {
        ensure!(builder.installed(name)? == "2.1.4", "{name} is {}", builder.installed(name)?);
    }
    let said = builder.read("var/log/lab-scripts");
    ensure!(said.contains("end containerd 2.1.4"), "scripts did not run: {said}");
    ensure!(!said.contains("reached"), "a script got out: {said}");
    ensure!(builder.installed("httpd")?.contains("not installed"), "httpd is there");
    let before = builder.picture()?;
    let again = builder.apply(plan)?;
    let after = builder.picture()?;
    ensure!(
        again.is_empty() && before == after,
        "a second apply: {again:?} {}",
        difference(&before, &after)
    );
    let root = builder.image().display().to_string();
    let output = builder.tenon_output(&["verify", "--root", &root, "--output", "json"])?;
    ensure!(output.status.success(), "verify: {}", text(&output));
    Ok(())
}

/// dnf's own plugin reads the lock, and holds the package against a newer version.
fn locked(builder: &Builder, _: &str, _: &[String]) -> anyhow::Result<()> {
    let locks = builder.read("etc/dnf/plugins/versionlock.list");
    ensure!(locks.contains("containerd-0:2.1.4-1.amzn2023.*"), "{locks}");
    builder.rpms(REPOSITORY, "lab <lab@example.com>", "2.2.0", &["containerd".to_owned()])?;
    let dnf = |more: &[&str]| {
        let words = ["dnf", "--refresh", "--assumeno", "upgrade", "containerd"];
        let output = builder.run_in(&builder.image(), &[&words[..], more].concat())?;
        anyhow::Ok(text(&output))
    };
    let held = dnf(&[])?;
    ensure!(held.contains("Nothing to do"), "the lock holds nothing: {held}");
    let free = dnf(&["--disableplugin=versionlock"])?;
    ensure!(free.contains("2.2.0"), "there is nothing to hold against: {free}");
    Ok(())
}

/// A plan that asks for another version changes it, and holds the new one.
fn upgraded(builder: &Builder, _: &str, _: &[String]) -> anyhow::Result<()> {
    let newer = "[[package]]\nname = 'containerd'\nversion = '2.2'\nlock = true\nreason = 'r'\n";
    let plan = builder.plan("newer.json", newer)?;
    builder.fetch(&plan)?;
    let changed = builder.apply(&plan)?;
    ensure!(builder.installed("containerd")? == "2.2.0", "{changed:?}");
    let locks = builder.read("etc/dnf/plugins/versionlock.list");
    ensure!(
        locks.contains("containerd-0:2.2.0") && !locks.contains("containerd-0:2.1.4"),
        "{locks}"
    );
    let older = builder.plan("plan.json", "lab")?;
    builder.fetch(&older)?;
    builder.apply(&older)?;
    ensure!(
        builder.installed("containerd")? == "2.1.4",
        "no way back: {}",
        builder.installed("containerd")?
    );
    Ok(())
}

/// What others stand on is not removed, and nothing with it.
fn not_removed(builder: &Builder, _: &str, _: &[String]) -> anyhow::Result<()> {
    ensure!(builder.installed("avahi")?.contains("not installed"), "avahi is there");
    let rpms =
        ["avahi", "avahi-tools"].map(|name| format!("/srv/lab/{name}-2.1.4-1.amzn2023.noarch.rpm"));
    let mut words = vec!["rpm", "--root", IMAGE, "--dbpath", "/var/lib/rpm", "--noscripts", "-i"];
    words.extend(rpms.iter().map(String::as_str));
    builder.must(&words)?;
    let told = builder.refused("/plan.json", CACHE, "TN06859")?;
    ensure!(told.contains("avahi-tools"), "{told}");
    ensure!(builder.installed("avahi")? == "2.1.4", "it was removed under others");
    builder.must(&["rpm", "--root", IMAGE, "--dbpath", "/var/lib/rpm", "-e", "avahi-tools"])?;
    builder.apply("/plan.json")?;
    ensure!(builder.installed("avahi")?.contains("not installed"), "avahi is still there");
    Ok(())
}

/// rpm does not remember whose script did not run; the next apply knows.
fn killed(builder: &Builder, _: &str, _: &[String]) -> anyhow::Result<()> {
    let plan = builder.plan("more.json", "[[package]]\nname = 'lab-tool'\nreason = 'r'\n")?;
    builder.fetch(&plan)?;
    let slow = builder.image().join("etc/lab-slow-lab-tool");
    fs::write(&slow, "")?;
    let mut child = Command::new(&builder.stage.tenon)
        .arg("image")
        .args(builder.apply_words(&plan, CACHE))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let end = Instant::now() + Duration::from_secs(60);
    while !builder.read("var/log/lab-scripts").contains("begin lab-tool") {
        if Instant::now() > end || child.try_wait()?.is_some() {
            bail!("the script did not begin");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill()?;
    child.wait()?;
    fs::remove_file(&slow)?;
    ensure!(
        !builder.read("var/log/lab-scripts").contains("end lab-tool"),
        "it was not killed in time"
    );
    let changed = builder.apply(&plan)?;
    ensure!(builder.read("var/log/lab-scripts").contains("end lab-tool"), "not cured: {changed:?}");
    ensure!(builder.apply(&plan)?.is_empty(), "a third apply has work left");
    Ok(())
}

/// A package that another key signed is not installed, whatever its name.
fn forged(builder: &Builder, _: &str, _: &[String]) -> anyhow::Result<()> {
    builder.rpms(
        "/srv/forged",
        "forger <forger@example.com>",
        "9.0",
        &["lab-forged".to_owned()],
    )?;
    let more = "[[package]]\nname = 'lab-forged'\nreason = 'r'\n";
    builder.must(&["cp", "/srv/forged/lab-forged-9.0-1.amzn2023.noarch.rpm", "/srv/lab"])?;
    builder.must(&["createrepo_c", "--quiet", "/srv/lab"])?;
    let plan = builder.plan("forged.json", more)?;
    builder.fetch(&plan)?;
    builder.refused(&plan, CACHE, "TN10858")?;
    ensure!(builder.installed("lab-forged")?.contains("not installed"), "it is installed");
    Ok(())
}

/// As on an instance of Packer: the root is the machine's own, dnf and Tenon run in it.
fn on_itself(builder: &Builder, _: &str, names: &[String]) -> anyhow::Result<()> {
    let lab = DNF.ready(&builder.stage.cache)?.join("root");
    let root = overlay(builder.stage, &lab, "self", &builder.stage.place.join("self"))?;
    builder.dress(&root)?;
    fs::copy(&builder.stage.tenon, root.join("usr/bin/tenon"))?;
    fs::copy(builder.root.join("plan.json"), root.join("plan.json"))?;
    must(Command::new("mount").args(["-t", "proc", "proc"]).arg(root.join("proc")))?;
    for (command, more) in [("fetch", &[][..]), ("apply", &["--offline"]), ("verify", &[])] {
        let mut words = vec!["tenon", "image", command, "--root", "/"];
        if command != "verify" {
            words.extend(["--plan", "/plan.json", "--cache", "/var/cache/tenon"]);
        }
        words.extend(more);
        let output = builder.run_in(&root, &words)?;
        ensure!(output.status.success(), "{command} of itself: {}", text(&output));
    }
    for name in names {
        ensure!(root.join("usr/share/lab").join(name).exists(), "no {name}");
    }
    let said = fs::read_to_string(root.join("var/log/lab-scripts"))?;
    ensure!(!said.contains("reached"), "a script got out: {said}");
    must(Command::new("umount").arg(root.join("proc")).arg(&root))
}
