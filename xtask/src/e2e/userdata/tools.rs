//! The readers: Debian packages unpacked, and a Python environment, both in the cache.

use std::path::PathBuf;
use std::process::Command;

use super::super::Lab;
use crate::lab::must;

const PACKAGES: [&str; 3] = ["shellcheck", "cloud-init", "ignition"];
const PYTHON: [&str; 14] = [
    "cfn-lint",
    "moto[cloudformation,ec2,autoscaling,iam,eks,ssm]",
    "boto3",
    "check-jsonschema",
    "tree-sitter",
    "tree-sitter-powershell",
    "jinja2",
    "configobj",
    "oauthlib",
    "jsonpatch",
    "jsonschema",
    "pyyaml",
    "requests",
    "pyserial",
];

pub struct Tools {
    packages: PathBuf,
    python: PathBuf,
}

impl Tools {
    /// Installs what is missing, by name.
    pub fn install(lab: &Lab) -> anyhow::Result<Self> {
        let home = lab.cache.join("userdata");
        let tools = Tools { packages: home.join("root"), python: home.join("venv") };
        if !tools.program("ignition-validate").exists() {
            let debs = home.join("debs");
            std::fs::create_dir_all(&debs)?;
            println!("installing {}", PACKAGES.join(", "));
            must(Command::new("apt-get").args(["-q", "update"]))?;
            must(Command::new("apt-get").current_dir(&debs).arg("download").args(PACKAGES))?;
            for entry in std::fs::read_dir(&debs)? {
                must(Command::new("dpkg").arg("-x").arg(entry?.path()).arg(&tools.packages))?;
            }
        }
        if !tools.python_program("cfn-lint").exists() {
            println!("installing {}", PYTHON.join(", "));
            must(Command::new("python3").args(["-m", "venv"]).arg(&tools.python))?;
            must(Command::new(tools.python_program("pip")).args(["install", "-q"]).args(PYTHON))?;
        }
        Ok(tools)
    }

    pub fn program(&self, name: &str) -> PathBuf {
        self.packages.join("usr/bin").join(name)
    }

    /// Ignition itself, which answers as `ignition-apply` under that name.
    pub fn ignition(&self) -> PathBuf {
        self.packages.join("usr/lib/dracut/modules.d/30ignition/ignition")
    }

    pub fn python_program(&self, name: &str) -> PathBuf {
        self.python.join("bin").join(name)
    }

    /// One of our own checks, with cloud-init's modules in reach.
    pub fn python(&self, lab: &Lab, script: &str) -> Command {
        let mut command = Command::new(self.python_program("python"));
        command.env("PYTHONPATH", self.packages.join("usr/lib/python3/dist-packages"));
        command.arg(lab.repository.join("e2e/userdata").join(script));
        command
    }
}

/// The unit with programs that exist everywhere, since only its text is under test.
pub fn with_true(unit: &str) -> String {
    let replaced = unit.lines().map(|line| match line.split_once("=/") {
        Some((key, command)) if key.starts_with("ExecStart") => {
            let arguments = command.split_once(' ').map_or("", |(_, rest)| rest);
            format!("{key}=/bin/true {arguments}\n")
        }
        _ => format!("{line}\n"),
    });
    replaced.collect()
}
