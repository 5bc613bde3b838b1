//! Patterns of names and paths.

/// True if a name or path fits a pattern, in which `*` stands for any text without a slash.
pub fn fits(text: &str, pattern: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return text == pattern };
    let Some(text) = text.strip_prefix(start) else { return false };
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    ends.take_while(|at| !text[..*at].contains('/')).any(|at| fits(&text[at..], rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stays_in_its_directory() {
        for (text, pattern, expected) in [
            ("/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_*_key", true),
            ("/home/a/.ssh/x", "/home/*/.ssh/*", true),
            ("/home/a/b/.ssh/x", "/home/*/.ssh/*", false),
            ("/a", "/a*", true),
            ("/b", "/a*", false),
        ] {
            assert_eq!(fits(text, pattern), expected, "{text} {pattern}");
        }
    }

    #[test]
    fn patterns_fit_whole_names() {
        for (pattern, name, expected) in [
            ("*", "x", true),
            ("a*", "abc", true),
            ("a*", "bc", false),
            ("*.log", "0.log", true),
            ("*.log", "0.log.gz", false),
            ("kube-system_aws-node-*", "kube-system_aws-node-x_1", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c2b", false),
            ("chrony*", "chrony", true),
        ] {
            assert_eq!(fits(name, pattern), expected, "{pattern} {name}");
        }
    }
}
