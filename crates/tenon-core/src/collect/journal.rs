//! One entry of the journal, and the line that stands for it in a bundle.
//!
//! ```text
//! -- boot 0123456789abcdef0123456789abcdef
//! 2026-11-15T22:57:43.123456Z 6 kubelet.service kubelet[812]: the message
//!     its second line
//! ```

use time::{Date, Month, OffsetDateTime};

const BOOT: &str = "-- boot ";
const INDENT: &str = "    ";
/// Stands for a unit or identifier that an entry does not have.
const NONE: &str = "-";

/// What the journal knows of one message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entry {
    /// Microseconds since 1970.
    pub time_us: u64,
    /// 32 hex digits.
    pub boot: String,
    pub unit: String,
    pub identifier: String,
    pub pid: u32,
    /// 0 is the worst, 7 is debug.
    pub priority: u8,
    pub message: String,
}

/// Writes entries as lines; a change of boot gets a line of its own.
#[derive(Debug, Default)]
pub struct Writer {
    boot: String,
}

impl Writer {
    pub fn line(&mut self, entry: &Entry) -> String {
        let mut text = String::with_capacity(entry.message.len() + 80);
        if self.boot != entry.boot {
            self.boot.clone_from(&entry.boot);
            text.push_str(&format!("{BOOT}{}\n", entry.boot));
        }
        let named = |name: &str| match name {
            "" => NONE.to_owned(),
            name => name.replace(char::is_whitespace, "_"),
        };
        text.push_str(&format!(
            "{} {} {} {}[{}]: ",
            stamp(entry.time_us),
            entry.priority,
            named(&entry.unit),
            named(&entry.identifier),
            entry.pid
        ));
        text.push_str(&entry.message.trim_end().replace('\n', &format!("\n{INDENT}")));
        text.push('\n');
        text
    }
}

/// Reads the lines of a bundle back; what is not of their form is left out.
pub fn read(text: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut boot = String::new();
    for line in text.lines() {
        if let Some(id) = line.strip_prefix(BOOT) {
            id.clone_into(&mut boot);
        } else if let (Some(more), Some(last)) = (line.strip_prefix(INDENT), entries.last_mut()) {
            last.message.push('\n');
            last.message.push_str(more);
        } else if let Some(mut entry) = parse(line) {
            entry.boot.clone_from(&boot);
            entries.push(entry);
        }
    }
    entries
}

fn parse(line: &str) -> Option<Entry> {
    let mut words = line.splitn(4, ' ');
    let time_us = unstamp(words.next()?)?;
    let priority = words.next()?.parse().ok()?;
    let unit = words.next()?;
    let (from, message) = words.next()?.split_once("]: ")?;
    let (identifier, pid) = from.rsplit_once('[')?;
    let known = |name: &str| if name == NONE { String::new() } else { name.to_owned() };
    Some(Entry {
        time_us,
        boot: String::new(),
        unit: known(unit),
        identifier: known(identifier),
        pid: pid.parse().ok()?,
        priority,
        message: message.to_owned(),
    })
}

/// `2026-11-15T22:57:43.123456Z`
pub fn stamp(time_us: u64) -> String {
    let nanos = i128::from(time_us) * 1000;
    let time =
        OffsetDateTime::from_unix_timestamp_nanos(nanos).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z",
        time.year(),
        u8::from(time.month()),
        time.day(),
        time.hour(),
        time.minute(),
        time.second(),
        time.microsecond()
    )
}

/// The time of a stamp, with or without its fraction; None if it is none.
pub fn unstamp(text: &str) -> Option<u64> {
    let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-');
    let year = date.next()?.parse().ok()?;
    let month = Month::try_from(date.next()?.parse::<u8>().ok()?).ok()?;
    let day = date.next()?.parse().ok()?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut clock = clock.splitn(3, ':').map(|part| part.parse::<u8>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let micros = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    let date = Date::from_calendar_date(year, month, day).ok()?;
    let time = date.with_hms_micro(hour, minute, second, micros).ok()?.assume_utc();
    u64::try_from(time.unix_timestamp_nanos() / 1000).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read_back() {
        let first = Entry {
            time_us: 1_794_784_124_560_621,
            boot: "a".repeat(32),
            unit: "kubelet.service".into(),
            identifier: "kubelet".into(),
            pid: 812,
            priority: 3,
            message: "one\ntwo ]: three".into(),
        };
        let kernel = Entry {
            unit: String::new(),
            identifier: "kernel".into(),
            boot: "b".repeat(32),
            message: String::new(),
            ..first.clone()
        };
        let mut writer = Writer::default();
        let text: String = [&first, &first, &kernel].map(|entry| writer.line(entry)).concat();
        assert_eq!(text.matches("-- boot").count(), 2, "{text}");
        assert_eq!(read(&text), [first.clone(), first, kernel]);
    }

    #[test]
    fn stamps_are_exact() {
        for time in [0, 1, 951_782_400_000_000, 1_794_784_124_560_621] {
            assert_eq!(unstamp(&stamp(time)), Some(time));
        }
        assert_eq!(unstamp("2026-11-15T00:00:00Z"), Some(1_794_700_800_000_000));
        for wrong in ["", "2026-13-01T00:00:00Z", "2026-11-15", "2026-11-15T25:00:00Z"] {
            assert_eq!(unstamp(wrong), None, "{wrong}");
        }
    }
}
