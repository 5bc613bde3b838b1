//! A text in a log that points at a cause.

use std::ops::Range;

use super::snapshot::Line;

/// Which log a text stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Log {
    Kubelet,
    /// Tenon's units, or nodeadm's when that configured the node.
    Bootstrap,
    Containerd,
    /// The CNI's address manager.
    Cni,
    CloudInit,
    Kernel,
    /// The service manager's own words about a unit.
    Manager,
}

impl Log {
    pub fn title(self) -> &'static str {
        match self {
            Log::Kubelet => "kubelet journal",
            Log::Bootstrap => "bootstrap journal",
            Log::Containerd => "containerd journal",
            Log::Cni => "CNI log",
            Log::CloudInit => "cloud-init journal",
            Log::Kernel => "kernel log",
            Log::Manager => "systemd journal",
        }
    }

    /// The log that a line belongs to.
    pub fn of(line: &Line) -> Option<Log> {
        match (line.identifier.as_str(), line.unit.as_str()) {
            ("systemd", _) => Some(Log::Manager),
            ("kernel" | "audit", _) => Some(Log::Kernel),
            (_, "kubelet.service") | ("kubelet", _) => Some(Log::Kubelet),
            (_, "containerd.service") | ("containerd", _) => Some(Log::Containerd),
            ("ipamd", _) => Some(Log::Cni),
            ("cloud-init", _) => Some(Log::CloudInit),
            (_, unit) if unit.starts_with("cloud-") => Some(Log::CloudInit),
            (_, unit) if unit.starts_with("nodeadm") || unit.starts_with("tenon") => {
                Some(Log::Bootstrap)
            }
            ("nodeadm" | "tenon", _) => Some(Log::Bootstrap),
            _ => None,
        }
    }
}

/// How sure it is that the program prints this text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Seen in the program's source, its documentation or a report: cited.
    Confirmed(&'static str),
    /// To be confirmed: raises suspicion, never certainty.
    Tentative,
}

/// What the line must be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Anything,
    /// It names the host of the API server.
    Api,
    /// It names another host.
    Elsewhere,
}

/// A matcher over one log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal {
    pub log: Log,
    /// All of them, in this order, in one line.
    pub pieces: &'static [&'static str],
    /// A line that holds this is about something else.
    pub without: &'static str,
    pub standing: Standing,
    pub target: Target,
    /// Printed by healthy nodes, too, while they start.
    pub early: bool,
    /// Minor versions of the program that print it: first, and first that no longer does.
    pub since: Option<(u32, u32)>,
    pub until: Option<(u32, u32)>,
}

impl Signal {
    pub const fn confirmed(
        log: Log,
        pieces: &'static [&'static str],
        citation: &'static str,
    ) -> Self {
        let standing = Standing::Confirmed(citation);
        let (target, early, since, until) = (Target::Anything, false, None, None);
        Signal { log, pieces, without: "", standing, target, early, since, until }
    }

    pub const fn tentative(log: Log, pieces: &'static [&'static str]) -> Self {
        let mut signal = Signal::confirmed(log, pieces, "");
        signal.standing = Standing::Tentative;
        signal
    }

    /// Only lines about the API server.
    pub const fn on_api(mut self) -> Self {
        self.target = Target::Api;
        self
    }

    /// Only lines about other hosts.
    pub const fn elsewhere(mut self) -> Self {
        self.target = Target::Elsewhere;
        self
    }

    /// Not lines that hold this.
    pub const fn without(mut self, text: &'static str) -> Self {
        self.without = text;
        self
    }

    /// Healthy nodes print it while they start.
    pub const fn early(mut self) -> Self {
        self.early = true;
        self
    }

    pub const fn since(mut self, major: u32, minor: u32) -> Self {
        self.since = Some((major, minor));
        self
    }

    pub const fn until(mut self, major: u32, minor: u32) -> Self {
        self.until = Some((major, minor));
        self
    }

    pub fn is_confirmed(&self) -> bool {
        matches!(self.standing, Standing::Confirmed(_))
    }

    /// True when this version of the program prints it; an unknown version may.
    pub fn fits(&self, version: Option<(u32, u32)>) -> bool {
        let Some(version) = version else { return true };
        self.since.is_none_or(|since| version >= since)
            && self.until.is_none_or(|until| version < until)
    }

    /// Where a message holds the pieces, first to last; None if it does not match.
    pub fn find(&self, message: &str) -> Option<Range<usize>> {
        if !self.without.is_empty() && message.contains(self.without) {
            return None;
        }
        let mut from = None;
        let mut at = 0;
        for piece in self.pieces {
            let found = message[at..].find(piece)? + at;
            from.get_or_insert(found);
            at = found + piece.len();
        }
        Some(from?..at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNAL: Signal = Signal::confirmed(Log::Kubelet, &["one", "two"], "here").until(1, 30);

    #[test]
    fn pieces_match_in_order() {
        assert_eq!(SIGNAL.find("say one and two now"), Some(4..15));
        assert_eq!(SIGNAL.find("two, one"), None);
        assert_eq!(SIGNAL.without("not").find("one and two, not three"), None);
    }

    #[test]
    fn a_version_that_does_not_print_it_does_not_match() {
        assert!(SIGNAL.fits(None) && SIGNAL.fits(Some((1, 29))));
        assert!(!SIGNAL.fits(Some((1, 30))));
    }
}
