//! Packages: what a package database says, and the command lines that change it. Network is used
//! by `update` and `download` alone; `install` and `remove` run inside the root without it.

use std::collections::BTreeMap;

use super::family::Manager;

/// Where the cache stands for a program inside the root.
pub const CACHE_INSIDE: &str = "/run/tenon/cache";
pub const DPKG_STATUS: &str = "/var/lib/dpkg/status";
/// The list of the version lock of dnf.
pub const DNF_LOCKS: &str = "/etc/dnf/plugins/versionlock.list";

/// What is installed, by name.
pub type Installed = BTreeMap<String, Package>;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Package {
    pub version: String,
    pub architecture: String,
    /// Held at its version.
    pub locked: bool,
    /// The same package in other versions or for other architectures.
    pub others: Vec<Package>,
}

/// Adds a package, beside what there is of its name.
fn add(installed: &mut Installed, name: &str, package: Package) {
    let before = installed.insert(name.to_owned(), package);
    if let (Some(mut before), Some(now)) = (before, installed.get_mut(name)) {
        now.others = std::mem::take(&mut before.others);
        now.others.push(before);
    }
}

/// Reads the status file of dpkg. What is only configured, half installed or removed is left out.
pub fn dpkg(status: &str) -> Installed {
    let mut installed = Installed::new();
    for paragraph in status.split("\n\n") {
        let field = |name: &str| {
            let line = paragraph.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.strip_prefix(':')).map(str::trim)
        };
        let (Some(name), Some(state)) = (field("Package"), field("Status")) else { continue };
        if state.ends_with(" ok installed") {
            let package = Package {
                version: field("Version").unwrap_or_default().to_owned(),
                architecture: field("Architecture").unwrap_or_default().to_owned(),
                locked: state.starts_with("hold "),
                others: Vec::new(),
            };
            add(&mut installed, name, package);
        }
    }
    installed
}

/// True if dpkg was stopped in the middle of a package: `updates` are the names of the changes
/// that it has not yet worked into its status file.
pub fn dpkg_torn(status: &str, updates: &[String]) -> bool {
    const WHOLE: &[&str] = &["installed", "config-files", "not-installed"];
    let states = status.lines().filter_map(|line| line.strip_prefix("Status: "));
    let torn = |state: &str| !state.split(' ').next_back().is_some_and(|s| WHOLE.contains(&s));
    !updates.is_empty() || states.into_iter().any(torn)
}

/// The status file with a package held at its version, which is how dpkg remembers it.
pub fn dpkg_hold(status: &str, name: &str) -> String {
    let own = format!("Package: {name}");
    let hold = |paragraph: &str| {
        if !paragraph.lines().any(|line| line == own) {
            return paragraph.to_owned();
        }
        paragraph.replacen("Status: install ok installed", "Status: hold ok installed", 1)
    };
    status.split("\n\n").map(hold).collect::<Vec<_>>().join("\n\n")
}

/// How `rpm` is asked for what [`rpm`] reads.
pub const RPM_QUERY: &[&str] =
    &["rpm", "-qa", "--queryformat", "%{NAME} %{EPOCHNUM}:%{VERSION}-%{RELEASE} %{ARCH}\\n"];

/// Reads the answer of rpm, and the list of locks.
pub fn rpm(answer: &str, locks: &str) -> Installed {
    let mut installed = Installed::new();
    for line in answer.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, version, architecture] = words[..] else { continue };
        let package = Package {
            version: version.to_owned(),
            architecture: architecture.to_owned(),
            locked: locks.lines().any(|lock| lock == dnf_lock(name, version)),
            others: Vec::new(),
        };
        add(&mut installed, name, package);
    }
    installed
}

/// The line that holds a package at its version.
fn dnf_lock(name: &str, version: &str) -> String {
    format!("{name}-{version}.*")
}

/// The list of locks with this package at this version and no other.
pub fn dnf_hold(locks: &str, name: &str, version: &str) -> String {
    // `containerd-0:2.1.4-1.amzn2023.*`: the version begins at the last `-` before the `:`.
    let of_name = |line: &str| {
        let before_epoch = line.split(':').next().unwrap_or_default();
        before_epoch.rsplit_once('-').is_some_and(|(found, _)| found == name)
    };
    let others = locks.lines().filter(|line| !of_name(line));
    others.map(|line| format!("{line}\n")).collect::<String>() + &dnf_lock(name, version) + "\n"
}

/// True if an installed version is the one asked for, or a closer description of it.
pub fn fits(installed: &str, wanted: &str) -> bool {
    let bare = match installed.split_once(':') {
        Some((epoch, rest)) if epoch.bytes().all(|b| b.is_ascii_digit()) => rest,
        _ => installed,
    };
    [installed, bare].iter().any(|version| {
        let rest = version.strip_prefix(wanted);
        rest.is_some_and(|rest| {
            rest.is_empty() || !rest.starts_with(|c: char| c.is_ascii_alphanumeric())
        })
    })
}

/// A package to install, and the version it must have.
pub type Wish<'a> = (&'a str, Option<&'a str>);

/// Where the commands of a manager work: the root and the cache as the host sees them.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// Without a final `/`, and so empty for the machine itself.
    pub root: &'a str,
    pub cache: &'a str,
    /// A directory with the sources of packages, those of the plan among them.
    pub sources: &'a str,
    /// `x86_64`
    pub architecture: &'a str,
}

/// More than any path is deep.
const STEPS_UP: usize = 40;

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

/// What Debian calls an architecture.
fn debian(architecture: &str) -> &'static str {
    match architecture {
        "aarch64" => "arm64",
        _ => "amd64",
    }
}

/// Options of an apt that keeps its state in the cache. Inside the root the paths are other ones.
fn apt_places(cache: &str) -> Vec<String> {
    vec![
        "-oAPT::Sandbox::User=root".into(),
        "-oAcquire::Languages=none".into(),
        format!("-oDir::Cache={cache}/apt"),
        format!("-oDir::State::lists={cache}/apt/lists"),
    ]
}

/// Options of a dnf that keeps its state in the cache. Plugins would bring repositories and habits
/// of their own, and one of them would let the lock of an earlier version stop the plan.
fn dnf_options(cache: &str) -> Vec<String> {
    vec![
        format!("--setopt=cachedir={cache}/dnf"),
        "--setopt=keepcache=True".into(),
        "--setopt=install_weak_deps=False".into(),
        "--noplugins".into(),
    ]
}

/// apt on the host, for the root's architecture and with its database.
fn apt_download(places: Places<'_>) -> Vec<String> {
    let Places { root, cache, sources, architecture } = places;
    let mut apt = words(&["apt-get", "-qq", "-y"]);
    apt.extend(apt_places(cache));
    apt.extend([
        format!("-oDir::Etc={root}/etc/apt"),
        "-oDir::Etc::sourcelist=/dev/null".into(),
        format!("-oDir::Etc::sourceparts={sources}"),
        format!("-oDir::State={cache}/apt"),
        format!("-oDir::State::status={root}{DPKG_STATUS}"),
        format!("-oAPT::Architecture={}", debian(architecture)),
        format!("-oAPT::Architectures::={}", debian(architecture)),
    ]);
    apt
}

/// dnf on the host, which reads some directories now from below the root, now from where it
/// stands: enough steps up lead to the same place from both.
fn dnf_download(places: Places<'_>) -> Vec<String> {
    let Places { root, cache, sources, architecture } = places;
    let up = format!("{}{}", "../".repeat(STEPS_UP), cache.trim_start_matches('/'));
    let own = vec![
        format!("--installroot={root}/"),
        format!("--forcearch={architecture}"),
        format!("--setopt=reposdir={sources}"),
        format!("--setopt=logdir={up}/dnf"),
        format!("--setopt=persistdir={cache}/dnf"),
        // The check would write keys into the root; `install` makes it.
        "--nogpgcheck".into(),
        "--downloadonly".into(),
        "install".into(),
    ];
    [words(&["dnf", "-y", "-q"]), dnf_options(&up), own].concat()
}

fn dnf_inside(command: &str) -> Vec<String> {
    let dnf = words(&["dnf", "-y", "-q", "--cacheonly", "--nodocs"]);
    [dnf, dnf_options(CACHE_INSIDE), words(&[command])].concat()
}

impl Manager {
    /// The command lines that fill the cache: on the host, with the network.
    pub fn download(self, places: Places<'_>, wishes: &[Wish<'_>]) -> Vec<Vec<String>> {
        let names = self.named(wishes);
        match self {
            Manager::Apt => {
                let apt = apt_download(places);
                let end = words(&[
                    "--no-install-recommends",
                    "--allow-change-held-packages",
                    "--allow-downgrades",
                    "--download-only",
                    "install",
                ]);
                vec![[apt.clone(), words(&["update"])].concat(), [apt, end, names].concat()]
            }
            Manager::Dnf => vec![[dnf_download(places), names].concat()],
        }
    }

    /// The command line that installs from the cache: inside the root, without the network.
    pub fn install(self, wishes: &[Wish<'_>]) -> Vec<String> {
        match self {
            Manager::Apt => {
                let mut apt = words(&["apt-get", "-qq", "-y", "--no-download"]);
                apt.extend(apt_places(CACHE_INSIDE));
                apt.extend(words(&[
                    "--no-install-recommends",
                    // What the plan names is decided, whatever an earlier plan held.
                    "--allow-change-held-packages",
                    "--allow-downgrades",
                    "-oDpkg::Options::=--force-confold",
                    "-oDpkg::Use-Pty=0",
                    "install",
                ]));
                [apt, self.named(wishes)].concat()
            }
            Manager::Dnf => [dnf_inside("install"), self.named(wishes)].concat(),
        }
    }

    /// The command line that ends what a killed run began. rpm does not remember whose scripts
    /// have not run: `names` are the packages that came since then, and come again.
    pub fn finish(self, names: &[String]) -> Vec<String> {
        match self {
            Manager::Apt => words(&["dpkg", "--configure", "-a"]),
            Manager::Dnf => [dnf_inside("reinstall"), names.to_vec()].concat(),
        }
    }

    /// The command line that removes packages, and refuses when others stand on them.
    pub fn remove(self, names: &[&str]) -> Vec<String> {
        let start = match self {
            Manager::Apt => words(&["dpkg", "--purge"]),
            Manager::Dnf => words(&["rpm", "-e"]),
        };
        [start, words(names)].concat()
    }

    fn named(self, wishes: &[Wish<'_>]) -> Vec<String> {
        let named = |(name, version): &Wish<'_>| match (version, self) {
            (None, _) => (*name).to_owned(),
            (Some(version), Manager::Apt) => format!("{name}={version}*"),
            (Some(version), Manager::Dnf) => format!("{name}-{version}*"),
        };
        wishes.iter().map(named).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Package: runc\nStatus: install ok installed\nArchitecture: amd64\n\
        Version: 1.1.5+ds1-1\n\nPackage: gone\nStatus: deinstall ok config-files\nVersion: 1\n\n\
        Package: containerd\nStatus: hold ok installed\nArchitecture: amd64\nVersion: 1:1.6.20~ds1\n";

    #[test]
    fn dpkg_is_read_and_held() {
        let installed = dpkg(STATUS);
        assert_eq!(installed.keys().collect::<Vec<_>>(), ["containerd", "runc"]);
        assert!(installed["containerd"].locked && !installed["runc"].locked);
        let held = dpkg_hold(STATUS, "runc");
        assert!(dpkg(&held)["runc"].locked);
        assert_eq!(held.len(), STATUS.len() - "install".len() + "hold".len());
        assert_eq!(dpkg_hold(&held, "runc"), held);
        assert_eq!(dpkg_hold(STATUS, "gone"), STATUS);
    }

    #[test]
    fn several_packages_of_one_name_are_all_kept() {
        let other = "Package: runc\nStatus: install ok installed\nArchitecture: i386\nVersion: 1\n";
        let installed = dpkg(&format!("{STATUS}\n{other}"));
        let architectures = |one: &Package| {
            let all = one.others.iter().chain([one]);
            all.map(|one| one.architecture.clone()).collect::<Vec<_>>()
        };
        assert_eq!(architectures(&installed["runc"]), ["amd64", "i386"]);
        let kernels =
            rpm("kernel 0:6.1-1 x86_64\nkernel 0:6.2-1 x86_64\nkernel 0:6.3-1 x86_64\n", "");
        assert_eq!(kernels["kernel"].others.len(), 2);
    }

    #[test]
    fn a_stopped_dpkg_is_known() {
        assert!(!dpkg_torn(STATUS, &[]));
        assert!(dpkg_torn(STATUS, &["0001".into()]));
        assert!(dpkg_torn("Package: x\nStatus: install ok half-configured\n", &[]));
        assert_eq!(Manager::Apt.finish(&[]).join(" "), "dpkg --configure -a");
        assert!(Manager::Dnf.finish(&["runc".into()]).join(" ").ends_with(" reinstall runc"));
    }

    #[test]
    fn rpm_is_read_with_its_locks() {
        let answer = "runc 0:1.3.3-1.amzn2023 x86_64\ngpg-pubkey (none)\n";
        let installed = rpm(answer, "runc-0:1.3.3-1.amzn2023.*\n");
        assert_eq!(installed.len(), 1);
        assert!(installed["runc"].locked);
        assert!(!rpm(answer, "")["runc"].locked);
        let locks = "# ours\nrunc-0:1.2.0-1.amzn2023.*\nrunc-extra-0:1.2.0-1.amzn2023.*\n";
        let held = dnf_hold(locks, "runc", "0:1.3.3-1.amzn2023");
        assert_eq!(held, "# ours\nrunc-extra-0:1.2.0-1.amzn2023.*\nrunc-0:1.3.3-1.amzn2023.*\n");
        assert_eq!(dnf_hold(&held, "runc", "0:1.3.3-1.amzn2023"), held);
    }

    #[test]
    fn a_version_fits_up_to_where_it_is_told() {
        for (installed, wanted, expected) in [
            ("1.7.24-0+deb12u1", "1.7", true),
            ("1.70.1", "1.7", false),
            ("1:1.6.20~ds1", "1.6.20", true),
            ("2.0", "1.7", false),
            ("1.7", "1.7", true),
        ] {
            assert_eq!(fits(installed, wanted), expected, "{installed} {wanted}");
        }
    }

    #[test]
    fn only_downloads_know_the_network() {
        let places = Places { root: "/m/r", cache: "/c", sources: "/c/s", architecture: "aarch64" };
        let wishes = [("runc", None), ("containerd", Some("1.7"))];
        let apt = Manager::Apt.download(places, &wishes);
        assert!(apt[0].ends_with(&["update".to_owned()]));
        assert!(apt[1].contains(&"--download-only".to_owned()));
        assert!(apt[1].ends_with(&["runc".to_owned(), "containerd=1.7*".to_owned()]));
        assert!(apt[1].contains(&"-oAPT::Architecture=arm64".to_owned()));
        let install = Manager::Apt.install(&wishes);
        assert!(install.contains(&"--no-download".to_owned()));
        let dnf = Manager::Dnf.download(places, &wishes);
        let up = "../".repeat(STEPS_UP);
        assert_eq!(
            dnf[0].join(" ").replace(&up, "../"),
            "dnf -y -q --setopt=cachedir=../c/dnf --setopt=keepcache=True \
             --setopt=install_weak_deps=False --noplugins --installroot=/m/r/ \
             --forcearch=aarch64 --setopt=reposdir=/c/s --setopt=logdir=../c/dnf \
             --setopt=persistdir=/c/dnf --nogpgcheck --downloadonly install runc containerd-1.7*"
        );
        assert_eq!(
            Manager::Dnf.install(&wishes).join(" "),
            "dnf -y -q --cacheonly --nodocs --setopt=cachedir=/run/tenon/cache/dnf \
             --setopt=keepcache=True --setopt=install_weak_deps=False --noplugins \
             install runc containerd-1.7*"
        );
        assert_eq!(Manager::Dnf.remove(&["a", "b"]).join(" "), "rpm -e a b");
    }
}
