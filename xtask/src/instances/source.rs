//! Where descriptions of instance types come from: a file, a moto server, or AWS.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::Value;
use tenon_core::facts::Instance;
use tenon_host::gather::aws::{Cloud, ec2};
use tenon_host::gather::environment::Environment;

/// Reads saved output: an object with `InstanceTypes`, a bare list, or a map by type name, plain
/// or gzipped.
pub(crate) fn file(path: &Path) -> anyhow::Result<Vec<Value>> {
    let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let mut text = Vec::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        flate2::read::GzDecoder::new(&bytes[..])
            .read_to_end(&mut text)
            .with_context(|| format!("unpacking {}", path.display()))?;
    } else {
        text = bytes;
    }
    let value = serde_json::from_slice(&text)
        .with_context(|| format!("reading {} as JSON", path.display()))?;
    entries(value)
}

pub(crate) fn entries(value: Value) -> anyhow::Result<Vec<Value>> {
    match value {
        Value::Array(list) => Ok(list),
        Value::Object(mut object) => match object.remove("InstanceTypes") {
            Some(list) => entries(list),
            None => Ok(object.into_iter().map(|(_, described)| described).collect()),
        },
        _ => bail!("expected an object with InstanceTypes, a list, or a map by type"),
    }
}

/// Asks a moto server, with the client and the signature that AWS gets; moto checks neither
/// account nor secret.
pub(crate) fn moto(endpoint: &str) -> anyhow::Result<Vec<Value>> {
    let environment = Environment::from([
        ("AWS_ENDPOINT_URL_EC2", endpoint),
        ("AWS_ACCESS_KEY_ID", "moto"),
        ("AWS_SECRET_ACCESS_KEY", "moto"),
    ]);
    describe("us-east-1", environment)
}

/// Asks AWS in one region, signed by the `AWS_*` variables of this process.
pub(crate) fn aws(region: &str) -> anyhow::Result<Vec<Value>> {
    describe(region, Environment::of_process())
}

fn describe(region: &str, environment: Environment) -> anyhow::Result<Vec<Value>> {
    let instance = Instance { region: region.to_owned(), ..Instance::default() };
    let mut cloud = Cloud::new(&instance, environment, None);
    ec2::describe_instance_types(&mut cloud)
        .map_err(|problem| anyhow::anyhow!("{}", problem.render("error")))
}

/// The regions that the account can use.
pub(crate) fn all_regions() -> anyhow::Result<Vec<String>> {
    let instance = Instance { region: "us-east-1".to_owned(), ..Instance::default() };
    let mut cloud = Cloud::new(&instance, Environment::of_process(), None);
    ec2::regions(&mut cloud).map_err(|problem| anyhow::anyhow!("{}", problem.render("error")))
}

/// A moto server of a pinned version, ended with this value.
pub(crate) struct MotoServer {
    child: Child,
    pub(crate) endpoint: String,
}

impl MotoServer {
    /// Installs moto into an environment outside of the checkout and starts its server.
    pub(crate) fn start(version: &str) -> anyhow::Result<Self> {
        let environment = environment(version)?;
        let port = free_port()?;
        let child = Command::new(environment.join("bin/moto_server"))
            .args(["--port", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("starting moto_server")?;
        let mut server = MotoServer { child, endpoint: format!("http://127.0.0.1:{port}/") };
        server.wait(port)?;
        Ok(server)
    }

    fn wait(&mut self, port: u16) -> anyhow::Result<()> {
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait().context("watching moto_server")? {
                bail!("moto_server ended early: {status}");
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        bail!("moto_server did not listen within 60 s")
    }
}

impl Drop for MotoServer {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("looking for a free port")?;
    Ok(listener.local_addr()?.port())
}

/// The Python environment of this moto version; made on first use, found again later.
fn environment(version: &str) -> anyhow::Result<PathBuf> {
    let directory = std::env::temp_dir().join(format!("tenon-xtask-moto-{version}"));
    if directory.join("bin/moto_server").is_file() {
        return Ok(directory);
    }
    let target = directory.to_string_lossy().into_owned();
    run("python3", &["-m", "venv", &target])?;
    let pip = format!("{target}/bin/pip");
    run(&pip, &["install", "--quiet", &format!("moto[ec2,server]=={version}")])?;
    Ok(directory)
}

fn run(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let status = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("running {program}"))?;
    if !status.success() {
        bail!("{program} {} ended with {status}", arguments.join(" "));
    }
    Ok(())
}
