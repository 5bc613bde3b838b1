//! Edits of files that others own: the text as it is in, the text as it should be out. Every edit
//! is its own check: it holds when it changes nothing.

/// Puts lines between marks, in place or at the end.
pub fn block(text: &str, marker: &str, content: &str) -> String {
    let (begin, end) = (format!("# BEGIN tenon {marker}"), format!("# END tenon {marker}"));
    let new = format!("{begin}\n{}{end}\n", closed(content));
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some(from) = lines.iter().position(|line| line.trim_end() == begin) else {
        return closed(text) + &new;
    };
    // A block that lost its end is its first mark alone: what follows may be someone else's.
    let length = lines[from..].iter().position(|line| line.trim_end() == end);
    let after = from + length.map_or(1, |index| index + 1);
    lines[..from].concat() + &new + &lines[after..].concat()
}

/// The text with a final newline, unless it is empty.
fn closed(text: &str) -> String {
    match text.is_empty() || text.ends_with('\n') {
        true => text.to_owned(),
        false => format!("{text}\n"),
    }
}

/// The name and the value of a line `name value` or `name = value`; None for comments.
fn parts(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    if line.is_empty() || line.starts_with(['#', ';', '[']) {
        return None;
    }
    let at = line.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(line.len());
    let (name, rest) = line.split_at(at);
    let rest = rest.trim_start();
    Some((name, rest.strip_prefix('=').unwrap_or(rest).trim()))
}

/// The value that a file gives to a name: that of the first line with it.
pub fn value_of<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().filter_map(parts).find(|(found, _)| *found == name).map(|(_, value)| value)
}

/// Gives a name this value: in its first line, without its other lines, else in a new line below
/// the comment that shows it, else at the end.
pub fn setting(text: &str, name: &str, value: &str) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let is_name = |line: &&str| parts(line).is_some_and(|(found, _)| found == name);
    let named: Vec<usize> = (0..lines.len()).filter(|at| is_name(&lines[*at])).collect();
    if named.len() == 1 && value_of(text, name) == Some(value) {
        return text.to_owned();
    }
    let shown = |line: &&str| {
        let bare = line.trim_start().trim_start_matches(['#', ';']).trim_start();
        bare.len() < line.trim_start().len() && is_name(&bare)
    };
    let model = named.first().copied().or_else(|| lines.iter().position(shown));
    let style = model.map_or_else(|| usual_separator(text), |at| separator(lines[at], name));
    let new = format!("{name}{style}{value}\n");
    let place = match (named.first(), model) {
        (Some(at), _) => *at,
        (None, Some(at)) => at + 1,
        (None, None) => lines.len(),
    };
    let mut out = String::new();
    for (at, line) in lines.iter().enumerate() {
        if at == place {
            out = closed(&out) + &new;
        }
        if !named.contains(&at) {
            out.push_str(line);
        }
    }
    if place >= lines.len() {
        out = closed(&out) + &new;
    }
    out
}

/// What stands between name and value in this line.
fn separator(line: &str, name: &str) -> &'static str {
    let rest = line.find(name).map_or("", |at| &line[at + name.len()..]);
    match (rest.starts_with('='), rest.trim_start().starts_with('=')) {
        (true, _) => "=",
        (false, true) => " = ",
        (false, false) => " ",
    }
}

/// What stands between name and value in the first line of a file that has both.
fn usual_separator(text: &str) -> &'static str {
    let pair = text.lines().find_map(|line| Some((line, parts(line)?.0)));
    pair.map_or(" = ", |(line, name)| separator(line, name))
}

/// Gives these arguments to every line of a PAM file that names the module; an argument with `-`
/// before it is taken away. None if no line names the module: where it belongs is not ours to say.
pub fn pam(text: &str, module: &str, arguments: &[String]) -> Option<String> {
    let mut found = false;
    let mut edit = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // `auth [success=1 default=ignore] pam_unix.so nullok`: the control may have blanks.
        let at = words.iter().position(|word| word.rsplit('/').next() == Some(module));
        let Some(at) = at.filter(|_| !line.trim_start().starts_with('#')) else {
            return line.to_owned();
        };
        found = true;
        let (head, held) = words.split_at(at + 1);
        let mut next: Vec<&str> = held.to_vec();
        for argument in arguments {
            let (gone, bare) =
                argument.strip_prefix('-').map_or((false, argument.as_str()), |bare| (true, bare));
            let name = bare.split('=').next().unwrap_or_default();
            let own = |word: &&str| word.split('=').next() == Some(name);
            match (gone, next.iter().position(own)) {
                (true, _) => next.retain(|word| !own(word)),
                (false, Some(at)) => next[at] = bare,
                (false, None) => next.push(bare),
            }
        }
        match next == held {
            true => line.to_owned(),
            false => format!("{}\n", [head, &next].concat().join(" ")),
        }
    };
    let edited: String = text.split_inclusive('\n').map(&mut edit).collect();
    found.then_some(edited)
}

/// Where a boot loader's words stand in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootLine {
    /// `options …` of an entry of the boot loader specification.
    Entry,
    /// `GRUB_CMDLINE_LINUX="…"`; added if there is none.
    Grub,
    /// Our own drop-in, which adds to what others ask for.
    DropIn,
}

const DROP_IN_START: &str = "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX";

/// A kernel argument as the boot loader has it.
#[derive(Debug, Clone, Copy)]
pub struct Argument<'a> {
    pub name: &'a str,
    pub value: Option<&'a str>,
    pub present: bool,
}

impl Argument<'_> {
    pub fn word(&self) -> String {
        match self.value {
            Some(value) => format!("{}={value}", self.name),
            None => self.name.to_owned(),
        }
    }

    /// True if these words agree: the last word of the name decides, as for the kernel.
    pub fn holds(&self, words: &str) -> bool {
        let own = |word: &&str| word.split('=').next() == Some(self.name);
        let last = words.split_whitespace().rfind(own);
        if self.present { last == Some(self.word().as_str()) } else { last.is_none() }
    }

    fn among(&self, words: &str) -> String {
        if self.holds(words) {
            return words.to_owned();
        }
        let kept =
            words.split_whitespace().filter(|word| word.split('=').next() != Some(self.name));
        let mut kept: Vec<String> = kept.map(str::to_owned).collect();
        if self.present {
            kept.push(self.word());
        }
        kept.join(" ")
    }

    /// The text of a boot loader's file with this argument.
    pub fn edit(&self, text: &str, kind: BootLine) -> String {
        let mut found = false;
        let mut edit = |line: &str| {
            let Some(boot) = boot_words(kind, line.trim_end()) else { return line.to_owned() };
            found |= boot.takes;
            let next = self.among(boot.words);
            match next == boot.words || (self.present && !boot.takes) {
                true => line.to_owned(),
                false => format!("{}{next}{}\n", boot.head, boot.close),
            }
        };
        let edited: String = text.split_inclusive('\n').map(&mut edit).collect();
        match (found, self.present, kind) {
            (true, ..) | (_, false, _) | (_, _, BootLine::Entry) => edited,
            (false, true, BootLine::Grub) => {
                closed(&edited) + &format!("GRUB_CMDLINE_LINUX=\"{}\"\n", self.word())
            }
            (false, true, BootLine::DropIn) => {
                closed(&edited) + &format!("{DROP_IN_START} {}\"\n", self.word())
            }
        }
    }
}

/// The words of a line that the kernel gets.
struct BootWords<'t> {
    head: String,
    words: &'t str,
    close: &'static str,
    /// Words may be added here; other lines only lose them.
    takes: bool,
}

fn boot_words(kind: BootLine, line: &str) -> Option<BootWords<'_>> {
    const GRUB: &str = "GRUB_CMDLINE_LINUX";
    Some(match kind {
        BootLine::Entry => {
            let words = line.strip_prefix("options ")?;
            BootWords { head: "options ".into(), words, close: "", takes: true }
        }
        // `GRUB_CMDLINE_LINUX_DEFAULT` is for ordinary boots alone.
        BootLine::Grub => {
            let (which, value) = line.strip_prefix(GRUB)?.split_once('=')?;
            let (head, words) = (format!("{GRUB}{which}=\""), value.trim_matches(['"', '\'']));
            BootWords { head, words, close: "\"", takes: which.is_empty() }
        }
        BootLine::DropIn => {
            let words = line.strip_prefix(DROP_IN_START)?.trim_matches(['"', ' ']);
            BootWords { head: format!("{DROP_IN_START} "), words, close: "\"", takes: true }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_replaced_where_it_stands() {
        let once = block("a\nb", "x", "one\ntwo");
        assert_eq!(once, "a\nb\n# BEGIN tenon x\none\ntwo\n# END tenon x\n");
        let followed = format!("{once}c\n");
        let changed = block(&followed, "x", "three\n");
        assert_eq!(changed, "a\nb\n# BEGIN tenon x\nthree\n# END tenon x\nc\n");
        assert_eq!(block(&changed, "x", "three\n"), changed);
        let torn = "# BEGIN tenon x\nold\nforeign\n";
        assert!(block(torn, "x", "new").ends_with("# END tenon x\nold\nforeign\n"));
    }

    #[test]
    fn a_setting_keeps_the_style_of_its_file() {
        for (before, after) in [
            ("PASS_MAX_DAYS\t99999\nUMASK 022\n", "PASS_MAX_DAYS 365\nUMASK 022\n"),
            (
                "# PASS_MAX_DAYS = 1\nminlen = 8\n",
                "# PASS_MAX_DAYS = 1\nPASS_MAX_DAYS = 365\nminlen = 8\n",
            ),
            ("[Journal]\nStorage=auto\n", "[Journal]\nStorage=auto\nPASS_MAX_DAYS=365\n"),
            ("PASS_MAX_DAYS 1\nx 2\nPASS_MAX_DAYS 2", "PASS_MAX_DAYS 365\nx 2\n"),
            ("", "PASS_MAX_DAYS = 365\n"),
            ("a b", "a b\nPASS_MAX_DAYS 365\n"),
        ] {
            let edited = setting(before, "PASS_MAX_DAYS", "365");
            assert_eq!(edited, after, "{before:?}");
            assert_eq!(setting(&edited, "PASS_MAX_DAYS", "365"), edited);
            assert_eq!(value_of(&edited, "PASS_MAX_DAYS"), Some("365"));
        }
    }

    #[test]
    fn arguments_of_pam_are_words_of_their_lines() {
        let text =
            "# auth pam_unix.so\nauth [success=1 default=ignore] pam_unix.so nullok remember=1\n";
        let wanted = ["-nullok".to_owned(), "remember=24".to_owned(), "use_authtok".to_owned()];
        let edited = pam(text, "pam_unix.so", &wanted).unwrap();
        assert_eq!(
            edited,
            "# auth pam_unix.so\nauth [success=1 default=ignore] pam_unix.so remember=24 use_authtok\n"
        );
        assert_eq!(pam(&edited, "pam_unix.so", &wanted), Some(edited));
        assert_eq!(pam(text, "pam_faillock.so", &wanted), None);
    }

    #[test]
    fn kernel_arguments_are_words_of_their_line() {
        let audit = Argument { name: "audit", value: Some("1"), present: true };
        let gone = Argument { name: "quiet", value: None, present: false };
        let entry = "title x\noptions root=/dev/vda1 audit=0 quiet\n";
        let edited = audit.edit(entry, BootLine::Entry);
        assert_eq!(edited, "title x\noptions root=/dev/vda1 quiet audit=1\n");
        assert_eq!(audit.edit(&edited, BootLine::Entry), edited);
        let grub = "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\nGRUB_CMDLINE_LINUX=\"\"\n";
        let edited = audit.edit(grub, BootLine::Grub);
        assert_eq!(
            edited,
            "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\nGRUB_CMDLINE_LINUX=\"audit=1\"\n"
        );
        assert!(
            gone.edit(&edited, BootLine::Grub).starts_with("GRUB_CMDLINE_LINUX_DEFAULT=\"\"\n")
        );
        let single = "GRUB_CMDLINE_LINUX_DEFAULT='quiet splash'\nGRUB_CMDLINE_LINUX=a\n";
        assert_eq!(
            gone.edit(&audit.edit(single, BootLine::Grub), BootLine::Grub),
            "GRUB_CMDLINE_LINUX_DEFAULT=\"splash\"\nGRUB_CMDLINE_LINUX=\"a audit=1\"\n"
        );
        assert_eq!(
            gone.edit("GRUB_CMDLINE_LINUX='a'\n", BootLine::Grub),
            "GRUB_CMDLINE_LINUX='a'\n"
        );
        let own = audit.edit("", BootLine::DropIn);
        assert_eq!(own, "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX audit=1\"\n");
        assert_eq!(audit.edit(&own, BootLine::DropIn), own);
        let both = Argument { name: "x", value: None, present: true }.edit(&own, BootLine::DropIn);
        assert_eq!(both, "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX audit=1 x\"\n");
        assert!(!audit.holds("audit=1 audit=0") && audit.holds("audit=0 audit=1"));
    }
}
