//! What the messages of update-engine mean.
//!
//! `AttemptUpdate` is asynchronous, and the first status may still be the idle one from before.
//! So idle counts as "no update" only after another operation was seen, or the time of the last
//! check grew.

/// One status, as `GetStatus` and `StatusUpdate` carry it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Status {
    pub last_checked: i64,
    pub progress: f64,
    pub operation: String,
    pub version: String,
}

/// How an update ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    NoUpdate,
    /// The next boot runs this version.
    NeedReboot(String),
    /// The service reported an error.
    Failed,
}

/// Follows one update.
#[derive(Debug)]
pub struct Watch {
    first: Status,
    last: Status,
    moved: bool,
}

impl Watch {
    /// Begins with the status from before the attempt.
    pub fn new(first: Status) -> Self {
        Watch { last: first.clone(), first, moved: false }
    }

    /// True when an update waits for its reboot already, so that none need be attempted.
    pub fn is_pending(&self) -> bool {
        self.first.operation == "UPDATE_STATUS_UPDATED_NEED_REBOOT"
    }

    /// True when the service works on an update that somebody else began.
    pub fn is_under_way(&self) -> bool {
        !self.is_pending() && self.first.operation != "UPDATE_STATUS_IDLE"
    }

    /// Takes a status in. `None`: not over yet.
    pub fn see(&mut self, status: &Status) -> Option<Ended> {
        let idle = status.operation == "UPDATE_STATUS_IDLE";
        self.moved |= !idle || status.last_checked > self.first.last_checked;
        match status.operation.as_str() {
            "UPDATE_STATUS_UPDATED_NEED_REBOOT" => Some(Ended::NeedReboot(status.version.clone())),
            "UPDATE_STATUS_REPORTING_ERROR_EVENT" => Some(Ended::Failed),
            _ if idle && self.moved => Some(Ended::NoUpdate),
            _ => None,
        }
    }

    /// True when this status tells something that the one before did not.
    pub fn progressed(&mut self, status: &Status) -> bool {
        let news = *status != self.last;
        self.last = status.clone();
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(operation: &str, last_checked: i64) -> Status {
        let operation = format!("UPDATE_STATUS_{operation}");
        Status { last_checked, operation, version: "4593.2.0".into(), ..Status::default() }
    }

    #[test]
    fn the_idle_of_before_is_no_answer() {
        let mut watch = Watch::new(status("IDLE", 5));
        assert_eq!(watch.see(&status("IDLE", 5)), None);
        assert_eq!(watch.see(&status("CHECKING_FOR_UPDATE", 5)), None);
        assert_eq!(watch.see(&status("IDLE", 5)), Some(Ended::NoUpdate));
        assert_eq!(Watch::new(status("IDLE", 5)).see(&status("IDLE", 6)), Some(Ended::NoUpdate));
    }

    #[test]
    fn a_download_ends_with_a_version_or_an_error() {
        let mut watch = Watch::new(status("IDLE", 5));
        assert_eq!(watch.see(&status("DOWNLOADING", 6)), None);
        let end = Some(Ended::NeedReboot("4593.2.0".into()));
        assert_eq!(watch.see(&status("UPDATED_NEED_REBOOT", 6)), end);
        assert_eq!(watch.see(&status("REPORTING_ERROR_EVENT", 6)), Some(Ended::Failed));
    }

    #[test]
    fn what_was_there_before_is_adopted_or_followed() {
        assert!(Watch::new(status("UPDATED_NEED_REBOOT", 5)).is_pending());
        assert!(Watch::new(status("DOWNLOADING", 5)).is_under_way());
        assert!(!Watch::new(status("IDLE", 5)).is_under_way());
        let mut watch = Watch::new(status("IDLE", 5));
        assert!(!watch.progressed(&status("IDLE", 5)) && watch.progressed(&status("IDLE", 6)));
    }
}
