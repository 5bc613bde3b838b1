//! A machine that builds: Debian with dnf and rpm, the root of an image inside it that calls itself
//! Amazon Linux, and a server of packages in a network that only it can reach.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::checkout;
use crate::e2e::machine::text;
use crate::e2e::stage::Stage;
use crate::lab::must;

/// As the builder and the image see them.
pub const IMAGE: &str = "/mnt/image";
pub const CACHE: &str = "/cache";
const OS_RELEASE: &str = "NAME=\"Amazon Linux\"\nID=\"amzn\"\nVERSION_ID=\"2023\"\n";
const DNF_CONF: &str = "[main]\ngpgcheck=1\nbest=True\nskip_if_unavailable=False\n";
pub const REPOSITORY: &str = "/srv/lab";
/// In the network namespace of the server.
const URL: &str = "http://127.0.0.1:8000/lab/";

/// Components that would have to be downloaded; packages are what this is about.
const NO_DOWNLOADS: &str = "spec.components={kubelet: {source: none}, crictl: {source: none}, \
    ecr-credential-provider: {source: none}, cni-plugins: {source: none}, pause: {source: none}}";

/// A machine that builds, with the image's root inside it, and a server that only it can reach.
pub struct Builder<'a> {
    pub stage: &'a Stage,
    pub root: PathBuf,
    server: Child,
}

impl<'a> Builder<'a> {
    pub fn start(stage: &'a Stage, lab: &Path) -> anyhow::Result<Builder<'a>> {
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
    pub fn dress(&self, root: &Path) -> anyhow::Result<()> {
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

    pub fn image(&self) -> PathBuf {
        self.root.join(IMAGE.trim_start_matches('/'))
    }

    /// A file of the image, empty if there is none.
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.image().join(path)).unwrap_or_default()
    }

    /// Runs a program in the builder, in the network of the server.
    pub fn run(&self, words: &[&str]) -> anyhow::Result<Output> {
        self.run_in(&self.root, words)
    }

    pub fn run_in(&self, root: &Path, words: &[&str]) -> anyhow::Result<Output> {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.server.id())).arg("chroot").arg(root);
        command.args(words).env("HOME", "/root").env("LC_ALL", "C.UTF-8");
        command.output().with_context(|| format!("starting {}", words[0]))
    }

    pub fn must(&self, words: &[&str]) -> anyhow::Result<String> {
        let output = self.run(words)?;
        ensure!(output.status.success(), "{}: {}", words.join(" "), text(&output));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    pub fn rpms(
        &self,
        place: &str,
        key: &str,
        version: &str,
        names: &[String],
    ) -> anyhow::Result<()> {
        fs::copy(checkout().join("e2e/rpms.sh"), self.root.join("usr/bin/rpms.sh"))?;
        let mut words = vec!["sh", "/usr/bin/rpms.sh", place, key, version];
        words.extend(names.iter().map(String::as_str));
        self.must(&words).map(|_| ())
    }

    /// Packages with every name that the profiles want on Amazon Linux; gives the names.
    pub fn repository(&self) -> anyhow::Result<Vec<String>> {
        let words = ["plan", "--family", "al2023", "--set", NO_DOWNLOADS, "--output", "json"];
        let plan = self.tenon(&words)?;
        let items = plan["items"].as_array().context("no items")?;
        let name = |item: &Value| {
            (item["act"] == "package").then(|| item["key"].as_str()).flatten().map(str::to_owned)
        };
        let names: Vec<String> = items.iter().filter_map(name).collect();
        ensure!(names.len() > 15, "only {names:?}");
        let mut all = names.clone();
        all.extend(["avahi", "avahi-tools+avahi", "httpd", "lab-tool"].map(str::to_owned));
        self.rpms(REPOSITORY, super::SIGNER, "2.1.4", &all)?;
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
    pub fn plan(&self, file: &str, more: &str) -> anyhow::Result<String> {
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
        let words = ["plan", "--family", "al2023", "--set", NO_DOWNLOADS, "--profile", &profiles];
        let plan = self.tenon(&[&words[..], &["--output", "json"]].concat())?;
        fs::write(self.root.join(file), plan.to_string())?;
        Ok(format!("/{file}"))
    }

    /// `tenon image` on the host, with its answer.
    pub fn tenon(&self, words: &[&str]) -> anyhow::Result<Value> {
        let output = self.tenon_output(words)?;
        ensure!(output.status.success(), "tenon image {}: {}", words.join(" "), text(&output));
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("no JSON: {}", text(&output)))
    }

    pub fn tenon_output(&self, words: &[&str]) -> anyhow::Result<Output> {
        let mut command = Command::new(&self.stage.tenon);
        command.arg("image").args(words).output().context("starting tenon")
    }

    /// The words of an apply of the image on the host, which has no dnf.
    pub fn apply_words(&self, plan: &str, cache: &str) -> Vec<String> {
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

    pub fn apply(&self, plan: &str) -> anyhow::Result<Vec<String>> {
        let words = self.apply_words(plan, CACHE);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let answer = self.tenon(&words)?;
        let items = answer["items"].as_array().context("no items")?.iter();
        Ok(items.filter_map(Value::as_str).map(str::to_owned).collect())
    }

    /// An apply that must be refused with this code.
    pub fn refused(&self, plan: &str, cache: &str, code: &str) -> anyhow::Result<String> {
        let words = self.apply_words(plan, cache);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = self.tenon_output(&words)?;
        let told = text(&output);
        let exit: i32 = code[2..4].parse()?;
        ensure!(output.status.code() == Some(exit) && told.contains(code), "not {code}: {told}");
        Ok(told)
    }

    pub fn fetch(&self, plan: &str) -> anyhow::Result<()> {
        self.must(&["tenon", "image", "fetch", "--root", IMAGE, "--plan", plan, "--cache", CACHE])
            .map(|_| ())
    }

    /// What rpm of the image says about a package.
    pub fn installed(&self, name: &str) -> anyhow::Result<String> {
        let output =
            self.run_in(&self.image(), &["rpm", "-q", "--queryformat", "%{VERSION}", name])?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Everything in the image but what rpm makes anew whenever it looks at its database.
    pub fn picture(&self) -> anyhow::Result<String> {
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
pub fn overlay(stage: &Stage, lower: &Path, name: &str, at: &Path) -> anyhow::Result<PathBuf> {
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
