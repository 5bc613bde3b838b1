//! Programs for another kind of machine.

use super::*;

/// Always there and always of the machine's own kind.
const REFERENCE: &str = "/usr/lib/systemd/systemd";

pub(super) static CAUSE: Cause = Cause {
    number: 36,
    slug: "architecture",
    title: "programs of the image are for another architecture",
    step: Step::Image,
    alone: true,
    signals: &[
        Signal::confirmed(Log::Manager, &["Exec format error"], "systemd src/core/exec-invoke.c"),
        Signal::tentative(Log::Kubelet, &["exec format error"]),
        Signal::tentative(Log::Containerd, &["exec format error"]),
    ],
    support: &[SYSTEMD_RESTART],
    checks: &[Check::proves("elf-machine", machine)],
    why: "the image was built with programs for another processor, such as x86-64 programs on Graviton",
    fix: "use the node image for this instance's architecture",
    command: "uname -m; file /usr/bin/kubelet",
    ..Cause::BLANK
};

fn named(machine: u16) -> String {
    match machine {
        62 => "x86-64".into(),
        183 => "arm64".into(),
        other => format!("ELF machine {other}"),
    }
}

fn machine(view: &View) -> Found {
    let programs = &view.node.programs;
    let Some(own) = programs.get(REFERENCE) else {
        return Found::Unknown("the machine's own architecture is not known");
    };
    let foreign = programs.iter().filter(|(_, machine)| *machine != own);
    let evidence = foreign.map(|(path, machine)| {
        Evidence::file(path, format!("is for {}, this system is {}", named(*machine), named(*own)))
    });
    Found::of(evidence.collect())
}
