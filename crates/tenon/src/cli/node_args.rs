//! Arguments that `init`, `plan` and `rehearse` share.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

/// Where the config comes from and how the facts are gathered.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct NodeArgs {
    /// Source of configuration, in order: imds://user-data, file://PATH,
    /// a path, a directory, or - for standard input
    #[arg(short = 'c', long = "config-source", value_name = "SOURCE")]
    pub config_source: Vec<String>,
    /// Read and write the merged config and facts here
    #[arg(long, value_name = "PATH")]
    pub config_cache: Option<PathBuf>,
    /// Limit which daemons are configured and started ("" for none)
    #[arg(short = 'd', long = "daemon", value_name = "NAME")]
    pub daemon: Vec<String>,
    /// Longest wait for the metadata service
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = duration)]
    pub imds_timeout: Duration,
    /// When EC2 and EKS may be asked; overrides spec.aws.api
    #[arg(long, value_enum, value_name = "WHEN")]
    pub aws_api: Option<AwsApiArg>,
    /// Write the wider file modes that nodeadm writes
    #[arg(long)]
    pub file_mode_compat: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AwsApiArg {
    Never,
    #[value(name = "ifNeeded")]
    IfNeeded,
    Verify,
}

/// Reads `90`, `90s`, `500ms` or `2m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| "a time such as 90s, 500ms or 2m".to_owned())?;
    match unit {
        "" | "s" => Ok(Duration::from_secs(number)),
        "ms" => Ok(Duration::from_millis(number)),
        "m" => Ok(Duration::from_secs(number.saturating_mul(60))),
        _ => Err("a time such as 90s, 500ms or 2m".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, expected) in [
            ("90", Some(Duration::from_secs(90))),
            ("90s", Some(Duration::from_secs(90))),
            ("500ms", Some(Duration::from_millis(500))),
            ("2m", Some(Duration::from_secs(120))),
            ("2h", None),
            ("", None),
            ("s", None),
            ("99999999999999999999s", None),
        ] {
            assert_eq!(duration(text).ok(), expected, "{text}");
        }
    }
}
