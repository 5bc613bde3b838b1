//! What shell text does to the settings, as far as its words are literal.
//!
//! The commands are followed in order, into files that the same user data writes, with the
//! variables that they set. A value that only the running script can know is noted as such.

use std::collections::BTreeMap;

use super::super::node::{Kind, Node};
use super::super::shell::{self, Command, Variables, Word};
use super::normal::{self, Setter};
use super::{Settings, Signal};

/// Scripts that run scripts that run scripts are followed this far.
const DEPTH: usize = 4;

const BOOTSTRAP: &str = "/etc/eks/bootstrap.sh";

const BUILTINS: &[&str] = &[
    ".", ":", "[", "[[", "break", "cd", "continue", "declare", "echo", "eval", "exit", "export",
    "false", "local", "printf", "read", "readonly", "return", "set", "shift", "source", "test",
    "trap", "true", "type", "ulimit", "umask", "unset", "wait",
];

/// What scripts see of the node.
pub(super) struct Shell<'a> {
    pub(super) settings: &'a mut Settings,
    /// The files that this user data writes.
    pub(super) files: &'a BTreeMap<&'a str, &'a Node>,
}

/// The lines of the command that joined the node; None of the script's own lines when a script
/// that it called did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Joined {
    pub(super) own_lines: Option<(u32, u32)>,
}

/// What is carried from command to command.
struct Run<'b> {
    from: &'b str,
    variables: Variables,
    functions: Vec<String>,
    depth: usize,
    joined: Option<Joined>,
}

impl Shell<'_> {
    /// Follows a script and says whether it joins the node.
    pub(super) fn follow(&mut self, text: &str, from: &str) -> Option<Joined> {
        let mut run = Run {
            from,
            variables: Variables::new(),
            functions: Vec::new(),
            depth: 0,
            joined: None,
        };
        self.script(text, &mut run);
        run.joined
    }

    fn script(&mut self, text: &str, run: &mut Run<'_>) {
        self.remote(text, run.from);
        let script = shell::parse(text);
        run.functions.extend(script.functions);
        script.commands.iter().for_each(|command| self.command(command, run));
    }

    fn remote(&mut self, text: &str, from: &str) {
        for address in addresses(text) {
            self.settings.remote.entry(address).or_insert_with(|| from.to_owned());
        }
    }

    fn command(&mut self, command: &Command, run: &mut Run<'_>) {
        let Some(program) = command.program(&run.variables) else {
            assign(&command.assignments, run);
            return;
        };
        let arguments = command.call().get(1..).unwrap_or_default();
        let name = program.rsplit('/').next().unwrap_or_default();
        match name {
            "export" | "declare" | "readonly" | "local" => export(arguments, run),
            "source" | "." => self.sourced(arguments, run),
            "bash" | "sh" => self.called(arguments.first(), run),
            "bootstrap.sh" if program == BOOTSTRAP => {
                self.bootstrap(arguments, run);
                self.join(BOOTSTRAP, command, run);
            }
            "nodeadm" => self.join("nodeadm", command, run),
            "kubelet" => {
                let words: Vec<_> =
                    arguments.iter().filter_map(|word| word.value(&run.variables)).collect();
                Setter { settings: self.settings, from: run.from }.flags(&words);
            }
            "cfn-signal" => self.signal(name, run.from),
            "tenon" if first_is(arguments, "signal") => self.signal("tenon signal", run.from),
            _ => self.called(command.call().first(), run),
        }
        self.program(&program, run);
    }

    fn program(&mut self, program: &str, run: &Run<'_>) {
        let own = self.files.contains_key(program)
            || BUILTINS.contains(&program)
            || run.functions.iter().any(|function| function == program);
        if !own && !program.contains(['\n', ' ']) {
            self.settings.programs.entry(program.to_owned()).or_insert_with(|| run.from.to_owned());
        }
    }

    fn signal(&mut self, by: &str, from: &str) {
        let signal = Signal { by: by.to_owned(), from: from.to_owned() };
        if !self.settings.signals.contains(&signal) {
            self.settings.signals.push(signal);
        }
    }

    fn join(&mut self, by: &str, command: &Command, run: &mut Run<'_>) {
        let own_lines = (run.depth == 0).then_some((command.line, command.last_line));
        run.joined.get_or_insert(Joined { own_lines });
        self.settings.join.get_or_insert_with(|| (by.to_owned(), run.from.to_owned()));
    }

    /// Follows a script of this user data into the same variables.
    fn sourced(&mut self, arguments: &[Word], run: &mut Run<'_>) {
        let path = arguments.first().and_then(|word| word.value(&run.variables));
        let file = path.and_then(|path| self.files.get(path.as_str()).copied());
        let Some(file) = file.filter(|_| run.depth < DEPTH) else { return };
        if file.kind == Kind::EnvFile {
            return run.variables.extend(environment(&file.text()));
        }
        run.depth += 1;
        self.script(&file.text(), run);
        run.depth -= 1;
    }

    /// Follows a script of this user data that runs on its own.
    fn called(&mut self, word: Option<&Word>, run: &mut Run<'_>) {
        let path = word.and_then(|word| word.value(&run.variables));
        let file = path.and_then(|path| self.files.get(path.as_str()).copied());
        let Some(file) = file.filter(|file| file.kind == Kind::Script && run.depth < DEPTH) else {
            return;
        };
        let mut inner = Run {
            from: run.from,
            variables: Variables::new(),
            functions: Vec::new(),
            depth: run.depth + 1,
            joined: None,
        };
        self.script(&file.text(), &mut inner);
        run.joined = run.joined.or(inner.joined);
    }

    /// Reads the arguments of `bootstrap.sh`: the cluster's name, and options with one value each.
    fn bootstrap(&mut self, arguments: &[Word], run: &Run<'_>) {
        let mut setter = Setter { settings: self.settings, from: run.from };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let Some(text) = word.value(&run.variables) else {
                setter.settings.set_at_run_time(super::key(&["bootstrap", "arguments"]), run.from);
                continue;
            };
            if !text.starts_with('-') {
                setter.set(super::key(&["cluster", "name"]), text.into());
                continue;
            }
            let (option, value) = match text.split_once('=') {
                Some((option, value)) => (option.to_owned(), Some(value.to_owned())),
                None => (text, words.next().and_then(|word| word.value(&run.variables))),
            };
            match value {
                Some(value) => setter.bootstrap_option(&option, &value),
                None => setter.settings.set_at_run_time(normal::bootstrap_key(&option), run.from),
            }
        }
    }
}

fn first_is(arguments: &[Word], text: &str) -> bool {
    arguments.first().and_then(Word::literal).is_some_and(|word| word == text)
}

/// A variable set to something unknown is unknown from then on.
fn assign(assignments: &[(String, Word)], run: &mut Run<'_>) {
    for (name, word) in assignments {
        match word.value(&run.variables) {
            Some(value) => run.variables.insert(name.clone(), value),
            None => run.variables.remove(name),
        };
    }
}

fn export(arguments: &[Word], run: &mut Run<'_>) {
    for word in arguments {
        let Some(text) = word.value(&run.variables) else { continue };
        if let Some((name, value)) = text.split_once('=') {
            run.variables.insert(name.to_owned(), value.to_owned());
        }
    }
}

/// The variables of an environment file.
pub(super) fn environment(text: &str) -> Variables {
    let mut variables = Variables::new();
    for command in shell::parse(text).commands {
        let exported = command.words.iter().filter_map(|word| {
            let text = word.value(&variables)?;
            let (name, value) = text.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        });
        let mut found: Vec<_> = exported.collect();
        for (name, word) in &command.assignments {
            found.extend(word.value(&variables).map(|value| (name.clone(), value)));
        }
        variables.extend(found);
    }
    variables
}

const SCHEMES: [&str; 3] = ["http://", "https://", "s3://"];

/// The addresses in a text: scheme and host, without credentials, path and query.
pub(super) fn addresses(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for scheme in SCHEMES {
        for (at, _) in text.match_indices(scheme) {
            let rest = &text[at + scheme.len()..];
            let host = rest.split(|c: char| c.is_whitespace() || "/?#\"'`)<>,;|\\".contains(c));
            let host = host.into_iter().next().unwrap_or_default();
            let host = host.rsplit('@').next().unwrap_or_default();
            let plain = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
            if !host.is_empty() && host.chars().all(plain) {
                found.push(format!("{scheme}{host}"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::shown;
    use super::*;

    fn follow(text: &str) -> (Settings, Option<Joined>) {
        let mut settings = Settings::default();
        let files = BTreeMap::new();
        let joined = Shell { settings: &mut settings, files: &files }.follow(text, "script");
        (settings, joined)
    }

    fn values(settings: &Settings) -> Vec<String> {
        settings.values.iter().map(|(key, s)| format!("{}={}", shown(key), s.value)).collect()
    }

    #[test]
    fn bootstrap_calls_are_read_where_they_are_literal() {
        let text = "#!/bin/bash\nset -ex\nCA=Q0E=\nexport URL=https://e\n\
            /etc/eks/bootstrap.sh my-cluster --b64-cluster-ca $CA \\\n  --apiserver-endpoint \"$URL\" \
            --kubelet-extra-args '--node-labels=a=b --max-pods=7' \\\n  --dns-cluster-ip \"$(dns)\"\n\
            /opt/aws/bin/cfn-signal --exit-code $? --stack x\n";
        let (settings, joined) = follow(text);
        assert_eq!(
            values(&settings),
            [
                "cluster.certificateAuthority=\"Q0E=\"",
                "cluster.endpoint=\"https://e\"",
                "cluster.name=\"my-cluster\"",
                "labels.a=\"b\"",
                "maxPods=7",
            ]
        );
        assert_eq!(joined, Some(Joined { own_lines: Some((5, 7)) }));
        let run_time: Vec<_> = settings.run_time.keys().map(shown).collect();
        assert_eq!(run_time, ["clusterDns"]);
        assert_eq!(settings.signals.len(), 1);
        let programs: Vec<_> = settings.programs.keys().map(String::as_str).collect();
        assert_eq!(programs, ["/etc/eks/bootstrap.sh", "/opt/aws/bin/cfn-signal"]);
    }

    #[test]
    fn words_that_only_the_stack_knows_are_noted() {
        let (settings, joined) =
            follow("/etc/eks/bootstrap.sh ${ClusterName} ${AWS::Region} --x\n");
        assert!(joined.is_some());
        let run_time: Vec<_> = settings.run_time.keys().map(shown).collect();
        assert_eq!(run_time, ["bootstrap.arguments", "bootstrap.x"]);
    }

    #[test]
    fn addresses_have_no_secrets() {
        let text = "curl https://user:pw@h.example:8443/p?t=1 http://169.254.169.254/latest \
            aws s3 cp s3://bucket/key . https://$HOST/x";
        assert_eq!(
            addresses(text),
            ["http://169.254.169.254", "https://h.example:8443", "s3://bucket"]
        );
    }

    #[test]
    fn environment_files_are_read() {
        let text = "# c\nA=1\nexport B=\"x y\"\nC='$A'\nD=$A,z\nNODE_LABELS=a=b,c=d\n";
        let expected =
            [("A", "1"), ("B", "x y"), ("C", "$A"), ("D", "1,z"), ("NODE_LABELS", "a=b,c=d")];
        let seen = environment(text);
        let seen: Vec<_> = seen.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(seen, expected);
    }
}
