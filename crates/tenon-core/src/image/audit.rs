//! Rules of the audit daemon, for the system calls that a machine has. A rule with `arch=*` becomes
//! one line for each way into the kernel, and each line names only calls that exist there: the
//! daemon refuses a line with a name that it does not know.

use super::resource::Resource;

const EVERY: &str = "arch=*";

/// Calls that profiles name and that one way into the kernel does not have.
struct Calls {
    architecture: &'static str,
    bits: &'static str,
    lacks: &'static [&'static str],
}

static CALLS: &[Calls] = &[
    Calls { architecture: "x86_64", bits: "b64", lacks: &["stime", "umount"] },
    Calls { architecture: "x86_64", bits: "b32", lacks: &[] },
    Calls {
        architecture: "aarch64",
        bits: "b64",
        lacks: &[
            "chmod",
            "chown",
            "creat",
            "create_module",
            "lchown",
            "open",
            "query_module",
            "rename",
            "rmdir",
            "stime",
            "umount",
            "unlink",
        ],
    },
    Calls {
        architecture: "aarch64",
        bits: "b32",
        lacks: &["create_module", "query_module", "stime", "umount"],
    },
];

/// The lines of a rule on this architecture; none if the machine has none of its calls.
pub(super) fn lines(rule: &Resource, architecture: &str) -> Option<String> {
    let text = rule.key.as_str();
    if !text.contains(EVERY) {
        return Some(text.to_owned());
    }
    let ways = CALLS.iter().filter(|way| way.architecture == architecture);
    let lines: Vec<_> = ways.filter_map(|way| way.line(text)).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

impl Calls {
    fn line(&self, rule: &str) -> Option<String> {
        let mut words: Vec<String> = rule.split(' ').map(str::to_owned).collect();
        for at in 1..words.len() {
            if words[at - 1] == "-S" {
                let has = |call: &&str| !self.lacks.contains(call);
                let calls: Vec<&str> = words[at].split(',').filter(has).collect();
                words[at] = calls.join(",");
                if words[at].is_empty() {
                    return None;
                }
            }
        }
        Some(words.join(" ").replace(EVERY, &format!("arch={}", self.bits)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::problem::Place;

    fn on(architecture: &str, rule: &str) -> Option<String> {
        let table = json!({"rule": rule, "group": "g"});
        let rule = Resource::read("audit", table.as_object().unwrap(), "p", &Place::default());
        lines(&rule.unwrap().0, architecture)
    }

    #[test]
    fn each_machine_gets_the_calls_that_it_has() {
        let rule = "-a always,exit -F arch=* -S open,openat -F exit=-EPERM -k access";
        assert_eq!(
            on("x86_64", rule).unwrap(),
            "-a always,exit -F arch=b64 -S open,openat -F exit=-EPERM -k access\n\
             -a always,exit -F arch=b32 -S open,openat -F exit=-EPERM -k access"
        );
        assert_eq!(
            on("aarch64", rule).unwrap(),
            "-a always,exit -F arch=b64 -S openat -F exit=-EPERM -k access\n\
             -a always,exit -F arch=b32 -S open,openat -F exit=-EPERM -k access"
        );
    }

    #[test]
    fn a_rule_without_calls_is_left_out_and_a_watch_stays_as_it_is() {
        let rule = "-a always,exit -F arch=* -S stime -k time";
        assert_eq!(on("x86_64", rule).unwrap(), "-a always,exit -F arch=b32 -S stime -k time");
        assert_eq!(on("aarch64", rule), None);
        assert_eq!(on("aarch64", "-w /etc/a -p wa -k a").unwrap(), "-w /etc/a -p wa -k a");
    }
}
