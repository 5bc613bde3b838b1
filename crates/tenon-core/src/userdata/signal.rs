//! The signal a node sends to the stack that waits for it, and scripts that lay down files.

use super::document::NodeFile;
use super::group::Signal;
use super::quote::unit;

/// The sender for images without `tenon`: constant text, values are its arguments.
pub const SCRIPT: &str = include_str!("scripts/signal.sh");
pub const SCRIPT_PATH: &str = "/opt/tenon/signal.sh";
/// Where the join scripts record their status.
pub const STATUS_FILE: &str = "/run/tenon/join-status";

/// How the sender learns the result, and when it may start.
pub struct Sender {
    /// A file with the status, or units separated by commas.
    pub source: &'static str,
    pub after: &'static str,
}

/// The sender's argument list.
pub fn arguments(wish: &Signal, source: &str) -> Vec<String> {
    let values = [&wish.stack, &wish.resource, &wish.region, &wish.timeout];
    values.into_iter().cloned().chain([source.to_owned()]).collect()
}

/// The sender as a unit.
pub fn unit(wish: &Signal, sender: &Sender) -> String {
    let words: Vec<_> =
        arguments(wish, sender.source).iter().filter_map(|word| unit::argument(word)).collect();
    format!(
        "[Unit]\nDescription=Signal to the CloudFormation stack\nAfter={}\n\n\
         [Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart={SCRIPT_PATH} {}\n\n\
         [Install]\nWantedBy=multi-user.target\n",
        sender.after,
        words.join(" ")
    )
}

/// Runs `tenon signal` with the status that the join ended with; the rest are its arguments.
const WITH_STATUS: &str = "code=$(systemctl show --property ExecMainStatus --value tenon-init.service); \
     exec /usr/bin/tenon signal \"$@\" --exit-code \"${code:-1}\"";

/// The sender of images with `tenon`: a unit that starts however the join ended, and tells it.
/// A status of 0 still waits for a healthy kubelet.
pub fn tenon_unit(wish: &Signal) -> String {
    let words = ["/bin/sh", "-c", WITH_STATUS, "tenon-signal", "--stack", &wish.stack];
    let more = ["--resource", &wish.resource, "--region", &wish.region];
    let words: Vec<_> = words.into_iter().chain(more).filter_map(unit::argument).collect();
    format!(
        "[Unit]\nDescription=Signal to the CloudFormation stack\nAfter=tenon-init.service\n\n\
         [Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart={}\n\n\
         [Install]\nWantedBy=multi-user.target\n",
        words.join(" ")
    )
}

/// The end of a file's content in an install script.
const END: &str = "TENON_END";

/// A script that writes the files, then does what follows. The content stands in quoted
/// here-documents, in which nothing is special but the end line, which is chosen so that no
/// content holds it.
pub fn install_script(files: &[NodeFile], then: &str) -> String {
    let mut end = END.to_owned();
    while files.iter().any(|file| file.content.lines().any(|line| line == end)) {
        end.push('_');
    }
    let mut text = String::from(
        "#!/bin/bash\nset -o errexit -o nounset -o pipefail\n\n\
         # Writes standard input to a file: mode, path.\n\
         install_file() {\n  mkdir -p \"$(dirname \"$2\")\"\n  cat > \"$2.new\"\n  \
         chmod \"$1\" \"$2.new\"\n  mv \"$2.new\" \"$2\"\n}\n\n",
    );
    for file in files {
        let content = file.content.trim_end_matches('\n');
        text.push_str(&format!(
            "install_file 0{:o} {} << '{end}'\n{content}\n{end}\n",
            file.mode, file.path
        ));
    }
    text + then
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_cannot_end_its_own_document() {
        let file = NodeFile::new("/x", 0o755, "a\nTENON_END\n$(rm -rf /)\n");
        let script = install_script(&[file], "");
        assert!(
            script.contains("<< 'TENON_END_'\na\nTENON_END\n$(rm -rf /)\nTENON_END_\n"),
            "{script}"
        );
    }
}
