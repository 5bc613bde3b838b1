//! The names under which this binary answers: `tenon`, `nodeadm`, `nodeadm-internal`, `bootstrap.sh`.
//!
//! An image that calls nodeadm gets Tenon by a link. The words of the other tools are rewritten
//! into Tenon's own before parsing, so that there is one command line to maintain.

use std::ffi::OsString;
use std::path::Path;

/// Under whose name the binary was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CalledAs {
    Tenon,
    Nodeadm,
    NodeadmInternal,
    BootstrapScript,
}

impl CalledAs {
    /// Decides by the last part of `argv[0]`.
    pub fn from_program(program: &OsString) -> Self {
        match Path::new(program).file_name().and_then(|name| name.to_str()) {
            Some("nodeadm") => CalledAs::Nodeadm,
            Some("nodeadm-internal") => CalledAs::NodeadmInternal,
            Some("bootstrap.sh") => CalledAs::BootstrapScript,
            _ => CalledAs::Tenon,
        }
    }

    /// The exit code to give: nodeadm knows 0 and 1 alone, and its callers test for them.
    pub fn exit_code(self, code: u8) -> u8 {
        match self {
            CalledAs::Nodeadm | CalledAs::NodeadmInternal => code.min(1),
            CalledAs::Tenon | CalledAs::BootstrapScript => code,
        }
    }
}

/// Turns the words of another tool into Tenon's.
pub fn translate(arguments: Vec<OsString>) -> (CalledAs, Vec<OsString>) {
    let Some(program) = arguments.first() else { return (CalledAs::Tenon, arguments) };
    let called_as = CalledAs::from_program(program);
    let translated = match called_as {
        CalledAs::Tenon | CalledAs::Nodeadm => arguments,
        CalledAs::NodeadmInternal => internal(arguments),
        CalledAs::BootstrapScript => insert_command(arguments, "bootstrap"),
    };
    (called_as, translated)
}

/// `udev-net-manager` is `net udev`, `boot-hook` is `net wait`; options keep their place.
fn internal(arguments: Vec<OsString>) -> Vec<OsString> {
    let mut translated = Vec::with_capacity(arguments.len() + 1);
    for argument in arguments {
        match argument.to_str() {
            Some("udev-net-manager") => translated.extend(["net".into(), "udev".into()]),
            Some("boot-hook") => translated.extend(["net".into(), "wait".into()]),
            _ => translated.push(argument),
        }
    }
    translated
}

fn insert_command(mut arguments: Vec<OsString>, command: &str) -> Vec<OsString> {
    arguments.insert(1, command.into());
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn other_names_become_our_commands() {
        for (line, called_as, expected) in [
            ("/usr/bin/tenon init", CalledAs::Tenon, "/usr/bin/tenon init"),
            ("nodeadm -d init -c x", CalledAs::Nodeadm, "nodeadm -d init -c x"),
            (
                "nodeadm-internal udev-net-manager --action add -i eth1",
                CalledAs::NodeadmInternal,
                "nodeadm-internal net udev --action add -i eth1",
            ),
            ("nodeadm-internal boot-hook", CalledAs::NodeadmInternal, "nodeadm-internal net wait"),
            (
                "/etc/eks/bootstrap.sh my --use-max-pods false",
                CalledAs::BootstrapScript,
                "/etc/eks/bootstrap.sh bootstrap my --use-max-pods false",
            ),
        ] {
            assert_eq!(translate(words(line)), (called_as, words(expected)), "{line}");
        }
    }

    #[test]
    fn nodeadm_knows_two_exit_codes() {
        assert_eq!(CalledAs::Nodeadm.exit_code(3), 1);
        assert_eq!(CalledAs::Nodeadm.exit_code(0), 0);
        assert_eq!(CalledAs::Tenon.exit_code(3), 3);
        assert_eq!(CalledAs::BootstrapScript.exit_code(64), 64);
    }
}
