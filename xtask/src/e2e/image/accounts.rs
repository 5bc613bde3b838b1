//! The log-in rules of the hardened image, by log-ins: through the machine's own sshd with
//! passwords, and through passwd, su and sudo.

use std::process::Output;

use anyhow::{Context, ensure};

use super::super::machine::{Machine, text};

/// Strong enough for the rules of the image.
const RIGHT: &str = "Correct-7-Horse!Battery";
const OTHER: &str = "Purple-4-Monkey!Teapots";
const WRONG: &str = "Wrong-9-Zebra!Stapler";
const WEAK: &str = "summer12";
const ASK: &str = "/root/ask";

/// People, the password that they begin with, and what makes them.
const SET_UP: &str = "set -eu
for name in alice bob carol; do useradd --create-home --shell /bin/bash $name; done
usermod --append --groups sugroup carol
for name in alice bob carol root; do echo \"$name:$0\"; done | chpasswd
echo 'alice ALL=(ALL:ALL) ALL' >/etc/sudoers.d/50-lab
chmod 0440 /etc/sudoers.d/50-lab
printf '#!/bin/sh\\nprintf \"%%s\\\\n\" \"$PASSWORD\"\\n' >/root/ask
chmod 0700 /root/ask
";

/// Plays all of it; the machine is not as planned afterwards.
pub fn check(machine: &Machine) -> anyhow::Result<usize> {
    machine.must(&["sh", "-c", SET_UP, RIGHT])?;
    let people = People(machine);
    let cases: &[(&str, Case)] = &[
        ("a right password logs in, and root's does not", right_password),
        ("wrong passwords lock, and only a reset opens again", wrong_passwords),
        ("weak and old passwords are refused", new_passwords),
        ("su is for nobody but its group", su),
        ("sudo lends rights and keeps a record", sudo),
    ];
    for (name, case) in cases {
        case(&people).with_context(|| (*name).to_owned())?;
    }
    println!("  log-ins: {} cases", cases.len());
    Ok(cases.len())
}

type Case = fn(&People) -> anyhow::Result<()>;

struct People<'a>(&'a Machine<'a>);

impl People<'_> {
    /// Runs a command as somebody who logs in through sshd with a password.
    fn ssh(&self, name: &str, password: &str, command: &str) -> anyhow::Result<Output> {
        let (password, ask) = (format!("PASSWORD={password}"), format!("SSH_ASKPASS={ASK}"));
        let to = format!("{name}@127.0.0.1");
        let mut words = vec!["env", &password, &ask, "SSH_ASKPASS_REQUIRE=force", "ssh"];
        for option in [
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "PreferredAuthentications=password",
            "NumberOfPasswordPrompts=1",
            "LogLevel=ERROR",
        ] {
            words.extend(["-o", option]);
        }
        words.extend([&to, command]);
        self.0.run(&words)
    }

    fn gets_in(&self, name: &str, password: &str) -> anyhow::Result<bool> {
        let output = self.ssh(name, password, "id -un")?;
        let said = text(&output);
        match output.status.success() {
            true => ensure!(said.trim() == name, "{name} is {said}"),
            false => ensure!(said.contains("Permission denied"), "{name}: {said}"),
        }
        Ok(output.status.success())
    }
}

fn right_password(people: &People) -> anyhow::Result<()> {
    ensure!(people.gets_in("alice", RIGHT)?, "alice is refused");
    ensure!(!people.gets_in("alice", WRONG)?, "any password will do");
    ensure!(!people.gets_in("root", RIGHT)?, "root logs in");
    Ok(())
}

/// The benchmark allows four guesses.
fn wrong_passwords(people: &People) -> anyhow::Result<()> {
    for _ in 0..4 {
        ensure!(!people.gets_in("bob", WRONG)?, "a wrong password logs in");
    }
    ensure!(!people.gets_in("bob", RIGHT)?, "bob is not locked");
    ensure!(people.gets_in("alice", RIGHT)?, "alice is locked with bob");
    people.0.must(&["faillock", "--user", "bob", "--reset"])?;
    ensure!(people.gets_in("bob", RIGHT)?, "bob stays locked");
    // What counted before a right password does not count after it.
    for _ in 0..3 {
        ensure!(!people.gets_in("bob", WRONG)?, "a wrong password logs in");
    }
    ensure!(people.gets_in("bob", RIGHT)?, "three guesses lock");
    for _ in 0..3 {
        ensure!(!people.gets_in("bob", WRONG)?, "a wrong password logs in");
    }
    ensure!(people.gets_in("bob", RIGHT)?, "guesses before a right password still count");
    Ok(())
}

fn new_passwords(people: &People) -> anyhow::Result<()> {
    let own = |old: &str, new: &str| {
        // One answer for the old password, and two for each of three attempts.
        let answers = format!("printf '%s\\n' '{old}' {} | passwd", format!("'{new}' ").repeat(6));
        people.ssh("bob", old, &answers)
    };
    let soon = own(RIGHT, OTHER)?;
    ensure!(text(&soon).contains("You must wait longer"), "two on one day: {}", text(&soon));
    people.0.must(&["chage", "--mindays", "0", "bob"])?;
    let weak = own(RIGHT, WEAK)?;
    ensure!(!weak.status.success() && text(&weak).contains("BAD PASSWORD"), "{}", text(&weak));
    ensure!(people.gets_in("bob", RIGHT)?, "a refused password took effect");
    let of_root = format!("printf '%s\\n' {} | passwd bob", format!("'{WEAK}' ").repeat(6));
    let of_root = people.0.run(&["sh", "-c", &of_root])?;
    ensure!(!of_root.status.success(), "root gives a weak password: {}", text(&of_root));
    people.0.must(&["sh", "-c", &format!("echo 'bob:{OTHER}' | chpasswd")])?;
    ensure!(people.gets_in("bob", OTHER)?, "a strong password is refused");
    ensure!(!people.gets_in("bob", RIGHT)?, "the old password still works");
    let back = own(OTHER, RIGHT)?;
    ensure!(!back.status.success(), "an old password comes back: {}", text(&back));
    Ok(())
}

/// Everybody here knows root's password.
fn su(people: &People) -> anyhow::Result<()> {
    let become_root = format!("echo '{RIGHT}' | su --command 'id -un' root");
    let alice = people.ssh("alice", RIGHT, &become_root)?;
    ensure!(!alice.status.success() && !text(&alice).contains("root\n"), "{}", text(&alice));
    let carol = people.ssh("carol", RIGHT, &become_root)?;
    ensure!(carol.status.success() && text(&carol).contains("root"), "{}", text(&carol));
    Ok(())
}

fn sudo(people: &People) -> anyhow::Result<()> {
    let borrow = |password: &str| format!("echo '{password}' | sudo --stdin id -un");
    let alice = people.ssh("alice", RIGHT, &borrow(RIGHT))?;
    ensure!(alice.status.success() && text(&alice).contains("root"), "{}", text(&alice));
    let bob = people.ssh("bob", OTHER, &borrow(OTHER))?;
    ensure!(!bob.status.success() && text(&bob).contains("sudoers"), "{}", text(&bob));
    let record = people.0.must(&["cat", "/var/log/sudo.log"])?;
    ensure!(record.contains("alice") && record.contains("COMMAND=/usr/bin/id"), "{record}");
    Ok(())
}
