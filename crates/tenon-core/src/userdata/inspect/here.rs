//! Files that a script carries: texts in place (`<<EOF`) that end up under a path.

use super::node::Node;
use super::read::{Filled, Reader};
use super::shell::{self, Command, Variables, Word};

/// Opens a script: each file that it writes from a text in place becomes a child.
pub(super) fn open(reader: &mut Reader<'_>, mut node: Node, text: &str, depth: usize) -> Filled {
    let script = shell::parse(text);
    let mut known = Variables::new();
    for command in &script.commands {
        if command.words.is_empty() {
            let set = command.assignments.iter();
            known.extend(
                set.filter_map(|(name, word)| Some((name.clone(), word.value(&known)?)))
                    .collect::<Vec<_>>(),
            );
        }
        let Some(here) = &command.here else { continue };
        let Some((path, mode)) = target(command, &script.functions, &known) else { continue };
        let child = Node {
            name: format!("line {}", command.line),
            path: Some(path),
            mode,
            bytes: here.text.clone().into_bytes(),
            place: node.place.clone(),
            ..Node::default()
        };
        // Text that the shell expands is not yet what the file will hold.
        let fixed = here.literal || !here.text.contains(['$', '`']);
        node.children.push(if fixed { reader.fill(child, depth + 1)? } else { child });
    }
    Ok(node)
}

/// Where the text goes: `> path`, `tee path`, or the path that a function of the script is given.
fn target(
    command: &Command,
    functions: &[String],
    known: &Variables,
) -> Option<(String, Option<String>)> {
    let words: Vec<String> = command.call().iter().filter_map(|word| word.value(known)).collect();
    let program = words.first().map_or("", String::as_str);
    let arguments = words.get(1..).unwrap_or_default();
    if program == "tee" {
        return Some((arguments.iter().find(|word| !word.starts_with('-'))?.clone(), None));
    }
    if functions.iter().any(|name| name == program) {
        let path = arguments.iter().find(|word| word.starts_with('/'))?;
        let octal =
            |word: &&String| word.len() >= 3 && word.chars().all(|c| ('0'..='7').contains(&c));
        return Some((path.clone(), arguments.iter().find(octal).cloned()));
    }
    let output = command.output.as_ref().and_then(|word: &Word| word.value(known))?;
    (output != "/dev/null").then_some((output, None))
}

#[cfg(test)]
mod tests {
    use super::super::node::Kind;
    use super::super::read::{Options, read};

    #[test]
    fn texts_in_place_become_files() {
        let text = "#!/bin/bash\nput() {\n  cat > \"$2\"\n}\nD=/etc\ncat > $D/a.env <<EOF\nMAX_PODS=3\nEOF\n\
            sudo tee -a /b <<'E' >/dev/null\ny\nE\nput 0755 /c.sh << 'X'\n#!/bin/sh\nls\nX\n\
            cat > /d.env <<EOF\nA=$B\nEOF\ncat <<E\nshown\nE\ncat > \"$UNKNOWN\" <<E\nlost\nE\n";
        let node = read("t", text.as_bytes().to_vec(), &Options::default()).unwrap();
        let seen: Vec<_> = node
            .children
            .iter()
            .map(|n| (n.path.clone().unwrap(), n.kind, n.mode.clone(), n.text()))
            .collect();
        let row = |path: &str, kind, mode: Option<&str>, text: &str| {
            (path.to_owned(), kind, mode.map(str::to_owned), text.to_owned())
        };
        assert_eq!(
            seen,
            [
                row("/etc/a.env", Kind::EnvFile, None, "MAX_PODS=3\n"),
                row("/b", Kind::Text, None, "y\n"),
                row("/c.sh", Kind::Script, Some("0755"), "#!/bin/sh\nls\n"),
                row("/d.env", Kind::Text, None, "A=$B\n"),
            ]
        );
    }
}
