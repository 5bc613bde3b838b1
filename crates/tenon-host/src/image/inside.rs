//! Runs a program inside the root: in mount, process, IPC, name and network namespaces of its
//! own, with a fresh /proc, and with /proc/sys and /sys read-only. What it does to "its" kernel
//! or network cannot reach the machine that builds.

use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;
use tenon_core::codes::host::{NO_SPACE, PROGRAM_FAILED};
use tenon_core::codes::image::{NOT_PRIVILEGED, UNSAFE_IN_ROOT};
use tenon_core::problem::Problem;

use super::site::{Found, found};
use crate::apply::directories::unreadable;
use crate::apply::files::own;
use crate::command::{self, Output};
use crate::root::Root;

/// Constant text; root, cache and program are arguments. Devices of a build machine are shown to
/// no root but its own, whose boot loader may have to look at them.
const SCRIPT: &str = r#"
root=$1 cache=$2
shift 2
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro,nosuid,nodev,noexec "$root/proc/sys"
mount -t sysfs -o ro,nosuid,nodev,noexec sysfs "$root/sys"
mount -t tmpfs -o mode=0755,nosuid,nodev tmpfs "$root/run"
mkdir -p "$root/run/lock" "$root/run/tenon/cache"
[ -z "$cache" ] || mount --bind "$cache" "$root/run/tenon/cache"
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/tmp"
if [ "$root" != / ]; then
    mount -t tmpfs -o mode=0755,nosuid tmpfs "$root/dev"
    for name in null zero full random urandom tty; do
        : >"$root/dev/$name"
        mount --bind "/dev/$name" "$root/dev/$name"
    done
    mkdir "$root/dev/pts" "$root/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts "$root/dev/pts"
    mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/dev/shm"
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    ln -s fd/0 "$root/dev/stdin"
    ln -s fd/1 "$root/dev/stdout"
    ln -s fd/2 "$root/dev/stderr"
fi
exec env -i HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive SYSTEMD_OFFLINE=1 \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" "$@"
"#;

/// Ends with this process, whatever happens to it.
const OWN_NAMESPACES: &[&str] = &[
    "setpriv",
    "--pdeathsig",
    "KILL",
    "unshare",
    "--mount",
    "--pid",
    "--ipc",
    "--uts",
    "--net",
    "--fork",
    "--kill-child",
    "--propagation",
    "private",
    "sh",
    "-euc",
    SCRIPT,
    "tenon",
];

/// Places that are mounted over; a link in their place could lead out of the root.
const MOUNTED: &[&str] = &["/proc", "/sys", "/dev", "/run", "/tmp"];

/// How much of an answer is kept: a large root has some thousand packages.
pub const ANSWER_BYTES: usize = 16 << 20;

/// Runs a program that must end with 0.
pub fn run(
    root: &Root,
    cache: Option<&Path>,
    argv: &[String],
    timeout: Duration,
) -> Result<Output, Problem> {
    check(root, argv)?;
    let real = root.path().canonicalize().map_err(|error| unreadable("/", error))?;
    let mut words: Vec<String> = OWN_NAMESPACES.iter().map(|word| (*word).to_owned()).collect();
    words.push(real.display().to_string());
    words.push(cache.map(|cache| cache.display().to_string()).unwrap_or_default());
    words.extend_from_slice(argv);
    let output = command::run_keeping(&words, timeout, &[], ANSWER_BYTES)?;
    if output.status.success() {
        return Ok(output);
    }
    const FULL: &[&str] = &["No space left on device", "enough free space"];
    let full = output.tail.iter().any(|line| FULL.iter().any(|words| line.contains(words)));
    let page = if full { &NO_SPACE } else { &PROGRAM_FAILED };
    let what = format!("`{}` inside the root ended with {}", argv.join(" "), output.status);
    Err(Problem::new(page, what).details(output.tail))
}

/// Refuses what could not run, or would run with mounts outside of the root.
fn check(root: &Root, argv: &[String]) -> Result<(), Problem> {
    if own().uid != 0 {
        let what = format!("`{}` must run inside the root", argv.join(" "));
        return Err(Problem::new(&NOT_PRIVILEGED, what));
    }
    for place in MOUNTED {
        let there = found(root, place, OFlags::NOFOLLOW).map_err(|e| unreadable(place, e))?;
        if !matches!(there, Found::Directory(_)) {
            let what = format!("{place} of the root is {}", there.words());
            return Err(Problem::new(&UNSAFE_IN_ROOT, what));
        }
    }
    Ok(())
}
