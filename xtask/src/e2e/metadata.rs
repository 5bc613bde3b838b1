//! `tenon imds serve` at the address of EC2's metadata service.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use anyhow::{Context, ensure};
use tenon_host::simulator::profile::Profile;

use super::network::{METADATA, Network};
use super::stage::Stage;

pub const INSTANCE_TYPE: &str = "m5.large";
pub const REGION: &str = "us-west-2";

/// What the service pretends.
pub fn instance() -> Profile {
    Profile::new(INSTANCE_TYPE).in_region(REGION)
}

/// How the service answers.
#[derive(Default)]
pub struct Answers<'a> {
    pub user_data: &'a str,
    /// A fault script.
    pub faults: Option<&'a str>,
    /// Also without a session token.
    pub without_token: bool,
    /// The instance has IPv6 addresses.
    pub ipv6: bool,
    /// In place of [`INSTANCE_TYPE`].
    pub instance_type: Option<&'a str>,
}

/// The running service.
pub struct Metadata(Child);

impl Metadata {
    /// Starts the service in `infra`.
    pub fn serve(stage: &Stage, network: &Network, answers: &Answers) -> anyhow::Result<Self> {
        let user_data = stage.place.join("user-data");
        fs::write(&user_data, answers.user_data)?;
        let mut command = network.in_infra(&stage.tenon);
        let instance_type = answers.instance_type.unwrap_or(INSTANCE_TYPE);
        command.args(["imds", "serve", "--instance-type", instance_type, "--region", REGION]);
        command.args(["--listen", &format!("{METADATA}:80"), "--log"]);
        command.arg("--user-data").arg(user_data);
        if answers.without_token {
            command.arg("--allow-imdsv1");
        }
        if answers.ipv6 {
            command.arg("--ipv6");
        }
        if let Some(faults) = answers.faults {
            let file = stage.place.join("faults.yaml");
            fs::write(&file, faults)?;
            command.arg("--faults").arg(file);
        }
        let log = File::options().create(true).append(true).open(stage.place.join("imds.log"))?;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .context("starting the metadata service")?;
        let mut line = String::new();
        let answer = child.stdout.take().context("the service has no output")?;
        BufReader::new(answer).read_line(&mut line)?;
        ensure!(line.contains(METADATA), "the metadata service did not start: {line}");
        Ok(Metadata(child))
    }
}

impl Drop for Metadata {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
