//! What the kubelet keeps for itself: CPU by the number of CPUs, memory by the number of pods.
//!
//! One place for the arithmetic: the plan writes it to the node, `tenon max-pods` prints it.

use crate::codes;
use crate::problem::{Finding, Problem};

/// Memory kept whatever the number of pods, and for each of them. Numbers of the EKS images;
/// another number moves the allocatable memory of every node.
pub const BASE_MIB: u64 = 255;
pub const PER_POD_MIB: u64 = 11;

/// Reserved local disk.
pub const EPHEMERAL_STORAGE: &str = "1Gi";

/// Ranges of whole CPUs, and how many hundredths of a percent of each are kept.
const CPU_RATES: [(u64, u64, u64); 4] = [(0, 1, 600), (1, 2, 100), (2, 4, 50), (4, u64::MAX, 25)];

/// Millicores kept on a machine with this many CPUs, each range rounded down on its own.
pub fn cpu_millis(cpus: u32) -> u32 {
    let cpus = u64::from(cpus);
    let kept = CPU_RATES.iter().map(|(from, to, rate)| {
        let in_range = cpus.min(*to).saturating_sub(*from);
        in_range * 1000 * rate / 10_000
    });
    u32::try_from(kept.sum::<u64>()).unwrap_or(u32::MAX)
}

/// MiB kept for this many pods.
pub fn memory_mib(pods: u32) -> u64 {
    BASE_MIB + PER_POD_MIB * u64::from(pods)
}

/// How a reservation stands to the machine's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    Fine,
    /// Above half: a warning.
    High,
    /// Above three quarters: refused.
    TooHigh,
}

pub fn share(reserved_mib: u64, machine_mib: u64) -> Share {
    // Zero means that nobody knows the machine's memory.
    if machine_mib == 0 || reserved_mib <= machine_mib / 2 {
        Share::Fine
    } else if u128::from(reserved_mib) * 4 <= u128::from(machine_mib) * 3 {
        Share::High
    } else {
        Share::TooHigh
    }
}

/// The largest limit whose reservation is not refused; 0 when there is none.
pub fn most_pods(machine_mib: u64) -> u64 {
    (machine_mib / 4 * 3 + machine_mib % 4 * 3 / 4).saturating_sub(BASE_MIB) / PER_POD_MIB
}

/// Finds a reservation that leaves the pods too little.
pub fn check_memory(reserved_mib: u64, machine_mib: u64) -> Option<Finding> {
    let what = format!("{reserved_mib} of {machine_mib} MiB of memory would be kept from the pods");
    let fix = match most_pods(machine_mib) {
        0 => "set reserved.kube.memory, or choose a larger instance type".to_owned(),
        most => format!("lower the pod limit to at most {most}, or set reserved.kube.memory"),
    };
    let problem = Problem::new(&codes::max_pods::MEMORY_RESERVED, what).fix(fix);
    match share(reserved_mib, machine_mib) {
        Share::Fine => None,
        Share::High => Some(Finding::warning(problem)),
        Share::TooHigh => Some(Finding::error(problem)),
    }
}

/// The largest limit, at most `pods`, whose reservation stays within a share of the memory.
/// When not even one pod fits: the smallest share that works, in hundredths.
pub fn within_share(pods: u32, machine_mib: u64, share: f64) -> Result<u32, u64> {
    let room = (machine_mib as f64 * share).floor() - BASE_MIB as f64;
    let fitting = (room / PER_POD_MIB as f64).floor();
    if fitting < 1.0 {
        return Err((memory_mib(1) * 100).div_ceil(machine_mib.max(1)));
    }
    // Never above `pods`, so the conversion cannot lose anything.
    Ok(fitting.min(f64::from(pods)) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Class;

    #[test]
    fn cpu_by_ranges() {
        for (cpus, millis) in [
            (0, 0),
            (1, 60),
            (2, 70),
            (3, 75),
            (4, 80),
            (8, 90),
            (16, 110),
            (32, 150),
            (48, 190),
            (64, 230),
            (96, 310),
            (128, 390),
            (192, 550),
            (448, 1190),
            (896, 2310),
        ] {
            assert_eq!(cpu_millis(cpus), millis, "{cpus} CPUs");
        }
        // 2.5 millicores of a fifth CPU, rounded down.
        assert_eq!(cpu_millis(5), 82);
        assert!(cpu_millis(u32::MAX) > cpu_millis(896));
    }

    #[test]
    fn memory_by_pods() {
        for (pods, mib) in [
            (4, 299),
            (17, 442),
            (20, 475),
            (29, 574),
            (58, 893),
            (110, 1465),
            (234, 2829),
            (737, 8362),
        ] {
            assert_eq!(memory_mib(pods), mib, "{pods} pods");
        }
        assert_eq!(memory_mib(u32::MAX), 255 + 11 * 4_294_967_295);
    }

    #[test]
    fn half_warns_and_three_quarters_refuses() {
        for (reserved, machine, expected) in [
            (256, 512, Share::Fine),
            (257, 512, Share::High),
            (299, 512, Share::High),
            (384, 512, Share::High),
            (385, 512, Share::TooHigh),
            (10_133, 8192, Share::TooHigh),
            (u64::MAX, u64::MAX, Share::TooHigh),
            (1, 0, Share::Fine),
        ] {
            assert_eq!(share(reserved, machine), expected, "{reserved} of {machine}");
        }
    }

    #[test]
    fn the_finding_names_the_largest_limit() {
        let finding = check_memory(memory_mib(898), 8192).unwrap();
        assert_eq!(finding.class, Class::Error);
        let fix = finding.problem.fix_text().to_owned();
        assert!(fix.contains("at most 535"), "{fix}");
        assert_ne!(share(memory_mib(535), 8192), Share::TooHigh);
        assert_eq!(share(memory_mib(536), 8192), Share::TooHigh);
        assert_eq!(check_memory(299, 512).unwrap().class, Class::Warning);
        assert_eq!(check_memory(574, 8192), None);
        let tiny = check_memory(266, 300).unwrap();
        assert!(tiny.problem.fix_text().starts_with("set reserved.kube.memory"));
    }

    #[test]
    fn a_share_of_memory_gives_a_limit() {
        assert_eq!(within_share(29, 8192, 0.25), Ok(29));
        assert_eq!(within_share(434, 8192, 0.25), Ok(163));
        assert_eq!(within_share(29, 512, 0.25), Err(52));
        assert_eq!(within_share(29, 512, 0.52), Ok(1));
        assert_eq!(within_share(29, 512, 0.51), Err(52));
        assert_eq!(within_share(29, 0, 1.0), Err(26_600));
    }
}
