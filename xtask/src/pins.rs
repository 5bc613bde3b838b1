//! `cargo xtask pins`: checks the pin files, and adds entries to them from downloaded files.
//!
//! Nothing is downloaded here. A sum enters a pin file only if this program computed it from bytes;
//! a publisher's list of sums can confirm entries, never make them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use sha2::{Digest, Sha256};
use tenon_core::hex::hex;
use tenon_core::image::component::{self, ARCHITECTURES, Pin};

use crate::checkout;

const PLACE: &str = "profiles/pins";

#[derive(clap::Args)]
pub struct Args {
    /// A publisher's list of sums (`sha256sum` prints such); entries must agree with it
    #[arg(long, value_name = "FILE")]
    sums: Option<PathBuf>,
    /// Downloaded files, below the paths of their addresses or the ends of these
    #[arg(long, value_name = "DIR", requires_all = ["minor", "component", "version"])]
    from: Option<PathBuf>,
    /// Pin file to add to, such as 1.36
    #[arg(long, value_name = "MINOR")]
    minor: Option<String>,
    /// Component whose files are in DIR
    #[arg(long, value_name = "NAME")]
    component: Option<String>,
    /// Its version
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// Add the entry; without, it is only shown
    #[arg(long, requires = "from")]
    write: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let place = checkout().join(PLACE);
    let sums = args.sums.as_deref().map(read_sums).transpose()?;
    if let (Some(from), Some(minor), Some(component), Some(version)) =
        (&args.from, &args.minor, &args.component, &args.version)
    {
        let wish = Wish { component, version, from, sums: sums.as_ref() };
        let file = place.join(format!("{minor}.toml"));
        return add(&file, minor, &wish, args.write);
    }
    let files = pin_files(&place)?;
    let shipped: Vec<_> = component::PINS.iter().map(|(minor, _)| (*minor).to_owned()).collect();
    let found: Vec<_> = files.keys().cloned().collect();
    ensure!(found == shipped, "files {found:?}, but the program has {shipped:?}");
    for (minor, text) in &files {
        check(minor, text, sums.as_ref())?;
    }
    Ok(())
}

/// The texts of the pin files by minor version.
fn pin_files(place: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(place)? {
        let path = entry?.path();
        let minor = path.file_stem().context("a pin file without a name")?;
        files.insert(minor.to_string_lossy().into_owned(), fs::read_to_string(&path)?);
    }
    Ok(files)
}

/// Checks one file and says what it has.
fn check(minor: &str, text: &str, sums: Option<&Sums>) -> anyhow::Result<()> {
    let pins = component::read_pins(minor, text).map_err(|wrong| wrong_file(minor, &wrong))?;
    let names: std::collections::BTreeSet<_> =
        pins.iter().map(|pin| pin.component.as_str()).collect();
    println!("{minor}: {} entries for {} components", pins.len(), names.len());
    for pin in pins.iter().filter(|_| sums.is_some()) {
        let told = agreement(pin, sums)?;
        println!("  {} {}: {told}", pin.component, pin.version);
    }
    Ok(())
}

fn wrong_file(minor: &str, wrong: &[String]) -> anyhow::Error {
    anyhow::anyhow!("{PLACE}/{minor}.toml:\n  {}", wrong.join("\n  "))
}

/// Sums by the path that a list names.
type Sums = BTreeMap<String, String>;

/// Reads `SUM  PATH` lines, with the mark of binary files or without.
fn read_sums(path: &Path) -> anyhow::Result<Sums> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let mut sums = Sums::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let (sum, name) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let name = name.trim_start().trim_start_matches('*').trim_start_matches("./");
        let is_sum = sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit());
        ensure!(is_sum && !name.is_empty(), "{}: no sum and name: {line}", path.display());
        sums.insert(name.to_owned(), sum.to_ascii_lowercase());
    }
    Ok(sums)
}

/// Compares an entry with a publisher's list: both sums, or none of them is named there.
fn agreement(pin: &Pin, sums: Option<&Sums>) -> anyhow::Result<&'static str> {
    let mut confirmed = 0;
    for (architecture, sum) in &pin.sha256 {
        let Some(told) = sums.and_then(|sums| listed(pin, architecture, sums)) else { continue };
        let Pin { component, version, .. } = pin;
        ensure!(told == sum, "{component} {version} for {architecture} is {sum}, listed is {told}");
        confirmed += 1;
    }
    Ok(match confirmed {
        0 => "not listed",
        1 => "confirmed for one architecture",
        _ => "confirmed",
    })
}

/// The sum that a list has for a file; its name must tell the architectures apart.
fn listed<'s>(pin: &Pin, architecture: &str, sums: &'s Sums) -> Option<&'s String> {
    let ends = endings(pin, architecture)?;
    ends.iter().find_map(|end| sums.get(end))
}

/// The ends of an address that name this architecture alone, the longest first:
/// `release/v1.34.2/bin/linux/amd64/kubelet`, …, `amd64/kubelet`.
fn endings(pin: &Pin, architecture: &str) -> Option<Vec<String>> {
    let path = |architecture: &str| {
        let url = component::url(&pin.component, &pin.version, architecture)?;
        Some(url.splitn(4, '/').nth(3)?.to_owned())
    };
    let ends = |path: String| -> Vec<String> {
        let parts: Vec<_> = path.split('/').map(str::to_owned).collect();
        (0..parts.len()).map(|at| parts[at..].join("/")).collect()
    };
    let other = ARCHITECTURES.iter().find(|other| **other != architecture)?;
    let foreign = ends(path(other)?);
    Some(ends(path(architecture)?).into_iter().filter(|end| !foreign.contains(end)).collect())
}

/// An entry that somebody wants to add.
struct Wish<'a> {
    component: &'a str,
    version: &'a str,
    from: &'a Path,
    sums: Option<&'a Sums>,
}

/// Shows the entry that the downloaded files make, and adds it if asked.
fn add(file: &Path, minor: &str, wish: &Wish<'_>, write: bool) -> anyhow::Result<()> {
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let pins = component::read_pins(minor, &text).map_err(|wrong| wrong_file(minor, &wrong))?;
    let pin = hashed(wish)?;
    let told = agreement(&pin, wish.sums)?;
    let same = |held: &&Pin| held.component == pin.component && held.version == pin.version;
    if let Some(held) = pins.iter().find(same) {
        ensure!(
            held.sha256 == pin.sha256,
            "pinned is {:?}, but the files are {:?}: find out which is right",
            held.sha256,
            pin.sha256
        );
        println!("{} {} is pinned already, and these files are it", pin.component, pin.version);
        return Ok(());
    }
    let entry = written(&pin, wish.sums.map(|_| told));
    print!("{entry}");
    if write {
        let text = with_entry(&text, &pin.component, &entry);
        component::read_pins(minor, &text).map_err(|wrong| wrong_file(minor, &wrong))?;
        fs::write(file, text)?;
        println!("# added to {PLACE}/{minor}.toml");
    }
    Ok(())
}

/// Hashes the files of every architecture; a half entry is none.
fn hashed(wish: &Wish<'_>) -> anyhow::Result<Pin> {
    let mut pin = Pin {
        component: wish.component.to_owned(),
        version: wish.version.to_owned(),
        ..Pin::default()
    };
    for architecture in ARCHITECTURES {
        let ends = endings(&pin, architecture)
            .with_context(|| format!("{} has no address to be downloaded from", wish.component))?;
        let there = |end: &&String| wish.from.join(end).is_file();
        let Some(end) = ends.iter().find(there) else {
            bail!("{} has no {} for {architecture}", wish.from.display(), ends.join(" or "));
        };
        pin.sha256.insert((*architecture).to_owned(), hash(&wish.from.join(end))?);
    }
    Ok(pin)
}

fn hash(path: &Path) -> anyhow::Result<String> {
    let mut file = fs::File::open(path).with_context(|| format!("opening {}", path.display()))?;
    let (mut digest, mut chunk) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(hex(&digest.finalize())),
            count => digest.update(&chunk[..count]),
        }
    }
}

fn written(pin: &Pin, told: Option<&str>) -> String {
    let mut source = vec![format!("\"{}\"", component::HASHED)];
    if told == Some("confirmed") {
        source.push("\"the publisher's list of sums\"".to_owned());
    }
    let sums: String =
        pin.sha256.iter().map(|(name, sum)| format!("{name} = \"{sum}\"\n")).collect();
    format!(
        "\n[[{0}]]\nversion = \"{1}\"\nsource = [{2}]\n[{0}.sha256]\n{sums}",
        pin.component,
        pin.version,
        source.join(", ")
    )
}

/// The first entry of a component is what images get: a new one goes before the others.
fn with_entry(text: &str, component: &str, entry: &str) -> String {
    match text.find(&format!("\n[[{component}]]")) {
        Some(at) => format!("{}{entry}{}", &text[..at], &text[at..]),
        None => format!("{}\n{entry}", text.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory as a mirror has it, with a kubelet of both architectures.
    fn mirror() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        for name in ["amd64", "arm64"] {
            let home = place.path().join(format!("v1.36.1/bin/linux/{name}"));
            fs::create_dir_all(&home).unwrap();
            fs::write(home.join("kubelet"), format!("kubelet for {name}")).unwrap();
        }
        place
    }

    fn wish<'a>(from: &'a Path, sums: Option<&'a Sums>) -> Wish<'a> {
        Wish { component: "kubelet", version: "1.36.1", from, sums }
    }

    fn sum(text: &str) -> String {
        tenon_core::hex::sha256(text.as_bytes())
    }

    #[test]
    fn shipped_files_hold() {
        run(&Args {
            sums: None,
            from: None,
            minor: None,
            component: None,
            version: None,
            write: false,
        })
        .unwrap();
    }

    #[test]
    fn an_entry_comes_from_bytes_and_is_added_once() {
        let mirror = mirror();
        let file = mirror.path().join("1.36.toml");
        fs::write(&file, "# pins\n").unwrap();
        add(&file, "1.36", &wish(mirror.path(), None), false).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "# pins\n", "shown, not written");
        add(&file, "1.36", &wish(mirror.path(), None), true).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(&format!("x86_64 = \"{}\"", sum("kubelet for amd64"))), "{text}");
        assert!(text.contains(component::HASHED) && text.starts_with("# pins\n"), "{text}");
        add(&file, "1.36", &wish(mirror.path(), None), true).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), text);

        fs::write(mirror.path().join("v1.36.1/bin/linux/amd64/kubelet"), "another").unwrap();
        let error = add(&file, "1.36", &wish(mirror.path(), None), true).unwrap_err();
        assert!(error.to_string().contains("find out which is right"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }

    #[test]
    fn a_half_entry_and_a_contradicted_one_are_refused() {
        let mirror = mirror();
        let file = mirror.path().join("1.36.toml");
        fs::write(&file, "").unwrap();
        let wrong = Sums::from([("amd64/kubelet".to_owned(), "0".repeat(64))]);
        let error = add(&file, "1.36", &wish(mirror.path(), Some(&wrong)), true).unwrap_err();
        assert!(error.to_string().contains("listed is 000"), "{error}");
        fs::remove_file(mirror.path().join("v1.36.1/bin/linux/arm64/kubelet")).unwrap();
        let error = add(&file, "1.36", &wish(mirror.path(), None), true).unwrap_err();
        assert!(error.to_string().contains("for aarch64"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "");
    }

    #[test]
    fn a_list_confirms_by_names_that_tell_architectures_apart() {
        let mirror = mirror();
        let list = mirror.path().join("SHA256SUMS");
        let text = format!(
            "{}  bin/linux/amd64/kubelet\n{} *./linux/arm64/kubelet\n{}  kubelet\n",
            sum("kubelet for amd64"),
            sum("kubelet for arm64"),
            "f".repeat(64)
        );
        fs::write(&list, text).unwrap();
        let sums = read_sums(&list).unwrap();
        let pin = hashed(&wish(mirror.path(), None)).unwrap();
        assert_eq!(agreement(&pin, Some(&sums)).unwrap(), "confirmed");
        fs::write(&list, "not a list\n").unwrap();
        assert!(read_sums(&list).is_err());
    }

    #[test]
    fn a_new_entry_goes_before_older_ones_of_its_component() {
        let text = "# head\n\n[[a]]\nversion = \"1\"\n\n[[b]]\nversion = \"1\"\n";
        let more = with_entry(text, "b", "\n[[b]]\nversion = \"2\"\n");
        assert!(more.find("version = \"2\"").unwrap() < more.rfind("[[b]]").unwrap());
        assert!(more.starts_with("# head\n\n[[a]]\n"));
    }
}
