//! Accounts: the lines of `passwd`, `group` and `shadow`, read as fields and written back with
//! every other line as it was.

use super::item::Act;

/// Numbers that a system account may take when none is asked for.
const SYSTEM_IDS: std::ops::RangeInclusive<i64> = 100..=999;
const ORDINARY_IDS: std::ops::RangeInclusive<i64> = 1000..=59_999;

/// The three files, as they are or as they should be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Accounts {
    pub passwd: String,
    pub group: String,
    pub shadow: String,
}

/// The fields of the line that begins with this name.
fn entry<'t>(text: &'t str, name: &str) -> Option<Vec<&'t str>> {
    text.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| fields[0] == name)
}

/// A number by name, in `passwd` or in `group`: both have it in third place.
pub fn id_of(text: &str, name: &str) -> Option<u32> {
    entry(text, name)?.get(2)?.parse().ok()
}

/// Puts a line in the place of that with the same name, or at the end.
fn put(text: &mut String, fields: &[String]) {
    let new = fields.join(":");
    let is_same = |line: &str| line.split(':').next() == Some(fields[0].as_str());
    let mut found = false;
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        found |= is_same(line);
        lines.push(if is_same(line) { new.clone() } else { line.to_owned() });
    }
    if !found {
        lines.push(new);
    }
    *text = lines.join("\n") + "\n";
}

impl Accounts {
    /// The files after this act; equal to `self` when the account is as asked for. None if the
    /// number asked for belongs to someone else, or none is free.
    pub fn with(&self, act: &Act) -> Option<Accounts> {
        let mut next = self.clone();
        match act {
            Act::Group { name, id, system } => next.group(name, *id, *system).map(|_| ())?,
            Act::User { name, id, shell, home, locked, groups } => {
                next.user(name, *id, shell, home, *locked)?;
                for group in groups {
                    next.group(group, None, true)?;
                    next.member(group, name);
                }
            }
            _ => {}
        }
        Some(next)
    }

    fn group(&mut self, name: &str, id: Option<i64>, system: bool) -> Option<String> {
        let held = entry(&self.group, name);
        let number = match (&held, id) {
            (Some(fields), None) => fields.get(2)?.to_string(),
            (_, Some(id)) if self.is_taken(&self.group, name, id) => return None,
            (_, Some(id)) => id.to_string(),
            (None, None) => free(&[&self.group], system)?.to_string(),
        };
        let members = held.and_then(|fields| fields.get(3).map(|list| (*list).to_owned()));
        if entry(&self.group, name).is_none_or(|fields| fields.get(2) != Some(&number.as_str())) {
            let fields = [name.into(), "x".into(), number.clone(), members.unwrap_or_default()];
            put(&mut self.group, &fields);
        }
        Some(number)
    }

    fn is_taken(&self, text: &str, name: &str, id: i64) -> bool {
        let id = id.to_string();
        let mut lines = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
        lines.any(|fields| fields[0] != name && fields.get(2) == Some(&id.as_str()))
    }

    fn user(
        &mut self,
        name: &str,
        id: Option<i64>,
        shell: &str,
        home: &str,
        locked: bool,
    ) -> Option<()> {
        let held = entry(&self.passwd, name)
            .map(|fields| fields.into_iter().map(str::to_owned).collect::<Vec<_>>());
        let is_new = held.is_none();
        if id.is_some_and(|id| self.is_taken(&self.passwd, name, id)) {
            return None;
        }
        let mut fields = match held {
            Some(fields) if fields.len() == 7 => fields,
            _ => self.new_user(name, id)?,
        };
        for (at, wanted) in [(2, id.map(|id| id.to_string())), (5, some(home)), (6, some(shell))] {
            if let Some(wanted) = wanted {
                fields[at] = wanted;
            }
        }
        if entry(&self.passwd, name).is_none_or(|held| held != fields) {
            put(&mut self.passwd, &fields);
        }
        self.password(name, locked || is_new);
        Some(())
    }

    /// The fields of an account that is not there yet; its group is made.
    fn new_user(&mut self, name: &str, id: Option<i64>) -> Option<Vec<String>> {
        let gid = id_of(&self.group, name);
        // A group of the name is there when an earlier run was stopped after it.
        let twin = gid.map(i64::from).filter(|gid| !self.is_taken(&self.passwd, name, *gid));
        let own = match id.or(twin) {
            Some(id) => id,
            None => free(&[&self.passwd, &self.group], true)?,
        };
        let gid = self.group(name, gid.is_none().then_some(own), true)?;
        let fields = [name, "x", &own.to_string(), &gid, "", "/", "/usr/sbin/nologin"];
        Some(fields.map(str::to_owned).to_vec())
    }

    /// A locked account has a password that no password hashes to.
    fn password(&mut self, name: &str, locked: bool) {
        let held = entry(&self.shadow, name).map(|fields| fields.into_iter().map(str::to_owned));
        let mut fields: Vec<String> = match held {
            Some(fields) => fields.collect(),
            None => [name, "!*", "", "", "", "", "", "", ""].map(str::to_owned).to_vec(),
        };
        if locked && !fields.get(1).is_some_and(|word| word.starts_with(['!', '*'])) {
            fields[1] = format!("!{}", fields[1]);
        }
        if entry(&self.shadow, name).is_none_or(|held| held != fields) {
            put(&mut self.shadow, &fields);
        }
    }

    fn member(&mut self, group: &str, user: &str) {
        let Some(held) = entry(&self.group, group) else { return };
        let mut fields: Vec<String> = held.into_iter().map(str::to_owned).collect();
        fields.resize(4, String::new());
        let members = &mut fields[3];
        if !members.split(',').any(|member| member == user) {
            if !members.is_empty() {
                members.push(',');
            }
            members.push_str(user);
            put(&mut self.group, &fields);
        }
    }
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// The highest number that none of these files uses, as packages do for system accounts.
fn free(texts: &[&str], system: bool) -> Option<i64> {
    let used = |id: i64| {
        let id = id.to_string();
        texts.iter().any(|text| text.lines().any(|line| line.split(':').nth(2) == Some(&id)))
    };
    match system {
        true => SYSTEM_IDS.rev().find(|id| !used(*id)),
        false => ORDINARY_IDS.into_iter().find(|id| !used(*id)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Accounts {
        Accounts {
            passwd: "root:x:0:0:root:/root:/bin/bash\nsync:x:4:65534::/bin:/bin/sync\n".into(),
            group: "root:x:0:\nadm:x:4:syslog\n".into(),
            shadow: "root:$y$hash:19000:0:99999:7:::\n".into(),
        }
    }

    fn user(name: &str, id: Option<i64>, shell: &str, locked: bool, groups: &[&str]) -> Act {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        Act::User {
            name: name.into(),
            id,
            shell: shell.into(),
            home: String::new(),
            locked,
            groups,
        }
    }

    #[test]
    fn a_new_account_is_locked_and_the_second_run_changes_nothing() {
        let act = user("etcd", None, "/bin/false", false, &["adm", "ssl"]);
        let once = files().with(&act).unwrap();
        assert!(once.passwd.ends_with("etcd:x:999:999::/:/bin/false\n"), "{}", once.passwd);
        assert_eq!(once.group, "root:x:0:\nadm:x:4:syslog,etcd\netcd:x:999:\nssl:x:998:etcd\n");
        assert!(once.shadow.ends_with("etcd:!*:::::::\n"), "{}", once.shadow);
        assert_eq!(once.with(&act).unwrap(), once);
        let stopped = Accounts { group: once.group.clone(), ..files() };
        assert_eq!(stopped.with(&act).unwrap(), once);
    }

    #[test]
    fn only_what_is_asked_for_changes() {
        let locked = files().with(&user("root", None, "", true, &[])).unwrap();
        assert_eq!(locked.passwd, files().passwd);
        assert_eq!(locked.shadow, "root:!$y$hash:19000:0:99999:7:::\n");
        let shell = files().with(&user("sync", None, "/usr/sbin/nologin", false, &[])).unwrap();
        assert!(shell.passwd.ends_with("sync:x:4:65534::/bin:/usr/sbin/nologin\n"));
    }

    #[test]
    fn numbers_of_others_are_not_taken() {
        assert_eq!(files().with(&user("etcd", Some(4), "", false, &[])), None);
        let group = Act::Group { name: "x".into(), id: Some(4), system: true };
        assert_eq!(files().with(&group), None);
        assert_eq!(id_of(&files().group, "adm"), Some(4));
    }
}
