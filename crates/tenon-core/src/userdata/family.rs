//! Which operating system, who owns the group, who does the joining; and which of those go
//! together.

use crate::codes::{Page, userdata as pages};
use crate::nearest::nearest;
use crate::problem::Problem;

/// The operating system line of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Family {
    #[default]
    AmazonLinux2023,
    AmazonLinux2,
    Ubuntu {
        /// `2204`
        release: u16,
        pro: bool,
    },
    Bottlerocket {
        fips: bool,
    },
    Windows {
        year: u16,
        /// Full instead of Core.
        full: bool,
    },
    Flatcar,
    FedoraCoreOs,
    Custom,
}

/// Names that are not made of a release or a year.
const FIXED: [(&str, Family); 7] = [
    ("AmazonLinux2023", Family::AmazonLinux2023),
    ("AmazonLinux2", Family::AmazonLinux2),
    ("Bottlerocket", Family::Bottlerocket { fips: false }),
    ("BottlerocketFips", Family::Bottlerocket { fips: true }),
    ("Flatcar", Family::Flatcar),
    ("FedoraCoreOS", Family::FedoraCoreOs),
    ("Custom", Family::Custom),
];
const WINDOWS_YEARS: [u16; 3] = [2019, 2022, 2025];
const OLDEST_UBUNTU: u16 = 2004;

impl Family {
    /// Reads the name that eksctl and Tenon use.
    pub fn parse(name: &str) -> Result<Self, Problem> {
        let fixed = FIXED.iter().find(|(known, _)| *known == name).map(|(_, family)| *family);
        fixed.or_else(|| ubuntu(name)).or_else(|| windows(name)).ok_or_else(|| unknown(name))
    }

    pub fn name(self) -> String {
        match self {
            Family::Ubuntu { release, pro } => {
                format!("Ubuntu{}{release}", if pro { "Pro" } else { "" })
            }
            Family::Windows { year, full } => {
                format!("WindowsServer{year}{}Container", if full { "Full" } else { "Core" })
            }
            _ => FIXED
                .iter()
                .find(|(_, family)| *family == self)
                .map_or(String::new(), |(name, _)| (*name).to_owned()),
        }
    }

    /// True where cloud-init reads the user data.
    pub fn has_cloud_init(self) -> bool {
        matches!(self, Family::AmazonLinux2023 | Family::AmazonLinux2 | Family::Ubuntu { .. })
    }

    pub fn is_windows(self) -> bool {
        matches!(self, Family::Windows { .. })
    }

    pub fn has_ignition(self) -> bool {
        matches!(self, Family::Flatcar | Family::FedoraCoreOs)
    }

    /// The mode taken when none is asked for.
    pub fn default_mode(self) -> Mode {
        if self.has_ignition() { Mode::SelfContained } else { Mode::Native }
    }

    /// One family of each line, for tables and tests.
    pub fn examples() -> Vec<Family> {
        let mut all: Vec<_> = FIXED.iter().map(|(_, family)| *family).collect();
        all.extend([2004, 2204, 2404].map(|release| Family::Ubuntu { release, pro: false }));
        all.extend(WINDOWS_YEARS.map(|year| Family::Windows { year, full: false }));
        all
    }
}

/// `Ubuntu2204`, `UbuntuPro2404`, and releases to come.
fn ubuntu(name: &str) -> Option<Family> {
    let rest = name.strip_prefix("Ubuntu")?;
    let (pro, digits) = match rest.strip_prefix("Pro") {
        Some(digits) => (true, digits),
        None => (false, rest),
    };
    let release: u16 = digits.parse().ok()?;
    let long_term = digits.len() == 4 && release % 200 == 4 && release >= OLDEST_UBUNTU;
    long_term.then_some(Family::Ubuntu { release, pro })
}

fn windows(name: &str) -> Option<Family> {
    let rest = name.strip_prefix("WindowsServer")?.strip_suffix("Container")?;
    let (year, flavour) = (rest.get(..4)?.parse().ok()?, rest.get(4..)?);
    let known = WINDOWS_YEARS.contains(&year) && ["Core", "Full"].contains(&flavour);
    known.then_some(Family::Windows { year, full: flavour == "Full" })
}

fn unknown(name: &str) -> Problem {
    let names: Vec<String> = Family::examples().into_iter().map(Family::name).collect();
    let problem = Problem::new(&pages::UNKNOWN_FAMILY, "unknown family");
    match nearest(name, names.iter().map(String::as_str)) {
        Some(near) => problem.fix(format!("did you mean `{near}`?")),
        None => problem,
    }
}

/// Who owns the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Kind {
    #[default]
    SelfManaged,
    /// An EKS managed node group on an image of EKS.
    Managed,
    /// An EKS managed node group on an image of the user's.
    ManagedCustom,
}

/// Who does the joining.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// The image's own program; the user data hands it values.
    Native,
    /// The user data carries every file; the image needs systemd, bash and curl.
    SelfContained,
    /// The image carries `tenon`; the user data is its config.
    Tenon,
}

impl Kind {
    pub const ALL: [(&str, Kind); 3] = [
        ("self-managed", Kind::SelfManaged),
        ("managed", Kind::Managed),
        ("custom", Kind::ManagedCustom),
    ];

    pub fn parse(name: &str) -> Option<Self> {
        Kind::ALL.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    pub fn name(self) -> &'static str {
        Kind::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| *name)
    }
}

impl Mode {
    pub const ALL: [(&str, Mode); 3] =
        [("native", Mode::Native), ("self-contained", Mode::SelfContained), ("tenon", Mode::Tenon)];

    pub fn parse(name: &str) -> Option<Self> {
        Mode::ALL.iter().find(|(known, _)| *known == name).map(|(_, mode)| *mode)
    }

    pub fn name(self) -> &'static str {
        Mode::ALL.iter().find(|(_, mode)| *mode == self).map_or("", |(name, _)| *name)
    }
}

/// What one cell of the matrix produces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    NodeConfig,
    BootstrapScript,
    ManagedScripts,
    Settings,
    PowerShell,
    SelfContained,
    TenonPart,
    Unchanged,
}

/// The cell of a family, kind and mode, or the page and words of its documented error.
pub fn cell(family: Family, kind: Kind, mode: Mode) -> Result<Cell, (&'static Page, String)> {
    use Family as F;
    let name = family.name();
    let refused = |page, what: String| Err((page, what));
    if family == F::Custom {
        return match mode {
            Mode::Native => Ok(Cell::Unchanged),
            _ => refused(
                &pages::CUSTOM_UNCHANGED,
                "family Custom is passed through unchanged; choose a real family to generate"
                    .into(),
            ),
        };
    }
    if family.has_ignition() && kind == Kind::Managed {
        return refused(
            &pages::NO_MANAGED_TYPE,
            format!("{name} has no EKS-managed image type; set ami or use a self-managed group"),
        );
    }
    match (family, mode) {
        (F::Bottlerocket { .. }, Mode::SelfContained) => refused(
            &pages::BOTTLEROCKET_FILES,
            "Bottlerocket accepts settings only; it cannot receive files or scripts".into(),
        ),
        (F::Bottlerocket { .. }, Mode::Tenon) => refused(
            &pages::BOTTLEROCKET_BINARY,
            "Bottlerocket cannot run another bootstrap binary; use mode native".into(),
        ),
        (F::Windows { .. }, Mode::SelfContained | Mode::Tenon) => refused(
            &pages::WINDOWS_NATIVE,
            "Windows nodes join through the image's EKS script; use mode native".into(),
        ),
        (F::Flatcar | F::FedoraCoreOs, Mode::Native) => refused(
            &pages::NO_NATIVE_BOOTSTRAP,
            format!("{name} has no bootstrap of its own; use mode self-contained or tenon"),
        ),
        (_, Mode::SelfContained | Mode::Tenon) if kind == Kind::Managed => refused(
            &pages::EKS_JOINS,
            "managed groups on an EKS image are joined by EKS; set ami or use mode native".into(),
        ),
        (_, Mode::SelfContained) => Ok(Cell::SelfContained),
        (_, Mode::Tenon) => Ok(Cell::TenonPart),
        (F::AmazonLinux2023, Mode::Native) => Ok(Cell::NodeConfig),
        (F::AmazonLinux2, Mode::Native) if kind != Kind::SelfManaged => Ok(Cell::ManagedScripts),
        (F::AmazonLinux2 | F::Ubuntu { .. }, Mode::Native) => Ok(Cell::BootstrapScript),
        (F::Bottlerocket { .. }, Mode::Native) => Ok(Cell::Settings),
        (F::Windows { .. }, Mode::Native) => Ok(Cell::PowerShell),
        (F::Custom, Mode::Native) => Ok(Cell::Unchanged),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        for family in Family::examples() {
            assert_eq!(Family::parse(&family.name()).unwrap(), family);
        }
        let pro = Family::parse("UbuntuPro2404").unwrap();
        assert_eq!(pro, Family::Ubuntu { release: 2404, pro: true });
        assert!(Family::parse("WindowsServer2022FullContainer").unwrap().is_windows());
    }

    #[test]
    fn odd_names_are_refused_with_the_nearest() {
        for name in ["Ubuntu2104", "Ubuntu1804", "Ubuntu22", "WindowsServer2016CoreContainer", ""] {
            assert_eq!(Family::parse(name).unwrap_err().page.code, "TN03410", "{name}");
        }
        let near = Family::parse("AmazonLinux203").unwrap_err();
        assert!(near.fix_text().contains("AmazonLinux2023"), "{}", near.fix_text());
    }

    /// The matrix of the specification, cell by cell: family, then native for the three kinds,
    /// then self-contained and tenon on a self-managed group.
    #[test]
    fn the_matrix_is_the_specified_one() {
        let rows = [
            (
                "AmazonLinux2023",
                ["NodeConfig", "NodeConfig", "NodeConfig", "SelfContained", "TenonPart"],
            ),
            (
                "AmazonLinux2",
                [
                    "BootstrapScript",
                    "ManagedScripts",
                    "ManagedScripts",
                    "SelfContained",
                    "TenonPart",
                ],
            ),
            (
                "Ubuntu2204",
                [
                    "BootstrapScript",
                    "BootstrapScript",
                    "BootstrapScript",
                    "SelfContained",
                    "TenonPart",
                ],
            ),
            ("Bottlerocket", ["Settings", "Settings", "Settings", "TN03402", "TN03403"]),
            (
                "WindowsServer2022CoreContainer",
                ["PowerShell", "PowerShell", "PowerShell", "TN03404", "TN03404"],
            ),
            ("Flatcar", ["TN03405", "TN03406", "TN03405", "SelfContained", "TenonPart"]),
            ("FedoraCoreOS", ["TN03405", "TN03406", "TN03405", "SelfContained", "TenonPart"]),
            ("Custom", ["Unchanged", "Unchanged", "Unchanged", "TN03407", "TN03407"]),
        ];
        let columns = [
            (Kind::SelfManaged, Mode::Native),
            (Kind::Managed, Mode::Native),
            (Kind::ManagedCustom, Mode::Native),
            (Kind::SelfManaged, Mode::SelfContained),
            (Kind::SelfManaged, Mode::Tenon),
        ];
        for (name, cells) in rows {
            let family = Family::parse(name).unwrap();
            for ((kind, mode), expected) in columns.into_iter().zip(cells) {
                let found = match cell(family, kind, mode) {
                    Ok(cell) => format!("{cell:?}"),
                    Err((page, _)) => page.code.to_owned(),
                };
                assert_eq!(found, expected, "{name} {kind:?} {mode:?}");
            }
        }
    }

    #[test]
    fn eks_joins_its_own_images() {
        for mode in [Mode::SelfContained, Mode::Tenon] {
            let (page, _) = cell(Family::AmazonLinux2023, Kind::Managed, mode).unwrap_err();
            assert_eq!(page.code, "TN03408");
        }
    }
}
