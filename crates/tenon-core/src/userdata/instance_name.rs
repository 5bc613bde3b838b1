//! What the name of an instance type tells about its machine.

/// The CPU architecture of an image that runs on the type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Architecture {
    X86,
    Arm,
}

/// Which accelerator the image must have drivers for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Accelerator {
    None,
    Nvidia,
    Neuron,
}

/// `m7gd.large` as (`m`, `7`, `gd`).
fn parts(instance_type: &str) -> (&str, &str) {
    let family = instance_type.split('.').next().unwrap_or_default();
    let letters = family.find(|c: char| c.is_ascii_digit()).unwrap_or(family.len());
    let rest = family[letters..].trim_start_matches(|c: char| c.is_ascii_digit());
    (&family[..letters], rest)
}

/// Graviton types have a `g` after the generation; `a1` is the one older family.
pub fn architecture(instance_type: &str) -> Architecture {
    let (family, options) = parts(instance_type);
    match family == "a" || options.split('-').next().is_some_and(|options| options.contains('g')) {
        true => Architecture::Arm,
        false => Architecture::X86,
    }
}

pub fn accelerator(instance_type: &str) -> Accelerator {
    match parts(instance_type).0 {
        "g" | "gr" | "p" => Accelerator::Nvidia,
        "inf" | "trn" => Accelerator::Neuron,
        _ => Accelerator::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_architecture() {
        for name in [
            "m7gd.large",
            "a1.medium",
            "t4g.small",
            "c7gn.xlarge",
            "im4gn.large",
            "is4gen.large",
            "g5g.xlarge",
            "x2gd.medium",
            "r8g.large",
        ] {
            assert_eq!(architecture(name), Architecture::Arm, "{name}");
        }
        for name in [
            "m5.large",
            "g4dn.xlarge",
            "gr6.4xlarge",
            "p4de.24xlarge",
            "x2iedn.xlarge",
            "u-6tb1.metal",
            "mac1.metal",
            "p6-b200.48xlarge",
        ] {
            assert_eq!(architecture(name), Architecture::X86, "{name}");
        }
    }

    #[test]
    fn names_tell_the_accelerator() {
        for (name, accelerator_wanted) in [
            ("g5.xlarge", Accelerator::Nvidia),
            ("p5.48xlarge", Accelerator::Nvidia),
            ("inf2.xlarge", Accelerator::Neuron),
            ("trn1.2xlarge", Accelerator::Neuron),
            ("m6g.large", Accelerator::None),
        ] {
            assert_eq!(accelerator(name), accelerator_wanted, "{name}");
        }
    }
}
