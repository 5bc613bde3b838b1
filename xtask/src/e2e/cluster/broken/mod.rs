//! A real node is broken in many ways; `tenon doctor`, run on it, must name the cause.

mod certificate;
mod scene;
mod table;

use anyhow::ensure;
use serde_json::Value;

use self::scene::Scene;
use self::table::{BREAKS, Break};
use super::control_plane::ControlPlane;
use super::shape::Shape;
use super::{checks, node_disk, user_data};
use crate::e2e::machine::Machine;
use crate::e2e::metadata::{Answers, Metadata};
use crate::e2e::network::Network;
use crate::e2e::stage::Stage;
use crate::lab::{KUBERNETES_1_34, KUBERNETES_1_36};

/// Breaks one node again and again.
pub fn run(stage: &Stage) -> anyhow::Result<usize> {
    let shape = Shape::new("1.34", KUBERNETES_1_34.ready(&stage.cache)?);
    let network = Network::lay(stage, &shape.instance)?;
    let mut plane = ControlPlane::start(stage, &network, &shape)?;
    let user_data = user_data(&plane, &shape)?;
    let answers = Answers { user_data: &user_data, ..Answers::default() };
    let metadata = Some(Metadata::serve(stage, &network, &answers)?);
    let disk = node_disk(stage, &shape)?;
    for (path, content) in scene::spare_parts(&plane, shape.node())? {
        disk.write(&path, &content)?;
    }
    let newer = KUBERNETES_1_36.ready(&stage.cache)?.join("kubelet");
    disk.install(&newer, "usr/lib/lab/kubelet-newer")?;
    let machine = Machine::boot(&disk, &network)?;
    checks::becomes_ready(&mut plane, &shape)?;
    machine.settled()?;
    let mut scene = Scene {
        stage,
        network: &network,
        plane,
        shape: &shape,
        machine: &machine,
        user_data: &user_data,
        metadata,
        servers: Vec::new(),
    };
    scene.sh("save")?;
    if std::env::var_os("SKIP_WELL").is_none() {
        is_well(&scene)?;
    }
    let wrong = BREAKS.iter().filter_map(|way| try_one(&mut scene, way)).collect::<Vec<_>>();
    drop(scene);
    machine.power_off()?;
    // Nine of ten is what is asked of the doctor; whatever it misses is shown above.
    let enough = wrong.len() * 10 <= BREAKS.len();
    ensure!(enough, "{} of {}:\n{}", wrong.len(), BREAKS.len(), wrong.join("\n"));
    Ok(BREAKS.len() + 1 - wrong.len())
}

/// A node that is well has no cause.
fn is_well(scene: &Scene) -> anyhow::Result<()> {
    let verdict = scene.doctor()?;
    ensure!(verdict["state"] == "ready", "the node is well, the doctor says: {verdict:#}");
    ensure!(causes(&verdict).is_empty(), "the node is well, the doctor says: {verdict:#}");
    Ok(())
}

/// Breaks, asks, mends. Says what was wrong with the answer.
fn try_one(scene: &mut Scene, way: &Break) -> Option<String> {
    let result = broken(scene, way);
    let mended = scene.mend();
    let verdict = match &result {
        Ok(()) => "named".to_owned(),
        Err(error) => format!("NOT NAMED: {error:#}"),
    };
    println!("  {:>2} {:<56} {}", way.cause, way.name, verdict.lines().next().unwrap_or_default());
    let error = result.err().or(mended.err())?;
    Some(format!("{}: {error:#}", way.name))
}

fn broken(scene: &mut Scene, way: &Break) -> anyhow::Result<()> {
    if let Some(outside) = way.outside {
        scene.outside(outside)?;
    }
    scene.sh(way.script)?;
    if let Some((unit, says)) = way.says {
        scene.hear(unit, says)?;
    }
    let verdict = scene.doctor()?;
    let causes = causes(&verdict);
    ensure!(
        causes.first() == Some(&way.cause),
        "the doctor names {causes:?}, not {}\n{verdict:#}",
        way.cause
    );
    Ok(())
}

/// The numbers of the causes, the first one first.
fn causes(verdict: &Value) -> Vec<u8> {
    let causes = verdict["causes"].as_array().into_iter().flatten();
    let roots = causes.filter(|cause| cause["role"] == "root");
    let digits = |cause: &Value| -> Option<u8> {
        let id = cause["id"].as_str()?;
        id.trim_start_matches(|letter: char| !letter.is_ascii_digit()).parse().ok()
    };
    roots.filter_map(digits).collect()
}
